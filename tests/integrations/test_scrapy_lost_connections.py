"""Connections that are kept open, and lost."""

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
