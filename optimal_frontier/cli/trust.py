"""Whether what a host says about the last change of its pages is believed, and why."""

from __future__ import annotations

from typing import Any

from optimal_frontier.cli.output import number
from optimal_frontier.estimation.trust import Trust


def trust_facts(counts: tuple[float, float, float, float]) -> dict[str, Any] | None:
    """Return what ``page --json`` shows of the trust in a host; None if it was never checked.

    Returns
    -------
    dict or None
        ``trusted``, and counts, of which the last 40 checks of each kind are left: ``unchanged`` visits, of which ``moved`` had a newer
        last change all the same; ``changed`` visits, of which ``wrong`` had an old one, or one too sudden.
    """
    trust = Trust(*counts)
    if trust == Trust():
        return None
    return {
        "trusted": trust.is_earned,
        "unchanged": trust.unchanged,
        "moved": trust.moved,
        "changed": trust.changed,
        "wrong": trust.wrong,
    }


def trust_line(facts: dict[str, Any] | None) -> str:
    """Return it in words."""
    if facts is None:
        return "not checked yet"
    return (
        f"{'' if facts['trusted'] else 'not '}trusted: wrong at {number(facts['wrong'])} of {number(facts['changed'])} visits that found a "
        f"change, moved at {number(facts['moved'])} of {number(facts['unchanged'])} that found none"
    )
