"""The last look before a request is sent, without a network: who waits for a turn, and for how long."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.resolver import dnscache

from optimal_frontier.frontier.dispatching.work import Turn
from optimal_frontier.integrations.scrapy import paced_starts
from optimal_frontier.integrations.scrapy.lease import LEASE
from optimal_frontier.integrations.scrapy.paced_starts import PacedStarts


class SlowCourier:
    """Gives turns when it is told to, as one whose Redis is away for a while."""

    pause_s = 0.1

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.in_s = 0.0
        self.started: list[str] = []
        self.given_back: list[float] = []
        #: The turn that came with a handout, once there is one.
        self.unused: float | None = None

    def use_turn(self, host: str) -> float | None:
        found, self.unused = self.unused, None
        return found

    def take_turn(self, host: str) -> Turn:
        self.turns.append(Turn(host, self.in_s and time.monotonic() + self.in_s))
        return self.turns[-1]

    def note_start(self, host: str, turn: float, is_never: bool = False) -> None:
        if is_never:
            self.given_back.append(turn)
        else:
            self.started.append(host)


@pytest.fixture
def courier(monkeypatch: pytest.MonkeyPatch) -> SlowCourier:
    monkeypatch.setattr(paced_starts, "_ANSWER_S", 0.0)
    monkeypatch.setattr(paced_starts, "pause", lambda seconds: asyncio.sleep(0.0))
    return SlowCourier()


def crawler(closing: object = None) -> SimpleNamespace:
    return SimpleNamespace(engine=SimpleNamespace(slot=SimpleNamespace(closing=closing), _slot=SimpleNamespace(closing=closing)))


def unpaid(request: object) -> None:
    """What is sent once was paid for elsewhere."""
    raise AssertionError(request)


def test_addresses_are_looked_up_again(courier: SlowCourier, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site that moves while a crawl runs is found where it is now."""
    clock = iter((1000.0, 1000.0, 1299.0, 1300.0, 1301.0))
    monkeypatch.setattr(paced_starts, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(courier, "pause_s", 0.0)
    starts = PacedStarts(crawler(), courier, unpaid)  # type: ignore[arg-type]  # what it needs of one
    known = []
    for _ in range(4):
        dnscache["moving.example"] = "192.0.2.1"
        asyncio.run(starts.before(Request("http://moving.example/")))
        known.append("moving.example" in dnscache)
    dnscache.clear()
    assert known == [True, True, False, True]


def test_robots_txt_is_asked_however_long_its_turn_is_not_given(courier: SlowCourier) -> None:
    """Scrapy takes a robots.txt that could not be fetched for none, and would fetch what it forbids until the process ends."""

    async def run() -> None:
        starts = PacedStarts(crawler(), courier, unpaid)  # type: ignore[arg-type]  # what it needs of one
        asked = asyncio.create_task(starts.before(Request("http://h/robots.txt", meta={"dont_obey_robotstxt": True})))
        for _ in range(50):
            await asyncio.sleep(0.0)
        assert not asked.done()
        courier.in_s = 1000.0  # further off than anybody waits for
        for _ in range(50):
            await asyncio.sleep(0.0)
        assert not asked.done()
        courier.in_s = 1e-6
        sent = await asked
        assert sent is not None
        assert not courier.started
        sent()

    asyncio.run(run())
    assert courier.started == ["h"]


def test_robots_txt_takes_the_turn_of_a_page_that_waits_for_it(courier: SlowCourier) -> None:
    """The page was handed out after the turn was asked for: while its host awaits that fetch, it gives no other turn."""

    async def run() -> None:
        starts = PacedStarts(crawler(), courier, unpaid)  # type: ignore[arg-type]
        asked = asyncio.create_task(starts.before(Request("http://h/robots.txt", meta={"dont_obey_robotstxt": True})))
        for _ in range(5):
            await asyncio.sleep(0.0)
        courier.unused = 7.0
        for turn in courier.turns:  # and now it comes all the same
            turn.at, turn.awaited = time.monotonic(), 9.0
        await asked

    asyncio.run(asyncio.wait_for(run(), 10.0))
    assert courier.unused is None
    assert not any(turn.is_wanted for turn in courier.turns)
    assert courier.given_back == [9.0]


@pytest.mark.parametrize(
    "request_", [Request("http://h/page"), Request("http://h/robots.txt"), Request("http://h/a", meta={"dont_obey_robotstxt": True})]
)
def test_other_requests_are_not_sent_when_no_turn_is_given(courier: SlowCourier, request_: Request) -> None:
    with pytest.raises(IgnoreRequest, match="h has given no turn"):
        asyncio.run(PacedStarts(crawler(), courier, unpaid).before(request_))  # type: ignore[arg-type]
    assert not courier.turns[0].is_wanted


def test_robots_txt_is_not_waited_for_when_the_spider_closes(courier: SlowCourier) -> None:
    request = Request("http://h/robots.txt", meta={"dont_obey_robotstxt": True})
    with pytest.raises(IgnoreRequest):
        asyncio.run(PacedStarts(crawler(closing=object()), courier, unpaid).before(request))  # type: ignore[arg-type]


def test_the_turn_of_a_request_whose_lease_is_lost_meanwhile_is_given_back(courier: SlowCourier) -> None:
    request = Request("http://h/page")
    lease = SimpleNamespace(request=request, is_lost=False, is_given_back=False, handout=None)
    request.meta[LEASE] = lease
    courier.in_s = 1e-6
    held = iter([True, False])
    courier.holds = lambda handout: next(held)  # type: ignore[attr-defined]
    with pytest.raises(IgnoreRequest, match="lease was lost"):
        asyncio.run(PacedStarts(crawler(), courier, unpaid).before(request))  # type: ignore[arg-type]
    assert lease.is_given_back
    assert courier.given_back == [turn.awaited for turn in courier.turns]
