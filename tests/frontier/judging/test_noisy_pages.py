"""Pages that never look the same twice: when they are checked, what makes them noisy, and what decides their bits then."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from optimal_frontier.detection.sections import Section
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.frontier.noisy_pages import ALARM, QUICK_S, Noticed, PageNoise, noise_of_memory, notice
from optimal_frontier.state.columns import ACTIVE
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.records import Handout, Published

TAG = 7
PRIOR = Published(1.0, 3600.0)


class Page:
    """A page that is fetched and judged as a crawler does; ``look`` gives the texts of its sections."""

    def __init__(self, look, interval: float = 3600.0, round_s: float = 3600.0, **bounds: float) -> None:
        self.look, self.interval, self.round_s = look, interval, round_s
        self.handout = Handout(5, b"1@1", 0.5, -1.0, 1.0, 0.0, 1.0, ACTIVE, 0.0, 0.0, 0, 0, 0.1, True, 0, b"", {}, 0.0)
        self.handout = replace(self.handout, **bounds)
        self.counters: dict[str, int] = {}
        self.fetches = self.cuts = 0
        self.again = False

    def fetch(self, wait: float | None = None) -> int:
        """Fetch it once, seconds after a visit that asked for that; return the bit."""
        elapsed = wait if wait is not None else 1.0 if self.again else self.interval
        texts = self.look(self.fetches)
        self.fetches += 1
        handout = replace(self.handout, elapsed=elapsed if self.handout.visits else -1.0)
        content = "|".join(f"{k}={v}" for k, v in sorted(texts.items())).encode().ljust(16)[-16:]
        bit = -1 if handout.visits == 0 else int(content != handout.content)

        def cut():
            self.cuts += 1
            return [Section(name, str(text).encode().rjust(4)[-4:]) for name, text in texts.items()]

        noticed = notice(handout, bit, elapsed, cut, self.round_s)
        observation = noticed.applied(handout, judge_visit(noticed.shown(handout, content), content, TAG, 0.0, PRIOR))
        assert observation.bit == noticed.bit
        for name, by in observation.counters.items():
            self.counters[name] = self.counters.get(name, 0) + by
        self.again = observation.again
        bits = handout.bits if observation.bit < 0 else (handout.bits << 1 | observation.bit) & 0xFFFFFFFF
        self.handout = replace(
            self.handout,
            visits=handout.visits + 1,
            content=content,
            content_tag=TAG,
            shape=observation.shape,
            time=observation.time,
            memory=observation.memory if observation.memory is not None else handout.memory,
            bits=bits,
        )
        return observation.bit

    def fetch_many(self, n: int) -> list[int]:
        return [self.fetch() for _ in range(n)]

    @property
    def noise(self) -> PageNoise | None:
        return noise_of_memory(self.handout.memory)


def test_an_ordinary_page_costs_nothing():
    """Nothing is cut, stored or asked for, whether it changes never or at every third visit."""
    for every in (1000, 3, 2):
        page = Page(lambda n, every=every: {"h1": n // every})
        page.fetch_many(40)
        assert (page.cuts, page.handout.memory, page.counters, page.again) == (0, Memory(), {}, False)


def test_a_page_that_differs_within_seconds_is_noisy():
    """Found after four changes and two second fetches; what was learned from noise is forgotten, and the rest of the page decides."""
    page = Page(lambda n: {"h1": n // 30, "span.nonce": n})
    bits = page.fetch_many(7)
    assert bits == [-1, 1, 1, 1, 1, -1, -1]
    assert page.noise.is_noisy
    assert page.counters == {"noise_checks": 2, "noisy": 1}
    assert (page.handout.shape, page.handout.time) == (0.0, 0.0)
    later = [bit for _ in range(110) if (bit := page.fetch()) >= 0]
    assert sum(later) == (page.fetches - 1) // 30
    assert page.noise.is_noisy


def test_where_all_pages_are_visited_within_seconds_twice_the_evidence_is_asked_for():
    """A page that changes by itself within a second is nothing unusual there: twenty pairs, where elsewhere two do."""
    page = Page(lambda n: {"h1": n // 300, "span.nonce": n}, interval=10.0, round_s=2.0)
    while not page.noise or not page.noise.is_noisy:
        page.fetch()
    needed = math.ceil(2 * ALARM / -math.log(-math.expm1(-1.0)))
    assert page.counters["noise_checks"] == needed == 21


def test_a_page_all_of_which_differs_gives_no_bit():
    page = Page(lambda n: {"(all of it)": n})
    assert set(page.fetch_many(60)[6:]) == {-1}
    assert (page.handout.shape, page.handout.time) == (0.0, 0.0)


@pytest.mark.parametrize("minutes", [2.0, 60.0, 1440.0])
def test_a_page_that_changes_between_visits_is_not_noisy(minutes):
    """Changed at each visit, but the same at the second fetch: its bits stay, and it is checked ever more seldom."""
    state = {"t": 0.0}

    def look(n: int) -> dict[str, int]:
        return {"h1": int(state["t"] // (minutes * 30)), "footer": 0}

    page = Page(look, interval=minutes * 60)
    bits = []
    for _ in range(100):
        state["t"] += 1.0 if page.again else page.interval
        bits.append(page.fetch())
    assert "noisy" not in page.counters
    assert bits.count(0) <= 6
    assert bits.count(1) >= 90
    assert page.handout.shape / page.handout.time * page.interval > 1


def test_a_page_that_is_visited_as_often_as_it_changes_is_not_checked():
    """Where a change within seconds is likely by what was learned, a second fetch tells nothing."""
    page = Page(lambda n: {"h1": n}, interval=2.0)
    assert page.fetch_many(60)[1:] == [1] * 59
    assert "noise_checks" not in page.counters
    assert not page.noise.is_noisy


def test_where_no_second_fetch_can_come_soon_none_is_asked_for():
    """Its least interval is longer, or its host's delay makes every second fetch late: twice in vain, then seldom."""
    pinned = Page(lambda n: {"h1": n}, min_rate=1 / 3600, max_rate=1 / 3600)
    pinned.fetch_many(30)
    assert not pinned.again
    assert pinned.noise.checks == 0
    slow, asked = Page(lambda n: {"h1": n}), 0
    for _ in range(60):
        slow.fetch(2 * QUICK_S if slow.again else None)
        asked += slow.again
    assert not slow.noise.is_noisy
    assert 2 <= asked <= 8


