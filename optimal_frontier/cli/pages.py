"""``pages``: a table of pages."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from optimal_frontier.cli.estimates import change_rates, prior_of
from optimal_frontier.cli.output import duration, number, show_json, show_table
from optimal_frontier.cli.project import Options, find_workplace, opened_store
from optimal_frontier.errors import StateError
from optimal_frontier.frontier.deadlines import LivePrice, deadlines, with_update_times
from optimal_frontier.state.columns import ACTIVE, RETIRED, STATE_NAMES
from optimal_frontier.state.reading import TableReading, read_queued, read_table, read_urls
from optimal_frontier.state.store import Store
from optimal_frontier.state.update_times import read_update_times


@click.command()
@click.option("--sort", type=click.Choice(["rate", "importance", "change_rate", "lateness"]), default="rate", show_default=True)
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="Rows; 0 for all.")
@click.option("--host", metavar="HOST", help="Only pages of this host (with its port, unless that is the default).")
@click.option("--state", type=click.Choice(["active", "retired"]), help="Only pages in this state.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def pages(options: Options, sort: str, limit: int, host: str | None, state: str | None, as_json: bool) -> None:
    """List pages, the largest of what is sorted by first."""
    with opened_store(find_workplace(options)) as store:
        rows = list_pages(store, sort, limit, host, state)
    if as_json:
        show_json(rows)
        return
    names = ("importance", "change rate/s", "rate/s", "interval", "due in", "late", "visits", "changes", "state", "url")
    show_table(names, map(_cells, rows), left=2)


def list_pages(store: Store, sort: str, limit: int, host: str | None, wanted: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of ``pages --json``; with ``wanted`` only pages in that state.

    Times are in seconds, rates per second; None where nothing is known yet. ``deadline`` is in seconds since the epoch,
    ``due_in_seconds`` below 0 once it has passed.

    Raises
    ------
    StateError
        No page of the host is known.
    """
    table = read_table(store)
    state = table.page["state"]
    chosen = np.flatnonzero((state == ACTIVE) | (state == RETIRED))
    if host is not None:
        numbers = [at for at, name in table.hosts.items() if name == host.lower()]
        chosen = chosen[np.isin(table.page["host"][chosen], numbers)]
        if not len(chosen):
            raise StateError(f"no page of host {host!r} is known")
    if wanted is not None:
        chosen = chosen[state[chosen] == STATE_NAMES.index(wanted)]
    change_rate = change_rates(table.seen[chosen], prior_of(table.published), table.priors[table.page["pattern"][chosen]])
    due = _deadlines(store, table, chosen) - table.now
    late = np.where(table.leased[chosen] | np.isnan(due), -np.inf, -due)
    planned = table.plan["base_time"][chosen] > 0
    rate = np.where(planned & (state[chosen] == ACTIVE), table.plan["rate"][chosen], np.nan)
    key = {"rate": rate, "importance": table.page["importance"][chosen], "change_rate": change_rate, "lateness": late}[sort]
    # Stable, so that equal keys come by age; nan last.
    order = np.argsort(-np.where(np.isnan(key), -np.inf, key), kind="stable")
    order = order[: limit or len(order)]
    slots = chosen[order]
    rows = []
    for at, slot, url in zip(order.tolist(), slots.tolist(), read_urls(store, slots.tolist()), strict=True):
        page, seen = table.page[slot], table.seen[slot]
        rows.append(
            {
                "url": url,
                "host": table.hosts.get(int(page["host"])),
                "importance": float(page["importance"]),
                "change_rate": float(change_rate[at]),
                "rate": float(rate[at]),
                "interval": 1 / float(rate[at]) if rate[at] > 0 else None,
                "deadline": table.now + float(due[at]),
                "due_in_seconds": float(due[at]),
                "lateness_seconds": max(0.0, float(late[at])),
                "visits": int(seen["visits"]),
                "observations": int(seen["observations"]),
                "changes": int(seen["changes"]),
                "state": STATE_NAMES[page["state"]],
                "in_flight": bool(table.leased[slot]),
            }
        )
    return [{name: None if isinstance(v, float) and not np.isfinite(v) else v for name, v in row.items()} for row in rows]


def _deadlines(store: Store, table: TableReading, chosen: np.ndarray) -> np.ndarray:
    page, seen, plan = table.page[chosen], table.seen[chosen], table.plan[chosen]
    due = np.where(page["state"] == ACTIVE, deadlines(page, seen, plan, table.index[chosen], LivePrice.of(table.price), chosen), np.nan)
    times = read_update_times(store)
    timed = with_update_times(due, times, chosen, page, seen, plan, times.bought)
    due = np.where(page["state"] == ACTIVE, timed, due)
    # Between its first visit and its first plan a page's deadline stands in the queue alone.
    unplanned = np.flatnonzero((page["state"] == ACTIVE) & (seen["visits"] > 0) & (plan["base_time"] == 0))
    if len(unplanned):
        due[unplanned] = read_queued(store, chosen[unplanned], page["host"][unplanned])
    return due


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
