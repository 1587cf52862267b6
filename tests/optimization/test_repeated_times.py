"""Visits at update times that come again and again: gains against the freshness summed out, and their order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from optimal_frontier.optimization.repeated_times import repeated_choices


def freshness(lengths, probabilities, visited) -> float:
    """Share of time in which the copy is fresh, stretch by stretch from the visit before it."""
    q, total = len(lengths), 0.0
    for at in range(q):
        fresh = 1.0
        for back in range(q):
            node = (at - back) % q
            if node in visited:
                total += lengths[at] * fresh
                break
            fresh *= 1 - probabilities[node]
    return total


def changes(probabilities, visited) -> float:
    """Changes seen in a period."""
    q, total = len(probabilities), 0.0
    for at in visited:
        kept = 1.0
        for back in range(q):
            if back and (at - back) % q in visited:
                break
            kept *= 1 - probabilities[(at - back) % q]
        total += 1 - kept
    return total


def pages(q, n=20):
    rng = np.random.default_rng(q)
    lengths = rng.dirichlet(np.ones(q))
    probabilities = rng.uniform(size=(n, q))
    probabilities[:4] = rng.choice([0.0, 1.0, 0.5], size=(4, q))
    return lengths, probabilities


@pytest.mark.parametrize("objective", ["freshness", "changes"])
@pytest.mark.parametrize("q", [1, 2, 3, 6])
def test_gains_add_up_and_each_is_the_best(q, objective):
    lengths, probabilities = pages(q)
    gains, order, fresh = repeated_choices(lengths, probabilities, objective)

    def value(page, visited):
        return freshness(lengths, probabilities[page], visited) if objective == "freshness" else changes(probabilities[page], visited)

    for page in range(len(probabilities)):
        visited: list[int] = []
        for step in range(q):
            best = max(value(page, [*visited, other]) for other in range(q) if other not in visited)
            visited.append(int(order[page, step]))
            assert value(page, visited) == pytest.approx(best, abs=1e-12)
            assert gains[page, : step + 1].sum() == pytest.approx(best, abs=1e-12)
            assert fresh[page, step] == pytest.approx(freshness(lengths, probabilities[page], visited), abs=1e-12)
        assert sorted(visited) == list(range(q))
    assert (np.diff(gains) <= 0).all()


def test_visits_at_all_times_leave_nothing_stale():
    gains, _, _ = repeated_choices(*pages(5))
    assert gains.sum(axis=1) == pytest.approx(np.ones(20))


def test_the_choice_has_most_of_the_best_freshness():
    """At least 1 - 1/e; here 0.94 or more, 0.995 on average."""
    lengths, probabilities = pages(6)
    gains, _, _ = repeated_choices(lengths, probabilities)
    shares = []
    for page, count in itertools.product(range(4, 20), range(1, 6)):
        best = max(freshness(lengths, probabilities[page], chosen) for chosen in itertools.combinations(range(6), count))
        shares.append(gains[page, :count].sum() / best)
    assert min(shares) >= 0.94
    assert np.mean(shares) >= 0.995


def test_pages_do_not_depend_on_each_other():
    lengths, probabilities = pages(4)
    gains, order, _ = repeated_choices(lengths, probabilities)
    for page in (0, 7, 19):
        alone = repeated_choices(lengths, probabilities[page : page + 1])
        assert (alone[0][0] == gains[page]).all()
        assert (alone[1][0] == order[page]).all()
