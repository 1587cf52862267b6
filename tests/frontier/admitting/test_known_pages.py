"""What was told to the store of a page costs no further round trip; what is said anew does."""

from __future__ import annotations

from optimal_frontier.frontier.admitting import known_pages
from optimal_frontier.frontier.admitting.known_pages import LASTS_S, KnownPages


def rounds(known: KnownPages, *words: tuple[bytes, int], n: int = 1) -> int:
    """Say words of parents, n times over; return how many went to the store."""
    told = 0
    for parent, said in words * n:
        if not known.is_said(b"page", parent, said):
            known.note(b"page", parent, said)
            told += 1
    return told


def test_what_is_stored_is_told_once():
    assert rounds(KnownPages(), (b"a", 1), (b"b", 1), (b"", 1), n=10) == 1


def test_another_word_goes_through_each_time():
    """Of the same parent: one that goes back and forth, too."""
    assert rounds(KnownPages(), (b"a", 1), (b"a", 2), n=5) == 10


def test_parents_that_differ_do_not_overwrite_one_another_for_ever():
    assert rounds(KnownPages(), (b"a", 1), (b"b", 2), (b"c", 3), n=100) <= 6


def test_a_parent_that_says_something_else_than_before_is_heard():
    known = KnownPages()
    rounds(known, (b"a", 1), (b"b", 2), n=3)
    assert rounds(known, (b"b", 1)) + rounds(known, (b"b", 2)) >= 1
    assert rounds(known, (b"b", 5)) == 1
    assert rounds(known, (b"b", 5)) == 0


def test_after_an_hour_and_after_an_outage_everything_is_told_again():
    known = KnownPages()
    known.refresh(0, 100.0)
    assert rounds(known, (b"a", 1)) == 1
    known.refresh(0, 100.0 + LASTS_S - 1)
    assert rounds(known, (b"a", 1)) == 0
    known.refresh(1, 101.0)
    assert rounds(known, (b"a", 1)) == 1
    known.refresh(1, 101.0 + LASTS_S)
    assert rounds(known, (b"a", 1)) == 1


def test_what_is_dropped_is_told_again_by_whoever_has_no_parent():
    known = KnownPages()
    known.note(b"page", b"parent", 1)
    known.note(b"page", b"", 2)
    known.note(b"page", b"parent", 1)
    known.drop(b"page")
    assert not known.is_said(b"page", b"", 2)


def test_what_is_remembered_has_a_bound(monkeypatch):
    monkeypatch.setattr(known_pages, "MOST_PAGES", 10)
    known = KnownPages()
    for at in range(100):
        known.note(b"%d" % at, b"", 1)
        known.note(b"same", b"%d" % at, at)
        known.note_depth(b"%d" % at, 1)
    assert len(known._said) <= 10
    assert len(known._by_parent) <= 10
    assert list(known._depths) == [b"%d" % at for at in range(10)]


def test_what_is_dropped_is_told_again_whoever_said_it_last():
    """Also where a link had said something else before the start did."""
    known = KnownPages()
    assert rounds(known, (b"a", 1), (b"", 2)) == 2
    known.drop(b"page")
    assert rounds(known, (b"", 2)) == 1


def test_the_shortest_way_to_a_page_counts_also_when_all_else_is_told_anew():
    """And one that is shorter still is news."""
    known = KnownPages()
    known.note_depth(b"page", 3)
    assert (known.is_nearer(b"page", 3), known.is_nearer(b"page", 2)) == (False, True)
    known.note_depth(b"page", 2)
    known.note_depth(b"page", 5)
    known.refresh(1, LASTS_S)
    assert (known.depth(b"page", 9), known.depth(b"page", 1), known.is_nearer(b"page", 2)) == (2, 1, False)
