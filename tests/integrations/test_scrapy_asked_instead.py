"""A middleware makes a request anew instead of copying it: ``Request(url)``, as solvers of captchas do."""

from __future__ import annotations

import pytest
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

from optimal_frontier.integrations.scrapy.incoming import MOST_ANEW

SPIDER = """
    class Solver:
        def process_response(self, request, response, spider=None):
            if "X-Solved" in request.headers or response.status != 200:
                return response
            url = request.meta.get("redirect_urls", [request.url])[0]
            return Request(url, request.callback, request.method, {"X-Solved": "1"}, dont_filter=os.environ["AGAIN"] == "again")

    class Tester(Base):
        def first(self):
            yield Request(SITE + "/static/gate", self.page, meta={"frontier_gate": True})
            yield Request(SITE + "/counter/a", self.page, cb_kwargs={"known": 1})
            yield Request(SITE + "/redirect/static/b", self.page, cb_kwargs={"known": 1})
            yield Request(SITE + "/static/posted", self.page, method="POST")

        def page(self, response, known=0):
            note(path=response.url[len(SITE):], solved="X-Solved" in response.request.headers)
"""


@pytest.mark.parametrize("again", ["again", "once"])
def test_what_is_asked_under_the_same_address_is_the_visit(
    again: str, crawl: Crawler, site: MisbehavingSite, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is judged as the page, under its lease; the stored request stays what it was, and no log-in counts as failed."""
    monkeypatch.setenv("AGAIN", again)
    with crawl(SPIDER, DOWNLOADER_MIDDLEWARES={"Solver": 543}) as running:
        running.until(lambda: all(state.at(site.url(path)).get("visits", 0) >= 3 for path in ("/counter/a", "/redirect/static/b")))
        running.stop()
    assert all(line["solved"] for line in running.record)
    assert {line["path"] for line in running.record} == {"/static/gate", "/counter/a", "/static/b", "/static/posted"}
    for path in ("/counter/a", "/redirect/static/b"):
        row = state.at(site.url(path))
        assert row["attempts"] == row["visits"]
        place = state.place(site.url(path))
        assert place is not None
        assert b"known" in place.value
    assert state.counts["pages"] == 2
    assert not any(name.startswith("optimal_frontier/failed/") and not name.endswith("/released") for name in running.stats)
    assert "frontier_gate" not in running.log
    assert site.count("/static/posted") == 2


def test_a_middleware_that_asks_for_ever_is_held_back(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """By no filter of Scrapy's, as copies pass that, nor by the budget: the page fails, and is asked for again after its backoff."""
    spider = """
        class Solver:
            def process_response(self, request, response, spider=None):
                return Request(request.url, request.callback)

        class Tester(Base):
            def first(self):
                yield Request(SITE + "/static/a")
                yield Request(SITE + "/static/posted", method="POST")
    """
    with crawl(spider, DOWNLOADER_MIDDLEWARES={"Solver": 543}) as running:
        running.until(lambda: state.at(site.url("/static/a")).get("failures", 0) == 1)
        assert site.count("/static/a") == 1 + MOST_ANEW
        running.stop()


def test_a_request_that_a_middleware_has_kept_is_the_visit_each_time(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    spider = """
        class Solver:
            made = {}

            def process_response(self, request, response, spider=None):
                if "X-Solved" in request.headers or response.status != 200:
                    return response
                made = Request(request.url, request.callback, headers={"X-Solved": "1"}, dont_filter=True)
                return self.made.setdefault(request.url, made)

        class Tester(Base):
            paths = ["/static/a"]
    """
    with crawl(spider, DOWNLOADER_MIDDLEWARES={"Solver": 543}) as running:
        running.until(lambda: state.at(site.url("/static/a")).get("visits", 0) >= 3)
        running.stop()
    row = state.at(site.url("/static/a"))
    assert row["attempts"] == row["visits"]
    assert "AttributeError" not in running.log


def test_what_is_asked_in_place_of_a_bypass_is_no_page(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    spider = """
        class Solver:
            def process_response(self, request, response, spider=None):
                if "X-Solved" in request.headers or response.status != 200:
                    return response
                return Request(request.url, request.callback, headers={"X-Solved": "1"})

        class Tester(Base):
            def first(self):
                yield Request(SITE + "/static/a", self.page, meta={"frontier_bypass": True})

            def page(self, response):
                note(solved="X-Solved" in response.request.headers)
    """
    with crawl(spider, DOWNLOADER_MIDDLEWARES={"Solver": 543}) as running:
        running.until(lambda: running.record)
        running.stop()
    assert running.record == [{"solved": True}]
    assert state.counts.get("pages", 0) == 0


@pytest.mark.parametrize("order", [10, 543])
def test_a_middleware_has_the_last_word_wherever_it_stands(order: int, crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Nearer to the engine than ours, too: what it asks for again is the visit, and what it raises at has failed."""
    spider = """
        class Guard:
            times = 0

            def process_response(self, request, response, spider=None):
                if request.url.endswith("/raised"):
                    self.times += 1
                    if self.times < 3:
                        raise ValueError("no page")
                elif "X-Token" not in request.headers:
                    return request.replace(headers={"X-Token": "1"}, dont_filter=True)
                return response

            def process_exception(self, request, exception, spider=None):
                return request.replace(url=SITE + "/static/found") if ".invalid" in request.url else None

        class Tester(Base):
            def first(self):
                yield Request(SITE + "/static/asked", self.page)
                yield Request(SITE + "/static/posted", self.page, method="POST")
                yield Request(SITE + "/static/raised", self.page)
                yield Request("http://nowhere.invalid/", self.page)

            def page(self, response):
                note(path=response.url[len(SITE):])
    """
    with crawl(spider, DOWNLOADER_MIDDLEWARES={"Guard": order}, RETRY_ENABLED=False) as running:
        addresses = [*map(site.url, ("/static/asked", "/static/raised")), "http://nowhere.invalid/"]
        running.until(lambda: all(state.at(address).get("visits", 0) >= 2 for address in addresses))
        running.stop()
    rows = {address.rpartition("/")[2]: state.at(address) for address in addresses}
    assert {name: row["attempts"] - row["visits"] for name, row in rows.items()} == {"asked": 0, "raised": 2, "": 0}
    assert {line["path"] for line in running.record} == {"/static/asked", "/static/posted", "/static/raised", "/static/found"}
    assert site.count("/static/posted") == 2
