"""Whether a host's 304s are believed: false alarms are as rare as stated, liars are found, mended servers come back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optimal_frontier.estimation.validator_trust import (
    ALARM,
    HONEST,
    KNOWN,
    LEAST,
    MOST,
    MOST_EVIDENCE,
    TOLD,
    ValidatorTrust,
    change_chance,
    evidence_of,
    verdict_of,
)


def checked(rng: np.random.Generator, hosts: int, checks: int, hides: bool) -> np.ndarray:
    """Share of hosts that are ever not believed, by so many checks of pages whose rates are known; shape (checks,)."""
    alarmed = np.zeros((hosts, checks), bool)
    for host in range(hosts):
        trust = ValidatorTrust()
        for at in range(checks):
            since_full, since_304 = rng.exponential(1.0), rng.exponential(0.05)
            honest = -math.expm1(-since_304)
            hidden = -math.expm1(-since_full - since_304)
            changed = bool(rng.random() < (hidden if hides else honest))
            trust = trust.after(verdict_of(hidden, honest, changed), evidence_of(hidden, honest, changed))
            if not trust.is_believed:
                alarmed[host, at:] = True
                break
    return alarmed.mean(axis=0)


def test_false_alarms_are_as_rare_as_stated():
    """At most 1% of honest hosts, however many checks; these are pages that change in the time to the check with 5%."""
    share = checked(np.random.default_rng(1), 1500, 60, hides=False)
    assert share[-1] <= 0.01 + 3 * math.sqrt(0.01 / 1500)


def test_liars_are_found_within_a_few_checks():
    share = checked(np.random.default_rng(2), 400, 20, hides=True)
    assert share[4] > 0.5
    assert share[-1] > 0.97


def test_one_check_is_never_enough():
    assert ALARM > MOST_EVIDENCE == evidence_of(0.999999, 1e-12, True)
    trust = ValidatorTrust().after("lies", MOST_EVIDENCE)
    assert trust.is_believed
    assert not trust.after("lies", MOST_EVIDENCE).is_believed


def test_changes_that_are_told_bring_trust_back_and_the_past_is_bounded():
    trust = ValidatorTrust()
    for _ in range(50):
        trust = trust.after("lies", MOST_EVIDENCE)
    assert (trust.score, trust.lies) == (MOST, 50)
    told = 0
    while not trust.is_believed:
        trust, told = trust.after("told", -TOLD), told + 1
    assert told == math.floor(MOST - ALARM) + 1 == 4
    for _ in range(50):
        trust = trust.after("told", -TOLD)
    assert (trust.score, trust.told, trust.checks) == (LEAST, 54, 50)


def test_checks_become_rare_when_a_host_is_known():
    trust = ValidatorTrust()
    shares = []
    for _ in range(int(KNOWN) + 1):
        shares.append(trust.check_share(0.1))
        trust = trust.after("agrees", -0.01)
    assert shares == pytest.approx([1 / 3] * int(KNOWN) + [1 / 50])
    assert trust.check_share(0.6) == 1 / 5  # it may have hidden a change, and never told one
    for _ in range(int(HONEST)):
        trust = trust.after("told", -TOLD)
    assert trust.check_share(0.6) == 1 / 50
    assert trust.after("lies", MOST_EVIDENCE).check_share(0.0) == 1 / 3  # under suspicion


@pytest.mark.parametrize(
    ("hidden", "honest", "changed", "verdict"),
    [(0.5, 0.01, False, "agrees"), (0.5, 0.01, True, "lies"), (0.9, 0.2, True, "unclear"), (0.02, 0.01, True, "unclear")],
)
def test_a_page_is_only_blamed_for_what_can_hardly_have_happened_since(hidden, honest, changed, verdict):
    assert verdict_of(hidden, honest, changed) == verdict


def test_evidence_is_bounded_and_defined_everywhere():
    for hidden, honest in [(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (1e-300, 0.0)]:
        for changed in (False, True):
            assert abs(evidence_of(hidden, honest, changed)) <= MOST_EVIDENCE
    assert change_chance(2.0, 1e9, 1e-9) == pytest.approx(2e-18)
