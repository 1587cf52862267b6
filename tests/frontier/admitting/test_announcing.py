"""What sources announce, on a clock that the test sets: pages are put forward once, and their bits are checks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clocked_namespace import START, ClockedNamespace, fingerprint, page_of

from optimal_frontier.estimation.announcers import PROBE_EVERY, SILENCED_AT, Announcer
from optimal_frontier.frontier.admitting.announcing import settle, take_in
from optimal_frontier.frontier.dispatching.revising import forget
from optimal_frontier.frontier.judging.announcements import verdict_of
from optimal_frontier.state.messages import RELEASE, Announcement, Handout
from optimal_frontier.state.rows import ACTIVE, ANNOUNCED, RETIRED

SITEMAP = "h sitemap"


def announce(
    store: ClockedNamespace, *names: str, at: float | None = None, resolution: float = 60.0, unread: float = 100.0, by: str = SITEMAP
) -> int:
    """A source, read before so many seconds ago, says that pages changed; return how many were put forward."""
    modified = store.now() if at is None else at
    before = store.counts().get("put_forward", 0)
    take_in(store, [page_of(name, lastmod=(modified, resolution), announcement=Announcement(by, unread)) for name in names])
    return store.counts().get("put_forward", 0) - before


def announcer(store: ClockedNamespace, name: str = SITEMAP) -> Announcer:
    return Announcer.parse(store.hash("announcers")[name])


def known_pages(store: ClockedNamespace, n: int = 1, **values: float) -> list[str]:
    """Pages that were fetched, to be revisited after 1,000 s."""
    names = [f"h/{at}" for at in range(n)]
    store.visit(*names, **values)
    store.advance(100.0)
    return names


def due_pages(store: ClockedNamespace, n: int = 100) -> list[Handout]:
    """Hand out what is due, and give back what was handed out before its deadline."""
    due = []
    for handout in store.dispatch(n):
        if handout.row.b / 1e6 + handout.row.a <= store.now():
            due.append(handout)
        else:
            store.end(handout, RELEASE)
    return due


def judged(store: ClockedNamespace, handout: Handout, bit: int, **values: object) -> None:
    """End the visit of a page that was put forward, as the judge does."""
    mark = handout.memory.announced
    assert mark is not None
    verdict = verdict_of(mark, handout.at, store.now(), "ok", bit, 0)
    memory = replace(handout.memory, announced=mark if verdict is None else None)
    assert store.end(handout, flags=handout.row.flags & ~ANNOUNCED, memory=memory, **values)
    if verdict is not None:
        settle(store, mark.announcer, verdict)


def test_an_announced_page_is_due_at_once(store: ClockedNamespace) -> None:
    known_pages(store, 2)
    assert due_pages(store) == []
    assert announce(store, "h/0") == 1
    (handout,) = due_pages(store)
    assert handout.page == fingerprint("h/0")[:12]
    assert handout.row.flags & ANNOUNCED
    assert handout.memory.announced is not None
    counts = store.counts()
    assert counts["announced"] == counts["put_forward"] == 1


def test_what_was_said_or_seen_before_is_no_news(store: ClockedNamespace) -> None:
    """The same word again; an older one; one of a change that the last visit has seen; one of the future; of an unknown page."""
    known_pages(store)
    assert announce(store, "h/0", at=START - 500.0, unread=-1.0) == 0
    said = store.now() - 5.0
    assert announce(store, "h/0", at=said) == 1
    assert announce(store, "h/0", at=said) == 0
    assert announce(store, "h/0", at=said - 50.0) == 0
    assert announce(store, "h/0", at=said + 1e6) == 0
    assert announce(store, "h/unknown") == 0
    assert store.counts()["put_forward"] == 1


def test_a_move_since_the_source_was_read_is_news_whatever_the_clock_of_the_site(store: ClockedNamespace) -> None:
    """The site's clock is an hour slow; the page was not seen since the source was read before."""
    known_pages(store)
    announce(store, "h/0", at=START - 9000.0)
    assert announce(store, "h/0", at=store.now() - 3600.0, unread=50.0) == 1


