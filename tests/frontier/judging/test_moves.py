"""Where pages are from now on: permanent redirects, and the canonical form that a page names."""

from __future__ import annotations

import pytest
from handed_out import NEW, OLD, again, context, handed, judged, visit

from optimal_frontier.frontier.judging.canonical import refusal_of
from optimal_frontier.frontier.judging.moves import Moves
from optimal_frontier.settings import UrlLimits
from optimal_frontier.state.rows import RETIRED

PAGE = "http://a.example/list/x?sort=up"


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


def test_a_page_that_was_sent_elsewhere_for_good_moves():
    """Its observation says where; what only looks like a move is counted."""
    found = "https://h/b"
    assert judged(handed(), visit(NEW, found=found, hops=[301])).moved == found
    assert judged(handed(), visit(NEW, found=found, hops=[301, 302])).moved == ""
    held = judged(handed(), visit(NEW, found="http://h/login", hops=[301]))
    assert (held.moved, held.counters["moves_held"]) == ("", 1)
    assert judged(handed(), "500").moved == ""


def test_the_targets_of_many_pages_are_remembered():
    within = context()
    moved = [judged(handed(url=f"http://h/{n}"), visit(NEW, found="http://h/closed", hops=[301]), within).moved for n in range(4)]
    assert moved == ["http://h/closed"] * 2 + [""] * 2


@pytest.mark.parametrize(
    ("target", "url", "counter"),
    [
        ("http://a.example/list/x", PAGE, ""),
        ("https://a.example/list/x", PAGE, ""),
        ("http://a.example/", "http://a.example/?ref=1", ""),
        ("http://a.example/", "http://a.example/index.html", ""),
        ("http://b.example/list/x", PAGE, "canonical_offhost"),
        ("http://www.a.example/list/x", PAGE, "canonical_offhost"),
        ("http://a.example:8080/list/x", PAGE, "canonical_offhost"),
        ("http://a.example/", PAGE, "canonical_refused"),
        ("http://a.example/index.php", PAGE, "canonical_refused"),
        ("http://a.example/a/b/a/b/a/b", PAGE, "canonical_refused"),
    ],
)
def test_what_is_followed_and_what_is_counted(target, url, counter):
    """A page of the same host, not the front page, not a trap."""
    assert refusal_of(url, target, UrlLimits()) == counter
    observation = judged(handed(url=url), visit(OLD, canonical=target), context(CANONICAL_LINKS=True))
    assert (observation.moved, observation.is_canonical) == (("", False) if counter else (target, True))
    assert [name for name in observation.counters if name.startswith("canonical")] == ([counter] if counter else [])


def test_a_failed_visit_and_the_word_of_another_page_are_not_followed():
    """A redirect leads to a page that speaks for itself; and without CANONICAL_LINKS nothing is."""
    on, target = context(CANONICAL_LINKS=True), "http://h/c"
    assert judged(handed(), visit(OLD, canonical=target), on).moved == target
    assert judged(handed(), visit(OLD, canonical=target), context()).moved == ""
    assert judged(handed(), visit(OLD, canonical=target, found="http://h/b", hops=[302]), on).moved == ""
    both = judged(handed(), visit(OLD, canonical=target, found="http://h/b", hops=[301]), on)
    assert (both.moved, both.is_canonical) == ("http://h/b", False)
    cut = judged(handed(), visit(NEW, canonical=target, is_partial=True), on)
    assert (cut.outcome, cut.moved) == ("failed", "")


@pytest.mark.parametrize("hops", [[301], [302], [303, 301]])
def test_a_page_that_is_sent_home_is_gone(hops):
    """What came before says that it is no name of the home page: that one answers for all that was removed, and changes all the time."""
    first = judged(handed(url=PAGE), visit(NEW))
    home = visit(OLD, found="http://a.example/", hops=hops)
    seen = judged(again(first), home)
    assert (seen.outcome, seen.moved, seen.bit, seen.row.gone) == ("gone", "", -1, 1)
    assert judged(again(seen), home).row.state == RETIRED


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (PAGE, ""),  # a cookie, and the same address again
        ("http://a.example/index.php", "http://a.example/"),
        ("http://a.example/en/", "http://a.example/"),
        ("http://a.example/shop", "http://shop.a.example/"),
    ],
)
def test_a_page_that_is_sent_to_itself_or_is_a_front_page_is_not_gone(asked, found):
    first = judged(handed(url=asked), visit(NEW))
    assert judged(again(first), visit(OLD, found=found, hops=[302])).outcome == "ok"


def test_a_page_that_always_leads_home_is_none_of_those():
    """A start page may be the only way there."""
    home = visit(NEW, found="http://a.example/", hops=[302])
    first = judged(handed(url=PAGE), home)
    seen = judged(again(first), visit(OLD, found="http://a.example/", hops=[302]))
    assert (first.outcome, seen.outcome, seen.row.gone) == ("ok", "ok", 0)
