"""What sources say of pages, on a clock that the test sets: what is a signal, and what a signal does to a deadline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from clocked_namespace import START, ClockedNamespace, fingerprint, page_of, settings_of

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.estimation.signal_sources import KINDS, SignalSource, SignalVisit
from optimal_frontier.frontier.dispatching import word_taking
from optimal_frontier.frontier.dispatching.word_taking import Told, take_in
from optimal_frontier.frontier.judging.announcing import MOST_FIRST, consequences
from optimal_frontier.frontier.judging.source_worths import lessons_of_sources, source_of
from optimal_frontier.frontier.judging.waits import Terms
from optimal_frontier.scheduling.numbers import Numbers, deadline
from optimal_frontier.state.memory import MOST_SOURCES, Signals
from optimal_frontier.state.messages import PAGE_BYTES, RELEASE, Announcement, Handout
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import ACTIVE, CHECKED, RETIRED, SIGNALLED, TIMED, UNCONDITIONAL
from optimal_frontier.state.source_lessons import NOTHING_KNOWN, NUMBERS, Lesson, Record
from optimal_frontier.state.source_records import all_sources, learn_calls

SITEMAP = "h sitemap"
#: A price at which a page of these tests is visited every 1,000 s or so, and a page that changes once in 1,000 s.
TERMS = Terms(5.5, Published(number=1, time=START, log_price=5.5, prior_time=1000.0), settings_of())
RATE = {"shape": 30.0, "time": 30_000.0}


def learned(told: int, silent: int, unchanged: int) -> Record:
    """What visits teach of a source: signals before each that found a change, and before the silent and the unchanged ones."""
    known = SignalSource()
    for _ in range(60):
        for signals, changed in ((told, True), (silent, True), (unchanged, False)):
            known = known.after(SignalVisit(1000.0, signals, changed, 0.001), KINDS["sitemap"])
    return (*known[:5], *known.likelihoods)


TRUE, DOUBTFUL, LYING = learned(1, 1, 0), learned(2, 1, 1), learned(200, 200, 200)


def knows(store: ClockedNamespace, known: Record, name: str = SITEMAP) -> None:
    """So much is known of a source."""
    store.run(learn_calls(store, {name: Lesson(0.0, known)}))


def tell(
    store: ClockedNamespace,
    *names: str,
    at: float | None = None,
    resolution: float = 60.0,
    unread: float = 100.0,
    by: str | None = SITEMAP,
    terms: Terms = TERMS,
) -> Told:
    """A source, read before so many seconds ago, says that pages changed."""
    modified = store.now() if at is None else at
    announcement = None if by is None else Announcement(by, unread)
    pages = [page_of(name, lastmod=(modified, resolution), announcement=announcement) for name in names]
    return take_in(store, {0: pages}, lambda _: terms)


def signals(store: ClockedNamespace, name: str = "h/0", by: str = SITEMAP) -> int:
    """How many signals of a source are remembered of a page."""
    return sum(told.n for told in store.remembered(name).signals if told.source == by)


def known_pages(store: ClockedNamespace, n: int = 1, **values: float) -> list[str]:
    """Pages that were fetched, to be revisited after 1,000 s."""
    names = [f"h/{at}" for at in range(n)]
    store.visit(*names, **{**RATE, **values})
    store.advance(100.0)
    return names


def due_in(store: ClockedNamespace, name: str = "h/0") -> float:
    """Seconds until a page is due."""
    row = store.row(name)
    return deadline(row.b / 1e6, Numbers(row.a, row.s, row.e, row.l), TERMS.log_price) - store.now()


def handed_out(store: ClockedNamespace, name: str = "h/0") -> Handout:
    """The handout of a page; all others are given back."""
    mine = None
    for handout in store.dispatch(100):
        if handout.page == fingerprint(name)[:12]:
            mine = handout
        else:
            store.end(handout, RELEASE)
    assert mine is not None
    return mine


def test_a_signal_of_a_truthful_source_makes_a_page_due(store: ClockedNamespace) -> None:
    known_pages(store, 2)
    knows(store, TRUE)
    assert tell(store, "h/0").moved == 1
    assert due_in(store) == pytest.approx(0.0, abs=0.01)
    assert due_in(store, "h/1") > 1.0
    assert store.row("h/0").flags & SIGNALLED
    assert signals(store) == 1
    assert store.counts()["signals"] == store.counts()["signals_moved"] == 1


def test_a_source_is_credited_with_the_pages_that_its_word_moves(store: ClockedNamespace) -> None:
    """With their importance, times the chance that the word is true; not with words that move nothing."""
    known_pages(store, 3, importance=4.0)
    store.add(page_of("h/feed"))
    feed = handed_out(store, "h/feed")
    knows(store, DOUBTFUL)
    seen_already = store.now() - 5000.0
    words = {"h/0": store.now(), "h/1": store.now(), "h/2": seen_already}
    spoken = Announcement(SITEMAP, -1.0)
    told = [replace(page_of(name, lastmod=(at, 1.0), announcement=spoken), found_on=feed) for name, at in words.items()]
    assert take_in(store, {0: told}, lambda _: TERMS).moved == 2
    precision = source_of(SITEMAP, DOUBTFUL).believed.precision(RATE["shape"] / RATE["time"])
    assert 0.2 < precision < 0.9
    assert feed.told == pytest.approx(2 * precision, rel=0.05)
    assert feed.told_importance == pytest.approx(2 * 4.0 * precision, rel=0.05)
    assert feed.new_links == 0


def test_a_signal_of_a_source_that_lies_moves_nothing_and_is_remembered(store: ClockedNamespace) -> None:
    known_pages(store)
    knows(store, LYING)
    before = store.row("h/0")
    assert tell(store, "h/0").moved == 0
    assert store.row("h/0") == before
    assert signals(store) == 1


def test_a_doubtful_source_brings_a_page_nearer_and_more_signals_nearer_still(store: ClockedNamespace) -> None:
    known_pages(store, wait=947.0)  # as at this price
    due = [due_in(store)]
    knows(store, DOUBTFUL)
    for _ in range(2):
        store.advance(1.0)
        tell(store, "h/0")
        due.append(due_in(store))
    assert due[0] > due[1] > 1.0 > due[2] > -0.01  # never before now: it would go before pages that wait for longer


def test_what_was_said_or_seen_before_is_no_signal(store: ClockedNamespace) -> None:
    """The same word again; an older one; one of a change that the last visit has seen; one of the future; of an unknown page."""
    known_pages(store)
    tell(store, "h/0", at=START - 500.0, unread=-1.0)
    assert signals(store) == 0
    said = store.now() - 5.0
    for at in (said, said, said - 50.0, said + 1e6):
        tell(store, "h/0", at=at)
    assert signals(store) == 1
    assert [new.page for new in tell(store, "h/unknown").unknown] == [fingerprint("h/unknown")[:12]]
    assert store.counts()["signals"] == 1


def test_each_source_is_heard_for_itself(store: ClockedNamespace) -> None:
    """Two that tell of the same change are two signals; of more than `MOST_SOURCES` the later ones are not heard."""
    known_pages(store)
    said = store.now()
    for by in (SITEMAP, "h feed", *(f"{at} feed" for at in range(MOST_SOURCES))):
        tell(store, "h/0", at=said, by=by)
    kept = store.remembered("h/0").signals
    assert [told.source for told in kept[:2]] == [SITEMAP, "h feed"]
    assert [told.n for told in kept] == [1] * MOST_SOURCES


def test_who_names_a_page_watches_it_from_then_on(store: ClockedNamespace) -> None:
    known_pages(store)
    tell(store, "h/0", at=START - 500.0, unread=-1.0)
    assert store.remembered("h/0").signals == (Signals(SITEMAP, pytest.approx(store.now(), abs=0.01), START - 500.0),)  # type: ignore[arg-type]


def test_a_move_since_the_source_was_read_is_news_whatever_the_clock_of_the_site(store: ClockedNamespace) -> None:
    """The site's clock is an hour slow; the page was not seen since the source was read before."""
    known_pages(store)
    tell(store, "h/0", at=START - 9000.0)
    tell(store, "h/0", at=store.now() - 3600.0, unread=50.0)
    assert signals(store) == 1


