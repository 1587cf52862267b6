"""What fingerprints cost, against parsing the page once with lxml.

    python benchmarks/fingerprints.py [--rounds 300]

Pages of 50 kB as sites have them. Each round does everything once, in turn, so that a busy machine slows all alike; times are medians
over the rounds (us of processor time), ratios are medians of the rounds' ratios to ``lxml.html.document_fromstring``. "alone": the
response has no selector, and nobody asks for it later. "selector there": it was made before; "unchanged": and the fingerprint is the one
that is stored of the page. "selector used": what the fingerprint adds
to a callback that uses ``response.selector`` anyway. Responses are made before and freed after the clock runs. "body, warm" has the body in
the processor's cache. Then large and hostile bodies: seconds, and by how much the most memory that the process ever had has grown.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import lxml.html  # type: ignore[import-untyped]  # lxml ships no types
from scrapy.http import HtmlResponse, TextResponse

from optimal_frontier.detection import fingerprint
from optimal_frontier.detection.content import PARSED_BYTES
from optimal_frontier.detection.fingerprint import take
from optimal_frontier.detection.recipe import make_recipe

SIZE = 50_000
_CARD = (
    '<div class="card" id="i7"><h3><a href="/7">Title</a></h3><p>lorem ipsum dolor sit amet consectetur <b>bold</b> sed do eiusmod</p>'
    "<ul><li>x<li><span>y</span></ul></div>\n"
)
_OFFER = (
    '<div class="offer"><a class="btn btn-primary" href="/item/7?a=1&amp;b=2" data-id="7"><img src="/i/7.png" alt="n"></a>'
    '<span class="price">7.99</span> <em>new</em><script>var a={7}</script></div>\n'
)
_ARTICLE = (
    '<div class="section level2"><h2 id="s"><a class="anchor" href="#s"></a>A heading</h2><p class="text">Some <em>prose</em> about '
    'things that <a href="/wiki/matter" title="Matter">matter</a> to people, with <code>code</code> in it, and a long — typographic — '
    "sentence.</p>\n<!-- a comment --></div>\n"
)
_PROSE = "<p>" + "Nothing but prose in long paragraphs, without any other elements in them. " * 10 + "</p>\n"
PAGES = {"cards": _CARD, "offers": _OFFER, "article": _ARTICLE, "bare prose": _PROSE}
_HEAD = (
    "<!DOCTYPE html><html><head><title>Page</title><style>p{margin:0}</style><meta charset=utf-8></head>"
    "<body><nav><a href=/>home</a></nav><main>"
)
_LAUGHS = (
    b'<!DOCTYPE a [<!ENTITY l0 "lol">'
    + b"".join(b'<!ENTITY l%d "%s">' % (at + 1, b"&l%d;" % at * 10) for at in range(12))
    + b"]><a>&l12;</a>"
)


def page_of(part: str) -> bytes:
    return (_HEAD + part * (SIZE // len(part) + 1)).encode()[:SIZE]


def response_of(body: bytes) -> HtmlResponse:
    return HtmlResponse("http://a.example/", body=body, headers={"Content-Type": "text/html; charset=utf-8"})


def seconds(function: Callable[[], object]) -> float:
    start = time.process_time()
    held = function()
    spent = time.process_time() - start
    del held
    return spent


def measure(body: bytes, rounds: int) -> dict[str, list[float]]:
    """Times of each round, by what was done, seconds."""
    found: dict[str, list[float]] = {}
    recipe = make_recipe("text")
    known = take(response_of(body), recipe).digest
    for _ in range(rounds):
        responses = [response_of(body) for _ in range(8)]
        there, used, unused, alone, chosen, near, whole, same = responses
        there.selector  # noqa: B018
        same.selector  # noqa: B018

        def use(response: HtmlResponse = unused) -> object:
            return response.selector.css("p").get()

        def fingerprint_and_use(response: HtmlResponse = used) -> object:
            return fingerprint(response), response.selector.css("p").get()

        times = {
            "parse": seconds(lambda: lxml.html.document_fromstring(body)),
            "alone": seconds(partial(fingerprint, alone)),
            "selector there": seconds(partial(fingerprint, there)),
            "unchanged": seconds(partial(take, same, recipe, known)),
            "selector used": seconds(fingerprint_and_use) - seconds(use),
            "include, exclude": seconds(partial(fingerprint, chosen, include=["main"], exclude=["h2", ".price"])),
            "near": seconds(partial(fingerprint, near, kind="near")),
            "body": seconds(partial(fingerprint, whole, kind="body")),
            "body, warm": seconds(partial(fingerprint, whole, kind="body")),
        }
        for name, spent in times.items():
            found.setdefault(name, []).append(spent)
    return found


def hostile() -> dict[str, TextResponse]:
    """Responses that are large or made to hurt, by what they are."""
    big = 50_000_000
    card = _CARD.encode()
    kinds = {
        "50 MB of cards": ("text/html", card * (big // len(card))),
        "50 MB of JSON": ("application/json", b"[" + b'{"a":1},' * (big // 8) + b"1]"),
        "50 MB of zeros as HTML": ("text/html", bytes(big)),
        "4 MB of <div>": ("text/html", b"<div>" * (PARSED_BYTES // 5)),
        "4 MB of <p><b>": ("text/html", b"<p><b>" * (PARSED_BYTES // 6)),
        "4 MB of cards": ("text/html", card * (PARSED_BYTES // len(card))),
        "4 MB of JSON": ("application/json", b"[" + b'{"a":1},' * (PARSED_BYTES // 9) + b"1]"),
        "4 MB of [[[[": ("application/json", b"[" * PARSED_BYTES),
        "4 MB of feed": ("application/rss+xml", b"<rss><channel>" + b"<item><title>a</title></item>" * 140_000 + b"</channel></rss>"),
        "billion laughs": ("application/xml", _LAUGHS),
        "4 MB of <a> in XML": ("application/xml", b"<a>" * (PARSED_BYTES // 3)),
    }
    return {name: HtmlResponse("http://a.example/", body=body, headers={"Content-Type": media}) for name, (media, body) in kinds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    print(f"{'page of 50 kB':<14}{'what':<18}{'us':>8}{'ratio':>8}")
    for name, part in PAGES.items():
        found = measure(page_of(part), rounds)
        for what, times in found.items():
            ratio = median(spent / parse for spent, parse in zip(times, found["parse"], strict=True))
            print(f"{name if what == 'parse' else '':<14}{what:<18}{median(times) * 1e6:>8.0f}{ratio:>8.2f}")
    print(f"{'hostile':<26}{'s':>8}{'MB more':>9}")
    for name, response in hostile().items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        spent = seconds(partial(fingerprint, response))
        print(f"{name:<26}{spent:>8.2f}{(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:>9.0f}")


if __name__ == "__main__":
    main()
