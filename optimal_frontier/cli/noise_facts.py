"""What is known of a page's noise: whether it never looks the same twice, and what decides its bits then."""

from __future__ import annotations

from typing import Any

from optimal_frontier.detection.noisy_sections import Noise, noise_of
from optimal_frontier.frontier.noisy_pages import PageNoise


def noise_facts(kept: PageNoise | None) -> dict[str, Any] | None:
    """Return what ``page --json`` shows of a page's noise; None where no sections are kept of it."""
    if kept is None:
        return None
    found, history = noise_of(kept.history), kept.history
    judged = "fingerprint" if not kept.is_noisy else "other sections" if kept.has_steady_sections else "nothing"
    counts = {"noisy": kept.is_noisy, "judged_by": judged, "pairs": history.pairs, "quick_pairs": history.quick_pairs}
    return counts | {name: list(getattr(found, name)) for name in Noise._fields}


def noise_line(facts: dict[str, Any]) -> str:
    """Return `noise_facts` in a line."""
    kinds = (("within_seconds", "changes within seconds"), ("on_every_visit", "on every visit"), ("own_text", "own text changes"))
    said = [f"{what}: {', '.join(facts[name])}" for name, what in kinds if facts[name]]
    how = {"nothing": "noisy, gives no bits", "other sections": "noisy, judged by its other sections", "fingerprint": "not noisy"}
    pairs = f"{facts['pairs']} pairs of visits compared, {facts['quick_pairs']} of them second fetches"
    return "; ".join([how[facts["judged_by"]], *said, pairs])
