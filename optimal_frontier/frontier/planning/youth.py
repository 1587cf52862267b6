"""First looks at pages that appeared, as the planner counts them by pattern, and by host, from the log of visits; published with each plan.

What a planner has published is what the next one goes on from.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation.first_looks import age_bins, fit_youth, is_restless
from optimal_frontier.frontier.planning.priors import Priors
from optimal_frontier.state.published import AGES, YOUTH, pattern_key, pattern_of_key, sound_youth
from optimal_frontier.state.visit_log import BEGUN, CEASED, CHANGED, FIRST_LOOK, SAMPLED

#: Patterns and hosts that are kept, those of which most pages were looked at.
MOST_KEYS: Final = 2000
#: Those that one plan fits anew.
_MOST_FITTED: Final = 50
#: First looks of one of them above which all that is counted of it is halved: what a site does may change.
_MOST_LOOKS: Final = 1000
_MOST_COUNT: Final = 65_535


class FirstLooks:
    """What is known of the youth of the pages of a partition.

    Parameters
    ----------
    stored : bytes or None
        What was published.

    Attributes
    ----------
    table : ndarray of `YOUTH`
        In the order of its keys.
    """

    def __init__(self, stored: bytes | None = None) -> None:
        self.table: NDArray[Any] = sound_youth(stored)
        #: In the order in which they were stirred: what a plan does not come to is first at the next one.
        self._stirred: dict[int, None] = {}

    def count(self, visits: NDArray[Any]) -> None:
        """Take in visits as they were counted, an array of `VISIT`."""
        flags = visits["flags"]
        # Of pairs the second visit may be at any time that is late enough.
        is_look = ((flags & FIRST_LOOK > 0) & (flags & SAMPLED > 0)) | (flags & (CEASED | BEGUN) > 0)
        if not is_look.any():
            return
        once = visits[is_look]
        seen = np.concatenate([once[once["pattern"] > 0], once])
        keys = seen["host"].astype(np.uint64)
        keys[: len(seen) - len(once)] = seen["pattern"][: len(seen) - len(once)] | np.uint64(pattern_key(0))
        stirred = np.unique(keys)
        self._stirred |= dict.fromkeys(stirred.tolist())
        new = np.setdiff1d(stirred, self.table["key"])
        if len(new):
            more = np.zeros(len(new), YOUTH)
            more["key"] = new
            self.table = np.sort(np.concatenate([self.table, more]), order="key")
        at = np.searchsorted(self.table["key"], keys)
        is_first, changed = seen["flags"] & FIRST_LOOK > 0, seen["flags"] & CHANGED > 0
        ages = age_bins((seen["until"] - seen["since"]) / 1e6, AGES)
        # Sums in more bits than are kept.
        sums = {name: self.table[name].astype(np.int64) for name in ("looks", "changed", "ceased", "begun")}
        np.add.at(sums["looks"], (at[is_first], ages[is_first]), 1)
        np.add.at(sums["changed"], (at[is_first & changed], ages[is_first & changed]), 1)
        for name, flag in (("ceased", CEASED), ("begun", BEGUN)):
            np.add.at(sums[name], at[seen["flags"] & flag > 0], 1)
        halved = np.ceil(np.log2(np.maximum(sums["looks"].sum(axis=1) / _MOST_LOOKS, 1.0))).astype(np.int64)
        for name, counts in sums.items():
            self.table[name] = np.minimum(counts >> (halved[:, None] if counts.ndim > 1 else halved), _MOST_COUNT)

    @property
    def believed(self) -> int:
        """Of how many patterns pages change more often while they are young."""
        return int(np.count_nonzero(self.table["rate"][self.table["key"] >= pattern_key(0)]))

    def packed(self, priors: Priors) -> bytes:
        """Return what is published, with the youth of those of which something was seen since found anew, beside these priors."""
        some = list(itertools.islice(self._stirred, _MOST_FITTED))
        stirred = np.flatnonzero(np.isin(self.table["key"], some))
        for at in stirred.tolist():
            one = self.table[at]
            is_young = is_restless(int(one["ceased"]), int(one["begun"]), was_believed=bool(one["rate"] > 0.0))
            # Of a host that of all pages: its patterns differ.
            later = float(priors.medians(np.array([pattern_of_key(int(one["key"]))], np.uint32))[0])
            youth = fit_youth(one["looks"], one["changed"], later) if is_young else None
            self.table["rate"][at], self.table["until"][at] = youth or (0.0, 0.0)
        for key in some:
            del self._stirred[key]
        if len(self.table) > MOST_KEYS:
            most = np.argsort(-self.table["looks"].sum(axis=1, dtype=np.int64), kind="stable")[:MOST_KEYS]
            self.table = self.table[np.sort(most)]
        return self.table.tobytes()
