"""What is stored of pages with update times, read for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimal_frontier.settings import Timetable
from optimal_frontier.state.reading import batches, scan_hash
from optimal_frontier.state.records import UpdateTimes
from optimal_frontier.state.store import Store


@dataclass(frozen=True)
class StoredTimes:
    """Pages with update times.

    Attributes
    ----------
    slots : ndarray of int (k,)
        Which they are, rising.
    learned : list of UpdateTimes
        What is stored of each.
    bought : ndarray (k,)
        Column group *bought*.
    timetables : dict
        Number -> timetable.
    """

    slots: np.ndarray
    learned: list[UpdateTimes]
    bought: np.ndarray
    timetables: dict[int, Timetable]

    def by_timetable(self) -> list[tuple[Timetable, np.ndarray]]:
        """Return each timetable that is in use, and where its pages stand in `slots`."""
        numbers = np.array([learned.number for learned in self.learned], np.int64)
        return [(self.timetables[number], np.flatnonzero(numbers == number)) for number in np.unique(numbers).tolist()]


#: Of a crawl without such pages.
NO_TIMES = StoredTimes(np.zeros(0, np.int64), [], np.zeros(0), {})


def read_update_times(store: Store) -> StoredTimes:
    """Read what is known of all pages with update times. O(1) where there are none; entries whose timetable is not known are left out."""
    if not store.command("EXISTS", store.key("timed")):
        return NO_TIMES
    timetables = {int(number): Timetable.of_text(text) for number, text in store.hash("timetables:texts").items()}
    stored = {int(slot): UpdateTimes.unpack(raw) for slot, raw in scan_hash(store, "timed")}
    known = {slot: learned for slot, learned in sorted(stored.items()) if learned.number in timetables}
    slots = np.fromiter(known, np.int64, len(known))
    bought = [store.records_at("bought", part)["times"] for part in batches(slots.tolist())]
    return StoredTimes(slots, list(known.values()), np.concatenate([np.zeros(0), *bought]), timetables)
