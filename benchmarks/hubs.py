"""Time to discovery beside freshness in a world of 20 hubs and 3,000 articles, at a tenth of the budget that would follow everything.

    python benchmarks/hubs.py [--seeds 8] [--days 12]

Uniform visits, plans without and with the value of discovery (change rates and yields learned), and the clairvoyant of that objective. Some
seconds a seed and policy.
"""

from __future__ import annotations

import argparse

from optimal_frontier.cli.hub_command import show_hubs
from optimal_frontier.simulation.hub_worlds import HUB_POLICIES, HubWorld, compare_hubs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--days", type=float, default=12.0)
    chosen = parser.parse_args()
    show_hubs(list(compare_hubs(HubWorld(), HUB_POLICIES, range(chosen.seeds), chosen.days)))


if __name__ == "__main__":
    main()
