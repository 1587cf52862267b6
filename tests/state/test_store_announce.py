"""What sources announce, on a clock that the test sets: pages are put forward once, at their own cost, and their bits are checks."""

from __future__ import annotations

import pytest
from clocked_store import START, ClockedStore, fingerprint, new_page

from optimal_frontier.estimation.announcers import PROBE_EVERY, SILENCED_AT, Announcer
from optimal_frontier.frontier.ages import words_of
from optimal_frontier.state.columns import ONCE
from optimal_frontier.state.records import Announcement, Move

SITEMAP = "h sitemap"


def announce(
    store: ClockedStore, *names: str, at: float | None = None, resolution: float = 60.0, unread: float = 100.0, by: str = SITEMAP
) -> int:
    """A source, read before so many seconds ago, says that pages changed; return how many were put forward."""
    modified = store.time() if at is None else at
    pages = [new_page(name, lastmod=(modified, resolution), announcement=Announcement(by, unread)) for name in names]
    return sum(store.run(store.lastmod_calls(pages)))


def announcer(store: ClockedStore, name: str = SITEMAP) -> Announcer:
    return Announcer.parse(store.hash("announcers")[name])


def known_pages(store: ClockedStore, n: int = 1, **values: float) -> list[str]:
    """Pages that were fetched, to be revisited after 1,000 s."""
    names = [f"h/{at}" for at in range(n)]
    store.add(*(new_page(name, **{"max_rate": 1e3, "gap": 1.0} | values) for name in names))
    store.visit_all()
    for name in names:
        store.plan(store.slot(name), 1e-3)
    store.advance(100.0)
    return names


def test_an_announced_page_is_due_at_once(store: ClockedStore) -> None:
    known_pages(store, 2)
    assert store.dispatch(5, budget=100.0)[0] == []
    assert announce(store, "h/0") == 1
    (handout,), _ = store.dispatch(5, budget=100.0)
    assert handout.slot == store.slot("h/0")
    assert handout.was_announced
    assert store.counts()["announced"] == store.counts()["put_forward"] == 1


def test_what_was_said_or_seen_before_is_no_news(store: ClockedStore) -> None:
    """The same word again; an older one; one of a change that the last visit has seen; one of the future; of an unknown page."""
    known_pages(store)
    assert announce(store, "h/0", at=START - 500.0, unread=-1.0) == 0
    said = store.time() - 5.0
    assert announce(store, "h/0", at=said) == 1
    assert announce(store, "h/0", at=said) == 0
    assert announce(store, "h/0", at=said - 50.0) == 0
    assert announce(store, "h/0", at=said + 1e6) == 0
    assert announce(store, "h/unknown") == 0
    assert store.counts()["put_forward"] == 1


def test_a_move_since_the_source_was_read_is_news_whatever_the_clock_of_the_site(store: ClockedStore) -> None:
    """The site's clock is an hour slow; the page was not seen since the source was read before."""
    known_pages(store)
    announce(store, "h/0", at=START - 9000.0)
    assert announce(store, "h/0", at=store.time() - 3600.0, unread=50.0) == 1


def test_where_the_clocks_leave_it_open_an_unchanged_page_is_no_lie(store: ClockedStore) -> None:
    """Seen a second after the change that is announced; a rough word has no such excuse."""
    known_pages(store, 2)
    seen = float(store.seen(0)["last_seen"])
    announce(store, "h/0", at=seen - 1.0)
    announce(store, "h/1", at=seen - 1.0, resolution=86400.0, by="h feed")
    for handout in store.dispatch(2)[0]:
        store.observe(handout, bit=0, shape=1.0, time=1.0)
    assert announcer(store) == Announcer()
    assert announcer(store, "h feed").wrong == 1


def test_a_page_that_was_seen_since_is_not_put_forward(store: ClockedStore) -> None:
    known_pages(store)
    assert announce(store, "h/0", at=START - 50.0, unread=1000.0) == 0


def test_least_interval_and_backoff_stand(store: ClockedStore) -> None:
    known_pages(store, gap=150.0)
    announce(store, "h/0")
    assert store.dispatch(1, budget=100.0)[0] == []
    store.advance(51.0)
    (handout,), _ = store.dispatch(1, budget=100.0)
    store.observe(handout, "failed")
    store.advance(10.0)
    assert store.dispatch(1, budget=100.0)[0] == []
    store.advance(141.0)
    (handout,), _ = store.dispatch(1, budget=100.0)
    assert handout.was_announced  # still owed


