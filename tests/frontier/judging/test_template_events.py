"""Changes of templates: one difference of most pages of a host is one event."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import handed_out
import pytest
from handed_out import AT, TAG, context, judged

from optimal_frontier.detection.block_sums import with_sum
from optimal_frontier.detection.sections import Section
from optimal_frontier.frontier.judging import template_events
from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.noise import PageNoise
from optimal_frontier.frontier.judging.template_events import SHOWN_BY, TemplateEvents, is_event, name_of, parse_name
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import Handout, Observation

BANNER, FOOTER = 1000, 2500


def content(number: int, *added: int) -> bytes:
    """Of a page: its own sum and what was added to it."""
    return with_sum(f"{number} {added}".encode().ljust(16, b".")[:16], (10_000 * number + sum(added)) % 2**32)


def handout(number: int, before: bytes | None = None, elapsed: float = 40.0, **values: Any) -> Handout:
    known = {"page": number.to_bytes(12, "big"), "host": "h", "url": f"http://h/{number}", "content": before or content(number)}
    return handed_out.handed(elapsed, **(known | values))


def seen(of: TemplateEvents, number: int, *added: int, at: float = 0.0, **values: Any) -> bool:
    """Judge a page ``at`` seconds later; whether it changed by the template alone."""
    page, now = handout(number, **values), content(number, *added)
    return of.judge(page, now, AT + at, now != page.row.content)[0]


def found(of: TemplateEvents, *added: int, pages: int = SHOWN_BY, first: int = 0) -> list[bool]:
    return [seen(of, first + n, *added, at=float(n)) for n in range(pages)]


def test_from_the_fourth_page_on_it_is_the_template():
    assert found(TemplateEvents(), BANNER, pages=6) == [False, False, False, True, True, True]


def test_what_the_server_tells_while_a_visit_is_judged_is_taken_in_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread tells it, just as the same is found out here."""
    events, count = TemplateEvents(), template_events._count
    found(events, BANNER, pages=SHOWN_BY - 1)

    def told_meanwhile(*visit: Any, **how: bool) -> None:
        events.learn([name_of("h", BANNER, AT), name_of("h", FOOTER, AT)])
        count(*visit, **how)

    monkeypatch.setattr(template_events, "_count", told_meanwhile)
    assert seen(events, 50, BANNER, at=9.0)
    assert seen(events, 51, FOOTER, at=9.0)


def test_pages_that_changed_by_themselves_too_have_changed():
    events = TemplateEvents()
    found(events, BANNER)
    assert not seen(events, 50, BANNER, 7)
    assert seen(events, 51, BANNER)


def test_what_a_page_last_showed_after_it_is_no_event_of_the_past():
    """It has the new text already, so what it shows now is its own."""
    events = TemplateEvents()
    found(events, BANNER)
    assert not seen(events, 50, BANNER, at=30.0, elapsed=-20.0)
    assert seen(events, 51, BANNER, at=30.0)


@pytest.mark.parametrize("unchanged", [1, 3])
def test_what_most_pages_do_not_show_is_content(unchanged):
    """Three of four visits that show it or nothing is the least."""
    events = TemplateEvents()
    for n in range(20):
        assert not seen(events, 100 + n, BANNER, at=10.0 * n)
        for k in range(unchanged):
            assert not seen(events, 200 + 10 * n + k, at=10.0 * n + 1)


def test_an_event_that_pages_stop_to_show_is_none():
    events = TemplateEvents()
    assert found(events, BANNER)[-1]
    for n in range(2):
        seen(events, 100 + n, at=20.0)
    assert not seen(events, 60, BANNER, at=21.0)


def test_pages_that_change_often_prove_nothing_and_yet_have_changed_by_the_template():
    events = TemplateEvents()
    assert not any(seen(events, n, BANNER, at=float(n), bits=1) for n in range(20))
    found(events, BANNER, first=20)
    assert seen(events, 50, BANNER, at=30.0, bits=1)


def test_pages_of_one_content_count_once():
    """Copies of a page under many URLs change together."""
    events, copy = TemplateEvents(), content(1)
    for n in range(20):
        page = handout(n, copy)
        assert events.judge(page, content(1, BANNER), AT + n, True) == (False, b"")


def test_a_page_that_missed_events_shows_their_sum():
    events = TemplateEvents()
    found(events, BANNER)
    newer = [seen(events, n, FOOTER, at=20.0 + n, elapsed=-10.0) for n in range(100, 104)]
    assert newer == [False, False, False, True]
    assert seen(events, 50, BANNER, FOOTER, at=200.0)
    # another part of the site has only one of both
    assert seen(events, 51, BANNER, at=200.0)
    assert seen(events, 52, FOOTER, at=200.0)
    assert not seen(events, 53, BANNER, BANNER, at=200.0)


