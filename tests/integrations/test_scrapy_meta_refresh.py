"""Pages that tell browsers to load them again."""

from __future__ import annotations

from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

SPIDER = """
    class Tester(Base):
        paths = ["/ticker", "/wall", "/entry"]

        def parse(self, response):
            note(path=response.url.rpartition("/")[2], text=response.css("p::text").get())
"""


def refreshing(to: str, text: str) -> str:
    return f'<html><head><meta http-equiv="refresh" content="30; url={to}"></head><body><p>{text}</p></body></html>'


def test_a_page_that_refreshes_itself_is_read(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """In one fetch; in two where the first one sets a cookie. What leads elsewhere is followed as ever."""
    site.answers["/ticker"] = (200, refreshing("/ticker#now", "the score"), {})
    site.answers["/wall"] = (200, refreshing("/wall", "wait"), {"Set-Cookie": "seen=1"})
    site.answers["/entry"] = (200, refreshing("/static/news", "go on"), {})
    with crawl(SPIDER, of_MIN_INTERVAL=600) as running:
        running.until(lambda: len(running.record) == 3)
        running.until(lambda: state.in_flight == 0)
        running.stop()
    assert {name: site.count(name) for name in ("/ticker", "/wall", "/entry", "/static/news")} == {
        "/ticker": 1,
        "/wall": 2,
        "/entry": 1,
        "/static/news": 1,
    }
    assert sorted((line["path"], line["text"]) for line in running.record) == [
        ("news", "static"),
        ("ticker", "the score"),
        ("wall", "wait"),
    ]
    for name in ("/ticker", "/wall"):
        row = state.at(site.url(name))
        assert (row["visits"], row["failures"]) == (1, 0)
