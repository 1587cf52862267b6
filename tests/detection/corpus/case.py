"""What a case is, and the pages that most of them are made of."""
# ruff: noqa: E501 -- markup stands as sites send it

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace

HTML = "text/html; charset=utf-8"
WORDS = [
    "market",
    "river",
    "council",
    "budget",
    "harbour",
    "engine",
    "winter",
    "letter",
    "garden",
    "signal",
    "window",
    "station",
    "archive",
    "bridge",
    "forest",
    "record",
    "museum",
    "season",
    "village",
    "coast",
    "minister",
    "library",
    "valley",
    "teacher",
    "festival",
    "railway",
    "island",
    "committee",
    "journal",
    "weather",
    "factory",
    "student",
    "mountain",
    "street",
]


@dataclass(frozen=True)
class Fetch:
    """One fetch: its number, and when it is made (s since the epoch)."""

    number: int
    at: float

    def random(self, salt: str = "") -> random.Random:
        """What the server draws for this fetch."""
        return random.Random(f"{self.number}/{salt}")

    def token(self, digits: int = 32, salt: str = "") -> str:
        return f"{self.random(salt).getrandbits(4 * digits):0{digits}x}"

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)


@dataclass(frozen=True)
class Case:
    """A page: ``render(edition, fetch)`` is what the server sends."""

    name: str
    render: Callable[[int, Fetch], str]
    media: str = HTML

    def response(self, edition: int, fetch: Fetch) -> SimpleNamespace:
        return SimpleNamespace(headers={"Content-Type": self.media}, body=self.render(edition, fetch).encode())


def prose(salt: str, words: int) -> str:
    """The same sentences for the same salt."""
    rng = random.Random(salt)
    text = []
    while words > 0:
        n = min(words, rng.randint(8, 16))
        text.append(" ".join(["The", *rng.choices(WORDS, k=n), "."]).replace(" .", "."))
        words -= n
    return " ".join(text)


def paragraphs(salt: str, n: int = 4) -> str:
    return "\n".join(f"<p>{prose(f'{salt}{at}', 40)}</p>" for at in range(n))


def price(edition: int) -> str:
    """19.99, 18.99, 17.99: one digit an edition."""
    return f"{19 - edition}.99"


def news(body: str, *, head: str = "", after: str = "", edition: int = 0, headline: str = "Harbour bridge reopens") -> str:
    """An article of a newspaper; ``body`` follows the text, ``after`` the article."""
    changed = ("opened on Monday", "opened on Tuesday", "opened on Friday")[edition]
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{headline} - The Coast</title>
<link rel="stylesheet" href="/static/site.css">{head}</head>
<body class="article-page">
<header class="site-header"><a class="logo" href="/">The Coast</a>
<nav class="main-nav"><ul><li><a href="/news">News</a></li><li><a href="/sport">Sport</a></li><li><a href="/weather">Weather</a></li></ul></nav></header>
<main id="content"><article class="story"><h1>{headline}</h1><p class="byline">By <a rel="author" href="/staff/ann">Ann Archer</a></p>
<div class="story-body"><p>The bridge over the harbour {changed} after two years of work.</p>
{paragraphs(headline)}
</div>{body}</article></main>
{after}
<footer class="site-footer"><ul><li><a href="/about">About</a></li><li><a href="/terms">Terms</a></li></ul><p>&copy; The Coast Ltd.</p></footer>
</body></html>"""


def product(edition: int, *, head: str = "", form: str = "", extra: str = "", shown: str | None = None, stock: str = "In stock") -> str:
    """A product of a shop."""
    shown = price(edition) if shown is None else shown
    return f"""<!doctype html><html><head><title>Espresso maker | Kitchen &amp; Co</title>{head}</head><body>
<div class="page-wrapper"><div class="top-bar"><span class="phone">Call 0800 555 019</span></div>
<div class="breadcrumbs"><a href="/">Home</a> / <a href="/coffee">Coffee</a></div>
<div class="product-page" id="product"><h1 class="product-title">Espresso maker, 6 cups</h1>
<div class="gallery"><img src="/img/maker.jpg" alt="Espresso maker"></div>
<div class="buy-box"><p class="price"><span class="currency">&pound;</span><span class="amount">{shown}</span></p><p class="stock">{stock}</p>
<form action="/basket" method="post">{form}<input type="hidden" name="sku" value="E6"><button type="submit">Add to basket</button></form></div>
<div class="description">{paragraphs("espresso", 3)}</div>
<table class="specs"><tr><th>Weight</th><td>720 g</td></tr><tr><th>Material</th><td>Aluminium</td></tr></table></div>
{extra}
<div class="page-footer"><p>Free returns within 30 days</p></div></div></body></html>"""


def listing(rows: str, *, head: str = "", before: str = "", after: str = "") -> str:
    """A forum's list of threads, or a portal's of entries."""
    return f"""<!DOCTYPE html><html><head><title>Gardeners' forum</title>{head}</head><body>
<div id="header"><h1>Gardeners' forum</h1><ul class="tabs"><li><a href="/new">New</a></li><li><a href="/top">Top</a></li></ul></div>
{before}
<div id="main"><ul class="threads">{rows}</ul></div>
{after}
<div id="footer"><p>Rules - Contact - Privacy</p></div></body></html>"""


def threads(edition: int, more: Callable[[int], str] = lambda at: "") -> str:
    """Threads, newest first; an edition adds one."""
    return "\n".join(
        f'<li class="thread"><a class="subject" href="/t/{at}">{prose(f"thread{at}", 6)}</a> <span class="author">user{at % 4}</span>{more(at)}</li>'
        for at in range(11 + edition, 0, -1)
    )
