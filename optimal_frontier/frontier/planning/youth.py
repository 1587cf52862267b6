"""First looks at pages that appeared, as the planner counts them by pattern from the log of visits; published with each plan.

What a planner has published is what the next one goes on from.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation.first_looks import age_bins, fit_youth, is_restless
from optimal_frontier.frontier.planning.priors import Priors
from optimal_frontier.state.published import AGES, YOUTH, sound_youth
from optimal_frontier.state.visit_log import BEGUN, CEASED, CHANGED, FIRST_LOOK, SAMPLED

#: Patterns that are kept, those of which most pages were looked at.
MOST_PATTERNS: Final = 2000
#: Patterns that one plan fits anew.
_MOST_FITTED: Final = 50
#: First looks of a pattern above which all that is counted of it is halved: what a site does may change.
_MOST_LOOKS: Final = 1000


class FirstLooks:
    """What is known of the youth of the pages of a partition, by pattern.

    Parameters
    ----------
    stored : bytes or None
        What was published.

    Attributes
    ----------
    table : ndarray of `YOUTH`
        In the order of patterns.
    """

    def __init__(self, stored: bytes | None = None) -> None:
        self.table: NDArray[Any] = sound_youth(stored)
        self._stirred: set[int] = set()

    def count(self, visits: NDArray[Any]) -> None:
        """Take in visits as they were counted, an array of `VISIT`."""
        is_look = (visits["flags"] & (FIRST_LOOK | CEASED | BEGUN) > 0) & (visits["flags"] & SAMPLED > 0) & (visits["pattern"] > 0)
        if not is_look.any():
            return
        seen = visits[is_look]
        patterns = np.unique(seen["pattern"])
        self._stirred.update(patterns.tolist())
        new = np.setdiff1d(patterns, self.table["pattern"])
        if len(new):
            more = np.zeros(len(new), YOUTH)
            more["pattern"] = new
            self.table = np.sort(np.concatenate([self.table, more]), order="pattern")
        at = np.searchsorted(self.table["pattern"], seen["pattern"])
        is_first, changed = seen["flags"] & FIRST_LOOK > 0, seen["flags"] & CHANGED > 0
        ages = age_bins((seen["until"] - seen["since"]) / 1e6, AGES)
        np.add.at(self.table["looks"], (at[is_first], ages[is_first]), 1)
        np.add.at(self.table["changed"], (at[is_first & changed], ages[is_first & changed]), 1)
        for name, flag in (("ceased", CEASED), ("begun", BEGUN)):
            np.add.at(self.table[name], at[seen["flags"] & flag > 0], 1)
        full = self.table["looks"].sum(axis=1) > _MOST_LOOKS
        for name in ("looks", "changed", "ceased", "begun"):
            self.table[name][full] //= 2

    @property
    def believed(self) -> int:
        """How many patterns have pages that change more often while they are young."""
        return int(np.count_nonzero(self.table["rate"]))

    def packed(self, priors: Priors) -> bytes:
        """Return what is published, with the youth of patterns of which something was seen since found anew, beside these priors."""
        stirred = np.flatnonzero(np.isin(self.table["pattern"], list(self._stirred)))[:_MOST_FITTED]
        for at in stirred.tolist():
            one = self.table[at]
            is_young = is_restless(int(one["ceased"]), int(one["begun"]), was_believed=bool(one["rate"] > 0.0))
            later = float(priors.medians(self.table["pattern"][at : at + 1])[0])
            youth = fit_youth(one["looks"], one["changed"], later) if is_young else None
            self.table["rate"][at], self.table["until"][at] = youth or (0.0, 0.0)
        self._stirred.difference_update(self.table["pattern"][stirred].tolist())
        if len(self.table) > MOST_PATTERNS:
            most = np.argsort(-self.table["looks"].sum(axis=1, dtype=np.int64), kind="stable")[:MOST_PATTERNS]
            self.table = self.table[np.sort(most)]
        return self.table.tobytes()
