"""The choice of the five numbers: what each kind of page waits for, for one page and for many."""

from __future__ import annotations

import math

import numpy as np
import pytest
from handed_out import AT, NEW, OLD, PAGE, RECEIVED, again, context, handed, judged, parse, planned, visit, wait_of
from kolmogorov import distance_to_exponential, is_likely

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.frontier.judging.waits import Terms, goes_by_price, interval_of, numbers_of, priced_numbers
from optimal_frontier.optimization import solve_periodic, solve_poisson
from optimal_frontier.scheduling import LOAD
from optimal_frontier.scheduling.exploration import EPSILON, Exploring
from optimal_frontier.scheduling.numbers import Numbers
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import ACTIVE, CHECKED, FAR_S, LAYOUT, RETIRED, SIGNALLED, TIMED, Row


def terms(log_price: float = -3.0, published: Published | None = None, **settings: object) -> Terms:
    return Terms(log_price, planned(log_price) if published is None else published, parse(**settings))


def row(**values: object) -> Row:
    known = {"host": 1, "b": AT * 1e6, "shape": 3.0, "time": 140.0, "visits": 4, "importance": 2.0, "max_interval": 1e6}
    return Row(**(known | values))


def wait(numbers: Numbers, log_price: float = -3.0) -> float:
    return min(max(numbers.a + numbers.s * log_price, numbers.e), numbers.l)


@pytest.mark.parametrize("policy", ["periodic", "poisson"])
def test_a_page_gets_the_interval_that_the_best_plan_would_give(policy):
    """At the published price, for the same change rate; memoryless, times a draw."""
    rate = RatePosterior(3.0, 140.0).median
    solve = solve_periodic if policy == "periodic" else solve_poisson
    solution = solve([2.0, 1.0], [rate, 0.02], 0.05)
    found = terms(math.log(solution.multiplier), POLICY=policy)
    assert interval_of(row(), found) == pytest.approx(1 / solution.rates[0], rel=1e-6)
    if policy == "periodic":
        assert wait(numbers_of(row(), PAGE, found), found.log_price) == pytest.approx(1 / solution.rates[0], rel=1e-6)


def test_a_page_without_a_bit_goes_by_what_its_siblings_taught():
    fresh = row(shape=0.0, time=0.0, pattern=9)
    taught = numbers_of(fresh, PAGE, terms(published=planned(-3.0, priors={9: (2.0, 140.0)})))
    assert taught == numbers_of(row(shape=2.0, time=140.0), PAGE, terms())
    default = numbers_of(fresh, PAGE, terms(published=planned(-3.0, 70.0)))
    assert default == numbers_of(row(shape=1.0, time=70.0), PAGE, terms())


def test_bounds_hold_whatever_the_price():
    for log_price, expected in ((-50.0, 5.0), (-math.inf, 5.0), (0.5, 77.0), (50.0, 77.0)):
        numbers = numbers_of(row(min_interval=5.0, max_interval=77.0, time=1e4), PAGE, terms(log_price))
        assert (numbers.e, numbers.l) == (5.0, 77.0)
        assert not any(map(math.isnan, numbers))
        assert (wait(numbers, log_price) if log_price > -math.inf else max(numbers.a, numbers.e)) == expected


def test_before_the_first_plan_a_page_waits_for_it():
    numbers = numbers_of(row(max_interval=500.0), PAGE, terms(published=planned(number=0, prior_time=0.0)))
    assert numbers == (math.inf, 0.0, 1.0, 500.0)
    assert judged(handed(visits=0), NEW, context(planned(number=0, prior_time=0.0), MAX_INTERVAL=500.0)).row.l == 500.0


def test_longest_intervals_are_stretched_where_the_budget_cannot_hold_them():
    """Pinned ones too: all pages alike."""
    stretched = planned(5.0, stretch=1.5)
    assert numbers_of(row(max_interval=100.0), PAGE, terms(5.0, stretched)).l == 150.0
    assert numbers_of(row(min_interval=100.0, max_interval=100.0), PAGE, terms(5.0, stretched)) == (150.0, 0.0, 150.0, 150.0)


