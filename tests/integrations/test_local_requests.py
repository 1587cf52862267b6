"""Requests that a process fetches from memory, and the gate that some of them keep shut."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request

from optimal_frontier.integrations.scrapy import gate as gate_module
from optimal_frontier.integrations.scrapy import local_requests
from optimal_frontier.integrations.scrapy.gate import Gate
from optimal_frontier.integrations.scrapy.local_requests import Local, LocalRequests


def local(n: int = 0, **values: Any) -> Local:
    return Local(Request(f"http://a.example/{n}", method="POST"), **values)


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten, and taken once more."""
    monkeypatch.setattr(local_requests, "_MOST_SEEN", 3)
    requests = LocalRequests(None, 0.0, lambda: None)
    assert [requests.add(local(n), b"%d" % n, again=False) for n in (1, 2, 3, 3, 4)] == [True, True, True, False, True]
    assert [requests.add(local(n), b"%d" % n, again=False) for n in (4, 3, 1)] == [False, False, True]


def test_one_whose_items_were_lost_is_taken_once_more() -> None:
    requests = LocalRequests(None, 0.0, lambda: None)
    first = local()
    assert requests.add(first, b"post", again=False)
    assert not requests.add(local(), b"post", again=False)
    requests.forget(first)
    assert requests.add(local(), b"post", again=False)


def test_a_start_that_was_asked_for_before_a_log_in_does_not_open_its_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may go on yielding, or end, while the log-in is awaited."""
    monkeypatch.setattr(gate_module, "call_later", lambda *_: None)
    gate = Gate(LocalRequests(None, 0.0, lambda: None), lambda: None)
    gate.begin_start()
    old = gate.starts
    gate.note_start(old)
    gate.begin_start()
    gate.note_start(old)
    gate.end_start(old)
    assert gate.is_shut
    gate.end_start(gate.starts)
    assert not gate.is_shut
