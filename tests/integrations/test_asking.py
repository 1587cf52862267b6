"""MAX_NEXT_REQUESTS and DELAY_ON_EMPTY in a Scrapy project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from frontera.contrib.scrapy.settings_adapter import ScrapySettingsAdapter
from scrapy.settings import Settings

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.integrations.scrapy import asking
from optimal_frontier.integrations.scrapy.asking import Asking, room_of


class Clock:
    """A set clock, and what is to be called later."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.calls: list[tuple[float, Callable[[], Any]]] = []

    def monotonic(self) -> float:
        return self.now

    def call_later(self, seconds: float, function: Callable[[], Any]) -> None:
        self.calls.append((seconds, function))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(asking, "time", clock)
    monkeypatch.setattr(asking, "call_later", clock.call_later)
    return clock


def asked(looks: list[str] | None = None, **settings: Any) -> Asking:
    return Asking(ScrapySettingsAdapter(Settings(settings)), lambda: (looks if looks is not None else []).append("look"))


def test_frontera_defaults_bound_nothing(clock: Clock) -> None:
    """They are for backends that are asked every few seconds."""
    bounds = asked()
    assert [bounds.bounded(wanted, 0, empty)[0] for wanted, empty in ((500, 0), (500, 1), (0, 2))] == [500, 500, 0]
    assert not clock.calls


def test_a_project_bounds_how_much_is_asked_for(clock: Clock) -> None:
    """0 is no bound, as with Frontera."""
    assert asked(MAX_NEXT_REQUESTS="8").bounded(500, 0, 0)[0] == 8
    assert asked(MAX_NEXT_REQUESTS=8).bounded(5, 0, 0)[0] == 5
    assert asked(MAX_NEXT_REQUESTS=0).bounded(500, 0, 0)[0] == 500


def test_what_is_too_many_is_asked_for_in_advance_no_more(clock: Clock) -> None:
    """Else a downloader that has run out would seem to have what it can take."""
    bounds = asked(MAX_NEXT_REQUESTS=8)
    assert [bounds.bounded(wanted, 6, 0) for wanted in (5, 8, 10, 14, 500)] == [(5, 6), (8, 6), (8, 4), (8, 0), (8, 0)]


def test_nothing_is_asked_for_a_while_after_an_empty_answer(clock: Clock) -> None:
    """DELAY_ON_EMPTY; then the engine is told to ask again."""
    looks: list[str] = []
    bounds = asked(looks, DELAY_ON_EMPTY=3)
    assert bounds.bounded(5, 0, 0)[0] == 5
    assert [bounds.bounded(5, 0, 1)[0], bounds.bounded(5, 0, 1)[0]] == [0, 0]
    ((seconds, look),) = clock.calls
    assert seconds == 3
    clock.now += 2.9
    assert bounds.bounded(5, 0, 1)[0] == 0
    clock.now += 0.2
    look()
    assert looks == ["look"]
    assert bounds.bounded(5, 0, 1)[0] == 5
    assert bounds.bounded(5, 0, 2)[0] == 0


@pytest.mark.parametrize(
    "settings", [{"MAX_NEXT_REQUESTS": 1.5}, {"MAX_NEXT_REQUESTS": "x"}, {"DELAY_ON_EMPTY": "nan"}, {"DELAY_ON_EMPTY": []}]
)
def test_what_is_no_number_is_refused_by_name(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        asked(**settings)


def rooms(active: Mapping[str, int], slow: set[str], total: int = 16) -> dict[str, int]:
    """Return the room of the slots of a downloader with so many requests in each, eight at most."""
    slots = {key: SimpleNamespace(active=set(range(n)), concurrency=8) for key, n in active.items()}
    downloader = SimpleNamespace(
        slots=slots, active=range(sum(active.values())), total_concurrency=total, domain_concurrency=8, ip_concurrency=0
    )
    return {key: slot.room for key, slot in room_of(downloader, 0, lambda key: [key], slow).slots.items()}


def test_slow_slots_leave_room_to_the_others() -> None:
    """A quarter of CONCURRENT_REQUESTS, and one at least; what is left of the rest is shared, and a slow slot that is idle waits too."""
    assert rooms({"quick": 2, "a": 5, "b": 5}, set()) == {"quick": 6, "a": 3, "b": 3}
    assert rooms({"quick": 2, "a": 5, "b": 5}, {"a", "b"}) == {"quick": 6, "a": 1, "b": 1}
    assert rooms({"quick": 2, "a": 6, "b": 7}, {"a", "b", "idle"}) == {"quick": 6, "a": 0, "b": 0, "idle": 0}
    assert rooms({"a": 7, "quick": 1}, {"a", "idle"}) == {"a": 1, "quick": 7}
    assert rooms({"a": 1}, {"a", "b"}, total=2) == {"a": 0, "b": 0}
    assert rooms({"b": 0}, {"a", "b"}, total=1) == {}


def test_what_waits_for_robots_txt_will_be_in_a_slot() -> None:
    """Beside the request for that; else one host that does not answer would get all that the downloader takes."""
    slots = {"a": SimpleNamespace(active={"robots.txt"}, concurrency=8)}
    downloader = SimpleNamespace(slots=slots, active=range(9), total_concurrency=16, domain_concurrency=8, ip_concurrency=0)

    def rooms_beside(waiting: list[str], *slow: str) -> dict[str, int]:
        return {key: slot.room for key, slot in room_of(downloader, 0, lambda key: [key], slow, waiting).slots.items()}

    assert rooms_beside([]) == {"a": 7}
    assert rooms_beside(["a"] * 7 + ["b"]) == {"a": 0, "b": 7}
    assert rooms_beside(["a"] * 6 + ["b"] * 5, "a", "b") == {"a": 0, "b": 0}
