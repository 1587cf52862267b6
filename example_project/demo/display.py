"""What a run shows: progress while it goes on, and the table at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from demo.record import LogFollower
from demo.report import BURST_WINDOW_S, Report
from demo.world import World

#: Seconds between two lines where there is no terminal to redraw.
_LINE_INTERVAL_S = 10.0


class Follower:
    """Follows the site's log: what each copy is now, and whether it is current.

    Parameters
    ----------
    world : World
        Knows the present version of every page.
    log : LogFollower
        The site's log.
    epoch : float
        ``time.monotonic()`` at the site's start.
    """

    def __init__(self, world: World, log: LogFollower, epoch: float) -> None:
        self._world = world
        self._log = log
        self._epoch = epoch
        self._copy = np.zeros(world.pages, dtype=int)
        self.fetches = 0
        self.first: float | None = None

    def now(self) -> float:
        """Seconds after the site's start."""
        return time.monotonic() - self._epoch

    def update(self) -> Snapshot:
        """Read what is new in the log."""
        for at, page, version, *_ in self._log.read_new():
            self.fetches += 1
            self.first = at if self.first is None else self.first
            if version > 0:
                self._copy[int(page)] = int(version)
        now = self.now()
        living = self._world.death > now
        current = np.array([self._world.version(page, now) for page in range(self._world.pages)])
        weight = self._world.importance * living
        fresh = float(weight @ (self._copy == current) / weight.sum())
        elapsed = 0.0 if self.first is None else now - self.first
        return Snapshot(elapsed, self.fetches, int((self._copy > 0).sum()), fresh)


@dataclass(frozen=True)
class Snapshot:
    """The run at one moment: seconds since the first fetch, fetches so far, pages found, share of the copies current by importance."""

    elapsed: float
    fetches: int
    pages: int
    freshness: float

    def line(self, seconds: float, pages: int) -> str:
        """In one line of text."""
        return (
            f"{self.elapsed:5.1f} of {seconds:.0f} s   {self.fetches:5d} fetches   {self.pages:3d} of {pages} pages   "
            f"fresh now {self.freshness:.3f}"
        )


@contextmanager
def progress(console: Console, seconds: float, pages: int) -> Iterator[Callable[[Snapshot], None]]:
    """Show snapshots: a bar on a terminal, a line every ten seconds elsewhere."""
    if not console.is_terminal:
        due = 0.0

        def show_line(snapshot: Snapshot) -> None:
            nonlocal due
            if snapshot.elapsed >= due:
                due += _LINE_INTERVAL_S
                print(snapshot.line(seconds, pages), file=console.file, flush=True)

        yield show_line
        return

    columns = (
        TextColumn("{task.fields[elapsed]:3.0f} s"),
        BarColumn(bar_width=None),
        TextColumn("{task.total:.0f} s"),
        TextColumn("[cyan]{task.fields[fetches]:,}[/] fetches"),
        TextColumn("[cyan]{task.fields[pages]}[/] of {task.fields[of]} pages"),
        TextColumn("fresh now [bold cyan]{task.fields[freshness]:.3f}[/]"),
    )
    with Progress(*columns, console=console, expand=True, transient=True) as bar:
        task = bar.add_task("crawl", total=seconds, elapsed=0.0, fetches=0, pages=0, of=pages, freshness=0.0)

        def show(snapshot: Snapshot) -> None:
            fields = {"fetches": snapshot.fetches, "pages": snapshot.pages, "freshness": snapshot.freshness}
            bar.update(task, completed=min(snapshot.elapsed, seconds), elapsed=min(snapshot.elapsed, seconds), **fields)

        yield show


def _share(report: Report) -> str:
    return f" ({report.not_modified / report.unchanged:.1%})" if report.unchanged else ""


def results_table(report: Report) -> Table:
    """The figures of a run as a table."""
    table = Table(title=f"Last {report.end - report.start:.0f} s, by the site's own record", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("freshness: clairvoyant optimum", f"{report.optimum:.3f}")
    table.add_row(Text("freshness: this crawl", "bold"), Text(f"{report.reached:.3f}", "bold"))
    table.add_row("freshness: uniform revisiting", f"{report.uniform:.3f}")
    table.add_row(Text("share of the gap closed", "bold"), Text(f"{report.gap_closed:.2f}", "bold green"), end_section=True)
    table.add_row("fetches", f"{report.fetches:,} ({report.fetch_rate:.1f}/s)")
    table.add_row("unchanged revisits answered by 304", f"{report.not_modified:,} of {report.unchanged:,}{_share(report)}")
    table.add_row("bytes saved by that", f"{report.bytes_saved / 1e6:.2f} MB of {report.bytes_full / 1e6:.2f} MB")
    table.add_row("pages fetched", f"{report.pages_fetched} of {report.pages}")
    within = report.burst <= report.burst_allowed
    table.add_row(
        f"most fetches in any {BURST_WINDOW_S:.0f} s",
        Text(f"{report.burst} (allowed {report.burst_allowed:.0f})", "" if within else "bold red"),
    )
    return table
