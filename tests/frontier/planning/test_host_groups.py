"""What hosts bear, by pacing over all crawlers and by what their downloaders tell."""

from __future__ import annotations

import math

import numpy as np
import pytest
from timed_namespace import TimedNamespace, new_page

from optimal_frontier.frontier.planning.host_groups import UNLIMITED, host_groups
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.downloader_limits import SILENT_S, DownloaderLimits, SlotLimit, read_limits, tell_limits

NUMBERS = {"a": 0, "b": 1, "c": 2, "d": 3}


def parse(**values: object) -> FrontierSettings:
    scrapys = {name: values.pop(name) for name in list(values) if name.startswith("DOWNLOAD")}
    return FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()} | scrapys)


def limits(default: float = 0.0, **slots: float) -> DownloaderLimits:
    """Slots named by the hosts in them, joined by underscores."""
    return DownloaderLimits(default, tuple(SlotLimit(tuple(name.split("_")), rate) for name, rate in slots.items()))


def test_nothing_limits_any_host_unless_something_does() -> None:
    assert host_groups(parse(), [], NUMBERS, 4).capacity is None
    assert host_groups(parse(), [limits()], NUMBERS, 4).capacity is None
    assert host_groups(parse(), [limits(x=1.0)], NUMBERS, 4).capacity is None  # of a host that nobody knows


def test_without_a_word_of_a_crawler_there_is_one_with_the_settings() -> None:
    """DOWNLOAD_DELAY holds in each slot, HOST_DELAY and HOST_MAX_RATE over all; the smaller counts."""
    slot = 1 / 1.218
    assert host_groups(parse(DOWNLOAD_DELAY=1), [], {}, 2).capacity == pytest.approx([slot, slot], rel=1e-3)
    assert host_groups(parse(DOWNLOAD_DELAY=1, HOST_DELAY=3), [], {}, 1).capacity == pytest.approx([1 / 3])
    assert host_groups(parse(HOST_MAX_RATE=0.25), [], {}, 1).capacity == pytest.approx([0.25])


def test_a_slot_limits_its_host_alone() -> None:
    found = host_groups(parse(), [limits(b=0.5)], NUMBERS, 4)
    assert found.group.tolist() == [0, 1, 2, 3]
    assert found.capacity is not None
    assert found.capacity.tolist() == [UNLIMITED, 0.5, UNLIMITED, UNLIMITED]


def test_limits_of_processes_add_up_and_those_over_all_do_not() -> None:
    """Of a crawler that says nothing of a host its default counts."""
    two = [limits(0.8, a=0.1), limits(0.8, a=0.3, b=0.2)]
    assert host_groups(parse(), two, NUMBERS, 3).capacity == pytest.approx([0.4, 1.0, 1.6])
    assert host_groups(parse(HOST_MAX_RATE=0.5), two, NUMBERS, 3).capacity == pytest.approx([0.4, 0.5, 0.5])
    assert host_groups(parse(), [limits(a=0.1), limits()], NUMBERS, 1).capacity == pytest.approx([UNLIMITED])


def test_hosts_that_share_a_slot_are_one_limit() -> None:
    found = host_groups(parse(HOST_MAX_RATE=1.0), [limits(a_c=0.5, d=0.25)], NUMBERS, 4)
    assert found.group.tolist() == [0, 1, 0, 3]
    assert found.capacity is not None
    assert found.capacity[[0, 1, 3]] == pytest.approx([0.5, 1.0, 0.25])
    # Each has its own pause over all crawlers.
    assert host_groups(parse(HOST_MAX_RATE=0.1), [limits(a_c=0.5)], NUMBERS, 4).capacity[0] == pytest.approx(0.2)  # type: ignore[index]


def test_slots_of_several_crawlers_that_share_hosts_in_different_ways_are_one_group() -> None:
    found = host_groups(parse(), [limits(1.0, a_b=0.5), limits(2.0, b_c=0.25)], NUMBERS, 4)
    assert found.group.tolist() == [0, 0, 0, 3]
    # The first: a and b 0.5, c 1; the second: b and c 0.25, a 2.
    assert found.capacity == pytest.approx([3.75, 3.0, 3.0, 3.0])


