"""Turns of hosts for fetches that were not handed out: redirects, retries, robots.txt, and what a spider downloads itself."""

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


def test_what_a_spider_downloads_itself_is_finished_when_it_closes(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Its callback would raise else, and an item pipeline would store items without their images."""
    spider = """
        class Tester(Base):
            paths = ["/static/page"]
            async def parse(self, response):
                os.kill(os.getpid(), 15)
                for part in ("/static/reviews", "/static/stock"):
                    found = await maybe_deferred_to_future(download(self.crawler.engine, response, part))
                    note(found=found.url)
        from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
        def download(engine, response, part):
            request = Request(response.urljoin(part), meta=response.meta.copy())
            if hasattr(engine, "download_async"):
                return deferred_from_coro(engine.download_async(request))
            return engine.download(request)
    """
    with crawl(spider, of_HOST_DELAY=0.5) as running:
        assert running.wait() == 0
    assert "Traceback" not in running.log
    assert [one["found"] for one in running.record] == [site.url(path) for path in ("/static/reviews", "/static/stock")]
    assert state.at(site.url("/static/page"))["visits"] == 1