def test_where_the_clocks_leave_it_open_a_signal_is_unsure(store: ClockedNamespace) -> None:
    """Seen a second after the change that is told of; a rough word has no such excuse."""
    known_pages(store, 2)
    seen = store.row("h/0").b / 1e6
    tell(store, "h/0", at=seen - 1.0)
    tell(store, "h/1", at=seen - 1.0, resolution=86400.0)
    assert [store.remembered(name).signals[0].unsure for name in ("h/0", "h/1")] == [1, 0]


def test_least_interval_stands(store: ClockedNamespace) -> None:
    known_pages(store, min_interval=150.0)
    knows(store, TRUE)
    tell(store, "h/0")
    assert due_in(store) == pytest.approx(50.0, abs=0.1)


@pytest.mark.parametrize(
    "values",
    [
        {"failures": 9, "unseen": 500.0},
        {"min_interval": 1000.0, "max_interval": 1000.0},
        {"flags": CHECKED, "min_interval": 150.0, "a": 150.0, "s": 0.0, "e": 150.0, "l": 150.0},
        {"flags": UNCONDITIONAL, "a": 0.0, "e": 0.0, "l": 0.0},
    ],
)
def test_pages_whose_next_visit_is_settled_are_left_alone(store: ClockedNamespace, values: dict[str, float]) -> None:
    """They fail, are pinned, are checked, or are wanted now; the signal is remembered."""
    known_pages(store, **values)
    knows(store, TRUE)
    before = store.row("h/0")
    assert tell(store, "h/0").moved == 0
    assert store.row("h/0") == before
    assert signals(store) == 1


