"""Turns of hosts for fetches that were not handed out: redirects, retries, robots.txt."""

from __future__ import annotations

from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

from optimal_frontier.state.layouts import HostTurns


def test_a_host_that_is_asked_very_seldom_does_not_keep_redirects_waiting(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Else a page that redirects would never be fetched. Its turn counts: what comes next waits for one more."""
    site.answers["/from"] = (302, "", {"Location": site.url("/static/to")})
    spider = """
        class Tester(Base):
            paths = ["/from"]
    """
    with crawl(spider, of_HOST_DELAY=1000, of_CLOSE_AFTER=1) as running:
        running.wait()
    assert site.paths() == ["/from", "/static/to"]
    turns = HostTurns.stored(state.namespace.command("HVALS", state.key("opens"))[0])
    assert 1000 < turns.free / 1e6 - state.namespace.now() <= 2000
