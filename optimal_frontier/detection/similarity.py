"""Near-duplicates: fingerprints that differ in few bits where pages differ in few words."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Words in a row that count as one feature.
SHINGLE: Final = 2

#: Bits of a fingerprint.
_BITS: Final = 128
#: Numbers are taken modulo one more.
_ALL_BITS: Final = 2**64 - 1
#: Features that are summed at once.
_BLOCK: Final = 65_536
#: Scripts that put no space between words: every character is a word.
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
_WORD: Final = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def simhash(text: str, more: Iterable[bytes] = ()) -> bytes:
    """SimHash of the shingles of a text.

    Parameters
    ----------
    text : str
        Cut into words (``\\w+``; every character of scripts without spaces), of which each `SHINGLE` in a row are one feature.
    more : iterable of bytes
        Further features.

    Returns
    -------
    bytes, 16
        Bit i is set if more than half of the distinct features have bit i set in a hash of theirs; all bits are 0 without features.

    References
    ----------
    Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002, section 3; Manku, Jain, Das Sarma, Detecting
    near-duplicates for web crawling, WWW 2007.
    """
    words = hashes(word.encode("utf-8", "surrogatepass") for word in _WORD.findall(text))
    features = np.zeros(max(len(words) - SHINGLE + 1, min(len(words), 1)), np.uint64)
    for at in range(min(SHINGLE, len(words))):
        features = _mixed(features + words[at : at + len(features)])
    features = np.unique(np.concatenate([features, hashes(more)]))
    ones = np.zeros(_BITS, np.int64)
    for start in range(0, len(features), _BLOCK):
        block = features[start : start + _BLOCK]
        halves = np.stack([_mixed(block), _mixed(~block)], axis=1).astype("<u8")
        ones += np.unpackbits(halves.view(np.uint8), axis=1).sum(axis=0, dtype=np.int64)
    return np.packbits(2 * ones > len(features)).tobytes()


def distance(one: bytes, other: bytes) -> int:
    """Return the number of bits in which two fingerprints differ.

    Examples
    --------
    >>> distance(bytes(16), bytes(15) + b"\\x05")
    2
    """
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()


def is_changed(old: bytes, new: bytes, most: int = 0) -> bool:
    """Tell whether two fingerprints of a page stand for different contents.

    Parameters
    ----------
    old, new : bytes, 16
        Fingerprints made in the same way.
    most : int
        Bits in which they may differ; 0 for fingerprints that are not of kind ``"near"``.

    Notes
    -----
    While it says no, the old fingerprint has to stay the one that is compared with: if every new one took its place, a page could
    change completely, a word at a time, without a change being seen.
    """
    return old != new if most == 0 else distance(old, new) > most


def hashes(values: Iterable[bytes]) -> NDArray[np.uint64]:
    """Return a number of 64 bits for each of some texts, the same on every machine; of equal CRC-32 they are equal."""
    return _mixed(np.fromiter(map(zlib.crc32, values), np.uint64))


def hash_of(value: bytes) -> int:
    """Return what `hashes` has for one text: a dozen of them are had sooner than their array.

    Examples
    --------
    >>> [hash_of(text) for text in (b"", b"page 7")] == hashes([b"", b"page 7"]).tolist()
    True
    """
    mixed = zlib.crc32(value) + 0x9E3779B97F4A7C15
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _ALL_BITS
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _ALL_BITS
    return mixed ^ mixed >> 31


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit numbers (the finaliser of SplitMix64); sums and products are modulo 2^64."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values