def test_a_look_that_is_hours_away_is_no_check(store: ClockedNamespace) -> None:
    """A second look at a page that was given up, or one at a page that has just appeared."""
    known_pages(store, flags=CHECKED, a=1000.0, s=0.0, e=1000.0, l=1000.0)
    knows(store, TRUE)
    assert tell(store, "h/0").moved == 1
    assert not store.row("h/0").flags & CHECKED
    assert due_in(store) < 10.0


@pytest.mark.parametrize(("known", "is_moved"), [(TRUE, True), (LYING, False)])
@pytest.mark.parametrize("values", [{"flags": TIMED}, {"shape": 0.0, "time": 0.0}])
def test_pages_without_doubt_go_by_whether_the_source_convinces(
    store: ClockedNamespace, known: Record, is_moved: bool, values: dict[str, float]
) -> None:
    """Those with update times, and those of which nothing is believed before the first plan."""
    known_pages(store, **values)
    knows(store, known)
    terms = TERMS if "flags" in values else Terms(0.0, Published(), settings_of())
    assert tell(store, "h/0", terms=terms).moved == is_moved
    assert (due_in(store) < 0.01) == is_moved


def ping(store: ClockedNamespace, *names: str, by: str = "ping") -> Told:
    """Somebody says that pages have changed now."""
    return tell(store, *names, by=by, resolution=2.0, unread=-1.0)


def handed_first(store: ClockedNamespace, n: int = 1) -> list[bytes]:
    """The pages that dispatch hands out first, under leases that run out."""
    return [handout.page for handout in store.dispatch(n)]


