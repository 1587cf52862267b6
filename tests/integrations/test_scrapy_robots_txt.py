"""robots.txt holds for all requests that wait for it, not for the first one alone, and as it is now."""

from __future__ import annotations

from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import Settings

from optimal_frontier import Addon
from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.integrations.scrapy.robots_txt import PatientRobotsTxtMiddleware

NAME = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
#: Pages that robots.txt forbids, all of which wait for it.
FORBIDDEN = 10


def test_who_waits_for_robots_txt_obeys_it(crawl: Crawler, site: MisbehavingSite) -> None:
    """It comes by way of a redirect, which takes half a second: all requests wait by then."""
    site.answers["/robots.txt"] = (302, "", {"Location": site.url("/slow/0.5/robots")})
    site.answers["/slow/0.5/robots"] = (200, "User-agent: *\nDisallow: /private/\n", {"Content-Type": "text/plain"})
    spider = f"""
    class Tester(Base):
        paths = ["/static/allowed", *(f"/private/{{n}}" for n in range({FORBIDDEN}))]
    """
    with crawl(spider, ROBOTSTXT_OBEY=True, of_CLOSE_AFTER=1) as running:
        running.wait()
        stats = running.stats
    assert stats["robotstxt/forbidden"] == stats["optimal_frontier/failed/RobotsDenied"] == FORBIDDEN
    assert [path for path in site.paths() if path.startswith("/private/")] == []
    assert site.count("/static/allowed") >= 1
    assert site.count("/robots.txt") == 1


def test_robots_txt_is_read_again(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """A crawl that goes on for weeks obeys it as it is now, and as it was where it cannot be read any more."""
    spider = """
    import optimal_frontier.integrations.scrapy.robots_txt as robots_txt

    robots_txt.KNOWN_S = robots_txt.AGAIN_S = 0.2

    class Tester(Base):
        paths = ["/hub", "/static/0"]

        def parse(self, response):
            yield from response.follow_all(css="a")
    """
    allowed, refused = site.url("/static/0"), site.url("/static/1")
    site.answers["/hub"] = (200, "<p>nothing yet</p>", {})
    site.answers["/robots.txt"] = (302, "", {"Location": site.url("/drop")})
    with crawl(spider, ROBOTSTXT_OBEY=True, RETRY_ENABLED=False) as running:
        running.until(lambda: state.at(allowed).get("visits", 0) > 1)
        site.answers["/robots.txt"] = (200, "User-agent: *\nDisallow: /static/\n", {"Content-Type": "text/plain"})
        running.until(lambda: state.at(allowed)["failures"] == 1)
        for away in ("/drop", "/status/503"):
            reads = site.count(away)
            site.answers["/robots.txt"] = (302, "", {"Location": site.url(away)})
            running.until(lambda away=away, reads=reads: site.count(away) > reads + 1)
        site.answers["/hub"] = (200, '<a href="/static/1">new</a>', {})
        running.until(lambda: state.at(refused).get("failures") == 1)
        running.stop()
    assert site.count("/static/1") == 0
    assert CAUSES[state.at(refused)["cause"]] == CAUSES[state.at(allowed)["cause"]] == "robots"


def test_it_takes_the_place_of_scrapys_own_and_of_no_other() -> None:
    """Its order too; what the user says of either stays."""

    def wired(**given: object) -> dict[object, object]:
        settings = Settings({"DOWNLOADER_MIDDLEWARES": given}, priority="project")
        Addon().update_settings(settings)
        return dict(settings["DOWNLOADER_MIDDLEWARES"])

    assert wired().items() >= {NAME: None, PatientRobotsTxtMiddleware: 100}.items()
    assert PatientRobotsTxtMiddleware not in wired(**{NAME: 90})
    assert PatientRobotsTxtMiddleware not in wired(**{NAME: None})
    assert issubclass(PatientRobotsTxtMiddleware, RobotsTxtMiddleware)
