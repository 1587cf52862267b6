"""What follows from visits that were counted is done once, also where the server fails in between and the exchange is repeated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from clocked_namespace import ClockedNamespace, fingerprint, page_of, settings_of

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.admitting.pages import move_of
from optimal_frontier.frontier.dispatching import following_up
from optimal_frontier.frontier.dispatching.exchange import Dispatcher
from optimal_frontier.frontier.dispatching.setting_aside import in_pieces
from optimal_frontier.frontier.dispatching.work import Exchange, Lease, Moving
from optimal_frontier.state.messages import KEEP, REST, Handout
from optimal_frontier.state.namespace import Call
from optimal_frontier.state.rows import ACTIVE, RETIRED

LESSON = ("h feed", (1000.0, 1.0, True, 0.001, 2.0))


def handouts_of(store: ClockedNamespace, *names: str) -> list[Handout]:
    """Those of new pages."""
    store.add(*map(page_of, names))
    given = {handout.page: handout for handout in store.dispatch(100)}
    return [given[fingerprint(name)[:12]] for name in names]


@pytest.mark.parametrize("failing", ["LRANGE", "revise", "DEL"])
def test_pages_come_back_whatever_part_of_that_has_to_be_repeated(
    store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """The visit that shows the guard to be needed was counted, so its repetition is refused."""
    dispatcher = Dispatcher(store, settings_of())
    gone, last = handouts_of(store, "h/0", "h/1")
    dispatcher.exchange(Exchange(ended=[(store.seen(gone, REST, state=RETIRED, visits=1, gone=2, failures=2), Lease.of(gone))]))
    seen = store.seen(last, KEEP, brings_back=True, visits=1, failed=1, failures=9, gone=2)
    work = Exchange(ended=[(seen, Lease.of(last))])
    command, run = store.command, store.run

    def fail_command(*words: Any, **of: Any) -> Any:
        if words[0] == failing:
            raise StateUnavailableError("gone")
        return command(*words, **of)

    def fail_run(calls: list[Call]) -> Any:
        if any(call.script == failing for call in calls):
            raise StateUnavailableError("gone")
        return run(calls)

    with monkeypatch.context() as patch:
        patch.setattr(store, "command", fail_command)
        patch.setattr(store, "run", fail_run)
        with pytest.raises(StateUnavailableError):
            dispatcher.exchange(work)
    dispatcher.exchange(work)  # as the courier does
    assert store.row("h/0").state == ACTIVE
    assert store.counts()["gone_held"] == 1
    assert work.counted == []


def test_pages_come_back_though_the_answer_that_the_visit_was_counted_is_lost(
    store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = Dispatcher(store, settings_of())
    gone, last = handouts_of(store, "h/0", "h/1")
    dispatcher.exchange(Exchange(ended=[(store.seen(gone, REST, state=RETIRED, visits=1, gone=2, failures=2), Lease.of(gone))]))
    seen = store.seen(last, KEEP, brings_back=True, visits=1, failed=1, failures=9, gone=2, lessons=[LESSON])
    work, run = Exchange(ended=[(seen, Lease.of(last))]), store.run
    taught: list[Any] = []
    monkeypatch.setattr(dispatcher.recent.sources, "take", taught.extend)

    def lose_answer(calls: list[Call]) -> Any:
        run(calls)
        raise StateUnavailableError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(store, "run", lose_answer)
        with pytest.raises(StateUnavailableError):
            dispatcher.exchange(work)
    assert store.row("h/0").state == RETIRED
    for _ in range(2):  # the courier repeats it, and sends it again to a server that may have lost it
        dispatcher.exchange(work)
    assert store.row("h/0").state == ACTIVE
    assert store.counts()["gone_held"] == 1
    assert taught == [LESSON]


def test_a_visit_that_was_refused_brings_nothing_back(store: ClockedNamespace) -> None:
    dispatcher = Dispatcher(store, settings_of())
    gone, last = handouts_of(store, "h/0", "h/1")
    dispatcher.exchange(Exchange(ended=[(store.seen(gone, REST, state=RETIRED, visits=1, gone=2, failures=2), Lease.of(gone))]))
    seen = store.seen(last, KEEP, brings_back=True, visits=1, failed=1, failures=9, gone=2)
    dispatcher.exchange(Exchange(ended=[(seen, replace(Lease.of(last), token=last.token + 2))]))
    assert store.row("h/0").state == RETIRED


@pytest.mark.parametrize("failing", [None, 0, 1])
def test_moves_that_are_repeated_teach_once_of_sources(
    store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch, failing: int | None
) -> None:
    """Two of them go to one place, so that the server may fail between these."""
    dispatcher = Dispatcher(store, settings_of())
    movings = []
    for n, handout in enumerate(handouts_of(store, "h/0", "h/1", "h/2")):
        target = "h/new" if n else "h/other"
        seen = store.seen(handout, KEEP, visits=1, lessons=[(f"h {n}", LESSON[1])], moved=f"http://{target}")
        movings.append(Moving(move_of(settings_of(), seen, fingerprint(target), f"http://{target}"), Lease.of(handout)))
    taught: list[Any] = []
    monkeypatch.setattr(dispatcher.recent.sources, "take", taught.extend)
    run, left = store.run, failing

    def fail(calls: list[Call]) -> Any:
        nonlocal left
        if left is not None and any(call.script == "become_alias" for call in calls):
            left -= 1
            if left < 0:
                raise StateUnavailableError("gone")
        return run(calls)

    if failing is not None:
        with monkeypatch.context() as patch:
            patch.setattr(store, "run", fail)
            with pytest.raises(StateUnavailableError):
                dispatcher.exchange(Exchange(moves=movings))
    for _ in range(2):
        dispatcher.exchange(Exchange(moves=movings))
    assert sorted(source for source, _ in taught) == ["h 0", "h 1", "h 2"]
    assert store.counts()["pages"] == 2


def test_visits_teach_once_of_sources(store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the second of two fails at what follows from it."""
    dispatcher = Dispatcher(store, settings_of())
    first, second = handouts_of(store, "h/0", "h/1")
    seen = [store.seen(handout, KEEP, visits=1, lessons=[LESSON]) for handout in (first, second)]
    work = Exchange(ended=[(one, Lease.of(one.handout)) for one in seen])
    taught: list[Any] = []
    monkeypatch.setattr(dispatcher.recent.sources, "take", taught.extend)

    def refuse(observation: Any) -> bool:
        if observation.handout is second:
            raise StateUnavailableError("gone")
        return False

    with monkeypatch.context() as patch:
        patch.setattr(following_up, "has_former_name", refuse)
        with pytest.raises(StateUnavailableError):
            dispatcher.exchange(work)
    pieces = in_pieces(replace(work, counted=[*work.counted]))
    assert [one.counted for one in pieces if one.counted] == [[seen[1]]]
    dispatcher.exchange(work)
    dispatcher.exchange(work)
    assert taught == [LESSON, LESSON]