def test_a_new_event_is_found_on_pages_that_missed_the_last_one():
    """A date line: what is left of their difference is the same for all, however long ago they were visited."""
    events = TemplateEvents()
    found(events, BANNER)
    assert [seen(events, 50 + n, BANNER, FOOTER, at=50.0 + n) for n in range(4)] == [False, False, False, True]


def test_hosts_are_apart():
    events = TemplateEvents()
    found(events, BANNER)
    other = handout(9, host="other")
    assert events.judge(other, content(9, BANNER), AT + 9, True) == (False, b"")


def test_others_take_over_what_one_has_found():
    one, other = TemplateEvents(), TemplateEvents()
    names = [one.judge(handout(n), content(n, BANNER), AT + n, True)[1] for n in range(5)]
    assert [bool(name) for name in names] == [False, False, False, True, False]
    assert parse_name(names[3]) == ("h", BANNER, AT)
    other.learn({names[3], b"h 00ff", b"damaged +zz@1"})
    other.learn({names[3]})
    assert seen(other, 50, BANNER)
    assert is_event(names[3])
    assert not is_event(b"h 00ff")


def test_what_was_found_out_not_to_be_one_stays_so_whatever_is_stored():
    events, name = TemplateEvents(), name_of("h", BANNER, AT)
    events.learn({name})
    for n in range(2):
        seen(events, 100 + n, at=20.0)
    events.learn({name})
    assert not seen(events, 60, BANNER, at=21.0)


def test_memory_is_bounded():
    """Of a host 16 differences that may become events, and 16 events; 2,000 hosts; of what is stored no more than that."""
    events = TemplateEvents()
    for n in range(3000):
        events.judge(handout(1, host=f"h{n}"), content(1, n + 1), AT, True)
        seen(events, n, n + 1)
    events.learn({name_of("h", 5 * n, AT + n) for n in range(100)})
    seen(events, 1)
    assert len(events._hosts) == 2000
    assert (len(events._hosts["h"].candidates), len(events._hosts["h"].events)) == (16, 16)
    assert len(events._stored) == 100
    events.learn({name_of("h", 5, AT)})
    seen(events, 1)
    assert len(events._stored) == 1


def visit(number: int, *added: int, is_summed: bool = True, **values: Any) -> Any:
    taken = Fingerprint(content(number, *added), TAG, is_summed=is_summed)
    return replace(handed_out.visit(**values), fingerprint=taken)


def crawled(pages: int = 6, is_summed: bool = True, memory: Memory | None = None, **settings: object) -> list[Observation]:
    within = context(**settings)
    more = {} if memory is None else {"memory": memory}
    return [judged(handout(n, **more), visit(n, BANNER, is_summed=is_summed), within) for n in range(pages)]


def test_such_a_visit_gives_an_unchanged_bit_and_keeps_the_new_text():
    observations = crawled()
    assert [one.bit for one in observations] == [1, 1, 1, 0, 0, 0]
    assert [one.change is None for one in observations] == [False, False, False, True, True, True]
    assert all(one.row.content == content(n, BANNER) for n, one in enumerate(observations))
    fourth = observations[3]
    assert fourth.flag == name_of("h", BANNER, AT)
    assert (fourth.counters["template_events"], fourth.counters["template_changes"]) == (1, 1)
    assert "template_events" not in observations[4].counters
    assert judged(handed_out.again(fourth), visit(3, BANNER)).bit == 0
    assert judged(handed_out.again(fourth), visit(3, BANNER, 5)).bit == 1


@pytest.mark.parametrize("values", [{"TEMPLATE_CHANGES": "count"}, {"is_summed": False}])
def test_whoever_wants_them_counted_or_has_other_fingerprints_gets_changes(values):
    """SimHashes, bytes and what callables return have no sum."""
    observations = crawled(**values)
    assert [(one.bit, one.flag) for one in observations] == [(1, b"")] * 6


def test_sections_of_a_page_under_watch_go_on_from_there():
    """Else the template would show as a difference of the page at its next change."""
    old, new = ((Section("h1", b"same"), Section("footer", text)) for text in (b"2025", b"2026"))
    noise = PageNoise().history.follow(old)
    memory = Memory(noise=PageNoise(history=noise).pack())
    within = context()
    for n in range(4):
        last = judged(handout(n, memory=memory), replace(visit(n, BANNER), sections=lambda: new), within)
    assert last.bit == 0
    assert last.memory is not None
    kept = PageNoise.unpack(last.memory.noise)
    assert (kept.history.difference(new).keys, kept.history.pairs) == (frozenset(), 0)