def test_what_is_told_is_read_by_another_process_until_its_teller_is_silent(space: TimedNamespace) -> None:
    tell_limits(space, b"one", limits(2.0, a=0.1))
    tell_limits(space, b"two", limits(a_b=0.3))
    assert sorted(read_limits(space), key=lambda one: one.default) == [limits(a_b=0.3), limits(2.0, a=0.1)]
    space.advance(1000.0)  # what was told last stands while nobody runs
    assert len(read_limits(space)) == 2
    tell_limits(space, b"one", limits(4.0))
    assert read_limits(space) == [limits(4.0)]
    assert space.command("HLEN", space.key("slots")) == 1
    space.advance(SILENT_S - 1)
    tell_limits(space, b"three", limits(5.0))
    assert len(read_limits(space)) == 2


@pytest.mark.parametrize("raw", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x90", b"\x93\xc0\xc0\xc0", b"\x93\x01\x02\x91\x92\xff\xa1a"])
def test_what_cannot_be_read_is_forgotten(space: TimedNamespace, raw: bytes) -> None:
    space.command("HSET", space.key("slots"), "bad", raw)
    assert read_limits(space) == []
    assert space.command("EXISTS", space.key("slots")) == 0


@pytest.mark.parametrize("told", [limits(a=0.5), limits(a_b=0.5)])
def test_a_plan_keeps_to_what_slots_admit(space: TimedNamespace, told: DownloaderLimits) -> None:
    """Of a hundred pages on four hosts those of the slow slot get what it admits, the others the rest. It has a price of its own."""
    tell_limits(space, b"crawler", told)
    names = [f"{host}/{i}" for host in "abcd" for i in range(25)]
    space.add(*(new_page(name, importance=1.0, min_interval=1.0, max_interval=1e9) for name in names))
    handouts = [handout for _ in range(2) for handout in space.dispatch(50, share=1.0)]
    for at, handout in enumerate(handouts):
        assert space.observe(handout, shape=5.0, time=20.0 + at)
    planner = Planner(space, parse(CRAWL_RATE=10))
    report = planner.plan()
    assert report is not None
    hosts = planner.crawl.tables[0].pages["host"][planner.crawl.planned].tolist()
    known = {space.command("HGET", space.key("hosts:names"), host).decode(): host for host in set(hosts)}
    slow = {known[host] for slot in told.slots for host in slot.hosts}
    is_slow = np.isin(hosts, list(slow))
    assert float(planner.rates[is_slow].sum()) == pytest.approx(0.5)
    assert report.planned_rate == pytest.approx(report.revisit_budget)
    prices = np.frombuffer(space.command("GET", space.key("prices")), [("host", "<u4"), ("extra", "<f4")])
    assert set(prices["host"].tolist()) == slow
    assert len(set(prices["extra"].tolist())) == 1


def test_a_full_host_whose_pages_are_all_at_bounds_has_a_price() -> None:
    """All of its pages but one get no more than they must: what one more visit to them would be worth says what the host's price is."""
    from optimal_frontier.frontier.planning.solving import Problem, solve

    n = 6
    host = np.array([0, 0, 0, 1, 1, 1])
    low = np.array([0.1, 0.1, 0.1, 1e-6, 1e-6, 1e-6])
    problem = Problem(
        np.ones(n), np.full(n, 0.5), low, np.full(n, 1.0), np.zeros(n), False, host, np.array([0.3, 1e12]), "freshness", "periodic"
    )
    solved = solve(problem, 1.5)
    assert solved.rates[:3] == pytest.approx(low[:3])
    assert solved.extra[1] == 0.0
    r = 0.5 / 0.1
    assert solved.extra[0] == pytest.approx(math.log((1 - (1 + r) * math.exp(-r)) / 0.5) - solved.log_price, abs=1e-6)
