"""The packed columns: fixed-width records in chunked strings, grouped by their one writer, read into numpy without a loop over pages.

The same layouts stand in ``lua/_prelude.lua``; a test holds the two equal.
"""

from __future__ import annotations

from typing import Final

import numpy as np

#: Slots in one chunk string.
CHUNK: Final = 4096

#: States of a slot.
FREE, ACTIVE, ONCE, TRANSIENT, RETIRED, DONE = range(6)
STATE_NAMES: Final = ("free", "active", "once", "transient", "retired", "done")

#: Written when a page is added: importance, bounds on its revisit rate (1/s), least seconds between two visits, host, generation, state,
#: pattern of the URL (0: none).
PAGE: Final = np.dtype(
    [
        ("importance", "<f8"),
        ("min_rate", "<f8"),
        ("max_rate", "<f8"),
        ("gap", "<f8"),
        ("host", "<u4"),
        ("generation", "<u4"),
        ("state", "<u4"),
        ("pattern", "<u4"),
    ]
)
#: Written by `observe`: times in seconds of the partition's clock; shape and time of the Gamma posterior (0: no bit yet).
SEEN: Final = np.dtype(
    [
        ("last_attempt", "<f8"),
        ("last_seen", "<f8"),
        ("shape", "<f8"),
        ("time", "<f8"),
        ("carry", "<f8"),
        ("settled", "<f8"),
        ("visits", "<u4"),
        ("observations", "<u4"),
        ("changes", "<u4"),
        ("bits", "<u4"),
        ("failures", "<u4"),
        ("gone", "<u4"),
        ("attempts", "<u4"),
    ]
)
#: Written by the planner: revisit rate (1/s), and the credit that the page had at ``base_time`` (0: not planned yet).
PLAN: Final = np.dtype([("rate", "<f8"), ("base_time", "<f8"), ("base_credit", "<f8")])
#: Written by the planner with DISPATCH "index": what the plan was made from: weight and change rate (1/s), by which visits have a value,
#: and bounds on the revisit rate (1/s); most_rate 0: not planned by price.
INDEX: Final = np.dtype([("weight", "<f8"), ("change_rate", "<f8"), ("least_rate", "<f8"), ("most_rate", "<f8")])
#: Written by `observe`: tag of the fingerprint settings (0: none) and the fingerprint.
CONTENT: Final = np.dtype([("tag", "<u4"), ("fingerprint", "V16")])
#: Written by the planner when EXPLORATION "explore-then-commit" ceases to explore: the posterior that it commits to (shape 0: none), and
#: the generation of the slot that it is of.
COMMITTED: Final = np.dtype([("shape", "<f8"), ("time", "<f8"), ("generation", "<u4")])

#: Written by the planner, at the place of a pattern, not of a slot: the prior of its pages without a bit, time in seconds (shape 0: the
#: default one), and how many pages of the pattern taught it.
PRIOR: Final = np.dtype([("shape", "<f8"), ("time", "<f8"), ("siblings", "<f8")])

#: Written by `observe`: the recent posterior that takes over when a page's habits change (shape 0: none yet), the evidence that they have
#: (see `estimation.change_points`), and how often it took over.
WATCH: Final = np.dtype([("shape", "<f4"), ("time", "<f4"), ("evidence", "<f4"), ("relearned", "<u4")])

#: Written by `observe`: what a test of the page's bits against the Poisson model keeps (see `estimation.bursts`).
BURSTS: Final = np.dtype([("last", "<f4"), ("score", "<f4"), ("variance", "<f4"), ("spread", "<f4")])
#: Written by the planner, where there are pages with update times: sum of 2^j over the times j of its timetable that it buys visits for.
BOUGHT: Final = np.dtype([("times", "<f8")])

LAYOUTS: Final = {
    "page": PAGE,
    "seen": SEEN,
    "plan": PLAN,
    "index": INDEX,
    "content": CONTENT,
    "committed": COMMITTED,
    "prior": PRIOR,
    "watch": WATCH,
    "bought": BOUGHT,
    "bursts": BURSTS,
}


def join_chunks(layout: np.dtype, chunks: list[bytes | None], slots: int) -> np.ndarray:
    """Join chunk strings into one array of records.

    Parameters
    ----------
    layout : dtype
        One of the layouts above.
    chunks : list of bytes or None
        Consecutive chunk strings; one that is short or missing counts as zeros.
    slots : int
        Number of slots wanted.

    Returns
    -------
    ndarray, shape (slots,)
        A writable copy.
    """
    size = CHUNK * layout.itemsize
    raw = b"".join((chunk or b"").ljust(size, b"\0") for chunk in chunks)
    return np.frombuffer(raw, dtype=layout, count=slots).copy()
