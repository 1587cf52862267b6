"""How often fingerprints of kind "near" are wrong on generated pages, by the distance that is tolerated.

Pages are of words by Zipf's law. Between two visits a page that is unchanged differs in noise: counters and dates (single words, far
apart) and one box that rotates (words in a row). One that is changed differs in the same noise, and in a part that is rewritten.

    python benchmarks/near_duplicates.py [--pages 400]
"""

from __future__ import annotations

import argparse

import numpy as np

from optimal_frontier.detection.similarity import SHINGLE, distance, simhash
from optimal_frontier.settings.contents import NEAR_DISTANCE

VOCABULARY = 20_000
LENGTHS = (50, 200, 1_000, 5_000)
#: Share of the words that are noise, and share that a change rewrites.
NOISES = (0.005, 0.01, 0.02)
CHANGES = (0.05, 0.1, 0.2, 0.5)
TOLERATED = (4, 8, 12, 16, 20, 24, 32)


def words_of(rng: np.random.Generator, count: int) -> np.ndarray:
    """Words of a page, by number."""
    return np.minimum(rng.zipf(1.3, count), VOCABULARY)


def with_noise(rng: np.random.Generator, words: np.ndarray, share: float) -> np.ndarray:
    """A copy with half of the noise in single words, half in one box; at least one word."""
    noisy = words.copy()
    count = max(1, round(share * len(words)))
    single = (count + 1) // 2
    noisy[rng.choice(len(words), single, replace=False)] = rng.integers(VOCABULARY, 2 * VOCABULARY, single)
    box = count - single
    start = rng.integers(len(words) - box + 1)
    noisy[start : start + box] = rng.integers(VOCABULARY, 2 * VOCABULARY, box)
    return noisy


def rewritten(rng: np.random.Generator, words: np.ndarray, share: float) -> np.ndarray:
    """A copy in which as many words in a row are others."""
    changed = words.copy()
    count = max(1, round(share * len(words)))
    start = rng.integers(len(words) - count + 1)
    changed[start : start + count] = words_of(rng, count)
    return changed


def fingerprint_of(words: np.ndarray) -> bytes:
    return simhash(" ".join(f"w{word}" for word in words))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=400, help="pages per row")
    pages = parser.parse_args().pages
    rng = np.random.default_rng(6)
    print(f"shingles of {SHINGLE} words, {pages} pages a row; share taken for changed, by the bits tolerated (default {NEAR_DISTANCE})")
    print(f"{'words':>6} {'differs in':<22} {'median bits':>11} " + " ".join(f"{bits:>6}" for bits in TOLERATED))
    for length in LENGTHS:
        rows = [(f"noise {noise:.1%}", noise, 0.0) for noise in NOISES]
        rows += [(f"noise 1.0%, new {change:.0%}", 0.01, change) for change in CHANGES]
        for name, noise, change in rows:
            bits = np.empty(pages)
            for at in range(pages):
                old = words_of(rng, length)
                new = rewritten(rng, old, change) if change else old
                bits[at] = distance(fingerprint_of(with_noise(rng, old, noise)), fingerprint_of(with_noise(rng, new, noise)))
            shares = " ".join(f"{(bits > most).mean():>6.1%}" for most in TOLERATED)
            print(f"{length:>6} {name:<22} {np.median(bits):>11.0f} {shares}")


if __name__ == "__main__":
    main()
