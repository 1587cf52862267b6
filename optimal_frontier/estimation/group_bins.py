"""What the recent visits to groups of pages told, in bins of time: sums for each group and each of the last bins.

All groups share the bins. Bin j covers the times from ``j bin_s`` on, so bins of any process are the same, and what was stored can be read
again later, or with bins of another length.
"""

from __future__ import annotations

import math
import struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.errors import InvalidProblemError

Sums = NDArray[np.float32]
Ints = NDArray[np.int64]

#: Shortest and longest bins of a crawl, seconds.
BIN_S: Final = (0.125, 2.0**22)
#: Bins of time that are remembered.
BINS: Final = 32
#: The sums of a bin: changes attributed to the group, changes expected, visits that ended in it, and those of them that saw a change.
ATTRIBUTED: Final = 0
EXPECTED: Final = 1
SEEN: Final = 2
CHANGED: Final = 3
#: A packed group begins with its newest bin and the length of a bin; float16 follow, which hold sums to a thousandth.
_HEADER: Final = struct.Struct("<qd")
_PACKED: Final = np.dtype("<f2")
_LARGEST: Final = float(np.finfo(np.float16).max)


class GroupBins:
    """Sums of groups in bins of time.

    Parameters
    ----------
    bin_s : float
        Length of a bin, in the unit of all times.

    Attributes
    ----------
    bin_s : float
        Length of a bin.
    newest : int
        Number of the newest bin.
    sums : ndarray of float32 (4, groups + 1, BINS)
        Sums by kind, group and bin, oldest first. The last group stands for none, so that its number may be -1; nothing is counted in it.
    """

    def __init__(self, bin_s: float) -> None:
        if not 0.0 < bin_s < math.inf:
            raise InvalidProblemError(f"bin_s must be positive and finite, got {bin_s!r}")
        self.bin_s, self.newest, self._begun = float(bin_s), 0, False
        self.sums: Sums = np.zeros((4, 1, BINS), np.float32)

    def __len__(self) -> int:
        """How many groups there is room for."""
        return int(self.sums.shape[1]) - 1

    @property
    def begin(self) -> float:
        """When the oldest bin begins."""
        return (self.newest + 1 - BINS) * self.bin_s

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which groups have a bin in which something was expected, (groups,): all others are as if they were new."""
        return np.asarray(self.sums[EXPECTED, :-1].any(axis=1))

    def grow(self, groups: int) -> None:
        """Make room for so many groups, and for some more."""
        if groups > len(self):
            # What is not used of it yet is no memory of the machine's.
            grown = np.zeros((4, max(groups, len(self) * 3 // 2) + 1, BINS), np.float32)
            grown[:, : len(self)] = self.sums[:, :-1]
            self.sums = grown

    def advance(self, now: float) -> bool:
        """Move on to the bin of a time; return whether old ones were left behind."""
        newest = math.floor(now / self.bin_s)
        if not self._begun:
            self.newest, self._begun = newest, True
        steps = min(newest - self.newest, BINS)
        if steps <= 0:
            return False
        self.newest = newest
        self.sums[:, :, : BINS - steps] = self.sums[:, :, steps:]
        self.sums[:, :, BINS - steps :] = 0.0
        return True

    def rescale(self, bin_s: float, now: float = math.inf) -> None:
        """Go over to bins that are a power of two times as long: pairs are merged, or bins split evenly. None begins after ``now``.

        Raises
        ------
        InvalidProblemError
            It is no power of two.
        """
        self.sums, self.newest = _rescaled(self.sums, self.newest, self.bin_s, bin_s, now)
        self.bin_s = float(bin_s)

    def pack(self, groups: Ints) -> list[bytes]:
        """Return the sums of each of some groups, 272 bytes; none for a group that is as if it were new."""
        rows = np.zeros(len(groups), [("head", f"V{_HEADER.size}"), ("sums", _PACKED, (4, BINS))])
        rows["head"] = np.void(_HEADER.pack(self.newest, self.bin_s))
        sums = self.sums[:, groups]
        np.minimum(sums, _LARGEST, out=sums)
        rows["sums"] = sums.swapaxes(0, 1)
        packed: list[bytes] = rows.view(f"V{rows.itemsize}").tolist()
        for at in np.flatnonzero(~sums[EXPECTED].any(axis=1)).tolist():
            packed[at] = b""
        return packed

    def unpack(self, group: int, packed: bytes, now: float = math.inf) -> None:
        """Put what `pack` returned in the place of the sums of a group, moved on to the newest bin. No bin begins after ``now``.

        Raises
        ------
        InvalidProblemError
            The bytes are no group, or of bins that do not go together with these.
        """
        self.sums[:, group] = 0.0
        if not packed:
            return
        expected = _HEADER.size + 4 * BINS * _PACKED.itemsize
        if len(packed) != expected:
            raise InvalidProblemError(f"group: expected {expected} bytes, got {len(packed)}")
        newest, bin_s = _HEADER.unpack_from(packed)
        old = np.frombuffer(packed, _PACKED, offset=_HEADER.size).astype(np.float32).reshape(4, 1, BINS)
        if bin_s != self.bin_s:
            old, newest = _rescaled(old, newest, bin_s, self.bin_s, now)
        self.advance(newest * self.bin_s)
        steps = self.newest - newest
        if 0 <= steps < BINS:
            self.sums[:, group, : BINS - steps] = old[:, 0, steps:]


def fault_of_group(packed: bytes, now: float) -> str:
    """Return what is wrong with what is stored of a group, at a time; empty: nothing."""
    size = _HEADER.size + 4 * BINS * _PACKED.itemsize
    if len(packed) != size:
        return f"has {len(packed)} bytes, expected {size}"
    newest, bin_s = _HEADER.unpack_from(packed)
    if not (BIN_S[0] <= bin_s <= BIN_S[1] and math.frexp(bin_s)[0] == 0.5 and 0 <= newest * bin_s <= now + bin_s):
        return "is of bins that cannot be"
    sums = np.frombuffer(packed, _PACKED, offset=_HEADER.size)
    return "" if bool(((sums >= 0) & np.isfinite(sums)).all()) else "has sums that no visits can have left"


def _rescaled(sums: Sums, newest: int, old_s: float, new_s: float, now: float) -> tuple[Sums, int]:
    """Sums (4, groups, BINS) in bins of another length, and the number of the newest one."""
    power = math.log2(new_s / old_s) if 0.0 < new_s < math.inf and 0.0 < old_s < math.inf else math.nan
    if not power.is_integer():
        raise InvalidProblemError(f"bin_s: expected a power of two times {old_s!r}, got {new_s!r}")
    made = np.zeros_like(sums)
    bins = newest + 1 - BINS + np.arange(BINS)
    if power >= 0:
        merged = 2 ** int(power)
        last = newest // merged
        for old, new in enumerate((bins // merged - (last + 1 - BINS)).tolist()):
            made[:, :, new] += sums[:, :, old]
        return made, last
    split = 2 ** int(-power)
    last = (newest + 1) * split - 1
    if now < last * new_s:
        # The newest bin has only begun. Bins that lie ahead would hide what comes until then.
        last = max(math.floor(now / new_s), newest * split)
    of = (last + 1 - BINS + np.arange(BINS)) // split - bins[0]
    made[:] = sums[:, :, of] / np.float32(split)
    return made, last
