"""Pages that never look the same twice: when they are checked, what makes them noisy, and what decides their bits then."""

from __future__ import annotations

import math

import numpy as np
import pytest
from handed_out import TAG, again, context, handed, judged, planned, visit

from optimal_frontier.detection.sections import Section
from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.judging.noise import ALARM, QUICK_S, Noticed, PageNoise, noise_of_memory, notice
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.rows import CHECKED


class Page:
    """A page that is fetched and judged as a crawler does; ``look`` gives the texts of its sections."""

    def __init__(self, look, interval: float = 3600.0, round_s: float = 3600.0, **rule: float) -> None:
        self.look, self.interval = look, interval
        rules = [{"host": "h", **rule}] if rule else []
        self.context = context(planned(0.0, round_s), RULES=rules)
        self.handout = handed(visits=0)
        self.counters: dict[str, int] = {}
        self.fetches = self.cuts = 0
        self.again = False

    def fetch(self, wait: float | None = None) -> int:
        """Fetch it once, seconds after a visit that asked for that; return the bit."""
        elapsed = wait if wait is not None else 1.0 if self.again else self.interval
        texts = self.look(self.fetches)
        self.fetches += 1
        if self.fetches > 1:
            self.handout = again(self.observation, elapsed)
        content = "|".join(f"{k}={v}" for k, v in sorted(texts.items())).encode().ljust(16)[-16:]

        def cut():
            self.cuts += 1
            return [Section(name, str(text).encode().rjust(4)[-4:]) for name, text in texts.items()]

        self.observation = judged(self.handout, visit(content, sections=cut), self.context)
        for name, by in self.observation.counters.items():
            self.counters[name] = self.counters.get(name, 0) + by
        self.again = bool(self.observation.row.flags & CHECKED)
        return self.observation.bit

    @property
    def memory(self) -> Memory:
        return self.handout.memory if self.observation.memory is None else self.observation.memory

    def counted(self) -> dict[str, int]:
        """Counters of noise."""
        return {name: by for name, by in self.counters.items() if name.startswith("nois")}

    def fetch_many(self, n: int) -> list[int]:
        return [self.fetch() for _ in range(n)]

    @property
    def noise(self) -> PageNoise | None:
        return noise_of_memory(self.memory)


