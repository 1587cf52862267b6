"""Identity: one fingerprinter for everything, and what a namespace notes of it."""

from __future__ import annotations

import pytest
from clocked_namespace import page_of
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.request import RequestFingerprinter, fingerprint

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.frontier.admitting.claimed_identity import SCRAPYS, claim_identity
from optimal_frontier.integrations.scrapy import CanonicalFingerprinter
from optimal_frontier.integrations.scrapy.fingerprinter import describe, described

URL = "http://www.a.example/news/?b=1&a=2&utm_source=mail"


def made(**settings: object) -> CanonicalFingerprinter:
    """As Scrapy makes it; names of settings without their prefix."""
    crawler = Crawler(Spider, {f"OPTIMAL_FRONTIER_{name}": value for name, value in settings.items()})
    fingerprinter = build_from_crawler(CanonicalFingerprinter, crawler)
    assert isinstance(fingerprinter, CanonicalFingerprinter)
    return fingerprinter


def test_it_is_scrapys_fingerprint_of_what_counts():
    """Method and body count as ever, and the order of a query does not."""
    default, folding = made(), made(IGNORED_PARAMETERS=["b"], FOLD_URLS="www,slash")
    assert default.fingerprint(Request(URL)) == fingerprint(Request("http://www.a.example/news/?a=2&b=1"))
    assert folding.fingerprint(Request(URL)) == fingerprint(Request("http://a.example/news?utm_source=mail&a=2"))
    posted = Request(URL, method="POST", body=b"x")
    assert default.fingerprint(posted) == fingerprint(Request("http://www.a.example/news/?a=2&b=1", method="POST", body=b"x"))
    assert made(IGNORED_PARAMETERS=[]).fingerprint(Request(URL)) == fingerprint(Request(URL))


def test_unusable_settings_fold_nothing_and_leave_the_word_to_the_scheduler():
    assert made(FOLD_URLS=["everything"]).fingerprint(Request(URL)) == fingerprint(Request(URL))


class Other:
    """A fingerprinter of the user's."""

    def fingerprint(self, request: Request) -> bytes:
        return request.url.encode()[:20]


@pytest.mark.parametrize("fingerprinter", [made(), made(FOLD_URLS=["www"]), RequestFingerprinter()], ids=["default", "www", "scrapys"])
def test_what_is_noted_makes_the_same_again(fingerprinter):
    again = described(describe(fingerprinter))
    assert again is not None
    assert describe(again) == describe(fingerprinter)
    assert again.fingerprint(Request(URL)) == fingerprinter.fingerprint(Request(URL))


def test_scrapys_own_is_the_one_that_is_noted_unless_something_else_is_said():
    assert describe(RequestFingerprinter()) == SCRAPYS
    assert describe(Other()).endswith(".Other")
    assert described(describe(Other())) is None


def test_another_identity_is_refused_once_there_are_pages(store):
    """In a line that says what to do; until then the last word counts."""
    claim_identity(store, SCRAPYS)
    claim_identity(store, describe(made()))
    claim_identity(store, describe(made()))
    store.add(page_of("a.example/"))
    claim_identity(store, describe(made()))
    with pytest.raises(ConfigurationError, match=r"utm_\*.*known by .*www.*choose another OPTIMAL_FRONTIER_NAMESPACE") as caught:
        claim_identity(store, describe(made(FOLD_URLS=["www"])))
    assert "\n" not in str(caught.value)
    assert store.hash("meta")["identity"] == describe(made())
