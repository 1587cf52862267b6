"""How often a request is sent, and when its host is told that it was."""

from __future__ import annotations

from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite


def test_a_request_whose_connection_is_lost_is_not_sent_again_unseen(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Each fetch that the site sees is an attempt: one that nobody knows of keeps neither the host's delay nor the budget."""
    with crawl('Tester = type("Tester", (Base,), {"paths": ["/static/0", "/drop"]})', RETRY_ENABLED=False, of_HOST_DELAY=0.2) as running:
        running.until(lambda: state.at(site.url("/drop")).get("attempts"))
        running.stop()
    assert site.count("/drop") == state.at(site.url("/drop"))["attempts"]


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
