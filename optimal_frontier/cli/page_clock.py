"""The clock of a page's neighbourhood, as ``page`` tells of it."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

from optimal_frontier.cli.output import duration, number
from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.neighbourhoods import NO_GROUP, Neighbourhoods, bin_length
from optimal_frontier.frontier.admitting.patterns import pattern_of
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.clocks import LEVELS, group_keys
from optimal_frontier.state.reading import PageReading
from optimal_frontier.state.rows import APPEARED, HUB, TIMED

#: Bins that are told of, from the newest back: one round.
_TOLD_BINS: Final = 8
#: Levels, from that which says most to a person.
_NEAREST: Final = ("directory", "section", "pattern", "host")
#: A clock that runs this near to the calendar is as fast as that.
_NEAR: Final = 0.05


def clock_facts(reading: PageReading, settings: FrontierSettings) -> dict[str, Any] | None:
    """Return what the last plan knew of the neighbourhood of a page.

    None where clocks are off, where nothing is kept of its host, and for pages that they do not move: pinned ones, those with update times,
    those that yield new pages, and those that have just appeared.

    ``gate_open`` and ``rhythm_open`` say whether clocks of its host count, by ``evidence`` and ``rhythm_evidence`` (logarithms of
    likelihood ratios). ``ahead_seconds`` is how far the clock has run ahead of the calendar since the last visit, ``speed`` how many times
    as fast as the calendar it ran. ``groups`` has, for each level, the pages that it is of, and the visits of the last round there
    (``seen``), and those of them that saw a change (``changed``).
    """
    row, stored = reading.row, reading.clocks
    is_new = row.flags & APPEARED and row.visits == 1
    is_free = row.visits > 0 and not row.is_pinned and row.flags & (HUB | TIMED) == 0 and not is_new
    if not settings.has_clocks or row.host not in stored.hosts or not is_free:
        return None
    keys = group_keys([row.host], [row.directory], [row.pattern])[0].tolist()
    clocks = Neighbourhoods(bin_length(max(reading.published.prior_time, 1.0)))
    clocks.grow(len(LEVELS), 1)
    try:
        clocks.unpack_host(0, stored.hosts[row.host])
        for level, key in enumerate(keys):
            clocks.unpack_group(level, stored.groups.get(key, b""), reading.now)
    except InvalidProblemError:
        return None  # the next plan writes it anew
    numbers = np.array([[level if key in stored.groups else NO_GROUP for level, key in enumerate(keys)]])
    last = row.b / 1e6 - row.unseen
    elapsed = max(reading.now - last, 1e-6)
    x = float(clocks.elapsed(numbers, np.zeros(1, np.int64), np.array([last]), reading.now)[0])
    since = reading.now - _TOLD_BINS * clocks.bins.bin_s
    groups = []
    for level, (name, of) in enumerate(zip(LEVELS, _pages_of(reading), strict=True)):
        if keys[level] in stored.groups:
            changed, seen = clocks.recent(level, since)
            groups.append({"level": name, "pages": of, "seen": seen, "changed": changed})
    return {
        "gate_open": bool(clocks.gates.is_open[0]),
        "evidence": float(clocks.gates.evidence[0]),
        "rhythm_open": bool(clocks.rhythm_gates.is_open[0]),
        "rhythm_evidence": float(clocks.rhythm_gates.evidence[0]),
        "elapsed_seconds": elapsed,
        "ahead_seconds": x - elapsed,
        "speed": x / elapsed,
        "round_seconds": _TOLD_BINS * clocks.bins.bin_s,
        "groups": groups,
    }


def clock_line(facts: dict[str, Any]) -> str:
    """Return the row of ``page`` about the clock of a page.

    Examples
    --------
    >>> facts = {"gate_open": True, "rhythm_open": False, "evidence": 9.5, "rhythm_evidence": 0.0, "round_seconds": 3600.0}
    >>> facts |= {"speed": 2.3, "ahead_seconds": 780.0, "elapsed_seconds": 600.0}
    >>> clock_line(facts | {"groups": [{"level": "directory", "pages": "/news/", "seen": 14, "changed": 9}]})
    '2.3 times as fast as the calendar since its last visit; /news/: 9 of 14 visits within 1 h saw a change'
    """
    counts = {group["pages"]: f"{group['changed']} of {group['seen']} visits" for group in facts["groups"] if group["seen"]}
    told = [f"{pages}: {count}" for pages, count in counts.items()]
    visits = f"; {', '.join(told)} within {duration(facts['round_seconds'])} saw a change" if told else ""
    if not (facts["gate_open"] or facts["rhythm_open"]):
        evidence = number(max(facts["evidence"], facts["rhythm_evidence"]))
        return f"the calendar: visits to its host do not speak for another one (evidence {evidence}, from 4.6 on they do){visits}"
    return f"{_speed(facts)} since its last visit{visits}"


def why_clock(facts: dict[str, Any] | None) -> str:
    """Return the sentence of ``page`` about why a page comes sooner or later than by the calendar; empty where it does not."""
    if facts is None or abs(facts["speed"] - 1.0) <= _NEAR:
        return ""
    told = [group for group in facts["groups"] if group["seen"]]
    ran = f"clock ran {_speed(facts)} since its last visit, so it comes {'sooner' if facts['ahead_seconds'] > 0 else 'later'}"
    if not told:
        return f"Its {ran}."
    nearest = min(told, key=lambda group: _NEAREST.index(group["level"]))
    seen = f"{nearest['changed']} of {nearest['seen']} visits to {nearest['pages']} within {duration(facts['round_seconds'])} saw a change"
    return f"{seen}; its {ran}."


def _speed(facts: dict[str, Any]) -> str:
    if abs(facts["speed"] - 1.0) <= _NEAR:
        return "as fast as the calendar"
    return f"{number(round(facts['speed'], 2))} times as fast as the calendar"


def _pages_of(reading: PageReading) -> tuple[str, str, str, str]:
    """Return what the pages of each level have in common."""
    url = str(reading.record.get("url", ""))
    folder = urlsplit(url).path.rpartition("/")[0] + "/"
    section = "/".join(folder.split("/", 3)[:3])
    return reading.host, section + ("" if section.endswith("/") else "/"), folder, pattern_of(url)
