"""Gates open on evidence, close when it is gone, and are kept within bounds."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.estimation.likelihood_gates import LEAST, MOST, LikelihoodGates, gains


def test_a_gate_opens_at_ten_thousand_to_one_and_closes_at_twelve_hundred_to_one() -> None:
    gates = LikelihoodGates()
    gates.grow(2)
    states = []
    for gain in (9.1, 0.2, -2.0, -0.1, -0.2, 1.0):
        gates.count(np.array([1]), np.array([gain]))
        states.append(bool(gates.is_open[1]))
    assert states == [False, True, True, True, False, False]
    assert not gates.is_open[0]
    assert gates.evidence[0] == 0.0


def test_evidence_is_bounded_on_both_sides_and_new_hosts_have_none() -> None:
    gates = LikelihoodGates()
    gates.grow(2)
    gates.count(np.array([0, 0, 1]), np.array([90.0, 90.0, -90.0]))
    gates.grow(3)
    assert gates.evidence.tolist() == [MOST, LEAST, 0.0]
    assert gates.is_open.tolist() == [True, False, False]


def test_what_a_wrong_prior_left_keeps_no_gate_open_for_long() -> None:
    """A hundred visits spoke for the model; the next fifty say no more than that it is a little worse."""
    gates = LikelihoodGates()
    gates.grow(1)
    for gain in [0.5] * 100 + [-0.08] * 50:
        gates.count(np.array([0]), np.array([gain]))
    assert not gates.is_open[0]


def test_a_clock_that_is_wrong_rarely_opens_its_gate() -> None:
    """Of hosts whose rival is right, at most 1 in 10,000 opens: 500 hosts, 400 visits each."""
    rng = np.random.default_rng(3)
    gates = LikelihoodGates()
    gates.grow(500)
    ever = np.zeros(500, bool)
    host, shape, time = np.arange(500), np.full(500, 50.0), np.full(500, 50.0)
    for _ in range(400):
        rival = rng.exponential(1.0, 500)
        model = rival * rng.lognormal(0.0, 0.7, 500)
        changed = rng.random(500) < 1.0 - (1.0 + rival / time) ** -shape
        gain, _ = gains(shape, time, model, rival, changed)
        gates.count(host, gain)
        ever |= gates.is_open
    assert ever.sum() <= 1
    assert gates.evidence.mean() < -4.0


def test_gains_stay_finite_at_the_ends() -> None:
    gain, chance = gains(
        np.ones(4), np.ones(4), np.array([0.0, 0.0, 1e9, 1e300]), np.array([1e300, 1.0, 0.0, 0.0]), np.array([True, False] * 2)
    )
    assert np.isfinite(gain).all()
    assert ((chance >= 0.0) & (chance <= 1.0)).all()
    assert gain[0] == pytest.approx(np.log(1e-9))
