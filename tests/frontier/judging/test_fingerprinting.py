"""What counts as content, page by page, and what happens where no fingerprint can be made."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from optimal_frontier.detection import fingerprint, settings_tag
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.frontier.judging.fingerprinting import FAILED, MISSED, Fingerprinting
from optimal_frontier.settings import PREFIX, FrontierSettings

HERE = __name__


def prices(response: Any) -> Any:
    """What the settings below name: items of a page."""
    if b"broken" in response.body:
        raise ValueError("no price")
    yield {"price": response.body[-1:]}


not_callable = 5


def fingerprinting(**values: object) -> Fingerprinting:
    return Fingerprinting(FrontierSettings.parse({PREFIX + name: value for name, value in values.items()}))


def html(markup: str) -> Any:
    return SimpleNamespace(body=markup.encode(), headers={"Content-Type": "text/html"})


def test_rules_say_what_counts_page_by_page() -> None:
    made = fingerprinting(
        FINGERPRINT_EXCLUDE=["i"],
        RULES=[
            {"host": "a", "importance": 2},
            {"pattern": "/b", "fingerprint": "body"},
            {"pattern": "/n", "fingerprint": "near", "distance": 5},
            {"pattern": "/n/all", "exclude": []},
            {"pattern": "/c", "fingerprint": f"{HERE}.prices"},
        ],
    )
    page = html("<p>x<i>1</i>")
    ways = {
        "http://a/": fingerprint(page, exclude=["i"]),
        "http://a/b": fingerprint(page, kind="body"),
        "http://a/n": fingerprint(page, kind="near", exclude=["i"]),
        "http://a/n/all": fingerprint(page, kind="near"),
        "http://a/c": fingerprint(page, kind=f"{HERE}.prices"),
    }
    assert len(set(ways.values())) == 5
    assert {url: made.take(page, url).digest for url in ways} == ways
    assert [made.way(url).distance for url in ways] == [0, 0, 5, 5, 0]
    assert made.way("http://a/").recipe.tag == settings_tag("text", exclude=["i"])
    assert made.way("http://a/b").recipe.tag == settings_tag("body")
    assert made.way("http://a/c").recipe.tag == settings_tag(f"{HERE}.prices")
    tags = {made.way(url).tag for url in ways}
    assert len(tags) == 5
    assert all(0 < tag < 2**16 for tag in tags)
    assert made.take(page, "http://a/b").tag == made.way("http://a/b").tag
    assert made.way("http://other/") is made.way("http://a/")


def test_a_callable_that_fails_costs_a_bit_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    made = fingerprinting(FINGERPRINT=f"{HERE}.prices")
    for _ in range(3):
        assert made.take(html("broken"), "http://a/")[0::3] == (None, {FAILED: 1})
    assert made.take(html("5"), "http://a/").digest is not None
    (record,) = caplog.records
    assert f"{HERE}.prices failed on http://a/" in record.getMessage()
    assert record.exc_info is not None


def test_a_selector_that_finds_nothing_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    made = fingerprinting(FINGERPRINT_INCLUDE=["main", ".price"])
    with caplog.at_level(logging.WARNING):
        assert [made.take(html(f"<p>{at}"), f"http://a/{at}").counters for at in range(3)] == [{MISSED: 1}] * 3
    assert len({made.take(html(f"<p>{at}"), "http://a/").digest for at in range(3)}) == 3
    assert made.take(html("<main>x"), "http://a/").counters == {}
    (record,) = caplog.records
    assert "nothing on http://a/0 is what is to be included, main, .price" in record.getMessage()


@pytest.mark.parametrize("dotted", ["no_such_module.f", f"{HERE}.nothing", f"{HERE}.not_callable"])
def test_a_callable_that_cannot_be_had_is_refused_at_the_start(dotted: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^OPTIMAL_FRONTIER_FINGERPRINT = '{dotted}': expected one of 'text'") as caught:
        fingerprinting(FINGERPRINT=dotted)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigurationError, match=rf"^OPTIMAL_FRONTIER_RULES\[1\]\['fingerprint'\] = '{dotted}': expected"):
        fingerprinting(RULES=[{"host": "a"}, {"host": "a", "fingerprint": dotted}])
