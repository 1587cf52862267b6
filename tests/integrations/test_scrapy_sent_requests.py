"""How often a request is sent, and when its host is told that it was."""

from __future__ import annotations

from itertools import pairwise

from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite


def test_a_request_whose_connection_is_lost_is_not_sent_again_unseen(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Each fetch that the site sees is an attempt, or counted as one more: else it kept neither the host's delay nor the budget."""
    with crawl('Tester = type("Tester", (Base,), {"paths": ["/static/0", "/drop"]})', RETRY_ENABLED=False, of_HOST_DELAY=0.2) as running:
        running.until(lambda: state.at(site.url("/drop")).get("attempts"))
        running.stop()
    again = running.stats.get("optimal_frontier/extra_fetches", 0)
    assert site.count("/drop") == state.at(site.url("/drop"))["attempts"] + again


def test_a_page_whose_kept_connection_is_lost_is_fetched_in_turn_over_another(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Also at a revisit, which Scrapy does not retry: a server may close a connection when the next request is on its way."""
    paths = [f"/once/{n}" for n in range(3)]
    with crawl(f'Tester = type("Tester", (Base,), {{"paths": {paths}}})', of_HOST_DELAY=0.2, of_CLOSE_AFTER=3) as running:
        running.wait()
    assert [state.at(site.url(path))["failures"] for path in paths] == [0, 0, 0]
    assert len(site.fetches) == running.stats["optimal_frontier/dispatched"] + running.stats["optimal_frontier/extra_fetches"]
    times = [fetch.at for fetch in site.fetches]
    # When the site sees them jitters; one that waits for no turn comes within milliseconds.
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.1


def test_a_start_is_told_when_the_request_was_sent(crawl: Crawler, site: MisbehavingSite) -> None:
    """Over a new connection, and over one that was kept: told before, the next fetch of the host would come too soon."""
    spider = """
        from twisted.internet import tcp
        from optimal_frontier.frontier.dispatching.courier import Courier

        write, tell = tcp.Connection.writeSomeData, Courier.note_start

        def written(connection, data):
            if bytes(data).startswith(b"GET"):
                note(event="sent")
            return write(connection, data)

        def told(*arguments, **named):
            note(event="told")
            tell(*arguments, **named)

        tcp.Connection.writeSomeData, Courier.note_start = written, told

        class Tester(Base):
            paths = ["/static/0", "/static/1"]
    """
    with crawl(spider, of_HOST_DELAY=0.2) as running:
        running.until(lambda: sum("event" in noted for noted in running.record) >= 4)
        running.stop()
    assert [noted["event"] for noted in running.record if "event" in noted][:4] == ["sent", "told"] * 2