def test_a_host_at_its_limit_asks_a_higher_price():
    """That of the plan, wherever the price of the crawl has gone since, unless that is higher still."""
    dear = planned(-3.0, host_prices={1: 1.0})
    for log_price in (-9.0, -3.0, -2.5):
        numbers = numbers_of(row(), PAGE, terms(log_price, dear))
        assert wait(numbers, log_price) == pytest.approx(wait(numbers_of(row(), PAGE, terms(-2.0)), -2.0))
        assert numbers.s == 0.0
    assert numbers_of(row(), PAGE, terms(-1.5, dear)) == numbers_of(row(), PAGE, terms(-1.5))
    assert numbers_of(row(host=2), PAGE, terms(-3.0, dear)) == numbers_of(row(), PAGE, terms())


def test_a_price_that_is_high_for_a_moment_gives_no_page_up():
    """It waits as if it had been visited before; visits are worth up to 4.7 here."""
    lasting = numbers_of(row(), PAGE, terms(3.0))
    assert numbers_of(row(), PAGE, terms(5.0, planned(3.0, lasting=3.0))) == pytest.approx(lasting)
    assert wait(lasting, 3.0) < wait(lasting, 5.0) < 1000.0
    for given_up in (planned(3.0), planned(3.0, lasting=4.9)):
        assert numbers_of(row(), PAGE, terms(5.0, given_up)) == (math.inf, 0.0, 1.0, 1e6)
    # Nor is one that is worth visits at the price of now.
    assert numbers_of(row(), PAGE, terms(3.0, planned(3.0, lasting=5.0))) == lasting


def test_what_happened_makes_no_deadline_in_the_past():
    """Numbers made long after the visit: the page is due now, and not since long ago."""
    assert wait(numbers_of(row(), PAGE, terms(), since=4000.0)) == pytest.approx(4000.0)
    short = wait(numbers_of(row(), PAGE, terms()))
    assert wait(numbers_of(row(), PAGE, terms(), since=short / 2)) == short


def test_whatever_is_set_can_be_stored():
    """Rows hold 32 bits: what is beyond them counts as never."""
    for values in ({"MAX_INTERVAL": 1e300}, {"MAX_INTERVAL": 1e300, "MIN_INTERVAL": 1e299}, {"RULES": [{"host": "h", "interval": 1e300}]}):
        for came in (OLD, "500"):
            made = judged(handed(1e6, shape=1e-3, time=1e30, stated=1e300), came, context(planned(3.0, stretch=9.0), **values))
            assert Row.unpack(made.row.pack()).max_interval == pytest.approx(FAR_S)


def test_a_page_that_is_wanted_soon_waits_for_its_least_interval():
    assert numbers_of(row(flags=CHECKED, min_interval=7.0), PAGE, terms()) == (7.0, 0.0, 7.0, 7.0)
    assert numbers_of(row(flags=CHECKED, min_interval=60.0, max_interval=60.0), PAGE, terms()).a == 30.0


PIN = context(RULES=[{"host": "h", "interval": 60.0}])


@pytest.mark.parametrize(("late", "expected"), [(0.0, 60.0), (2.0, 58.0), (29.0, 31.0), (45.0, 30.0), (1000.0, 30.0)])
def test_a_pinned_page_stays_evenly_spaced(late, expected):
    """A visit that was late does not push all later ones, as far as it was half an interval late at most."""
    first = judged(handed(), OLD, PIN)
    assert (first.row.a, first.row.s, first.row.e, first.row.l) == (60.0, 0.0, 60.0, 60.0)
    second = judged(again(first, 60.0 + late), OLD, PIN)
    assert wait_of(second) == pytest.approx(expected, rel=1e-6)


def test_a_download_takes_its_time_and_shifts_nothing():
    observation = judged(handed(), OLD, PIN)
    began = observation.row.b
    for _ in range(50):
        handout = again(observation)
        observation = judged(handout, visit(OLD, RECEIVED + 3.0), PIN)
    assert (observation.row.b - began) / 1e6 == pytest.approx(50 * 60.0 + 3.0, abs=0.01)


def test_what_is_no_regular_visit_begins_the_spacing_anew():
    """Somebody asked for it, or it failed; a check in between keeps it."""
    regular = judged(handed(), OLD, PIN)
    wanted = again(regular, 17.0)
    wanted.row = wanted.row._replace(a=0.0, s=0.0, e=0.0, l=0.0)
    assert wait_of(judged(wanted, OLD, PIN)) == 60.0
    failed = judged(again(regular), "500", PIN)
    assert wait_of(failed) == 30.0  # its least interval
    assert wait_of(judged(again(failed), OLD, PIN)) == 60.0
    checked = again(regular, 30.0)
    checked.row = checked.row._replace(flags=CHECKED)
    assert wait_of(judged(checked, OLD, PIN)) == pytest.approx(30.0)