def test_an_outage_amid_pieces_of_a_damaged_exchange_counts_no_visit_twice(
    store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three visits the first cannot be followed, and the server fails at the third."""
    dispatcher = Dispatcher(store, settings_of())
    handouts = handouts_of(store, "h/0", "h/1", "h/2")
    seen = [store.seen(handout, KEEP, visits=1, lessons=[(f"h {n}", LESSON[1])]) for n, handout in enumerate(handouts)]
    work = Exchange(ended=[(one, Lease.of(one.handout)) for one in seen])
    taught: list[Any] = []
    monkeypatch.setattr(dispatcher.recent.sources, "take", taught.extend)

    def refuse(lessons: list[Any]) -> None:
        if lessons is seen[0].lessons:
            raise ValueError("damaged")
        if lessons is seen[2].lessons:
            raise StateUnavailableError("gone")
        taught.extend(lessons)

    with monkeypatch.context() as patch:
        patch.setattr(dispatcher.recent.sources, "take", refuse)
        with pytest.raises(StateUnavailableError):
            dispatcher.exchange(work)
    dispatcher.exchange(work)
    assert [source for source, _ in taught] == ["h 1", "h 2"]


def test_what_follows_from_a_visit_that_ended_in_a_piece_survives_an_outage(
    store: ClockedNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher = Dispatcher(store, settings_of())
    (handout,) = handouts_of(store, "h/0")
    seen = store.seen(handout, KEEP, visits=1, lessons=[LESSON])
    work = Exchange(ended=[(seen, Lease.of(handout))])
    taught: list[Any] = []
    monkeypatch.setattr(dispatcher.recent.sources, "take", taught.extend)
    once, run = iter([ValueError("damaged")]), store.run

    def fail_once(calls: list[Call]) -> Any:
        for error in once:
            raise error
        return run(calls)

    def refuse(observation: Any) -> bool:
        raise StateUnavailableError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(store, "run", fail_once)
        patch.setattr(following_up, "has_former_name", refuse)
        with pytest.raises(StateUnavailableError):
            dispatcher.exchange(work)
    dispatcher.exchange(work)
    assert taught == [LESSON]
