"""HOST_MAX_RATE in a real crawl, by the site's own record."""

from __future__ import annotations

from collections import Counter

import pytest
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

pytestmark = pytest.mark.timing

RATE = 10.0


def test_a_host_gets_no_more_than_its_rate(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Two hosts, pages that could use ten times as much: each host gets its rate, first visits included, and no second sees more."""
    spider = """
        class Tester(Base):
            def first(self):
                for host in ("127.0.0.1", "localhost"):
                    for at in range(20):
                        yield Request(SITE.replace("127.0.0.1", host) + f"/static/{at}")
    """
    with crawl(spider, of_HOST_MAX_RATE=RATE, of_CRAWL_RATE=200, of_MIN_INTERVAL=0.05) as running:
        running.until(lambda: len(site.fetches) > 130)
        published = state.plan
        running.stop()
    by_host: dict[str, list[float]] = {}
    for fetch in site.fetches:
        by_host.setdefault(fetch.headers["host"].partition(":")[0], []).append(fetch.at)
    assert set(by_host) == {"127.0.0.1", "localhost"}
    for times in by_host.values():
        assert max(Counter(int(at - times[0]) for at in times).values()) <= RATE + 2  # what is on its way jitters by a request or two
        # The times are those of arrival: the last request may have been quicker on its way than the first.
        span = times[-1] - times[0]
        assert 0.75 * RATE * span <= len(times) - 1 <= RATE * (span + 0.05)
    # The plan knows: the rest of the budget cannot be used.
    assert float(published["planned_rate"]) <= 2 * RATE + 1e-6
    assert float(published["unused"]) > 100