def test_different_sections_in_each_pair_condemn_no_page():
    """A change in one of many places at any time is what an often edited page shows; no section differs in all pairs."""
    page = Page(lambda n: {f"p:nth-of-type({at})": (n + at) // 9 for at in range(9)})
    page.fetch_many(40)
    assert "noisy" not in page.counters


def test_a_page_that_is_calm_at_a_later_check_loses_the_mark():
    page = Page(lambda n: {"h1": 1, "div.ad": n if n < 20 else 0})
    page.fetch_many(19)
    assert page.noise.is_noisy
    page.fetch_many(80)
    assert page.handout.memory == Memory()
    assert page.counters["noisy_calmed"] == 1
    assert not page.again


def test_noise_that_shows_up_later_is_masked_by_a_later_check():
    page = Page(lambda n: {"h1": 1, "div.ad": n, "div.poll": n if n > 20 else 0})
    page.fetch_many(130)
    last = page.fetch_many(20)
    assert set(last) == {0}


def test_sections_are_dropped_when_the_page_calms_down():
    page = Page(lambda n: {"h1": min(n, 4)}, interval=5.0)
    page.fetch_many(5)
    assert page.noise is not None
    page.fetch_many(3)
    assert page.handout.memory == Memory()


def test_what_is_kept_survives_its_storage_and_stays_small():
    page = Page(lambda n: {f"div.widget span.cell-{at}": n + at for at in range(128)})
    page.fetch_many(80)
    noise = page.noise
    assert PageNoise.unpack(noise.pack()) == noise
    assert len(page.handout.memory.pack()) < 4000


def test_other_options_of_the_fingerprint_begin_anew():
    page = Page(lambda n: {"h1": n})
    page.fetch_many(5)
    assert notice(page.handout, -1, 3600.0, list) == Noticed(-1)


def test_what_is_kept_of_sections_with_ever_new_names_is_bounded():
    """A site may call its sections anew on every fetch; a name that is gone says nothing any more."""
    page = Page(lambda n: {"h1": n // 1000, **{f"div.c{n}x{k}": n for k in range(20)}})
    page.fetch_many(1500)
    assert page.noise.is_noisy
    assert len(page.noise.mask) <= 512
    assert page.noise.has_steady_sections
