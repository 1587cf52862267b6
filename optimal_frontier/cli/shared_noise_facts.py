"""Noise that pages share: what is stored of it, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from optimal_frontier.cli.output import moment, number, printable
from optimal_frontier.frontier.judging.shared_noise import OF_HOST, Shared, latest_of
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.reading import StatusReading
from optimal_frontier.state.rows import Row


def shared_noise(namespace: Namespace, host: str) -> list[Shared]:
    """Return what is left out of pages of a host, by pattern and, where options of fingerprints differ, by these."""
    k = namespace.partition_of(host)
    found = latest_of(namespace.command("ZRANGE", namespace.key("flagged", k), 0, -1, partition=k))
    return [shared for kind, shared in sorted(found.items()) if kind.host == host and shared.left_out]


def of_page(found: Iterable[Shared], row: Row) -> list[str]:
    """Return what was left out of a page at its last visit."""
    of = (shared for shared in found if shared.kind.pattern in (row.pattern, OF_HOST) and shared.tag == row.tag)
    return [name for shared in of for name in shared.left_out]


def shared_counts(reading: StatusReading) -> dict[str, int]:
    """Return of how many patterns something is left out, and on how many hosts: of their patterns, or of all their pages."""
    found = latest_of(name for partition in reading.partitions for name in partition.flagged).values()
    kinds = [shared.kind for shared in found if shared.left_out]
    patterns = {(kind.host, kind.pattern) for kind in kinds if kind.pattern != OF_HOST}
    return {"shared_patterns": len(patterns), "shared_hosts": len({kind.host for kind in kinds})}


def shared_words(counts: dict[str, int]) -> str:
    """Say it for ``status``; empty where there is nothing.

    Examples
    --------
    >>> shared_words({"shared_patterns": 2, "shared_hosts": 1})
    'sections that differ within seconds are left out on 1 host, by 2 patterns'
    """
    patterns, hosts = counts["shared_patterns"], counts["shared_hosts"]
    if not hosts:
        return ""
    by = f", by {number(patterns)} {'pattern' if patterns == 1 else 'patterns'}" if patterns else ""
    return f"sections that differ within seconds are left out on {number(hosts)} {'host' if hosts == 1 else 'hosts'}{by}"


def page_words(left_out: Iterable[str]) -> str:
    """Say it for ``page``."""
    return f"of this page and others like it does not count, as it differs within seconds: {', '.join(map(printable, left_out))}"


def pattern_line(entry: dict[str, Any]) -> str:
    """Say it for ``noise``, of one pattern or of all of a host."""
    of = f"pages of {entry['host']}" if entry["pattern"] is None else f"{entry['pattern']} of {entry['host']}"
    return f"left out of {printable(of)} since {moment(entry['since'])}: {', '.join(map(printable, entry['left_out']))}"