def test_an_ordinary_page_costs_nothing():
    """Nothing is cut, stored or asked for, whether it changes never or at every third visit."""
    for every in (1000, 3, 2):
        page = Page(lambda n, every=every: {"h1": n // every})
        page.fetch_many(40)
        assert (page.cuts, page.memory, page.counted(), page.again) == (0, Memory(), {}, False)


def test_a_page_that_differs_within_seconds_is_noisy():
    """Found after four changes and two second fetches; what was learned from noise is forgotten, and the rest of the page decides."""
    page = Page(lambda n: {"h1": n // 30, "span.nonce": n})
    bits = page.fetch_many(7)
    assert bits == [-1, 1, 1, 1, 1, -1, -1]
    assert page.noise.is_noisy
    assert page.counted() == {"noise_checks": 2, "noisy": 1}
    row = page.observation.row
    assert (row.shape, row.time, row.watch_shape, row.score, row.variance) == (0.0,) * 5
    later = [bit for _ in range(110) if (bit := page.fetch()) >= 0]
    assert sum(later) == (page.fetches - 1) // 30
    assert page.noise.is_noisy


def test_where_all_pages_are_visited_within_seconds_twice_the_evidence_is_asked_for():
    """A page that changes by itself within a second is nothing unusual there: twenty pairs, where elsewhere two do."""
    page = Page(lambda n: {"h1": n // 300, "span.nonce": n}, interval=10.0, round_s=2.0)
    page.fetch()
    while not page.noise or not page.noise.is_noisy:
        page.fetch()
    needed = math.ceil(2 * ALARM / -math.log(-math.expm1(-1.0)))
    assert page.counters["noise_checks"] == needed == 21


def test_a_page_all_of_which_differs_gives_no_bit():
    page = Page(lambda n: {"(all of it)": n})
    assert set(page.fetch_many(60)[6:]) == {-1}
    row = page.observation.row
    assert (row.shape, row.time, row.watch_shape, row.score, row.variance) == (0.0,) * 5


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
    assert page.observation.row.shape / page.observation.row.time * page.interval > 1


def test_a_page_that_is_visited_as_often_as_it_changes_is_not_checked():
    """Where a change within seconds is likely by what was learned, a second fetch tells nothing."""
    page = Page(lambda n: {"h1": n}, interval=2.0)
    assert page.fetch_many(60)[1:] == [1] * 59
    assert "noise_checks" not in page.counters
    assert not page.noise.is_noisy


def test_where_no_second_fetch_can_come_soon_none_is_asked_for():
    """Its least interval is longer, or its host's delay makes every second fetch late: twice in vain, then seldom."""
    pinned = Page(lambda n: {"h1": n}, 3600.0, 3600.0, min_interval=3600.0, max_interval=3600.0)
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
    assert page.memory == Memory()
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
    assert page.memory == Memory()


def test_what_is_kept_survives_its_storage_and_stays_small():
    page = Page(lambda n: {f"div.widget span.cell-{at}": n + at for at in range(128)})
    page.fetch_many(80)
    noise = page.noise
    assert PageNoise.unpack(noise.pack()) == noise
    assert len(page.memory.pack()) < 4000


def test_other_options_of_the_fingerprint_begin_anew():
    page = Page(lambda n: {"h1": n})
    page.fetch_many(5)
    assert notice(page.handout.row, page.memory.noise, -1, 3600.0, list) == Noticed(-1)
    handout = again(page.observation)
    assert judged(handout, visit(b"other".ljust(16), tag=TAG + 1, sections=list), page.context).memory == Memory()


def test_what_is_kept_of_sections_with_ever_new_names_is_bounded():
    """A site may call its sections anew on every fetch; a name that is gone says nothing any more."""
    page = Page(lambda n: {"h1": n // 1000, **{f"div.c{n}x{k}": n for k in range(20)}})
    page.fetch_many(1500)
    assert page.noise.is_noisy
    assert len(page.noise.mask) <= 512
    assert page.noise.has_steady_sections


def test_a_visit_that_asks_for_a_check_is_repeated_as_soon_as_it_may_be():
    """After the least interval, whatever the price."""
    page = Page(lambda n: {"h1": n // 30, "span.nonce": n}, min_interval=3.0)
    page.fetch_many(5)
    row = page.observation.row
    assert page.again
    assert (row.a, row.s, row.e, row.l) == (3.0, 0.0, 3.0, 3.0)
    page.fetch(3.0)
    page.fetch(3.0)
    assert page.noise.is_noisy


def test_the_rate_of_a_noisy_page_is_that_of_the_rest_of_it():
    """Twenty pages with an ad that is new on every fetch, and twenty without: most are found, no other, and rates agree."""
    rng, rate, noisy, medians = np.random.default_rng(11), 1 / 80, [], ([], [])
    for at in range(40):
        state = {"version": 0}
        page = Page(lambda n, state=state, at=at: {"h1": state["version"], "ad": n if at < 20 else 0}, 40.0, 20.0)
        for _ in range(80):
            state["version"] += rng.poisson(rate * (1.0 if page.again else page.interval))
            page.fetch()
        noisy.append(page.noise is not None and page.noise.is_noisy)
        row = page.observation.row
        medians[at < 20].append(float(posterior_median([row.shape], [row.time])[0]))
    assert np.mean(noisy[:20]) > 0.6
    assert not any(noisy[20:])
    assert abs(np.log(np.median(medians[0]) / rate)) < 0.5
    found = np.array(medians[1])[np.array(noisy[:20])]
    assert abs(np.log(np.median(found) / rate)) < 0.7
