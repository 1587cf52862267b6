"""Clocks of neighbourhoods run as docs/maths.md says, and open only where pages tell about each other."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.group_bins import BINS, EXPECTED, GroupBins, fault_of_group
from optimal_frontier.estimation.neighbourhoods import NO_GROUP, SHARE, STRENGTH, Neighbourhoods, VisitBatch, fault_of_host

BIN_S = 64.0


def batch(*visits: tuple[list[int], int, float, float, bool, float, float], is_sample: bool = True) -> VisitBatch:
    """Visits as (groups, host, since, until, changed, shape, time)."""
    groups, host, since, until, changed, shape, time = (np.array(column) for column in zip(*visits, strict=True))
    return VisitBatch(groups, host, since, until, changed, shape, time, np.full(len(host), is_sample))


def clocks(groups: int = 8, hosts: int = 2, at: float = 0.0, day_s: float = 1.0) -> Neighbourhoods:
    """Clocks without a rhythm, unless days are longer: intervals of more than two weeks tell nothing of the hour."""
    made = Neighbourhoods(BIN_S, day_s)
    made.grow(groups, hosts)
    made.advance(at)
    return made


def random_visits(
    rng: np.random.Generator, start: float, span: float, count: int
) -> list[tuple[list[int], int, float, float, bool, float, float]]:
    made = []
    for _ in range(count):
        until = start + span * rng.random()
        groups = [0, int(rng.integers(1, 3)), int(rng.integers(3, 5)), int(rng.integers(5, 8))]
        made.append((groups, 0, until - rng.exponential(10 * BIN_S), until, bool(rng.random() < 0.4), 1.0 + 3 * rng.random(), 600.0))
    return sorted(made, key=lambda visit: visit[3])


class Plain:
    """The algorithm in plain Python, visit by visit, with bins that are never left behind."""

    def __init__(self) -> None:
        self.num: dict[tuple[int, int], float] = {}
        self.den: dict[tuple[int, int], float] = {}

    def excess(self, group: int, number: int) -> float:
        return (STRENGTH * SHARE + self.num.get((group, number), 0.0)) / (STRENGTH + self.den.get((group, number), 0.0))

    def elapsed(self, groups: list[int], since: float, until: float) -> float:
        total = (1.0 - len(groups) * SHARE) * (until - since)
        for group in groups:
            for number, overlap in self.overlaps(since, until):
                total += self.excess(group, number) * overlap
        return total

    @staticmethod
    def overlaps(since: float, until: float) -> list[tuple[int, float]]:
        numbers = range(math.floor(since / BIN_S), math.floor(until / BIN_S) + 1)
        return [(j, min(until, (j + 1) * BIN_S) - max(since, j * BIN_S)) for j in numbers]

    def fold(self, groups: list[int], since: float, until: float, changed: bool, shape: float, time: float) -> None:
        chance = 1.0 - (1.0 + self.elapsed(groups, since, until) / time) ** -shape
        added = [
            (group, j, shape / time * overlap, self.excess(group, j)) for group in groups for j, overlap in self.overlaps(since, until)
        ]
        for group, number, expected, excess in added:
            self.den[group, number] = self.den.get((group, number), 0.0) + expected
            self.num[group, number] = self.num.get((group, number), 0.0) + changed * expected * excess / max(chance, 1e-6)


def test_folding_visit_by_visit_is_the_plain_algorithm() -> None:
    rng = np.random.default_rng(1)
    made, plain = clocks(at=1e5), Plain()
    for visit in random_visits(rng, 1e5, 12 * BIN_S, 120):
        made.fold(batch(visit))
        plain.fold(visit[0], *visit[2:])
    made.gates.set(0, 20.0)
    now = 1e5 + 12 * BIN_S
    for groups in ([0, 1, 3, 5], [0, 2, 4, 7]):
        for since in (now - 20.0, now - 5 * BIN_S, now - 11.5 * BIN_S):
            got = made.elapsed(np.array([groups]), np.zeros(1, int), np.array([since]), now)[0]
            assert got == pytest.approx(plain.elapsed(groups, since, now), rel=1e-4)


def test_folding_in_batches_of_a_64th_of_a_round_changes_little() -> None:
    rng = np.random.default_rng(2)
    one_by_one, in_batches = clocks(at=1e5), clocks(at=1e5)
    visits = random_visits(rng, 1e5, 16 * BIN_S, 400)
    for visit in visits:
        one_by_one.fold(batch(visit))
    every = BIN_S / 8
    for number in range(128):
        part = [visit for visit in visits if number == math.floor((visit[3] - 1e5) / every)]
        if part:
            in_batches.fold(batch(*part))
    now = 1e5 + 16 * BIN_S
    groups = np.array([[0, 1, 3, 5], [0, 2, 4, 6], [0, 1, 4, 7]])
    elapsed = []
    for made in (one_by_one, in_batches):
        made.gates.set(0, 20.0)
        elapsed.append(made.elapsed(groups, np.zeros(3, int), np.full(3, now - 6 * BIN_S), now))
    assert elapsed[1] == pytest.approx(elapsed[0], rel=0.05)
    assert (np.abs(elapsed[0] - 6 * BIN_S) > 0.05 * BIN_S).any()


def test_where_nothing_is_known_time_is_that_of_the_calendar() -> None:
    made = clocks()
    made.gates.set(0, 20.0)
    since = np.array([5.0, -1e5, 900.0])
    groups = np.array([[0, 1, 2, 3], [0, 1, 2, 3], [NO_GROUP, 1, NO_GROUP, 3]])
    assert made.elapsed(groups, np.zeros(3, int), since, 1000.0) == pytest.approx(1000.0 - since, rel=1e-5)


def test_the_clock_runs_ahead_where_siblings_changed_and_stays_behind_where_they_did_not() -> None:
    for changed in (True, False):
        made = clocks(at=1e4)
        made.fold(batch(*(([0, 1, 2, 3], 0, 1e4 - 4 * BIN_S, 1e4, changed, 2.0, 8 * BIN_S) for _ in range(6))))
        groups, host, since = np.array([[0, 1, 2, 3], [4, 5, 6, 7]]), np.array([0, 0]), np.full(2, 1e4 - 4 * BIN_S)
        made.gates.set(0, 0.0)
        assert made.elapsed(groups, host, since, 1e4) == pytest.approx(np.full(2, 4 * BIN_S))  # the gate is closed
        made.gates.set(0, 20.0)
        mine, other = made.elapsed(groups, host, since, 1e4)
        assert other == pytest.approx(4 * BIN_S, rel=1e-5)
        assert (mine > 1.2 * other) if changed else (mine < 0.8 * other)
        assert (made.speed(np.array([3]))[0] > 1.0) == changed


@pytest.mark.parametrize("together", [True, False])
def test_the_gate_opens_where_pages_change_together(together: bool) -> None:
    rng = np.random.default_rng(5)
    made = clocks()
    opened = 0
    for number in range(300):
        now = (number + 1) * BIN_S
        event = rng.random() < 0.3
        visits = []
        for page in range(12):
            changed = event if together else bool(rng.random() < 0.3)
            visits.append(([0, 1, 2, 3], page % 2, now - BIN_S, now - 0.1 * page, changed, 30.0, 30.0 * BIN_S / 0.36))
        for visit in visits:
            made.fold(batch(visit))
        opened += int(made.gates.is_open.sum())
    assert opened > 550 if together else opened < 60


def test_visits_that_a_signal_chose_do_not_count_for_the_gates() -> None:
    told = [([0, 1, 2, 3], 0, 0.0, 40.0 + number, True, 1.0, 100.0) for number in range(20)]
    by_chance, by_signal = clocks(day_s=86_400.0), clocks(day_s=86_400.0)
    for made, is_sample in ((by_chance, True), (by_signal, False)):
        for visit in told:
            made.fold(batch(visit, is_sample=is_sample))
        made.advance(1e6)
    assert by_chance.gates.evidence[0] > 1.0
    assert by_signal.gates.evidence[0] == by_signal.rhythm_gates.evidence[0] == 0.0


def test_a_group_is_packed_and_unpacked_at_once_later_and_with_other_bins() -> None:
    made = clocks(at=1e5)
    made.fold(batch(*random_visits(np.random.default_rng(3), 1e5, 2 * BIN_S, 50)))
    packed = made.pack_groups(np.array([0]))[0]
    assert len(packed) == 272
    assert made.pack_groups(np.array([7]))[0] != b""
    assert clocks().pack_groups(np.array([0]))[0] == b""
    for later, bin_s in ((0, BIN_S), (3, BIN_S), (2, 2 * BIN_S), (0, BIN_S / 2), (40, BIN_S)):
        other = Neighbourhoods(bin_s)
        other.grow(2, 1)
        if later:
            other.advance(1e5 + 2 * BIN_S + later * BIN_S)
        other.unpack_group(1, packed)
        now = 1e5 + 2 * BIN_S + later * BIN_S
        for clock, group in ((made, 0), (other, 1)):
            clock.gates.set(0, 20.0)
            clock.advance(now)
            clock.rescale(bin_s) if clock is made and bin_s != BIN_S else None
            assert clock.recent(group, now - 6 * BIN_S) == (0, 0) if later == 40 else clock.recent(group, 0.0)[1] == 50
        groups = np.array([[0, NO_GROUP, NO_GROUP, NO_GROUP], [1, NO_GROUP, NO_GROUP, NO_GROUP]])
        since = np.array([now - 5 * BIN_S])
        want = made.elapsed(groups[:1], np.zeros(1, int), since, now)
        assert other.elapsed(groups[1:], np.zeros(1, int), since, now) == pytest.approx(want, rel=2e-3)
        made = clocks(at=1e5)
        made.unpack_group(0, packed)
    made.unpack_group(0, b"")
    assert made.pack_groups(np.array([0]))[0] == b""


@pytest.mark.parametrize("factor", [2, 4, 0.5, 0.25])
def test_other_bins_keep_what_was_expected(factor: float) -> None:
    made = clocks(at=1e5)
    made.fold(batch(*random_visits(np.random.default_rng(4), 1e5, 2 * BIN_S, 80)))
    made.bins.sums[:, :, : BINS // 2 + BINS // 4] = 0.0  # what a quarter of the bins holds fits into bins a quarter as long
    before = made.bins.sums.sum(axis=2)
    made.rescale(BIN_S * factor)
    assert made.bins.sums.sum(axis=2) == pytest.approx(before, rel=1e-5)
    assert made.bins.newest == math.floor((1e5 + 2 * BIN_S) / (BIN_S * factor)) or factor < 1


@pytest.mark.parametrize("factor", [1 / 4, 1 / 64])
def test_shorter_bins_do_not_lie_ahead_of_now(factor: float) -> None:
    """Else nothing would be learned until the old bin is over, and what is stored would be taken for damaged."""
    now = math.floor(2e9 / BIN_S) * BIN_S + 0.1 * BIN_S
    made, other = clocks(at=now), Neighbourhoods(BIN_S * factor)
    made.fold(batch(*random_visits(np.random.default_rng(4), now - 2 * BIN_S, 2 * BIN_S, 80)))
    other.grow(1, 1)
    other.unpack_group(0, made.pack_groups(np.array([0]))[0], now)
    made.rescale(BIN_S * factor, now)
    for clock in (made, other):
        assert clock.bins.newest == math.floor(now / (BIN_S * factor))
        assert not fault_of_group(clock.pack_groups(np.array([0]))[0], now)
        before = clock.bins.sums[EXPECTED, 0].sum()
        until = np.full(1, now + 0.001 * BIN_S)
        groups = np.array([[0, NO_GROUP, NO_GROUP, NO_GROUP]])
        one = np.ones(1)
        visit = VisitBatch(groups, np.zeros(1, int), until - 0.001 * BIN_S, until, one > 0, one, one * BIN_S, one > 0)
        clock.fold(visit)
        assert clock.bins.sums[EXPECTED, 0].sum() == pytest.approx(before + 0.001, rel=1e-5)


def test_what_is_no_group_or_no_power_of_two_is_refused() -> None:
    made = clocks()
    for wrong in (b"x", bytes(271)):
        with pytest.raises(InvalidProblemError, match="group: expected 272 bytes"):
            made.unpack_group(0, wrong)
    with pytest.raises(InvalidProblemError, match="host: expected 216 bytes"):
        made.unpack_host(0, b"x")
    with pytest.raises(InvalidProblemError, match="power of two"):
        made.rescale(3 * BIN_S)
    for wrong_bin in (0.0, math.inf):
        with pytest.raises(InvalidProblemError, match="bin_s"):
            Neighbourhoods(wrong_bin)
    with pytest.raises(InvalidProblemError, match="levels"):
        Neighbourhoods(1.0, levels=8)


def test_a_host_is_packed_with_its_gates_and_its_rhythm() -> None:
    made = clocks()
    made.gates.set(1, 10.0)
    made.rhythm_gates.set(1, -3.0)
    made.rhythms.attributed[1, 9], made.rhythms.expected[1, :] = 30.0, 10.0
    other = clocks()
    other.unpack_host(0, made.pack_hosts(np.array([1]))[0])
    assert other.gates.is_open.tolist() == [True, False]
    assert other.gates.evidence[0] == 10.0
    assert not other.rhythm_gates.is_open.any()
    assert other.rhythm_gates.evidence[0] == -3.0
    assert other.rhythms.profile[0].argmax() == 9


@pytest.mark.parametrize("days", [0.25, 0.95, 4.0])
def test_the_rhythm_counts_once_a_day_was_seen_and_each_of_its_hours(days: float) -> None:
    """Pages change in the first half of the day, much more than their prior says: for a profile of less than a day that is one thing."""
    day = 86_400.0
    made = clocks(day_s=day)
    for at in np.arange(600.0, days * day, 600.0):
        made.fold(batch(*(([0, 1, 2, 3], page % 2, at - 600.0, at, at % day < day / 2, 1.0, 10_000.0) for page in range(4))))
    made.advance(1e3 * day)
    assert made.rhythm_gates.is_open.any() == (days > 1.0)
    assert (made.rhythm_gates.evidence != 0.0).any() == (days > 1.0)
    again = clocks(day_s=day)
    again.unpack_host(0, made.pack_hosts(np.array([0]))[0])
    assert again.rhythms.begun[0] == made.rhythms.begun[0] == 0.0


def test_many_hosts_are_unpacked_each_in_the_same_work() -> None:
    """The profiles of the others are left alone."""
    made = clocks()
    made.grow(8, 5)
    packed = made.pack_hosts(np.array([0]))[0]
    made.rhythms.attributed[3, 9] = 30.0
    made.unpack_host(1, packed)
    assert (made.rhythms.profile[3] == 1.0).all()


@pytest.mark.parametrize("at", [0, 8, 40])
def test_damage_of_what_is_stored_is_told(at: int) -> None:
    made = clocks(at=1e5)
    made.fold(batch(*random_visits(np.random.default_rng(3), 1e5, 2 * BIN_S, 50)))
    group, host, now = made.pack_groups(np.array([0]))[0], made.pack_hosts(np.array([0]))[0], 1e5 + 2 * BIN_S
    assert (fault_of_group(group, now), fault_of_host(host)) == ("", "")
    wrong = b"\xff" * 8
    assert fault_of_group(group[:at] + wrong + group[at + 8 :], now)
    assert fault_of_host(host[:at] + wrong + host[at + 8 :])
    assert fault_of_group(group, now - 10 * BIN_S)
    assert fault_of_group(group[1:], now)
    assert fault_of_host(host[1:])


@pytest.mark.parametrize("power", [-1000, -70, -4, 23, 900])
def test_bins_that_no_crawl_has_are_damage(power: int) -> None:
    group = GroupBins(BIN_S)
    group.grow(1)
    group.sums[EXPECTED, 0] = 1.0
    packed = group.pack(np.array([0]))[0]
    assert not fault_of_group(packed, BIN_S)
    assert fault_of_group(struct.pack("<qd", 0, 2.0**power) + packed[16:], 1e9)


def test_people_read_how_many_siblings_changed_of_late() -> None:
    made = clocks(at=1e4)
    start = 1e4 - 1e4 % BIN_S
    told = [([0, 1, 2, 3], 0, start - 500.0, start + minute, minute % 20 == 0, 1.0, 600.0) for minute in range(0, 300, 10)]
    made.fold(batch(*told))
    assert made.recent(2, 0.0) == (15, 30)
    assert made.recent(2, start + 4 * BIN_S) == (2, 4)  # at 260, 270, 280 and 290
    assert made.recent(5, 0.0) == (0, 0)


def test_forgotten_groups_are_new_and_more_groups_leave_the_others_alone() -> None:
    made = clocks(groups=8, at=1e5)
    made.fold(batch(*random_visits(np.random.default_rng(6), 1e5, BIN_S, 30)))
    assert made.bins.active.all()
    before = made.bins.sums[:, :8].copy()
    made.grow(40, 5)
    assert len(made.bins) >= 40
    assert np.array_equal(made.bins.sums[:, :8], before)
    assert not made.bins.sums[EXPECTED, 8:].any()
    made.forget(np.array([0, 5]))
    assert np.flatnonzero(made.bins.active).tolist() == [1, 2, 3, 4, 6, 7]
