"""Pings as words about pages: which page a URL is, is for Scrapy's fingerprinter to say."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from scrapy import Request

from optimal_frontier.frontier.admitting.pinged import read_ping, word_of
from optimal_frontier.frontier.dispatching.ping_taking import Words
from optimal_frontier.state.pings import RawPing

logger = logging.getLogger(__name__)


class PingedPages:
    """Makes words of pings; to be called on the thread of the reactor.

    Parameters
    ----------
    crawler : Crawler
        With the fingerprinter.
    """

    def __init__(self, crawler: Any) -> None:
        self._fingerprinter, self._stats = crawler.request_fingerprinter, crawler.stats
        #: Those of the last call: a ping of a page that is being fetched stays in the stream, and is read again.
        self._counted: set[bytes] = set()

    def __call__(self, pings: Sequence[RawPing]) -> Words:
        """Return the words, and why other pings are none."""
        words = Words()
        for at, raw in enumerate(pings):
            try:
                ping = read_ping(raw)
                words.told[at] = word_of(ping, self._fingerprinter.fingerprint(Request(ping.url)))
            except Exception as error:  # whatever a stranger has written, or a fingerprinter of the user's makes of it
                logger.debug("the ping %r is dropped: %r", raw.number, error)
                words.refused[at] = " ".join(str(error).split()) or type(error).__name__
        told = {pings[at].number for at in words.told}
        self._stats.inc_value("optimal_frontier/pings", len(told - self._counted))
        self._counted = told
        self._stats.inc_value("optimal_frontier/pings_refused", len(words.refused))
        return words