def test_memoryless_waits_are_draws_with_the_planned_mean():
    """The whole distribution; the same for the same visit of a page."""
    found = terms(POLICY="poisson")
    mean = interval_of(row(), found)
    draws = [wait(numbers_of(row(visits=n + 1, min_interval=1e-9), PAGE, found)) / mean for n in range(3000)]
    assert np.mean(draws) == pytest.approx(1.0, abs=0.06)
    assert is_likely(distance_to_exponential(np.array(draws)), len(draws))
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 3 / math.sqrt(3000)
    assert numbers_of(row(), PAGE, found) == numbers_of(row(), PAGE, found)
    pinned = row(min_interval=60.0, max_interval=60.0)
    assert numbers_of(pinned, PAGE, found).a == 60.0


def exploring(name: str, **values: object) -> Published:
    fields = {"exploration": name} | {f"exploration_{field}": str(value) for field, value in values.items()}
    return planned(5.0, 97.0, exploration=fields)


def test_epsilon_visits_the_pages_of_a_phase_at_even_intervals():
    """With probability 1/2k in phase k, whatever the price; others wait as long as they may."""
    for number in (1, 3):
        found = terms(5.0, exploring("epsilon", number=number))
        waits = [numbers_of(row(), n.to_bytes(12, "little"), found).l for n in range(4000)]
        assert set(waits) == {1e6, 97.0 / LOAD}
        assert np.mean([wait < 1e6 for wait in waits]) == pytest.approx(EPSILON / number, abs=0.03)


def test_explore_then_commit_visits_all_at_even_intervals_and_then_by_price():
    even = 97.0 / LOAD
    found = terms(5.0, exploring("explore-then-commit", rounds=1.0, horizon=80.0))
    assert numbers_of(row(), PAGE, found) == (even, 0.0, even, even)
    assert interval_of(row(), found) == even
    assert numbers_of(row(max_interval=20.0), PAGE, found).a == 20.0
    after = terms(5.0, exploring("explore-then-commit", rounds=9.5, horizon=80.0))
    assert numbers_of(row(), PAGE, after) == numbers_of(row(), PAGE, terms(5.0))


def test_a_page_without_a_longest_interval_is_learned_all_the_same():
    """A hundredth of even visits."""
    assert numbers_of(row(max_interval=FAR_S), PAGE, terms(5.0, exploring("median"))).l == pytest.approx(100 * 97.0 / LOAD)
    assert Exploring.of({}, 0.0).longest(PAGE, FAR_S) == FAR_S


#: Settings and what a plan may have published, for the comparison of both implementations.
CASES = [
    ({}, planned(-3.0, host_prices={2: 0.7}, priors={5: (2.0, 300.0)})),
    ({}, planned(-3.0, priors={5: (20.0, 9000.0), 6: (2.5, 900.0)})),
    ({}, planned(-math.inf)),
    ({}, planned(1.0, stretch=1.7)),
    ({"OBJECTIVE": "changes"}, planned(-1.0)),
    ({"POLICY": "poisson"}, planned(-3.0, host_prices={1: 0.5})),
    ({"POLICY": "poisson"}, planned(-math.inf)),
    ({}, exploring("epsilon", number=2)),
    ({}, exploring("explore-then-commit", rounds=1.0, horizon=80.0)),
    ({}, exploring("explore-then-commit", rounds=9.5, horizon=80.0)),
    ({}, planned(7.0, lasting=3.0, host_prices={2: 0.7})),
    ({"POLICY": "poisson"}, planned(7.0, lasting=3.0)),
]


def many_rows(n: int) -> list[Row]:
    rng = np.random.default_rng(7)
    made = []
    for _ in range(n):
        has_bit = rng.random() < 0.8
        value = {
            "host": int(rng.integers(1, 4)),
            "state": RETIRED if rng.random() < 0.1 else ACTIVE,
            "flags": int(rng.choice([0, 0, 0, 0, CHECKED, SIGNALLED, TIMED])),
            "b": (AT - float(rng.uniform(0, 500))) * 1e6,
            "a": 30.0,
            "s": 5.0,
            "e": 1.0,
            "l": 0.0 if rng.random() < 0.1 else 900.0,
            "importance": float(rng.uniform(0.5, 2)),
            "min_interval": 5.0,
            "max_interval": float(rng.choice([5.0, 1e4, FAR_S])),
            "shape": float(rng.uniform(0.5, 9)) if has_bit else 0.0,
            "time": float(rng.uniform(5, 5000)) if has_bit else 0.0,
            "visits": int(rng.integers(0, 5)),
            "failed": int(rng.integers(0, 5)),
            "failures": int(rng.random() < 0.1),
            "pattern": int(rng.choice([5, 6])),
        }
        made.append(Row.unpack(Row(**value).pack()))
    return made


