"""From a request to a page: its identity, its row by RULES and bounds, its limits; and links to retired pages."""

from __future__ import annotations

import hashlib

import pytest
from clocked_namespace import ClockedNamespace, fingerprint, page_of, settings_of

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.frontier.admitting.claimed_identity import claim_identity
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.admitting.pages import new_page, pattern_number
from optimal_frontier.frontier.admitting.revival import LONGEST_RETIREMENT_S, REVIVED_AFTER_S, revived
from optimal_frontier.state.messages import page_of as known_by
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.rows import ACTIVE, ONCE, RETIRED, TIMED, TRANSIENT, Row

URL = "http://h/news/1.html"


def test_rules_say_importance_and_bounds() -> None:
    settings = settings_of(RULES=[{"pattern": "/news/", "interval": 60, "importance": 3}], MAX_INTERVAL=1000)
    row = new_page(settings, fingerprint("x"), URL, {"url": URL}).row
    assert (row.importance, row.min_interval, row.max_interval, row.state) == (3.0, 60.0, 60.0, ACTIVE)
    row = new_page(settings, fingerprint("x"), "http://h/a", {"url": "http://h/a"}).row
    assert (row.importance, row.min_interval, row.max_interval) == (1.0, 1.0, 1000.0)


def test_a_request_that_states_its_importance_goes_before_rules() -> None:
    new = new_page(settings_of(RULES=[{"pattern": ".", "importance": 3}]), fingerprint("x"), URL, {"url": URL}, importance=0.5)
    assert (new.stated, new.row.importance) == (0.5, 0.5)
    new = new_page(settings_of(RULES=[{"pattern": ".", "importance": 3}]), fingerprint("x"), URL, {"url": URL})
    assert (new.stated, new.row.importance) == (0.0, 3.0)


def test_a_page_is_the_first_bytes_of_its_fingerprint_and_a_transient_request_is_its_own() -> None:
    assert page_of("h/a").page == fingerprint("h/a")[:12]
    once, again = (page_of("h/a", kind=TRANSIENT).page for _ in range(2))
    assert len({once, again, page_of("h/a").page}) == 3
    assert len(once) == 12


@pytest.mark.parametrize("name", ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"])
def test_pages_of_digests_are_their_first_bytes(name: str) -> None:
    """Those that are stored: also of one in a million, which is ASCII."""
    digest = hashlib.new(name, b"page").digest()
    assert known_by(digest) == known_by(digest[:12]) == digest[:12]
    assert known_by(bytes(range(1, len(digest) + 1))) == bytes(range(1, 13))


@pytest.mark.parametrize("length", [0, 1, 4, 11, 13, 16, 20, 32, 40, 64])
def test_pages_of_other_fingerprints_go_by_all_of_them(length: int) -> None:
    """A text may be as long as a digest."""
    fingerprints = [b"x" * (length - 1) + last for last in (b"a", b"b")] if length else [b""]
    pages = {known_by(fingerprint) for fingerprint in fingerprints}
    assert len(pages) == len(fingerprints)
    assert {len(page) for page in pages} == {12}


def test_what_is_not_to_be_revisited_is_fetched_once() -> None:
    settings = settings_of(RULES=[{"host": "h", "revisit": False}])
    assert page_of("h/a", settings).row.state == ONCE
    assert page_of("h/a", settings, kind=TRANSIENT).row.state == TRANSIENT


def test_update_times_mark_the_row() -> None:
    settings = settings_of(RULES=[{"host": "h", "update_times": [3600]}])
    assert page_of("h/a", settings).row.flags == TIMED
    assert page_of("k/a", settings).row.flags == 0


def test_limits_hold_for_links() -> None:
    settings = settings_of(HOST_MAX_PAGES=5, PATTERN_MAX_PAGES=2)
    new = page_of("h/a", settings, is_link=True)
    assert (new.host_limit, new.pattern_limit) == (5, 2)
    new = page_of("h/a", settings)
    assert (new.host_limit, new.pattern_limit) == (0, 0)


def test_records_are_stored_without_what_the_host_says() -> None:
    new = page_of("h/a")
    assert new.record == b"\x01/a"
    assert unpack_record(new.record, new.host) == {"url": "http://h/a"}


def test_patterns_are_of_a_host() -> None:
    assert pattern_number("h", "http://h/a/1") == pattern_number("h", "http://h/a/2") != pattern_number("k", "http://k/a/1")


def test_a_link_brings_a_retired_page_back_after_a_day_and_twice_as_long_each_time() -> None:
    def after(failures: int) -> float:
        """Days until a link brings the page back."""
        row = Row(state=RETIRED, b=1e6, failures=failures, gone=2)
        days = next(d for d in (*range(31), 1e9) if revived(row, 1.0 + d * REVIVED_AFTER_S) is not None)
        return float(days)

    assert [after(failures) for failures in (2, 3, 4, 5, 6, 7, 200)] == [1, 2, 4, 8, 16, 30, 30]
    assert LONGEST_RETIREMENT_S == 30 * REVIVED_AFTER_S


def test_a_revived_page_is_due_now_and_retired_at_once_if_it_is_gone_still() -> None:
    row = revived(Row(state=RETIRED, b=1e6, failures=3, gone=2), 1e6)
    assert row is not None
    assert (row.state, row.failures, row.gone, row.a) == (ACTIVE, 3, 2, 1e6 - 1.0)


@pytest.mark.parametrize("state", [ACTIVE, ONCE, 5])
def test_other_pages_are_not_revived(state: int) -> None:
    assert revived(Row(state=state, b=1e6), 1e9) is None


def test_pages_are_known_by_one_identity(store: ClockedNamespace) -> None:
    """It can be another as long as no page is stored."""
    claim_identity(store, "one")
    claim_identity(store, "two")
    store.add(page_of("h/a"))
    claim_identity(store, "two")
    with pytest.raises(ConfigurationError, match="known by two"):
        claim_identity(store, "one")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://Example.ORG/", "example.org"),
        ("https://example.org:443/", "example.org"),
        ("http://example.org:443/", "example.org:443"),
        ("http://user:pw@example.org:81/", "example.org:81"),
        ("http://[::1]:8080/", "::1:8080"),
        ("http://example.org:99999/", "example.org"),
        ("data:text/plain,x", ""),
    ],
)
def test_a_host_is_the_name_with_a_port_that_is_not_the_default(url: str, host: str) -> None:
    assert host_of(url) == host
