"""Noise that a reader sees."""
# ruff: noqa: E501 -- markup stands as sites send it

from __future__ import annotations

from .case import WORDS, Case, Fetch, listing, news, paragraphs, price, product, prose, threads


def text_advertisements(edition: int, fetch: Fetch) -> str:
    ad = prose(f"ad{fetch.random().randint(0, 500)}", 9)
    return news(f'<div class="ad-slot"><span class="label">Advertisement</span><p>{ad}</p></div>', edition=edition)


def timestamp_in_the_footer(edition: int, fetch: Fetch) -> str:
    return news("", edition=edition).replace(
        "&copy; The Coast Ltd.</p>", f"&copy; The Coast Ltd.</p><p>Page generated {fetch.time:%Y-%m-%d %H:%M:%S} UTC</p>"
    )


def render_time(edition: int, fetch: Fetch) -> str:
    debug = f'<p class="debug">Rendered in {fetch.random().uniform(20, 900):.1f} ms by web-{fetch.random().randint(1, 9)}</p>'
    return listing(threads(edition), after=debug)


def view_counter(edition: int, fetch: Fetch) -> str:
    return news(
        f'<p class="meta"><span class="views">{31000 + 7 * fetch.number} views</span> <span class="section">Local</span></p>',
        edition=edition,
    )


def locale_date_in_the_header(edition: int, fetch: Fetch) -> str:
    date = (
        f"{['lundi', 'mardi', 'mercredi', 'jeudi', 'vendredi', 'samedi', 'dimanche'][fetch.time.weekday()]} {fetch.time:%d/%m/%Y, %H h %M}"
    )
    return news("", edition=edition).replace(
        '<nav class="main-nav">', f'<span class="today">Nous sommes le {date}</span><nav class="main-nav">'
    )


def minutes_ago(edition: int, fetch: Fetch) -> str:
    def ago(at: int) -> str:
        return f' <span class="age">{int(fetch.at / 60) - 100 * at % 1000:,} minutes ago</span>'

    return listing(threads(edition, ago))


def minutes_ago_in_time_elements(edition: int, fetch: Fetch) -> str:
    return news("", edition=edition).replace(
        "Ann Archer</a>", f'Ann Archer</a>, <time datetime="2024-05-01">{int(fetch.at / 60) % 9000} min ago</time>'
    )


def rotating_banner(edition: int, fetch: Fetch) -> str:
    slogan = ("Summer sale", "New: gift cards", "Free delivery over 30", "Open on Sundays", "Try our app")[fetch.random().randint(0, 4)]
    return product(edition, extra=f'<div id="banner"><a href="/promo">{slogan}</a></div>')


def related_articles(edition: int, fetch: Fetch) -> str:
    picks = fetch.random().sample(range(60), 4)
    items = "".join(f'<li><a href="/a/{at}">{prose(f"story{at}", 7)}</a></li>' for at in picks)
    return news("", edition=edition, after=f'<aside class="related"><h2>Related articles</h2><ul>{items}</ul></aside>')


def also_bought(edition: int, fetch: Fetch) -> str:
    picks = fetch.random().sample(range(90), 6)
    cards = "".join(f'<div class="card"><a class="name">{WORDS[at % 30]} {at}</a><span class="amount">{at}.49</span></div>' for at in picks)
    return product(edition, extra=f'<section class="recommendations"><h2>Customers also bought</h2>{cards}</section>')


def people_watching(edition: int, fetch: Fetch) -> str:
    return product(edition, extra=f'<div class="urgency"><b>{fetch.random().randint(3, 60)}</b> people are looking at this right now</div>')


def cookie_banner_at_times(edition: int, fetch: Fetch) -> str:
    shown = '<div id="cookie-consent"><p>We use cookies to improve your visit.</p><button>Accept</button><button>Reject</button></div>'
    return news("", edition=edition, after=shown if fetch.number % 2 else "")


