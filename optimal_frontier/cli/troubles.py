"""What goes wrong, in words: failures by cause, hosts that are held, block pages, and pages that have moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from optimal_frontier.cli.output import number
from optimal_frontier.state.columns import ACTIVE
from optimal_frontier.state.reading import PageReading, StatusReading

#: Counters of failures that are no causes: by what they mean for the page.
_OUTCOMES: Final = {"failures_failed", "failures_refused"}
#: Hosts that are named.
_NAMED: Final = 3

_CAUSES: Final = {
    "timeout": "it took too long",
    "dns": "its host's name was not found",
    "connection": "the connection failed",
    "server": "the server failed (5xx)",
    "client": "the server refused it (4xx)",
    "throttled": "the server asked for fewer requests (429)",
    "robots": "robots.txt forbids it",
    "refused": "a middleware refused it",
    "redirects": "it was redirected too often",
    "truncated": "the answer was cut off",
    "blocked": "a page came that takes the place of many others (a block page, a soft 404)",
    "gone": "it was gone (404, 410)",
}


def failures_by_cause(counts: Mapping[str, int]) -> dict[str, int]:
    """Return how many failures there were of each cause, most frequent first."""
    found = {name.removeprefix("failures_"): n for name, n in counts.items() if name.startswith("failures_") and name not in _OUTCOMES}
    found["blocked"] = counts.get("blocked_pages", 0)
    return dict(sorted(((cause, n) for cause, n in found.items() if n), key=lambda pair: (-pair[1], pair[0])))


def status_troubles(reading: StatusReading) -> dict[str, Any]:
    """Return the fields of ``status --json`` about what went wrong."""
    counts = reading.counts
    return {
        "failures_by_cause": failures_by_cause(counts),
        "held_hosts": reading.held_hosts,
        "gone_held": counts.get("gone_held", 0),
        "blocked_pages": counts.get("blocked_pages", 0),
        "flagged_contents": reading.flagged_contents,
        "moved": counts.get("moved", 0),
        "merged": counts.get("merged", 0),
        "revived": counts.get("revived", 0),
    }


def status_rows(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of ``status`` about what went wrong; none where nothing did."""
    rows = []
    if answer["failures_by_cause"]:
        rows.append(("failures", ", ".join(f"{number(n)} {cause}" for cause, n in answer["failures_by_cause"].items())))
    hosts = answer["held_hosts"]
    if hosts:
        more = f" and {number(len(hosts) - _NAMED)} more" if len(hosts) > _NAMED else ""
        rows.append(("held", f"{', '.join(hosts[:_NAMED])}{more}: 404 or 410 for most pages, none is retired"))
    if answer["flagged_contents"]:
        what = f"what many pages of a host have in common; contents flagged: {number(answer['flagged_contents'])}"
        rows.append(("blocked", f"{number(answer['blocked_pages'])} visits showed {what}"))
    if answer["moved"] or answer["merged"]:
        rows.append(("moved", f"{number(answer['moved'])} pages, {number(answer['merged'])} more became one with another"))
    return rows


def page_troubles(reading: PageReading, asked: bytes, url: str) -> dict[str, Any]:
    """Return the fields of ``page --json`` about what went wrong, and about its other names.

    ``alias_of`` is there where the URL that was asked for is no longer that of the page.
    """
    troubles = reading.troubles
    is_failing = bool(reading.seen["failures"]) or reading.seen["gone"] > 0
    return {
        "failed_by": (troubles.failed_by or None) if is_failing else None,
        "host_held": troubles.is_host_held,
        "alias_of": reading.record.get("url", url) if troubles.fingerprint != asked else None,
        "aliases": list(troubles.aliases),
    }


def page_rows(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of ``page`` about what went wrong and its other names; none where there is nothing to say."""
    rows = []
    if answer["aliases"]:
        more = f" and {number(len(answer['aliases']) - _NAMED)} more" if len(answer["aliases"]) > _NAMED else ""
        rows.append(("moved from", ", ".join(answer["aliases"][:_NAMED]) + more))
    if answer["failed_by"]:
        held = "; its host is held: 404 or 410 for most pages" if answer["host_held"] else ""
        rows.append(("last failure", cause_in_words(answer["failed_by"]) + held))
    return rows


def cause_in_words(cause: str) -> str:
    """Say why a fetch failed."""
    return _CAUSES.get(cause, "it failed for another reason, see the crawl's log")


def why_failing(reading: PageReading) -> str:
    """Say why a page that fails waits; empty for one that does not, or whose last failure is not known."""
    cause = reading.troubles.failed_by
    if reading.page["state"] != ACTIVE or not cause or not reading.seen["failures"]:
        return ""
    if reading.seen["gone"]:
        if reading.troubles.is_host_held:
            return "Most pages of its host are gone (404, 410), so it is held, not retired, and asked for at growing intervals."
        return "It was gone (404, 410) and is looked at once more before it is retired."
    return f"At its last attempt {cause_in_words(cause)}."
