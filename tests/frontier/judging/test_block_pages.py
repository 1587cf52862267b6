"""Soft 404s and block pages: contents that take the place of many pages of a host."""

from __future__ import annotations

import handed_out
from handed_out import TAG, context, judged, visit

from optimal_frontier.frontier.judging.block_pages import BlockPages, name_of
from optimal_frontier.state.messages import Handout


def handout(number: int, content: bytes, host: str = "h", **values: object) -> Handout:
    known = {"page": number.to_bytes(12, "big"), "host": host, "content": content, "url": f"http://{host}/{number}"}
    return handed_out.handed(**(known | values))


def content(name: str) -> bytes:
    return name.encode().ljust(16, b".")


def test_a_content_that_takes_the_place_of_three_is_flagged():
    """From then on for every page of the host, and for this host only."""
    blocks = BlockPages()
    news = [blocks.judge(handout(n, content(f"own {n}")), content("block"), TAG) for n in range(5)]
    assert news == [(False, False), (False, False), (True, True), (True, False), (True, False)]
    assert blocks.is_flagged("h", content("block"))
    assert not blocks.is_flagged("other", content("block"))
    assert blocks.judge(handout(9, content("own"), visits=0), content("block"), TAG) == (True, False)
    assert blocks.judge(handout(9, content("own"), "other"), content("block"), TAG) == (False, False)


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
            if before.page == (1).to_bytes(12, "big") and before.row.content != content("in stock"):
                continue
            assert blocks.judge(before, content("sold out"), TAG) == (False, False)


def test_one_of_few_contents_that_pages_show_by_turns_is_no_block_page():
    """A number in stock, sold out: where pages had it before others changed to it, more of these have to than of those."""
    blocks = BlockPages()
    for n in range(5):
        blocks.judge(handout(n, b"", visits=0), content("sold out"), TAG)
    news = [blocks.judge(handout(9 + n, content(f"own {n}")), content("sold out"), TAG) for n in range(6)]
    assert news == [(False, False)] * 5 + [(True, True)]


def test_who_had_a_content_before_others_changed_to_it_is_seen_when_it_goes_or_stays_too():
    """By a process that has just begun; pages that came to it with the others do not count."""
    blocks = BlockPages()
    for n in range(3):
        blocks.judge(handout(n, content("4"), at=100.0 + n), content("5" if n else "4"), TAG)
    news = [blocks.judge(handout(9 + n, content(f"own {n}"), at=200.0 + n), content("4"), TAG) for n in range(3)]
    assert news == [(False, False)] * 3
    blocks.judge(handout(9, content("4"), at=300.0, b=200.5e6), content("4"), TAG)
    assert blocks.judge(handout(12, content("own 3"), at=301.0), content("4"), TAG) == (True, True)


def test_what_was_found_here_is_forgotten_with_what_is_stored():
    """It would be flagged for good otherwise, however long this process runs."""
    blocks = BlockPages()
    for n in range(3):
        blocks.judge(handout(n, content(f"own {n}")), content("block"), TAG)
    blocks.learn({})  # on its way
    assert blocks.is_flagged("h", content("block"))
    blocks.learn({name_of("h", content("block")): True})
    assert blocks.is_flagged("h", content("block"))
    blocks.learn({})
    assert not blocks.is_flagged("h", content("block"))


def test_what_others_have_flagged_counts_until_it_passes_for_the_pages_own():
    blocks = BlockPages()
    blocks.stored = {name_of("h", content("block")): True}
    assert blocks.judge(handout(1, content("own")), content("block"), TAG) == (True, False)
    blocks.stored = {name_of("h", content("block")): False}
    assert [blocks.judge(handout(n, content(f"own {n}")), content("block"), TAG) for n in range(5)] == [(False, False)] * 5


def test_memory_of_contents_is_bounded():
    """Of a host the last 64 contents that pages changed to, and that they had; of hosts the last 2,000."""
    blocks = BlockPages()
    for n in range(3000):
        blocks.judge(handout(1, content("own"), f"h{n}"), content("new"), TAG)
        blocks.judge(handout(n, content(f"own {n}")), content(f"new {n}"), TAG)
    assert len(blocks._changes) == len(blocks._owners) == 2000
    assert len(blocks._changes["h"]) == len(blocks._owners["h"]) == 64


def test_pages_that_stay_as_they_are_do_not_take_the_place_of_those_that_change():
    """A crawl of many hosts visits more than 2,000 of them between two pages of one."""
    blocks = BlockPages()
    for n in range(3):
        seen = blocks.judge(handout(n, content(f"own {n}")), content("block"), TAG)
        for host in range(2000):
            blocks.judge(handout(1, content("own"), f"h{host}"), content("own"), TAG)
    assert seen == (True, True)


def test_what_many_pages_had_when_they_were_found_is_never_flagged():
    """In stock: a page that failed for nothing would be worse than a wall that is not told from it."""
    blocks = BlockPages()
    for n in range(64):
        assert blocks.judge(handout(n, b"", visits=0), content("in stock"), TAG) == (False, False)
    seen = [blocks.judge(handout(1000 + n, content(f"{n} left")), content("in stock"), TAG) for n in range(100)]
    assert seen == [(False, False)] * 100


def test_what_several_pages_have_is_remembered_on_a_host_of_many_pages():
    """A few of them are sold out from the start; so are others, now and then."""
    blocks = BlockPages()
    for n in range(1000):
        blocks.judge(handout(n, b"", visits=0), content("sold out") if n % 100 < 2 else content(f"own {n}"), TAG)
    seen = [blocks.judge(handout(n, content(f"own {n}")), content("sold out"), TAG) for n in range(2, 22)]
    assert seen == [(False, False)] * 20


def test_a_block_page_is_a_failure_and_what_comes_back_shows_no_change():
    """But for the two that it takes to know it for what it is; the flag goes to all crawlers."""
    within = context()
    seen = [judged(handout(n, content(f"own {n}")), visit(content("block")), within) for n in range(4)]
    assert [observation.bit for observation in seen] == [1, 1, -1, -1]
    third, fourth = seen[2:]
    assert (third.flag, fourth.flag) == (name_of("h", content("block")), b"")
    assert third.counters == {"contents_flagged": 1, "failures": 1, "failures_failed": 1, "blocked_pages": 1}
    assert third.row.content == content("own 2")
    first = judged(handed_out.again(seen[0]), visit(content("own 0")), within)
    assert (first.outcome, first.bit, first.row.content, first.row.tag) == ("ok", -1, content("own 0"), TAG)
    assert judged(handed_out.again(first), visit(content("own 0")), within).bit == 0
