"""Failures, in words: by cause, hosts that are held, block pages, and pages that have moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from optimal_frontier.cli.output import number
from optimal_frontier.frontier.judging.gone import is_held
from optimal_frontier.frontier.judging.outcomes import CALLBACK, ITEM
from optimal_frontier.frontier.judging.shared_noise import parse_name
from optimal_frontier.frontier.judging.template_events import is_event
from optimal_frontier.state.reading import StatusReading

#: Counters of failures that are no causes: by what they mean for the page.
_OUTCOMES: Final = {"failures_failed", "failures_refused"}
#: Hosts and URLs that are named.
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
    "gone": "it was gone (404, 410, or sent to the home page)",
    "callback": "its callback raised an exception",
    "item": "an item pipeline raised an exception",
}


def failures_by_cause(counts: Mapping[str, int]) -> dict[str, int]:
    """Return how many failures there were of each cause, most frequent first; ``held``: pages that are not fetched now."""
    found = {name.removeprefix("failures_"): n for name, n in counts.items() if name.startswith("failures_") and name not in _OUTCOMES}
    found["blocked"] = counts.get("blocked_pages", 0)
    found["held"] = counts.get("held", 0)
    return dict(sorted(((cause, n) for cause, n in found.items() if n), key=lambda pair: (-pair[1], pair[0])))


def failure_facts(reading: StatusReading) -> dict[str, Any]:
    """Return the fields of ``status --json`` about what went wrong."""
    counts = reading.counts()
    held = {name for partition in reading.partitions for name, words in partition.words.items() if is_held(words.good, words.missing)}
    return {
        "failures_by_cause": failures_by_cause(counts),
        "lost_items": {cause: counts.get(f"lost_{cause}", 0) for cause in (CALLBACK, ITEM)},
        "held_pages": counts.get("held", 0),
        "held_hosts": sorted(held),
        "gone_held": counts.get("gone_held", 0),
        "blocked_pages": counts.get("blocked_pages", 0),
        "flagged_contents": sum(
            not is_event(name) and parse_name(name) is None for partition in reading.partitions for name in partition.flagged
        ),
        "moved": counts.get("moved", 0),
        "merged": counts.get("merged", 0),
        "revived": counts.get("revived", 0),
    }


def failure_rows(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of ``status`` about what went wrong; none where nothing did."""
    rows = []
    if answer["failures_by_cause"]:
        rows.append(("failures", ", ".join(f"{number(n)} {cause}" for cause, n in answer["failures_by_cause"].items())))
    if any(answer["lost_items"].values()):
        rows.append(("lost items", _lost(answer["lost_items"])))
    if answer["held_pages"]:
        rows.append(("held pages", f"{number(answer['held_pages'])}: the spider lacks their callback, or the class of their request"))
    if answer["held_hosts"]:
        rows.append(("held", f"{some_of(answer['held_hosts'])}: 404 or 410 for most pages, none is retired"))
    if answer["flagged_contents"]:
        what = f"what many pages of a host have in common; contents flagged: {number(answer['flagged_contents'])}"
        rows.append(("blocked", f"{number(answer['blocked_pages'])} visits showed {what}"))
    if answer["moved"] or answer["merged"]:
        rows.append(("moved", f"{number(answer['moved'])} pages, {number(answer['merged'])} more became one with another"))
    return rows


def _lost(pages: Mapping[str, int]) -> str:
    """Say how many pages are fetched again for their items.

    Examples
    --------
    >>> _lost({"callback": 8, "item": 1})
    'of 8 pages the callback raised, of 1 an item pipeline; they are fetched again until it does not'
    """
    of = {CALLBACK: "the callback", ITEM: "an item pipeline"}
    (first, n), *more = ((of[cause], count) for cause, count in pages.items() if count)
    said = [f"of {number(n)} {'page' if n == 1 else 'pages'} {first} raised", *(f"of {number(k)} {what}" for what, k in more)]
    return ", ".join(said) + "; they are fetched again until it does not"


def some_of(names: Iterable[str]) -> str:
    """Name the first few, and say how many more there are.

    Examples
    --------
    >>> some_of(["a", "b"]), some_of("abcde")
    ('a, b', 'a, b, c and 2 more')
    """
    names = list(names)
    return ", ".join(names[:_NAMED]) + (f" and {number(len(names) - _NAMED)} more" if len(names) > _NAMED else "")


def cause_in_words(cause: str) -> str:
    """Say why a fetch failed."""
    return _CAUSES.get(cause, "it failed for another reason, see the crawl's log")