def test_where_the_clocks_leave_it_open_the_mark_says_so(store: ClockedNamespace) -> None:
    """Seen a second after the change that is announced; a rough word has no such excuse."""
    known_pages(store, 2)
    seen = store.row("h/0").b / 1e6
    announce(store, "h/0", at=seen - 1.0)
    announce(store, "h/1", at=seen - 1.0, resolution=86400.0, by="h feed")
    for handout in due_pages(store):
        judged(store, handout, 0)
    assert announcer(store) == Announcer()
    assert announcer(store, "h feed").wrong == 1


def test_a_page_that_was_seen_since_is_not_put_forward(store: ClockedNamespace) -> None:
    known_pages(store)
    assert announce(store, "h/0", at=START - 50.0, unread=1000.0) == 0


def test_least_interval_and_backoff_stand(store: ClockedNamespace) -> None:
    known_pages(store, min_interval=150.0)
    announce(store, "h/0")
    assert due_pages(store) == []
    store.advance(51.0)
    assert len(due_pages(store)) == 1


def test_the_backoff_of_a_page_that_failed_stands(store: ClockedNamespace) -> None:
    known_pages(store, failures=9, unseen=500.0)
    assert announce(store, "h/0") == 1
    row = store.row("h/0")
    assert 256.0 <= row.a <= 512.0
    assert row.e == row.l == row.a


def test_a_page_in_flight_is_put_forward_after_its_lease(store: ClockedNamespace) -> None:
    """`take_in` says which ones are to be said again."""
    known_pages(store)
    announce(store, "h/0")
    (handout,) = due_pages(store)
    store.advance(1.0)
    word = page_of("h/0", lastmod=(store.now() + 30.0, 60.0), announcement=Announcement(SITEMAP, 100.0))
    assert take_in(store, [word]) == [word]
    judged(store, handout, 1)
    assert (announcer(store).right, announcer(store).waiting) == (1, 0)
    assert take_in(store, [word]) == []
    assert announcer(store).waiting == 1
    store.advance(2.0)
    (handout,) = due_pages(store)
    judged(store, handout, 1)
    assert (announcer(store).right, announcer(store).waiting) == (2, 0)


def test_a_visit_under_way_that_has_seen_the_change_was_enough(store: ClockedNamespace) -> None:
    known_pages(store)
    announce(store, "h/0")
    (handout,) = due_pages(store)
    store.advance(20.0)
    word = page_of("h/0", lastmod=(store.now() - 10.0, 60.0), announcement=Announcement(SITEMAP, 5.0))
    assert take_in(store, [word]) == [word]
    judged(store, handout, 1)
    assert take_in(store, [word]) == []
    assert announcer(store) == Announcer(right=1, window=40.0)
    store.advance(2.0)
    assert due_pages(store) == []


def test_a_retired_page_is_revived_and_has_not_failed(store: ClockedNamespace) -> None:
    known_pages(store)
    store.advance(3000.0)
    store.retire("h/0", cause=2)
    assert store.counts()["retired"] == 1
    store.advance(10.0)
    assert announce(store, "h/0") == 1
    assert store.counts()["retired"] == 0
    row = store.row("h/0")
    assert (row.state, row.failures, row.gone, row.cause) == (ACTIVE, 0, 0, 0)
    store.advance(2.0)
    (handout,) = due_pages(store)
    judged(store, handout, 0)
    assert announcer(store).wrong == 1


def test_an_announcer_that_is_wrong_too_often_loses_its_say(store: ClockedNamespace) -> None:
    known_pages(store)
    expected = Announcer()
    for at in range(40):
        store.advance(500.0)
        was_forward = announce(store, "h/0")
        assert was_forward == (not expected.is_silenced)
        if not was_forward:
            break
        (handout,) = due_pages(store)
        judged(store, handout, int(at % 7 == 0), wait=1e6)
        expected = expected.after(at % 7 == 0)
        assert announcer(store) == expected
    assert expected.is_silenced
    assert expected.score == SILENCED_AT


