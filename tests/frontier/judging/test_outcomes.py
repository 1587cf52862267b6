"""What fetches that show nothing are called, and what takes a page elsewhere or its place."""

from __future__ import annotations

import time

import pytest

from optimal_frontier.frontier.block_pages import BlockPages, name_of
from optimal_frontier.frontier.moves import Moves
from optimal_frontier.frontier.outcomes import counters_of, outcome_of
from optimal_frontier.frontier.pacing import DEFAULT_HOLD_S, LONGEST_HOLD_S, hold_s
from optimal_frontier.state.records import Handout

TAG = 7


def handout(slot: int, content: bytes, visits: int = 3, tag: int = TAG) -> Handout:
    posterior = (1.0, 1.0, visits, visits, 0.1, True)
    return Handout(slot, b"1@1", 0.0, 1.0, 1.0, 0.0, 1.0, 1, *posterior, tag, content, {"url": f"http://h/{slot}"}, time.monotonic())


def content(name: str) -> bytes:
    return name.encode().ljust(16, b".")


@pytest.mark.parametrize(
    ("error", "outcome", "counters"),
    [
        ("404", "gone", {}),
        ("410", "gone", {}),
        ("released", "released", {}),
        ("IgnoreRequest", "refused", {}),
        ("RobotsDenied", "refused", {"failures_robots": 1}),
        ("429", "failed", {"failures_throttled": 1}),
        ("503", "failed", {"failures_server": 1}),
        ("502", "failed", {"failures_server": 1}),
        ("403", "failed", {"failures_client": 1}),
        ("301", "failed", {"failures_client": 1}),
        ("DownloadTimeoutError", "failed", {"failures_timeout": 1}),
        ("CannotResolveHostError", "failed", {"failures_dns": 1}),
        ("ConnectionRefusedError", "failed", {"failures_connection": 1}),
        ("TooManyRedirects", "failed", {"failures_redirects": 1}),
        ("ResponseDataLossError", "failed", {"failures_truncated": 1}),
        ("blocked", "failed", {"blocked_pages": 1}),
        ("dropped", "failed", {"failures_other": 1}),
        ("ValueError", "failed", {"failures_other": 1}),
    ],
)
def test_every_ending_has_an_outcome_and_one_counter_at_most(error, outcome, counters):
    assert outcome_of(error) == outcome
    assert counters_of(error) == counters


@pytest.mark.parametrize("value", [b"99999999999999999999", b"Fri, 31 Dec 9999 23:59:59 GMT"])
def test_absurd_holds_are_bounded(value):
    """By an hour."""
    assert hold_s(429, value, 2e9) == LONGEST_HOLD_S


@pytest.mark.parametrize("value", [b"-1", b"soon", b"1e9", b"", b"\xff", b"Fri, 31 Dec 99999 23:59:59 GMT"])
def test_what_is_no_time_counts_as_none(value):
    assert hold_s(503, value, 2e9) == DEFAULT_HOLD_S


def test_only_redirects_that_are_permanent_at_every_hop_move_a_page():
    moves = Moves()
    asked, found = "http://h/a", "http://h/b"
    assert moves.target(asked, found, [301, 308]) == (found, False)
    for reasons in ([], [302], [301, 302], [307], [303, 301], ["meta refresh"], [301, "meta refresh"]):
        assert moves.target(asked, found, reasons) == ("", False)
    assert moves.target(asked, asked, [301, 301]) == ("", False)


@pytest.mark.parametrize(
    ("asked", "found", "moves_there"),
    [
        ("http://h/a", "http://h/", False),
        ("http://h/", "https://h/", True),
        ("http://h", "http://www.h/", True),
        ("http://h/a", "http://h/?page=a", True),
        ("http://h/a", "http://h/login?next=/a", False),
        ("http://h/a", "https://sso.h/auth/", False),
        ("http://h/login", "http://h/sign-in", True),
        ("http://h/a", "http://h/authors", True),
        ("http://h/a", "http://h/blogin", True),
    ],
)
def test_home_and_login_pages_are_no_place_to_move_to(asked, found, moves_there):
    assert Moves().target(asked, found, [301]) == ((found, False) if moves_there else ("", True))


def test_many_pages_do_not_move_to_one():
    """From the third path on; the same page with other parameters may."""
    moves = Moves()
    answers = [moves.target(f"http://h/{n}", "http://h/closed", [301]) for n in range(5)]
    assert answers == [("http://h/closed", False)] * 2 + [("", True)] * 3
    assert all(moves.target(f"http://h/p?session={n}", "http://h/p/", [301])[0] for n in range(50))


def test_a_content_that_takes_the_place_of_three_is_flagged():
    """From then on for every page of the host, and for this host only."""
    blocks = BlockPages()
    news = [blocks.judge("h", handout(n, content(f"own {n}")), content("block"), TAG) for n in range(5)]
    assert news == [(False, False), (False, False), (True, True), (True, False), (True, False)]
    assert blocks.is_flagged("h", content("block"))
    assert not blocks.is_flagged("other", content("block"))
    assert blocks.judge("h", handout(9, content("own"), visits=0), content("block"), TAG) == (True, False)
    assert blocks.judge("other", handout(9, content("own")), content("block"), TAG) == (False, False)


def test_what_looks_alike_for_good_reasons_is_not_flagged():
    """First visits, pages that always were alike, fingerprints of other settings, one page seen thrice, pages that stay."""
    blocks = BlockPages()
    for n in range(10):
        for before in (
            handout(n, content("own"), visits=0),
            handout(n, content("in stock")),
            handout(n, content(f"own {n}"), tag=TAG + 1),
            handout(1, content(f"own {n}")),
            handout(n, content("sold out")),
        ):
            if before.slot == 1 and before.content != content("in stock"):
                continue
            assert blocks.judge("h", before, content("sold out"), TAG) == (False, False)


def test_what_was_found_here_is_forgotten_with_what_is_stored():
    """It would be flagged for good otherwise, however long this process runs."""
    blocks = BlockPages()
    for n in range(3):
        blocks.judge("h", handout(n, content(f"own {n}")), content("block"), TAG)
    blocks.learn({})  # on its way
    assert blocks.is_flagged("h", content("block"))
    blocks.learn({name_of("h", content("block")): True})
    assert blocks.is_flagged("h", content("block"))
    blocks.learn({})
    assert not blocks.is_flagged("h", content("block"))


def test_what_others_have_flagged_counts_until_it_passes_for_the_pages_own():
    blocks = BlockPages()
    blocks.stored = {name_of("h", content("block")): True}
    assert blocks.judge("h", handout(1, content("own")), content("block"), TAG) == (True, False)
    blocks.stored = {name_of("h", content("block")): False}
    assert [blocks.judge("h", handout(n, content(f"own {n}")), content("block"), TAG) for n in range(5)] == [(False, False)] * 5


def test_memory_of_contents_is_bounded():
    """Of a host the last 64 contents; of hosts the last 2,000."""
    blocks = BlockPages()
    for n in range(3000):
        blocks.judge(f"h{n}", handout(1, content("own")), content("new"), TAG)
        blocks.judge("h", handout(n, content(f"own {n}")), content(f"new {n}"), TAG)
    assert len(blocks._hosts) == 2000
    assert len(blocks._hosts["h"]) == 64