@pytest.mark.parametrize("by", ["ping", "ping shop"])
@pytest.mark.parametrize("values", [{}, {"a": math.inf, "s": 0.0, "e": 1.0, "l": 1e6}, {"flags": SIGNALLED, "a": 800.0, "l": 1e6}])
def test_a_first_ping_brings_a_page_to_the_front(store: ClockedNamespace, by: str, values: dict[str, float]) -> None:
    """Also one that is not worth a visit at the price, and past a backlog of pages that are due a little longer."""
    store.visit("h/pinged", **{**RATE, **values})
    known_pages(store, 30, a=100.0, s=50.0, e=1.0, l=1e6)  # due now, at log price 0
    store.advance(20.0)
    assert ping(store, "h/pinged", by=by).moved == 1
    row = store.row("h/pinged")
    assert deadline(row.b / 1e6, Numbers(row.a, row.s, row.e, row.l), 99.0) == pytest.approx(store.now(), abs=0.01)
    assert handed_first(store) == [fingerprint("h/pinged")[:12]]


def test_a_page_that_is_late_by_more_than_a_ping_gives_is_left_alone(store: ClockedNamespace) -> None:
    """So nobody loses by a ping, nor by a second one."""
    known_pages(store, 2, a=10.0, s=5.0, e=1.0, l=1e6)
    before = store.row("h/0")
    assert ping(store, "h/0").moved == 0
    assert store.row("h/0") == before
    store.visit("h/2", **{**RATE, "a": 1e5, "e": 1.0, "l": 1e6})
    store.advance(50.0)
    assert ping(store, "h/2").moved == 1
    store.advance(1.0)
    assert ping(store, "h/2").moved == 0
    # Later than by a slope, a page goes before one that was pinged; that one keeps its place at the front.
    assert fingerprint("h/2")[:12] not in handed_first(store, 2)
    assert handed_first(store) == [fingerprint("h/2")[:12]]


def test_a_ping_waits_for_the_least_interval(store: ClockedNamespace) -> None:
    known_pages(store, min_interval=150.0)
    ping(store, "h/0")
    assert due_in(store) == pytest.approx(50.0, abs=0.1)


@pytest.mark.parametrize("by", ["ping", "ping shop"])
def test_a_liar_that_pings_is_soon_worth_nothing(store: ClockedNamespace, by: str) -> None:
    """At most 20 pages at once go first; and once visits have shown some of these unchanged, none."""
    names = known_pages(store, 100, a=1e5, s=5e4, e=1.0, l=1e6)
    ping(store, *names[:50], by=by)
    assert sum(store.row(name).e == store.row(name).l for name in names) == MOST_FIRST
    for _ in range(8):
        known = source_of(by, all_sources(store).get(by, NOTHING_KNOWN))
        (lesson,) = lessons_of_sources([known], [0], [SignalVisit(100.0, 1, False, 0.001, 30.0)])
        store.run(learn_calls(store, {by: lesson}))
    ping(store, *names[50:], by=by)
    assert sum(store.row(name).e == store.row(name).l for name in names) == MOST_FIRST


def test_signals_never_make_a_rank_explode(store: ClockedNamespace) -> None:
    """A page whose wait falls below its shortest one would count as starved: it would go first, and raise the price."""
    terms = TERMS._replace(log_price=0.001)  # about that of dispatch
    knows(store, TRUE)
    store.visit("h/quiet", **{**RATE, "a": 1e5, "e": 5.0, "l": 1e6, "min_interval": 5.0})
    store.advance(900.0)
    store.visit("h/late", **{**RATE, "a": 5.0, "s": 1000.0, "e": 1.0, "l": 1e6})
    store.advance(100.0)
    for _ in range(3):
        store.advance(1.0)
        tell(store, "h/quiet", terms=terms)
    row = store.row("h/quiet")
    due = deadline(row.b / 1e6, Numbers(row.a, row.s, row.e, row.l), 0.0)
    assert store.now() - 4.0 < due <= store.now() + 1.0
    assert row.e == 5.0 < due - row.b / 1e6
    assert handed_first(store) == [fingerprint("h/late")[:12]]