def test_a_liar_is_probed_now_and_then_and_has_its_say_back_when_it_is_right(store: ClockedNamespace) -> None:
    known_pages(store, wait=1e9)
    forward = []
    for at in range(SILENCED_AT * (PROBE_EVERY + 1)):
        store.advance(500.0)
        forward.append(announce(store, "h/0"))
        if forward[-1]:
            judged(store, due_pages(store)[0], int(at >= SILENCED_AT), wait=1e9)
    assert forward[:SILENCED_AT] == [1] * SILENCED_AT
    probes = [at - SILENCED_AT + 1 for at, was in enumerate(forward) if was][SILENCED_AT:]
    assert probes == [PROBE_EVERY * k for k in range(1, SILENCED_AT + 1)]
    assert (announcer(store).right, announcer(store).wrong) == (SILENCED_AT, SILENCED_AT)
    assert store.counts()["announcements_distrusted"] == SILENCED_AT * (PROBE_EVERY - 1)
    assert not announcer(store).is_silenced


def test_announcers_are_judged_one_by_one(store: ClockedNamespace) -> None:
    known_pages(store, wait=1e9)
    for _ in range(SILENCED_AT):
        settle(store, SITEMAP, 0)
    assert announce(store, "h/0") == 0
    store.advance(500.0)
    assert announce(store, "h/0", by="h feed") == 1


def test_no_more_pages_wait_than_the_window_allows(store: ClockedNamespace) -> None:
    names = known_pages(store, 50)
    assert announce(store, *names) == 32
    assert store.counts()["announcements_held"] == 18
    for handout in due_pages(store)[:10]:
        judged(store, handout, 1)
    assert announcer(store).window == pytest.approx(32 * 1.25**10)
    forgotten = next(name for name in names if store.remembered(name).announced is not None)
    forget(store, [fingerprint(forgotten)])
    assert announcer(store).waiting == 21


def test_a_page_found_as_news_keeps_no_lastmod_before_its_first_visit(store: ClockedNamespace) -> None:
    """That it is young says nothing of its rate. At the first reading of a source the entries are of all ages."""
    store.add(page_of("h/old"), page_of("h/new"))
    assert announce(store, "h/old", unread=-1.0) == announce(store, "h/new") == 0
    handouts = {handout.page: handout for handout in store.dispatch(5)}
    assert handouts[fingerprint("h/new")[:12]].memory.lastmod is None
    told = handouts[fingerprint("h/old")[:12]].memory.lastmod
    assert told is not None
    assert told == pytest.approx((START, 60.0, START), abs=0.01)


def test_what_is_announced_is_no_sample_of_ages(store: ClockedNamespace) -> None:
    """What has not moved is not passed on: the ages of the rest would make every page look quick."""
    known_pages(store)
    announce(store, "h/0")
    told = store.remembered("h/0").lastmod
    assert told is not None
    assert told.resolution == float("inf")


def test_a_word_without_an_announcer_is_noted_as_it_is(store: ClockedNamespace) -> None:
    """Each time anew: that nothing has changed until now is news, too. Not what lies in the future."""
    known_pages(store)
    for modified in (START - 5.0, START - 5.0, START + 1e6):
        store.advance(10.0)
        take_in(store, [page_of("h/0", lastmod=(modified, 60.0))])
    told = store.remembered("h/0").lastmod
    assert told is not None
    assert told == pytest.approx((START - 5.0, 60.0, store.now() - 10.0), abs=0.01)
    assert "announced" not in store.counts()


def test_a_page_that_waits_for_its_first_visit_is_handed_out_once(store: ClockedNamespace) -> None:
    store.add(page_of("h/new"))
    assert announce(store, "h/new") == 0
    assert [handout.page for handout in store.dispatch(5)] == [fingerprint("h/new")[:12]]


def test_retired_pages_of_before_their_first_visit_are_due_now(store: ClockedNamespace) -> None:
    store.visit("h/0", visits=0, failed=2, state=RETIRED, gone=2, op=3, counters={"fetched": 0, "retired": 1})
    store.advance(10.0)
    assert announce(store, "h/0") == 1
    assert store.score("h/0") == pytest.approx(store.now() * 1e6, abs=10)
