"""Queries for readers: what is wrong with a page or a host, and other names of a page."""

from __future__ import annotations

from dataclasses import dataclass

from optimal_frontier.state.health import is_held, parse_health
from optimal_frontier.state.store import Store

#: Aliases of a page that are read, newest first.
_MOST_ALIASES = 100


@dataclass(frozen=True)
class PageTroubles:
    """What is wrong with a page, and where it was before.

    Attributes
    ----------
    failed_by : str
        Why its last attempt failed, as in the counters ``failures_...``; empty if it did not.
    is_host_held : bool
        Its host answers 404 or 410 for most of its pages.
    fingerprint : bytes
        Its identity: another than the one that was asked for if that is an alias.
    aliases : tuple of str
        URLs from which it has moved, newest first.
    """

    failed_by: str = ""
    is_host_held: bool = False
    fingerprint: bytes = b""
    aliases: tuple[str, ...] = ()


def read_page_troubles(store: Store, fingerprint: bytes, slot: int, host: int) -> PageTroubles:
    """Read them for the page at ``slot``, which is known by ``fingerprint``."""
    failed, health, alias, names = store.commands(
        [
            ["HGET", store.key("failed"), slot],
            ["HGET", store.key("health"), host],
            ["HGET", store.key("aliases"), fingerprint],
            ["LRANGE", store.key(f"aliased:{slot}"), -_MOST_ALIASES, -1],
        ]
    )
    kept = store.command("HMGET", store.key("aliases"), *names) if names else []
    return PageTroubles(
        failed.decode() if failed else "",
        health is not None and is_held(*parse_health(health)),
        bytes(alias[:20]) if alias else fingerprint,
        tuple(value[20:].decode("utf-8", "replace") for value in reversed(kept) if value is not None),
    )


def read_held_hosts(store: Store) -> list[str]:
    """Return the names of hosts that are held."""
    numbers = [number for number, text in store.hash("health").items() if is_held(*parse_health(text.encode()))]
    names = store.command("HMGET", store.key("hosts:names"), *numbers) if numbers else []
    return sorted(name.decode("utf-8", "replace") for name in names if name is not None)
