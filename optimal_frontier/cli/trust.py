"""Whether what a host says about the last change of its pages is believed, its 304s included, and why."""

from __future__ import annotations

from typing import Any

from optimal_frontier.cli.output import number
from optimal_frontier.estimation.trust import Trust
from optimal_frontier.estimation.validators import ValidatorTrust
from optimal_frontier.frontier.validators import FOUND_OUT, USELESS
from optimal_frontier.state.memory import Memory


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


def validator_facts(counts: tuple[float, float, float, float], memory: Memory) -> dict[str, Any]:
    """Return what ``page --json`` shows of the validators of a page, and of the trust in the 304s of its host.

    Returns
    -------
    dict
        Of the page ``etag`` and ``last_modified`` (None: there is none), ``etag_useless`` (it changes although the content does not),
        ``unchecked`` (304s since the last full answer) and ``found_out`` (two of them were lies). Of its host ``trusted``, ``told``
        (changes that the server told when it was asked with conditions), ``checks`` (304s that were checked) and ``lies`` (of these).
    """
    trust = ValidatorTrust(*counts)
    return {
        "etag": memory.etag.decode("latin-1") or None,
        "last_modified": memory.last_modified.decode("latin-1") or None,
        "etag_useless": memory.misses >= USELESS,
        "unchecked": memory.unchecked,
        "found_out": memory.lies >= FOUND_OUT,
        "trusted": trust.is_believed,
        "told": int(trust.told),
        "checks": int(trust.checks),
        "lies": int(trust.lies),
    }


def validator_line(facts: dict[str, Any]) -> str:
    """Return it in words."""
    useless = " (useless: it changes although the content does not)" if facts["etag_useless"] else ""
    known = [f"ETag {facts['etag']}{useless}"] if facts["etag"] else []
    known += ["Last-Modified"] if facts["last_modified"] else []
    believed = "not believed" if not facts["trusted"] else "not believed of this page" if facts["found_out"] else "believed"
    checks = f"{number(facts['lies'])} lies in {number(facts['checks'])} checks, {number(facts['told'])} changes told"
    return f"{' and '.join(known) or 'none'}; 304s of its host are {believed}: {checks}"