def test_a_page_in_flight_is_due_again_after_its_lease(store: ClockedStore) -> None:
    known_pages(store)
    announce(store, "h/0")
    (handout,), _ = store.dispatch(1, budget=100.0)
    store.advance(1.0)
    assert announce(store, "h/0", at=store.time() + 30.0) == 1
    store.observe(handout, bit=1, shape=1.0, time=1.0)
    assert announcer(store).waiting == 1
    store.advance(2.0)
    (handout,), _ = store.dispatch(1, budget=100.0)
    assert handout.was_announced
    store.observe(handout, bit=1, shape=1.0, time=1.0)
    assert (announcer(store).right, announcer(store).waiting) == (1, 0)


def test_a_visit_under_way_that_has_seen_the_change_was_enough(store: ClockedStore) -> None:
    known_pages(store)
    announce(store, "h/0")
    (handout,), _ = store.dispatch(1, budget=100.0)
    store.advance(20.0)
    announce(store, "h/0", at=store.time() - 10.0, unread=5.0)
    store.observe(handout, bit=1, shape=1.0, time=1.0)
    assert announcer(store) == Announcer(right=1, window=40.0)
    store.advance(2.0)
    assert store.dispatch(1, budget=100.0)[0] == []


def test_a_retired_page_is_revived(store: ClockedStore) -> None:
    known_pages(store)
    for _ in range(2):
        store.advance(3000.0)
        (handout,), _ = store.dispatch(1)
        store.observe(handout, "gone")
    assert store.counts()["retired"] == 1
    assert announce(store, "h/0") == 1
    assert store.counts()["retired"] == 0
    store.advance(2.0)
    (handout,), _ = store.dispatch(1, budget=100.0)
    store.observe(handout, bit=0, shape=1.0, time=1.0)
    assert announcer(store).wrong == 1


def test_an_announced_visit_is_paid_from_the_credit_of_the_page(store: ClockedStore) -> None:
    """A tenth of a visit was earned, so the next one is due after 1.9 intervals; the rate of the plan holds."""
    known_pages(store)
    announce(store, "h/0")
    (handout,), _ = store.dispatch(1, budget=100.0)
    store.observe(handout, bit=1, shape=1.0, time=1.0)
    assert store.seen(0)["carry"] == pytest.approx(-0.9, abs=1e-4)
    store.advance(1890.0)
    assert store.dispatch(1, budget=100.0)[0] == []
    store.advance(20.0)
    assert [h.was_announced for h in store.dispatch(1, budget=100.0)[0]] == [False]


def test_forced_pages_of_a_crawl_by_price_come_back_to_it(store: ClockedStore) -> None:
    known_pages(store)
    store.command("HSET", store.key("price"), "price", "0.5", "objective", "freshness", "look", "100", "highest", "0.5")
    announce(store, "h/0")
    (handout,), _ = store.dispatch(1, budget=100.0)
    store.observe(handout, bit=1, shape=1.0, time=1.0)
    assert -1 <= store.seen(0)["carry"] <= 0


def test_the_check_in_redis_is_that_of_the_reference(store: ClockedStore) -> None:
    known_pages(store)
    expected = Announcer()
    for at in range(40):
        store.advance(500.0)
        was_forward = announce(store, "h/0")
        assert was_forward == (not expected.is_silenced)
        (handout,), _ = store.dispatch(1)
        bit = int(at % 7 == 0)
        store.observe(handout, bit=bit, shape=1.0, time=1.0)
        if was_forward:
            expected = expected.after(bool(bit))
            assert announcer(store) == expected
        if expected.is_silenced:
            break
    assert expected.is_silenced
    assert expected.score == SILENCED_AT


def test_a_liar_is_probed_now_and_then_and_has_its_say_back_when_it_is_right(store: ClockedStore) -> None:
    known_pages(store)
    forward = []
    for at in range(SILENCED_AT * (PROBE_EVERY + 1)):
        store.advance(500.0)
        forward.append(announce(store, "h/0"))
        (handout,), _ = store.dispatch(1)
        store.observe(handout, bit=int(at >= SILENCED_AT), shape=1.0, time=1.0)
    assert forward[:SILENCED_AT] == [1] * SILENCED_AT
    probes = [at - SILENCED_AT + 1 for at, was in enumerate(forward) if was][SILENCED_AT:]
    assert probes == [PROBE_EVERY * k for k in range(1, SILENCED_AT + 1)]
    counts = store.counts()
    assert counts["announcements_wrong"] == counts["announcements_right"] == SILENCED_AT
    assert counts["announcements_distrusted"] == SILENCED_AT * (PROBE_EVERY - 1)
    assert not announcer(store).is_silenced