def captcha_question(edition: int, fetch: Fetch) -> str:
    rng = fetch.random()
    question = f'<p class="captcha-question">What is {rng.randint(2, 40)} plus {rng.randint(2, 40)}?</p><input name="answer">'
    return news(f'<form class="comment-form"><label>Your comment</label><textarea></textarea>{question}</form>', edition=edition)


def visitors_online(edition: int, fetch: Fetch) -> str:
    rng = fetch.random()
    box = f'<div class="whos-online"><h3>Who is online</h3><p>{rng.randint(20, 400)} guests, {rng.randint(1, 30)} members</p></div>'
    return listing(threads(edition), after=box)


def weather_and_stocks(edition: int, fetch: Fetch) -> str:
    rng = fetch.random()
    bar = f'<div class="ticker"><span>FTSE {8000 + rng.randint(0, 999)}</span> <span>GBP/EUR 1.{rng.randint(100, 200)}</span></div>'
    return news("", edition=edition).replace('<main id="content">', bar + '<main id="content">')


def quote_of_the_moment(edition: int, fetch: Fetch) -> str:
    return listing(threads(edition), before=f"<blockquote id='quote'>{prose(f'q{fetch.random().randint(0, 200)}', 12)}</blockquote>")


def transaction_id_in_an_unnamed_cell(edition: int, fetch: Fetch) -> str:
    rows = "".join(f"<tr><td>{name}</td><td>{(at + 3) * 17 + (edition if at == 4 else 0)}</td></tr>" for at, name in enumerate(WORDS[:9]))
    return f"""<html><head><title>Register</title></head><body><h1>Register of harbours</h1>
<table><tr><th>Name</th><th>Berths</th></tr>{rows}</table><p>Query reference {fetch.token(12)}</p>{paragraphs("register", 2)}</body></html>"""


def counter_without_any_class(edition: int, fetch: Fetch) -> str:
    """A page of the nineties: no ids, no classes."""
    return f"""<HTML><HEAD><TITLE>Model railway club</TITLE></HEAD><BODY BGCOLOR=white><CENTER><H2>Model railway club</H2></CENTER><HR>
{paragraphs("railway", 3)}<P>Next meeting: {("4 May", "5 May", "8 May")[edition]}, 7 pm, at the library.</P><HR>
<FONT SIZE=1><P>You are visitor number {80211 + fetch.number} since 1997</P></FONT></BODY></HTML>"""


def shuffled_tags(edition: int, fetch: Fetch) -> str:
    tags = WORDS[:12]
    fetch.random().shuffle(tags)
    cloud = "".join(f'<a class="tag" href="/tag/{tag}">{tag}</a> ' for tag in tags)
    return news("", edition=edition, after=f'<div class="tag-cloud">{cloud}</div>')


def countdown(edition: int, fetch: Fetch) -> str:
    left = int(2_000_000_000 - fetch.at)
    clock = f'<div class="countdown"><span class="h">{left // 3600}</span>:<span class="m">{left // 60 % 60}</span>:<span class="s">{left % 60}</span></div>'
    return product(edition, extra=f'<div class="deal"><p>Deal of the week ends in</p>{clock}</div>')


def clock_in_the_text_of_the_page(edition: int, fetch: Fetch) -> str:
    """Loose in a container that holds everything else: only a regular expression could leave it out."""
    return f"""<html><head><title>Tide table</title></head><body><div class="tides">Server time {fetch.time:%H:%M:%S}
<h1>Tides at the harbour</h1>{paragraphs("tides", 3)}<p>High water {price(edition)} m</p></div></body></html>"""


WIDGETS = tuple(
    Case(render.__name__, render)
    for render in (
        text_advertisements,
        timestamp_in_the_footer,
        render_time,
        view_counter,
        locale_date_in_the_header,
        minutes_ago,
        minutes_ago_in_time_elements,
        rotating_banner,
        related_articles,
        also_bought,
        people_watching,
        cookie_banner_at_times,
        captcha_question,
        visitors_online,
        weather_and_stocks,
        quote_of_the_moment,
        transaction_id_in_an_unnamed_cell,
        counter_without_any_class,
        shuffled_tags,
        countdown,
        clock_in_the_text_of_the_page,
    )
)
