"""Near-duplicates: few words that differ are few bits, many are many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.detection import distance, is_changed
from optimal_frontier.detection.similarity import simhash
from optimal_frontier.settings.contents import NEAR_DISTANCE

bounded = settings(max_examples=100, derandomize=True, deadline=None, database=None)

WORDS = [f"w{number}" for number in range(30_001)]


def text_of(words: np.ndarray) -> str:
    return " ".join([WORDS[number] for number in words.tolist()])


@pytest.mark.parametrize("length", [200, 1_000, 5_000])
def test_noise_is_tolerated_and_a_rewritten_third_is_not(length: int) -> None:
    """By the default distance: at most 5 in 100 pages are misjudged, at 1% noise."""
    rng = np.random.default_rng(6)
    wrong = [0, 0]
    for _ in range(100):
        words = np.minimum(rng.zipf(1.3, length), 20_000)
        noisy, changed = words.copy(), words.copy()
        noisy[rng.choice(length, length // 100, replace=False)] = 30_000
        changed[: length // 3] = np.minimum(rng.zipf(1.3, length // 3), 20_000)
        old, same, other = (simhash(text_of(each)) for each in (words, noisy, changed))
        wrong[0] += is_changed(old, same, NEAR_DISTANCE)
        wrong[1] += not is_changed(old, other, NEAR_DISTANCE)
    assert max(wrong) <= 5


@bounded
@given(st.text(max_size=80), st.lists(st.binary(max_size=5), max_size=5))
def test_any_text_has_a_fingerprint(text: str, more: list[bytes]) -> None:
    made = simhash(text, more)
    assert len(made) == 16
    assert made == simhash(text, [*reversed(more)])
    assert simhash(text.replace(" ", "\n  ")) == simhash(text)


def test_texts_without_spaces_are_cut_into_characters() -> None:
    text = "東京都は日本の首都であり世界最大の都市の一つである" * 4
    assert 0 < distance(simhash(text), simhash(text + "新しい")) < distance(simhash(text), simhash("全然違う文章がここにあります" * 8))


def test_the_same_text_has_the_same_fingerprint_on_every_machine() -> None:
    assert simhash("") == bytes(16)
    assert simhash("the quick brown fox").hex() == QUICK


QUICK = "f590d66d72e1d816c1acb837bd533533"


@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16), st.integers(0, 128))
def test_a_change_is_a_distance_above_the_tolerated(old: bytes, new: bytes, most: int) -> None:
    assert distance(old, new) == distance(new, old)
    assert is_changed(old, new, most) == (distance(old, new) > most)
    assert not is_changed(old, old, most)
