"""Crawl a changing site on loopback and hold the result against the truth; ``make example`` calls this.

Starts the site (a process of its own), runs ``scrapy crawl pages`` against it, and reports from the site's record how fresh the
copies were kept, beside the best possible and plain uniform revisiting. Works from any directory, starts from nothing every time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

PROJECT = Path(__file__).resolve().parent
sys.path.insert(0, str(PROJECT))

from demo.display import Follower, progress, results_table  # noqa: E402  the path above comes first
from demo.news import WORLDS  # noqa: E402
from demo.processes import Crawl, RunError, running_site  # noqa: E402
from demo.record import LogFollower  # noqa: E402
from demo.report import Report, measure  # noqa: E402
from demo.site import feed_urls  # noqa: E402
from demo.world import MARGIN_S, SECONDS  # noqa: E402
from rich.console import Console  # noqa: E402

from optimal_frontier.settings.table import TABLE  # noqa: E402

PICTURE = PROJECT / "freshness.png"

_POLL_S = 0.25
#: The crawl closes this long after the measured window, so that its end is not in it.
_OVERTIME_S = 1.0
#: Time allowed for the crawl to make its first fetch, and to close.
_START_S = 45.0
_CLOSE_S = 30.0


def main(arguments: list[str] | None = None) -> int:
    """Run the example; returns the exit code."""
    options = _parse(arguments)
    console = Console(stderr=options.json)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the processes are stopped in order
    data = Path(tempfile.mkdtemp(prefix="optimal_frontier-example-"))
    try:
        report, trouble = _run(options, data, console)
    except RunError as error:
        print(f"example: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("example: stopped before its end, nothing to report", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
        if options.keep:
            print(f"state, crawl log and the site's record are kept in {data}", file=sys.stderr)
        else:
            shutil.rmtree(data, ignore_errors=True)

    if options.json:
        print(
            json.dumps(
                report.figures() | {"world": options.world, "alone": options.alone, "seed": options.seed, "errors": len(trouble)}, indent=2
            )
        )
    else:
        console.print(results_table(report))
        if not options.no_plot and find_spec("matplotlib"):
            console.print(f"picture: {PICTURE}", highlight=False, soft_wrap=True)
    if trouble:
        print(f"the crawl logged {len(trouble)} errors:", *trouble[:10], sep="\n  ", file=sys.stderr)
    return 0


def _run(options: argparse.Namespace, data: Path, console: Console) -> tuple[Report, list[str]]:
    """Site, crawl, figures, picture."""
    world = WORLDS[options.world](options.seed, options.seconds)
    log = LogFollower(data / "site.jsonl")
    with running_site(options.seed, options.seconds, data / "site.jsonl", options.world) as address:
        follower = Follower(world, log, address.epoch)
        crawl = Crawl(world, address, data, options.seconds + _OVERTIME_S, _settings(options, feed_urls(world, address.ports)))
        try:
            console.print(f"{world.pages} pages that change on {len(address.ports)} hosts; {options.seconds:g} s. Look inside meanwhile:")
            console.print(f"  optimal-frontier --project {PROJECT} --redis-url {crawl.redis_url} status", highlight=False, soft_wrap=True)
            first = _follow(follower, crawl, options.seconds, world.pages, console)
            crawl.finish(_CLOSE_S)
        finally:
            crawl.stop()
        time.sleep(2 * _POLL_S)  # the site writes its log a few times a second
        follower.update()
        trouble = crawl.trouble()

    record = log.record()
    try:
        report = measure(world, record, first + options.seconds / 2, first + options.seconds)
    except ValueError as error:
        raise RunError(f"{error}\n{crawl.tail()}") from None
    if not options.no_plot:
        if find_spec("matplotlib"):
            from demo.plot import plot_run

            plot_run(world, record, report, PICTURE)
        else:
            print("no picture: matplotlib is not installed (pip install 'optimal-frontier[plot]')", file=sys.stderr)
    return report, trouble


def _settings(options: argparse.Namespace, feeds: list[str]) -> list[str]:
    """Return the settings of the crawl: by --alone nothing that tells of other pages' changes, otherwise the feeds; then the user's."""
    chosen = [f"OPTIMAL_FRONTIER_SOURCES={' '.join(feeds)}"] if feeds and not options.alone else []
    if options.alone and any(setting.name == "NEIGHBOURHOODS" for setting in TABLE):
        chosen.append("OPTIMAL_FRONTIER_NEIGHBOURHOODS=False")
    return chosen + options.settings


def _follow(follower: Follower, crawl: Crawl, seconds: float, pages: int, console: Console) -> float:
    """Show the run until its window is over; returns the time of the first fetch."""
    give_up = follower.now() + _START_S
    with progress(console, seconds, pages) as show:
        while True:
            ended = crawl.ended()
            snapshot = follower.update()
            if follower.first is None:
                if ended or follower.now() > give_up:
                    raise RunError(f"the crawl made no fetch{'' if ended else f' in {_START_S:.0f} s'}\n{crawl.tail()}")
            else:
                show(snapshot)
                if snapshot.elapsed >= seconds:
                    return follower.first
                # Shortly before the end it may be closing in good order: its timeout runs from the spider's opening.
                if ended and snapshot.elapsed < seconds - _OVERTIME_S:
                    raise RunError(f"the crawl ended after {snapshot.elapsed:.1f} of {seconds:g} s\n{crawl.tail()}")
            time.sleep(_POLL_S)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="length of the run; the last half of it is measured (default: %(default)g)"
    )
    parser.add_argument(
        "--world", choices=sorted(WORLDS), default="independent", help="pages that change on their own, or together (default: %(default)s)"
    )
    parser.add_argument("--alone", action="store_true", help="each page by its own history: no neighbourhoods, no feeds")
    parser.add_argument("--seed", type=int, default=1, help="which world (default: %(default)d)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON to stdout, all else to stderr")
    parser.add_argument("--no-plot", action="store_true", help=f"do not write {PICTURE.name}")
    parser.add_argument("--keep", action="store_true", help="keep the crawl's state and the logs, and say where")
    parser.add_argument(
        "-s", dest="settings", metavar="NAME=VALUE", action="append", default=[], help="a setting for the crawl, as in scrapy crawl"
    )
    options = parser.parse_args(arguments)
    if not 5 <= options.seconds <= 86400 - MARGIN_S:
        parser.error("--seconds must be at least 5 and less than a day")
    if options.seed < 0:
        parser.error("--seed must not be negative")
    return options


if __name__ == "__main__":
    sys.exit(main())
