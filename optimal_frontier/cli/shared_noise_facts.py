"""Noise that pages share: what is stored of it, and how it is told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from optimal_frontier.cli.output import moment, number, printable
from optimal_frontier.frontier.judging.shared_noise import OF_HOST, Shared, latest_of
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.reading import StatusReading


def shared_noise(namespace: Namespace, host: str) -> dict[int, Shared]:
    """Return what is left out of pages of a host: by number of the pattern, or `OF_HOST` for those of which no pattern has its own."""
    k = namespace.partition_of(host)
    found = latest_of(namespace.command("ZRANGE", namespace.key("flagged", k), 0, -1, partition=k))
    return {pattern: shared for (of, pattern), shared in found.items() if of == host}


def of_page(found: dict[int, Shared], pattern: int) -> list[str]:
    """Return what is left out of a page, by its pattern."""
    shared = found.get(pattern, found.get(OF_HOST))
    return [] if shared is None else list(shared.left_out)


def shared_counts(reading: StatusReading) -> dict[str, int]:
    """Return of how many patterns something is left out, and on how many hosts: of their patterns, or of all their pages."""
    found = latest_of(name for partition in reading.partitions for name in partition.flagged)
    return {"shared_patterns": sum(pattern != OF_HOST for _, pattern in found), "shared_hosts": len({host for host, _ in found})}


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
