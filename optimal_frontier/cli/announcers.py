"""What the sitemaps and feeds of a host announced, and whether that is acted on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optimal_frontier.cli.output import number
from optimal_frontier.estimation.announcers import Announcer


def announcer_facts(kept: Mapping[str, str], waits: bool) -> dict[str, Any]:
    """Return what ``page --json`` shows of the announcers of a page's host.

    Returns
    -------
    dict
        ``waits`` (a source has put the page forward, and its visit is still owed), and by kind (``index``, ``sitemap``, ``feed``) of those
        that the host has: ``right``, ``wrong`` (announcements that were followed by a changed, an unchanged page), ``has_say``, ``waiting``
        (pages).
    """
    facts: dict[str, Any] = {"waits": waits}
    for kind, text in kept.items():
        announcer = Announcer.parse(text)
        facts[kind] = {
            "right": announcer.right,
            "wrong": announcer.wrong,
            "has_say": not announcer.is_silenced,
            "waiting": announcer.waiting,
        }
    return facts


def announcer_line(facts: Mapping[str, Any]) -> str:
    """Return it in words."""
    words = ["put forward by one, not visited yet"] if facts["waits"] else []
    for kind, known in facts.items():
        if kind != "waits":
            say = "" if known["has_say"] else ", without a say"
            words.append(f"{kind} right {number(known['right'])} times, wrong {number(known['wrong'])}{say}")
    return "; ".join(words)


def announced_line(counts: Mapping[str, int]) -> str:
    """Return in words what sources announced in the whole crawl; ``counts`` as in ``status --json``."""
    ignored = counts["distrusted"] + counts["held"]
    return (
        f"{number(counts['announced'])} changes by sitemaps and feeds, {number(counts['put_forward'])} put forward"
        f" ({number(counts['right'])} right, {number(counts['wrong'])} wrong), {number(ignored)} not acted on"
    )