def test_announcers_are_judged_one_by_one(store: ClockedStore) -> None:
    known_pages(store)
    for _ in range(SILENCED_AT):
        store.advance(500.0)
        announce(store, "h/0")
        store.observe(store.dispatch(1)[0][0], bit=0, shape=1.0, time=1.0)
    store.advance(500.0)
    assert announce(store, "h/0") == 0
    store.advance(500.0)
    assert announce(store, "h/0", by="h feed") == 1


def test_no_more_pages_wait_than_the_window_allows(store: ClockedStore) -> None:
    names = known_pages(store, 50)
    assert announce(store, *names) == 32
    assert store.counts()["announcements_held"] == 18
    for handout in store.dispatch(10)[0]:
        store.observe(handout, bit=1, shape=1.0, time=1.0)
    assert announcer(store).window == pytest.approx(32 * 1.25**10)
    store.run([("forget_page", [fingerprint(names[31])])])
    assert announcer(store).waiting == len(store.hash("announced")) == 21


def test_a_page_found_as_news_keeps_no_lastmod_before_its_first_visit(store: ClockedStore) -> None:
    """That it is young says nothing of its rate. At the first reading of a source the entries are of all ages."""
    store.add(new_page("h/old"), new_page("h/new"))
    assert announce(store, "h/old", unread=-1.0) == announce(store, "h/new") == 0
    assert store.hash("lastmod").keys() == {str(store.slot("h/old"))}
    handouts = {handout.slot: handout for handout in store.visit_all()}
    assert handouts[store.slot("h/new")].lastmod is None
    assert handouts[store.slot("h/old")].lastmod == pytest.approx((0.0, 0.0, 60.0), abs=0.01)


def test_what_is_announced_is_no_sample_of_ages(store: ClockedStore) -> None:
    """What has not moved is not passed on: the ages of the rest would make every page look quick."""
    known_pages(store)
    announce(store, "h/0")
    store.advance(1e6)
    (handout,), _ = store.dispatch(1)
    assert handout.lastmod is not None
    assert not any(word.is_resolved(1e9) for word in words_of(handout, None, handout.received))


def test_a_page_that_waits_for_its_first_visit_is_handed_out_once(store: ClockedStore) -> None:
    """One that took over what was known under another name stands among the first visits, and nowhere else."""
    known_pages(store)
    store.add(new_page("h/new"))
    (moved,) = store.run(store.move_calls([Move(fingerprint("h/0"), "http://h/0", new_page("h/new"))]))
    assert moved == 2
    assert announce(store, "h/new") == 0
    assert [handout.slot for handout in store.dispatch(5)[0]] == [store.slot("h/new")]


def test_a_revived_page_has_not_failed(store: ClockedStore) -> None:
    known_pages(store)
    for _ in range(2):
        store.advance(3000.0)
        store.observe(store.dispatch(1)[0][0], "gone")
    announce(store, "h/0")
    assert store.hash("failed") == {}


def test_pages_that_always_fail_take_no_place_in_the_window(store: ClockedStore) -> None:
    """For some hours the visit is owed; then they are pages as any others."""
    names = known_pages(store, 33)
    assert announce(store, *names[:32]) == 32
    for failures in range(12):
        assert announcer(store).waiting == 32, failures
        store.advance(10_000.0)
        for handout in store.dispatch(100)[0]:
            store.observe(handout, "failed" if handout.was_announced else "ok")
    assert announcer(store) == Announcer()
    assert store.hash("announced") == {}
    assert announce(store, names[32]) == 1


def test_a_page_that_is_fetched_once_from_now_on_is_awaited_no_more(store: ClockedStore) -> None:
    known_pages(store)
    announce(store, "h/0")
    store.run([("set_bounds", [0, 0, 0.0, 0.0, 1e3, 1.0, ONCE, ""])])
    assert announcer(store).waiting == 0
    assert store.hash("announced") == {}
