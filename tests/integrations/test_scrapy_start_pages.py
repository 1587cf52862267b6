"""Start pages of a real crawl stay what they are, whatever the pages that link to them say."""

from __future__ import annotations

import pytest
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite


def _visits(state: State, url: str) -> int:
    visits: int = state.at(url).get("visits", 0)
    return visits


@pytest.mark.parametrize("limit", ["DEPTH_LIMIT", "of_MAX_DEPTH"])
def test_front_page_that_all_pages_link_to_stays_no_link_away(limit: str, crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Else what appears on it later would be beyond the limit of depth."""
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE + "/", dont_filter=True)
            def parse(self, response):
                note(url=response.url, depth=response.meta["depth"])
                for link in response.css("a"):
                    yield response.follow(link)
    """
    links = '<a href="/">home</a><a href="/static/{}">static</a>'
    site.answers |= {"/": (200, links.format("old"), {}), "/static/old": (200, links.format("far"), {})}
    with crawl(spider, **{limit: 2}) as running:
        running.until(lambda: _visits(state, site.url("/static/old")) >= 2 and _visits(state, site.url("/")) >= 3)
        site.answers["/"] = (200, links.format("new"), {})
        running.until(lambda: _visits(state, site.url("/static/new")) >= 1)
        running.stop()
    assert {line["depth"] for line in running.record if line["url"] == site.url("/")} == {0}
    assert {line["depth"] for line in running.record if line["url"] == site.url("/static/far")} == {2}


@pytest.mark.parametrize("path", ["/front", "/front/"])
def test_front_page_that_links_to_itself_as_to_any_page_keeps_its_callback(
    path: str, crawl: Crawler, site: MisbehavingSite, state: State
) -> None:
    """Else nobody would look for links on it after the first visit. Also where it has moved, and in the next run."""
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE + "%s", dont_filter=True, cb_kwargs={"by": "start"})
            def parse(self, response, by):
                note(url=response.url, by=by)
                for link in response.css("a"):
                    yield response.follow(link, self.page)
            def page(self, response):
                note(url=response.url, by="page")
    """
    links = '<a href="/front">front page</a><a href="/static/{}">static</a>'
    site.answers["/front/"] = (301, "", {"Location": "/front"})
    for found in ("old", "new"):
        site.answers["/front"] = (200, links.format(found), {})
        with crawl(spider % path) as running:
            visits = site.count("/front")
            running.until(lambda visits=visits: site.count("/front") >= visits + 4)
            site.answers["/front"] = (200, links.format(found + "er"), {})
            running.until(lambda found=found: _visits(state, site.url(f"/static/{found}er")) >= 1)
            running.stop()
    assert {line["by"] for line in running.record if line["url"] == site.url("/front")} == {"start"}


def test_start_page_that_was_sent_to_another_page_leaves_that_its_callback(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """An offer that is over leads to its category, which goes on being looked through for offers; also in the next run."""
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE + "/", dont_filter=True)
                yield Request(SITE + "/moved/category", dont_filter=True, callback=self.offer)
            def parse(self, response):
                yield response.follow("/category", self.category)
            def category(self, response):
                for link in response.css("a"):
                    yield response.follow(link, self.offer)
            def offer(self, response):
                note(url=response.url)
    """
    site.answers |= {"/": (200, "home", {})}
    for found in ("old", "new"):
        site.answers["/category"] = (200, f'<a href="/static/{found}">offer</a>', {})
        with crawl(spider) as running:
            running.until(lambda found=found: _visits(state, site.url(f"/static/{found}")) >= 1)
            site.answers["/category"] = (200, f'<a href="/static/{found}er">offer</a>', {})
            running.until(lambda found=found: _visits(state, site.url(f"/static/{found}er")) >= 1)
            running.stop()
