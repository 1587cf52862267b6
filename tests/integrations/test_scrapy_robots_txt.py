"""robots.txt holds for all requests that wait for it, not for the first one alone."""

from __future__ import annotations

import pytest
from crawler import Crawler
from misbehaving_site import MisbehavingSite
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import Settings

from optimal_frontier import Addon
from optimal_frontier.integrations.scrapy.robots_txt import IS_NEEDED, PatientRobotsTxtMiddleware

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


@pytest.mark.skipif(not IS_NEEDED, reason="this Scrapy tells everybody")
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