def test_a_page_in_flight_is_told_after_its_lease(store: ClockedNamespace) -> None:
    known_pages(store)
    knows(store, TRUE)
    store.advance(1000.0)
    handout = handed_out(store)
    store.advance(1.0)
    (again,) = tell(store, "h/0").again
    assert store.remembered("h/0").signals == ()
    store.advance(5.0)
    store.end(handout, **RATE)
    store.advance(5.0)
    assert take_in(store, {0: [again]}, lambda _: TERMS).moved == 0  # seen meanwhile
    assert tell(store, "h/0").moved == 1


def test_what_is_said_of_a_page_in_flight_and_what_its_visit_stores_are_both_kept(store: ClockedNamespace) -> None:
    """Also what is no signal: it would be written over by the visit, or write over what that has stored."""
    known_pages(store)
    store.advance(1000.0)
    handout = handed_out(store)
    (again,) = tell(store, "h/0", by=None).again
    stored = handout.memory._replace(etag=b'"1"')
    store.end(handout, memory=stored, **RATE)
    assert take_in(store, {0: [again]}, lambda _: TERMS).again == []
    assert store.remembered("h/0") == stored._replace(lastmod=store.remembered("h/0").lastmod)
    assert store.remembered("h/0").lastmod is not None


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_word_that_a_visit_overtakes_is_said_again(
    store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch, is_first: bool, is_over: bool
) -> None:
    """The page was handed out, or visited, since it was read: neither the word nor what the visit stores is lost."""
    if is_first:
        store.add(page_of("h/0"))
    else:
        known_pages(store)
    knows(store, LYING)
    store.advance(1000.0)
    handouts = []

    def overtaken(*arguments: Any) -> Any:
        handouts.append(handed_out(store))
        if is_over:
            end(handouts[0])
        return consequences(*arguments)

    def end(handout: Handout) -> None:
        assert store.end(handout, memory=handout.memory._replace(etag=b'"1"'), **RATE) == 1

    monkeypatch.setattr(word_taking, "consequences", overtaken)
    (again,) = tell(store, "h/0").again
    assert store.counts().get("signals", 0) == 0
    if not is_over:
        end(handouts[0])
    monkeypatch.undo()
    assert take_in(store, {0: [again]}, lambda _: TERMS).again == []
    remembered = store.remembered("h/0")
    assert remembered.etag == b'"1"'
    assert [told.source for told in remembered.signals] == [SITEMAP]


def test_damage_of_one_page_costs_no_other_its_word(store: ClockedNamespace) -> None:
    """A row that is none is left to dispatch, which puts it aside; a memory that is none is forgotten. Pings would wait behind it."""
    known_pages(store, 4)
    knows(store, TRUE)
    pages, memories = store.key("pages"), store.key("memory")
    store.command("HSET", pages, fingerprint("h/0")[:12], b"short")
    store.command("HSET", pages, fingerprint("h/1")[:12], store.row("h/1")._replace(shape=math.nan).pack() + b"tail")
    store.command("HSET", memories, fingerprint("h/2")[:12], b"\xc1")
    told = tell(store, "h/0", "h/1", "h/2", "h/3")
    assert [new.page for new in told.unknown] == [fingerprint(name)[:12] for name in ("h/0", "h/1")]
    assert told.moved == 2
    assert signals(store, "h/2") == signals(store, "h/3") == 1


