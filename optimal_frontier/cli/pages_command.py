"""``pages``: a table of pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from optimal_frontier.cli.host_naming import HOST_HELP, host_given, partitions_of_host, unknown_host
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import duration, number, show_json, show_table
from optimal_frontier.cli.page_facts import change_rates
from optimal_frontier.cli.project import find_workplace, opened_namespace
from optimal_frontier.frontier.judging.hubs import worth_of
from optimal_frontier.frontier.judging.update_times import interval_of_timed, republished
from optimal_frontier.frontier.judging.waits import Terms, intervals_of_rows
from optimal_frontier.scheduling.exploration import NEVER_S
from optimal_frontier.scheduling.numbers import Numbers, deadlines
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.reading import read_now, read_published
from optimal_frontier.state.rows import ACTIVE, HUB, LISTED_STATES, RETIRED, STATE_NAMES, TIMED, Row
from optimal_frontier.state.scanning import StoredPages, batches, read_host_names, read_pages, read_scores, read_urls

#: An identity, as numpy can sort it.
_NAME = np.dtype([("first", ">u8"), ("rest", ">u4")])
SORTED_BY = ("rate", "importance", "change_rate", "lateness")


@click.command()
@click.option("--sort", type=click.Choice(SORTED_BY), default="rate", show_default=True)
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Rows; 0 for all.")
@click.option("--host", metavar="HOST", callback=host_given, help=f"Only pages of this host, {HOST_HELP}.")
@click.option("--state", type=click.Choice(LISTED_STATES), help="Only pages in this state.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def pages(options: Options, sort: str, limit: int, host: str | None, state: str | None, as_json: bool) -> None:
    """List pages, the largest of what is sorted by first."""
    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        rows = list_pages(namespace, workplace.settings, sort, limit, host, state)
    if as_json:
        show_json(rows)
        return
    if not rows:
        click.echo("no pages")
        return
    names = ("importance", "change rate/s", "rate/s", "interval", "due in", "late", "visits", "changes", "state", "url")
    show_table(names, map(_cells, rows), left=2)


@dataclass(frozen=True)
class _Part:
    """The pages of a partition that are listed: arrays of shape (n,)."""

    now: float
    hosts: dict[int, str]
    table: StoredPages
    change_rate: NDArray[np.float64]
    interval: NDArray[np.float64]
    deadline: NDArray[np.float64]
    leased: NDArray[np.bool_]

    @property
    def late(self) -> NDArray[np.float64]:
        return np.where(self.leased | np.isnan(self.deadline), -np.inf, self.now - self.deadline)

    def key(self, sort: str) -> NDArray[np.float64]:
        """What pages are sorted by."""
        with np.errstate(divide="ignore"):
            values = {
                "rate": 1.0 / self.interval,
                "importance": self.table.heads["importance"].astype(np.float64),
                "change_rate": self.change_rate,
                "lateness": self.late,
            }[sort]
        return np.where(np.isnan(values), -np.inf, values)


def list_pages(
    namespace: Namespace, settings: FrontierSettings, sort: str, limit: int, host: str | None = None, wanted: str | None = None
) -> list[dict[str, Any]]:
    """Return the rows of ``pages --json``; with ``wanted`` only pages in that state.

    Times are in seconds, rates per second; None where nothing is known yet. ``deadline`` is in seconds since the epoch,
    ``due_in_seconds`` below 0 once it has passed.

    Raises
    ------
    StateError
        No page of the host is known.
    """
    meant = dict.fromkeys(range(namespace.partitions)) if host is None else partitions_of_host(namespace, host)
    parts = [_read_part(namespace, k, settings, hosts) for k, hosts in meant.items()]
    if host is not None and not any(len(part.table.pages) for part in parts):
        raise unknown_host(host)
    keys = [part.key(sort) for part in parts]
    chosen = []
    for at, part in enumerate(parts):
        state = part.table.heads["state"]
        listed = np.flatnonzero((state == ACTIVE) | (state == RETIRED) if wanted is None else state == STATE_NAMES.index(wanted))
        # Equal keys come in the order of their identities, which is the same each time.
        names = np.frombuffer(part.table.pages[listed].tobytes(), _NAME)
        best = listed[np.lexsort((names["rest"], names["first"], -keys[at][listed]))][: limit or len(listed)]
        chosen += [(-float(keys[at][place]), part.table.pages[place].tobytes(), at, place) for place in best.tolist()]
    chosen = sorted(chosen)[: limit or len(chosen)]
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    for at, part in enumerate(parts):
        places = [place for _, _, of, place in chosen if of == at]
        rows |= {(at, place): row for place, row in zip(places, _rows(namespace, part, places), strict=True)}
    return [rows[at, place] for _, _, at, place in chosen]


def _read_part(namespace: Namespace, k: int, settings: FrontierSettings, meant: dict[int, str] | None) -> _Part:
    """Read a partition; with names of hosts only the pages of these."""
    table = read_pages(namespace, k)
    # What a request states counts from the next visit on, or the next plan.
    table.heads["importance"] = np.where(table.stated > 0, table.stated, table.heads["importance"])
    if meant is not None:
        table = table.chosen(np.isin(table.heads["host"], list(meant)))
    # After the pages: each of them has its host.
    hosts = read_host_names(namespace, k) if meant is None else meant
    published, log_price = read_published(namespace, k)
    now, heads = read_now(namespace, k), table.heads
    terms = Terms(log_price, published, settings)
    rates = change_rates(heads, published)
    intervals = intervals_of_rows(heads, np.nan_to_num(rates), terms, _yielded(namespace, table, settings))
    for at, interval in _timed_intervals(namespace, table, hosts, terms):
        intervals[at] = interval
    intervals[intervals >= NEVER_S] = np.nan
    visited = (heads["state"] == ACTIVE) & (heads["b"] > 0)
    numbers_of = Numbers(*(heads[name].astype(np.float64) for name in ("a", "s", "e", "l")))  # type: ignore[arg-type]
    due = np.where(visited, deadlines(heads["b"] / 1e6, numbers_of, log_price), np.nan)
    scores = np.array([np.nan if score is None else score for score in read_scores(namespace, _identities(table), k)])
    leased = (scores % 2 == 1) & (scores > now * 1e6)
    return _Part(now, hosts, table, rates, intervals, np.where(due < NEVER_S, due, np.nan), leased)


def _yielded(namespace: Namespace, table: StoredPages, settings: FrontierSettings) -> NDArray[np.float64]:
    """Return the importance of the new pages that each page yields a second."""
    found = np.zeros(len(table.heads))
    for part in batches(np.flatnonzero(table.heads["flags"] & HUB > 0).tolist()):
        pages_ = [table.pages[at].tobytes() for at in part]
        memories = namespace.command("HMGET", namespace.key("memory", table.partition), *pages_, partition=table.partition)
        found[part] = [worth_of(Memory.readable(raw), settings) for raw in memories]
    return found


def _timed_intervals(namespace: Namespace, table: StoredPages, hosts: dict[int, str], terms: Terms) -> Iterator[tuple[int, float]]:
    """Yield place and mean interval of pages with update times."""
    heads, k = table.heads, table.partition
    timed = np.flatnonzero((heads["flags"] & TIMED > 0) & (heads["state"] == ACTIVE) & (heads["visits"] > 0))
    for part in batches(timed.tolist()):
        pages_ = [table.pages[at].tobytes() for at in part]
        urls = read_urls(namespace, pages_, [hosts.get(int(heads["host"][at]), "") for at in part], k)
        memories = namespace.command("HMGET", namespace.key("memory", k), *pages_, partition=k)
        for at, url, raw in zip(part, urls, memories, strict=True):
            timetable = terms.settings.rules.of(url).update_times
            if timetable is not None:
                yield at, interval_of_timed(republished(timetable, Memory.readable(raw)), Row._make(heads[at].item()), terms)


def _rows(namespace: Namespace, part: _Part, places: Sequence[int]) -> Iterator[dict[str, Any]]:
    heads = part.table.heads
    hosts, late = [part.hosts.get(int(heads["host"][at]), "") for at in places], part.late
    urls = read_urls(namespace, [part.table.pages[at].tobytes() for at in places], hosts, part.table.partition)
    for at, host, url in zip(places, hosts, urls, strict=True):
        row, interval, due = heads[at], float(part.interval[at]), float(part.deadline[at])
        answer = {
            "url": url or None,
            "host": host or None,
            "importance": float(row["importance"]),
            "change_rate": float(part.change_rate[at]),
            "rate": 1.0 / interval if interval > 0 else math.nan,
            "interval": interval,
            "deadline": due,
            "due_in_seconds": due - part.now,
            "lateness_seconds": max(0.0, float(late[at])),
            "visits": int(row["visits"]),
            "observations": int(row["observations"]),
            "changes": int(row["changes"]),
            "state": STATE_NAMES[row["state"]],
            "in_flight": bool(part.leased[at]),
        }
        yield {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in answer.items()}


def _identities(table: StoredPages) -> list[bytes]:
    raw, width = table.pages.tobytes(), table.pages.dtype.itemsize
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def _cells(row: dict[str, Any]) -> list[str]:
    state = "in flight" if row["in_flight"] else row["state"]
    if row["due_in_seconds"] is None and state == "active":
        state = "new" if not row["visits"] else state
    return [
        number(row["importance"]),
        number(row["change_rate"]),
        number(row["rate"]),
        duration(row["interval"]),
        duration(row["due_in_seconds"]) if not row["lateness_seconds"] else "now",
        duration(row["lateness_seconds"]) if row["lateness_seconds"] else "",
        str(row["visits"]),
        f"{row['changes']}/{row['observations']}",
        state,
        row["url"] or "?",
    ]
