"""What listening to noisy signals gains, and what liars cost.

    python benchmarks/signals.py [--seeds 8] [--days 200] [--pages 1000]

Worlds: recall 0.6 and as many false signals as true ones (policies within 1% of the optimum that knows the sources); the same with other
false signals, late ones, repeated ones; sources that signal at random (at most 0.2 points below not listening); sitemaps that say "now" of
all entries whenever they are read. The whole takes 25 minutes of one core.
"""

from __future__ import annotations

import argparse
from typing import Final

from optimal_frontier.cli.signal_command import show_signals
from optimal_frontier.simulation.signal_crawl import SIGNAL_POLICIES, SignalPolicy, compare_signals
from optimal_frontier.simulation.signal_worlds import SignalWorld

_FEW: Final[tuple[SignalPolicy, ...]] = ("without", "known", "learned", "rates", "rates learned")
_WORLDS: Final[tuple[tuple[str, SignalWorld, tuple[SignalPolicy, ...]], ...]] = (
    ("recall 0.6, one false signal for each true one, by changes", SignalWorld(), SIGNAL_POLICIES),
    ("the same, false ones to all pages alike", SignalWorld(false_by="pages"), _FEW),
    ("recall 0.9, one false signal for ten true ones", SignalWorld(recall=0.9, false=0.1), SIGNAL_POLICIES),
    ("signals at random, as many as changes", SignalWorld(recall=0.0), _FEW),
    ("signals at random, to all pages alike", SignalWorld(recall=0.0, false_by="pages"), _FEW),
    ("lastmod is now: all entries, six times a day", SignalWorld(recall=0.0, false=12.0, false_by="readings"), _FEW),
    ("half a day late", SignalWorld(delay=0.5), _FEW),
    ("each true signal twice", SignalWorld(repeats=2, delay=0.02), _FEW),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--days", type=float, default=200.0)
    parser.add_argument("--pages", type=int, default=1000)
    chosen = parser.parse_args()
    for title, world, policies in _WORLDS:
        print(f"{title}\n", flush=True)
        sized = SignalWorld(**{**vars(world), "pages": chosen.pages})
        show_signals(list(compare_signals(sized, policies, range(chosen.seeds), chosen.days)))
        print(flush=True)


if __name__ == "__main__":
    main()