def test_no_command_carries_more_pages_than_a_batch(store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many words have gathered, as in an outage."""
    known_pages(store, 10)
    monkeypatch.setattr(word_taking, "BATCH", 4)
    sizes: list[int] = []
    run = store.commands

    def noted(rows: Iterable[Sequence[Any]], **of: Any) -> list[Any]:
        rows = list(rows)
        sizes.extend(sum(isinstance(part, bytes) and len(part) == PAGE_BYTES for part in row) for row in rows)
        return run(rows, **of)

    monkeypatch.setattr(store, "commands", noted)
    assert tell(store, *(f"h/{n}" for n in range(10)), by=None).again == []
    assert max(sizes) == 4
    assert all(store.remembered(f"h/{n}").lastmod is not None for n in range(10))


def test_words_are_taken_in_once_after_an_outage(store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a server that is full or gone in the middle: the courier repeats what it was about to do."""
    known_pages(store, 2)
    knows(store, LYING)
    pages = [page_of(f"h/{n}", lastmod=(store.now(), 60.0), announcement=Announcement(SITEMAP, 100.0)) for n in range(2)]

    def refuse(*_: object, **__: object) -> None:
        raise StateUnavailableError("full")

    with monkeypatch.context() as patch:
        patch.setattr(store, "run", refuse)
        with pytest.raises(StateUnavailableError):
            take_in(store, {0: pages}, lambda _: TERMS)
    for _ in range(2):
        take_in(store, {0: pages}, lambda _: TERMS)
    assert [signals(store, f"h/{n}") for n in range(2)] == [1, 1]
    assert store.counts()["signals"] == 2


def test_a_convincing_source_brings_back_a_retired_page(store: ClockedNamespace) -> None:
    known_pages(store)
    store.advance(1000.0)
    store.retire("h/0", **RATE)
    store.advance(500.0)
    knows(store, LYING)
    assert tell(store, "h/0").moved == 0
    store.advance(1.0)
    knows(store, TRUE)
    assert tell(store, "h/0").moved == 1
    assert store.row("h/0").state == ACTIVE
    assert handed_out(store).row.flags & SIGNALLED


def test_retired_pages_of_before_their_first_visit_are_due_now(store: ClockedNamespace) -> None:
    store.visit("h/0", visits=0, failed=2, state=RETIRED, gone=2, op=3, counters={"fetched": 0, "retired": 1})
    store.advance(10.0)
    knows(store, TRUE)
    tell(store, "h/0")
    assert store.score("h/0") == 4.0  # the front


def test_a_page_found_as_news_keeps_no_lastmod_before_its_first_visit(store: ClockedNamespace) -> None:
    """That it is young says nothing of its rate. At the first reading of a source the entries are of all ages."""
    store.add(page_of("h/old"), page_of("h/new"))
    tell(store, "h/old", unread=-1.0)
    tell(store, "h/new")
    handouts = {handout.page: handout for handout in store.dispatch(5)}
    assert handouts[fingerprint("h/new")[:12]].memory.lastmod is None
    told = handouts[fingerprint("h/old")[:12]].memory.lastmod
    assert told == pytest.approx((START, 60.0, START), abs=0.01)
    assert signals(store, "h/old") == signals(store, "h/new") == 0


def test_what_is_told_is_no_sample_of_ages(store: ClockedNamespace) -> None:
    """What has not moved is not passed on: the ages of the rest would make every page look quick."""
    known_pages(store)
    tell(store, "h/0")
    told = store.remembered("h/0").lastmod
    assert told is not None
    assert told.resolution == float("inf")


def test_a_word_without_a_source_is_noted_as_it_is(store: ClockedNamespace) -> None:
    """Each time anew: that nothing has changed until now is news, too. Not what lies in the future."""
    known_pages(store)
    for modified in (START - 5.0, START - 5.0, START + 1e6):
        store.advance(10.0)
        tell(store, "h/0", at=modified, by=None)
    told = store.remembered("h/0").lastmod
    assert told == pytest.approx((START - 5.0, 60.0, store.now() - 10.0), abs=0.01)
    assert "signals" not in store.counts()


def test_two_processes_that_learn_at_once_lose_nothing(store: ClockedNamespace) -> None:
    """Records are added to, not replaced: in any order, and joined before or after."""
    one, other = Lesson(0.5, (1.0,) * NUMBERS), Lesson(0.5, (-2.0,) * NUMBERS)
    # A number that is none would stay so for ever.
    store.command("HSET", store.key("sources"), SITEMAP, b"\xff" * len(one.pack()[8:]))
    store.run(learn_calls(store, {SITEMAP: one}))
    store.run(learn_calls(store, {SITEMAP: other}))
    store.run(learn_calls(store, {"h feed": one.then(other)}))
    known = all_sources(store)
    assert known[SITEMAP] == known["h feed"] == (-1.5,) * NUMBERS
