"""An outage is told of, and its end: of a cluster once all of it answers."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.dispatching import outages as module
from optimal_frontier.frontier.dispatching.outages import OutageLog

AWAY = StateUnavailableError("a node is away")


class FakeDispatcher:
    """One whose partitions answer or do not."""

    display = "redis://host"

    def __init__(self, is_cluster: bool) -> None:
        self.is_cluster, self.is_whole, self.looks = is_cluster, False, 0
        self.namespace = self.connection = self.spec = self

    def arrivals(self) -> int:
        self.looks += 1
        if not self.is_whole:
            raise AWAY
        return 1


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The local monotonic time, to be set."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_node_that_is_away_while_others_answer_is_one_outage(now: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """One line as it goes and one as it comes back, however often others answer meanwhile; looks are few."""
    dispatcher: Any = FakeDispatcher(is_cluster=True)
    log = OutageLog(dispatcher)
    with caplog.at_level(logging.INFO):
        log.note_answer()
        for second in range(60):
            now[0] = 100.0 + second
            if second % 5 == 0:
                log.note_failure(AWAY, 0.1, is_long=False)
            log.note_answer()
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert dispatcher.looks <= 12
        dispatcher.is_whole = True
        now[0] += 5.0
        log.note_answer()
        log.note_answer()
    assert caplog.records[-1].getMessage() == "Redis at redis://host answers again, after 64.0 s"
    assert len(caplog.records) == 2


@pytest.mark.parametrize("is_cluster", [False, True])
def test_every_try_is_told_once_they_are_far_apart(is_cluster: bool, now: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """Those before, too, but for a cluster."""
    dispatcher: Any = FakeDispatcher(is_cluster)
    dispatcher.is_whole = True
    log = OutageLog(dispatcher)
    with caplog.at_level(logging.INFO):
        for is_long in (False, False, False, True, True):
            log.note_failure(AWAY, 1.0, is_long=is_long)
        now[0] += 10.0
        log.note_answer()
    assert [record.levelname for record in caplog.records] == ["WARNING"] * (3 if is_cluster else 5) + ["INFO"]
    assert dispatcher.looks == is_cluster


def test_an_outage_that_comes_again_and_again_is_told_once_a_minute(now: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """A right that one kind of call lacks would be two lines with each, while others are answered. Another reason is told at once."""
    dispatcher: Any = FakeDispatcher(is_cluster=False)
    log = OutageLog(dispatcher)

    def fail_and_answer(error: StateUnavailableError = AWAY) -> None:
        log.note_failure(error, 0.1, is_long=False)
        now[0] += 0.5
        log.note_answer()
        now[0] += 0.5

    with caplog.at_level(logging.INFO):
        for _ in range(60):
            fail_and_answer()
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"] * 60
        caplog.clear()
        for _ in range(600):
            fail_and_answer()
        assert 10 <= len(caplog.records) / 2 <= 11
        caplog.clear()
        fail_and_answer(StateUnavailableError("out of memory"))
        now[0] += 61.0
        for _ in range(30):  # a quiet minute later it is another outage, and told of from the start
            fail_and_answer()
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"] * 31


@pytest.mark.parametrize("data_dir", ["/data", None])
def test_an_embedded_server_that_does_not_start_is_told_of_once_an_outage(data_dir: str | None, now: list[float], caplog: Any) -> None:
    """The attempts to reach it say no more than that nobody is there; of another server they say all."""
    dispatcher: Any = FakeDispatcher(is_cluster=False)
    dispatcher.data_dir = data_dir
    log = OutageLog(dispatcher)
    with caplog.at_level(logging.WARNING):
        for outage in range(2):
            for attempt in range(5):
                log.note_failure(AWAY, 0.1, is_long=False)
                log.note_no_connection(StateUnavailableError("Redis at /data refuses writes"))  # as the attempt has just said
                log.note_no_connection(StateUnavailableError(f"it stopped while starting; its log ends:\n  {outage} {attempt}"))
            log.note_answer()
    told = [record.getMessage() for record in caplog.records if "trying again" not in record.getMessage()]
    assert told == ([f"it stopped while starting; its log ends:\n  {outage} 0" for outage in range(2)] if data_dir else [])