# In a moment in which the price of visits is above the plan's; a host at its limit asks for less than that, or for more.
HIGH = [
    ({}, planned(5.0, lasting=3.0, host_prices={1: 4.0, 2: 0.7}), 7.0),
    ({"OBJECTIVE": "changes"}, planned(-1.0, lasting=-0.9), 0.5),
]


@pytest.mark.parametrize(("settings", "published", "log_price"), [*((*case, case[1].log_price) for case in CASES), *HIGH])
def test_many_pages_get_the_numbers_of_one(settings: dict[str, object], published: Published, log_price: float):
    rows, now = many_rows(300), AT + 1.0
    found = Terms(log_price, published, parse(**settings))
    table = np.frombuffer(b"".join(value.pack() for value in rows), LAYOUT)
    pages = np.frombuffer(b"".join(n.to_bytes(12, "little") for n in range(300)), "V12")
    priced = goes_by_price(table)
    assert 50 < priced.sum() < 250
    made = priced_numbers(table[priced], pages[priced], found, now)
    for at, place in enumerate(np.flatnonzero(priced)):
        expected = numbers_of(rows[place], pages[place].tobytes(), found, since=now - rows[place].b / 1e6)
        assert tuple(numbers[at] for numbers in made) == pytest.approx(tuple(expected), rel=1e-9), place


def test_what_does_not_go_by_the_price():
    """Failed, never seen, gone from the queue, pinned, checked, signalled, with update times, wanted now."""
    apart = [{"failures": 1}, {"visits": 0}, {"state": RETIRED}, {"min_interval": 9.0, "max_interval": 9.0}, {"l": 0.0}]
    apart += [{"flags": flag} for flag in (CHECKED, SIGNALLED, TIMED)]
    rows = [row(l=5.0), *(row(**({"l": 5.0} | values)) for values in apart)]
    table = np.frombuffer(b"".join(value.pack() for value in rows), LAYOUT)
    assert goes_by_price(table).tolist() == [True] + [False] * len(apart)


def test_a_page_that_seems_too_fast_is_looked_at_a_second_time_before_it_is_given_up():
    """At the price 10 pages of importance 2 are worth visits up to one change in 5 s; this one seems to change every 2 s."""
    log_price = math.log(10.0)
    within, values = context(planned(log_price)), {"log_price": log_price, "importance": 2.0, "stated": 2.0, "shape": 5.0, "time": 10.0}
    first = judged(handed(60.0, **values), NEW, within)
    assert first.row.flags & CHECKED
    assert wait_of(first, log_price) == pytest.approx(5.0, rel=1e-6)
    assert not goes_by_price(np.frombuffer(first.row.pack(), LAYOUT))[0]  # so plans leave it alone
    second = judged(again(first), OLD, within)
    assert not second.row.flags & CHECKED
    assert second.row.a == math.inf
    assert wait_of(second, log_price) > 1e4
    # In the longest interval it begins anew, as one bit in so long says nothing.
    assert judged(again(second), NEW, within).row.flags & CHECKED


@pytest.mark.parametrize(
    ("elapsed", "values", "settings"),
    [
        (15.0, {}, {}),
        (60.0, {"shape": 5.0, "time": 100.0}, {}),
        (60.0, {}, {"OBJECTIVE": "changes"}),
        (60.0, {}, {"EXPLORATION": "explore-then-commit"}),
        (60.0, {}, {"RULES": [{"pattern": ".", "interval": 30.0}]}),
    ],
    ids=["soon-after-the-last", "worth-its-visits", "by-changes", "committed", "pinned"],
)
def test_others_get_no_second_look(elapsed, values, settings):
    log_price = math.log(10.0)
    known = {"log_price": log_price, "importance": 2.0, "stated": 2.0, "shape": 5.0, "time": 10.0} | values
    said = {"exploration": settings.get("EXPLORATION", "median"), "exploration_horizon": "9", "exploration_rounds": "20"}
    published = planned(log_price, exploration=said)
    assert not judged(handed(elapsed, **known), NEW, context(published, **settings)).row.flags & CHECKED
