"""Changes of templates: what is stored of them, and which sections they are of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from optimal_frontier.cli.output import moment, number
from optimal_frontier.detection.section_history import SectionHistory, key_of, marks_of
from optimal_frontier.frontier.judging.template_events import is_event, parse_name
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.reading import StatusReading

#: Pages that must have the text of a section in common before it is taken for one of the template, and the share of all pages.
_LEAST_PAGES: Final = 3
_LEAST_SHARE: Final = 0.5


def template_changes(namespace: Namespace, host: str) -> list[float]:
    """Return when the template of a host changed, seconds since the epoch, oldest first; of the last 30 days."""
    k = namespace.partition_of(host)
    found = map(parse_name, namespace.command("ZRANGE", namespace.key("flagged", k), 0, -1, partition=k))
    return sorted(one[2] for one in found if one is not None and one[0] == host)


def template_line(changes: Sequence[float]) -> str:
    """Say how often and when a template changed."""
    times = "once, at" if len(changes) == 1 else f"{number(len(changes))} times, last at"
    return f"changed {times} {moment(changes[-1])}; a page that changed by nothing else counts as unchanged"


def shared_sections(histories: Sequence[SectionHistory]) -> list[dict[str, Any]]:
    """Return the sections that differed between visits, and now have one text in common on most of some pages.

    Parameters
    ----------
    histories : sequence of SectionHistory
        Of pages of one host.

    Returns
    -------
    list of dict
        ``selector``; ``pages`` that have it; ``shared``: those whose text is the most frequent one; ``changed``: in how many pairs of
        visits it differed.
    """
    texts: dict[bytes, Counter[bytes]] = defaultdict(Counter)
    for history in histories:
        for key, text in marks_of(history.marks).items():
            texts[key][text] += 1
    changed: Counter[str] = Counter()
    for history in histories:
        for row in history.rows:
            changed[row.selector] += row.differed
    found = []
    for selector, times in changed.most_common():
        of = texts[key_of(selector)]
        shared = max(of.values(), default=0)
        if shared >= max(_LEAST_PAGES, _LEAST_SHARE * len(histories)):
            found.append({"selector": selector, "pages": of.total(), "shared": shared, "changed": times})
    return found


def template_facts(reading: StatusReading) -> dict[str, int]:
    """Return the fields of ``status --json`` about changes of templates."""
    names = [name for partition in reading.partitions for name in partition.flagged if is_event(name)]
    hosts = {found[0] for name in names if (found := parse_name(name)) is not None}
    return {
        "template_events": len(names),
        "template_hosts": len(hosts),
        "template_changes": reading.counts().get("template_changes", 0),
    }


def template_rows(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the line of ``status`` about changes of templates; none where there were none."""
    events, hosts, visits = (answer[name] for name in ("template_events", "template_hosts", "template_changes"))
    if not events:
        return []
    said = f"{number(events)} {'change' if events == 1 else 'changes'} on {number(hosts)} {'host' if hosts == 1 else 'hosts'}"
    return [("templates", f"{said}; {number(visits)} visits showed nothing else, and count as unchanged")]
