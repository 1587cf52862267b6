"""First looks at pages that appeared, counted by pattern from the log of visits, and published for judges and the next planner."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.frontier.planning import youth as module
from optimal_frontier.frontier.planning.priors import Priors
from optimal_frontier.frontier.planning.youth import FirstLooks
from optimal_frontier.state.published import ENOUGH_LOOKS, YOUTH, Published, host_key, pattern_key
from optimal_frontier.state.visit_log import BEGUN, CEASED, CHANGED, FIRST_LOOK, SAMPLED, VISIT, WELL

PRIORS = Priors(2000.0)
HOST = 3


def visits(*told):
    """Each is a pattern, an age, flags."""
    made = np.zeros(len(told), VISIT)
    for one, (pattern, age, flags) in zip(made, told, strict=True):
        one["host"], one["pattern"], one["since"], one["until"], one["flags"] = (
            HOST,
            pattern,
            1e15,
            1e15 + age * 1e6,
            flags | WELL | SAMPLED,
        )
    return made


def restless(pattern=7, n=20):
    """A pattern whose pages change within a minute, and not after that."""
    first = [(pattern, 40.0, FIRST_LOOK | CHANGED)] * n + [(pattern, 10.0, FIRST_LOOK | CHANGED)] * (n // 3)
    first += [(pattern, 10.0, FIRST_LOOK)] * (n - n // 3)
    return visits(*first, *[(pattern, 60.0, CEASED)] * n)


def published(looks):
    """Patterns of which youth is published."""
    found = Published.parse({}, None, None, looks.packed(PRIORS)).youth
    return {key - pattern_key(0): youth for key, youth in found.items() if key >= pattern_key(0) and youth is not None}


def test_looks_are_counted_by_pattern_and_age():
    looks = FirstLooks()
    looks.count(visits((7, 40.0, FIRST_LOOK), (7, 40.0, FIRST_LOOK | CHANGED), (9, 3.0, FIRST_LOOK | CHANGED), (7, 5.0, CHANGED)))
    looks.count(visits((7, 90.0, CEASED), (7, 90.0, BEGUN | CHANGED), (7, 90.0, CEASED), (0, 3.0, FIRST_LOOK)))
    of_host, table = looks.table[0], looks.table[1:]
    assert of_host["key"] == host_key(HOST)
    assert of_host["looks"].sum() == 4
    assert of_host[["changed", "ceased"]].tolist()[0][5] == 1
    assert (of_host["ceased"], of_host["begun"]) == (2, 1)
    assert table["key"].tolist() == [pattern_key(7), pattern_key(9)]
    assert table["looks"][0, 5] == table["looks"][0].sum() == 2
    assert table["changed"][0, 5] == table["changed"][0].sum() == 1
    assert table["looks"][1, 1] == table["changed"][1, 1] == 1
    assert table[["ceased", "begun"]].tolist() == [(2, 1), (0, 0)]


def test_a_first_look_that_a_signal_caused_says_nothing():
    """It may well have caused the second one of a pair: that was late enough at any time."""
    looks, seen = FirstLooks(), restless()
    seen["flags"] &= 255 ^ SAMPLED
    looks.count(seen)
    assert looks.table["looks"].sum() == 0
    assert looks.table["ceased"].tolist() == [20, 20]


def test_counts_do_not_overflow():
    looks = FirstLooks()
    looks.count(visits(*[(7, 5.0, FIRST_LOOK | CHANGED)] * 65_536))
    assert 500 <= looks.table["looks"].sum(axis=1).min() <= 1000
    assert np.array_equal(looks.table["looks"], looks.table["changed"])


def test_youth_is_published_where_changes_cease():
    looks = FirstLooks()
    looks.count(restless())
    looks.count(visits(*[(9, 40.0, FIRST_LOOK | CHANGED)] * 20, *[(9, 60.0, CEASED)] * 10, *[(9, 60.0, BEGUN | CHANGED)] * 10))
    found = published(looks)
    assert found.keys() == {7}
    assert 1 / 60 < found[7].rate < 1 / 10
    assert 64.0 <= found[7].until <= 128.0
    assert looks.believed == 1


def test_the_next_planner_goes_on_from_what_was_published():
    looks = FirstLooks()
    looks.count(restless())
    stored = looks.packed(PRIORS)
    after = FirstLooks(stored)
    assert after.packed(PRIORS) == stored
    # What is seen after that tells that they change all the time.
    after.count(visits(*[(7, 60.0, BEGUN | CHANGED)] * 20))
    assert published(after) == {}
    assert after.table["begun"].tolist() == [20, 20]


def test_what_a_site_did_long_ago_counts_less_and_less():
    looks = FirstLooks()
    for _ in range(100):
        looks.count(restless())
    assert looks.table["looks"].sum(axis=1).max() <= 1040
    assert looks.table["ceased"].max() <= 1040


def test_what_is_known_of_a_host_stands_in_for_patterns_with_few_looks():
    """Each of these pages has a pattern of its own."""
    looks = FirstLooks()
    looks.count(np.concatenate([restless(pattern, 3) for pattern in range(1, 12)]))
    found = Published.parse({}, None, None, looks.packed(PRIORS))
    assert found.youth.keys() == {host_key(HOST)}
    assert found.youth_of(HOST, 4) == found.youth_of(HOST, 99) == found.youth[host_key(HOST)] is not None
    assert found.youth_of(HOST + 1, 4) is None
    # A pattern that is known to differ goes by itself.
    looks.count(visits(*[(4, 40.0, FIRST_LOOK)] * ENOUGH_LOOKS))
    found = Published.parse({}, None, None, looks.packed(PRIORS))
    assert found.youth_of(HOST, 4) is None
    assert found.is_youth_known(HOST, 4)


def test_the_patterns_with_most_looks_are_kept(monkeypatch):
    monkeypatch.setattr(module, "MOST_KEYS", 3)
    looks = FirstLooks()
    looks.count(visits(*[(pattern, 5.0, FIRST_LOOK) for pattern in range(1, 8) for _ in range(10 - pattern)]))
    looks.packed(PRIORS)
    assert looks.table["key"].tolist() == [host_key(HOST), pattern_key(1), pattern_key(2)]


def test_a_plan_fits_some_patterns_and_the_next_one_others(monkeypatch):
    monkeypatch.setattr(module, "_MOST_FITTED", 2)
    looks = FirstLooks()
    looks.count(np.concatenate([restless(pattern) for pattern in range(1, 6)]))
    found = []
    for _ in range(4):
        # Patterns that go on being stirred wait for their turn.
        looks.count(restless(1))
        found.append(len(published(looks)))
    assert found == [1, 3, 5, 5]  # and the host


def more_changes_than_looks():
    one = np.zeros(1, YOUTH)
    one["key"], one["changed"], one["ceased"] = pattern_key(7), 9, 50
    return one.tobytes()


@pytest.mark.parametrize(
    "stored",
    [
        None,
        b"",
        b"\xff" * YOUTH.itemsize,
        b"\xff" * 17,
        np.full(1, np.nan, "<f4").tobytes() * (YOUTH.itemsize // 4),
        more_changes_than_looks(),
    ],
    ids=["nothing", "empty", "ones", "another length", "no numbers", "more changes than looks"],
)
def test_what_cannot_be_read_counts_as_not_there(stored):
    assert Published.parse({}, None, None, stored).youth == {}
    looks = FirstLooks(stored)
    looks.count(restless())
    assert published(looks).keys() == {7}
