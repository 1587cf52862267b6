"""Real crawls against a server and a network that fail: nothing lost, nothing counted twice, no host and no budget overrun.

    python benchmarks/chaos.py --seconds 120 --crawlers 2 --pages 1000 --hosts 40 --seed 1

A site on loopback (a host for each address of 127.0.0.0/8) records every fetch, and its hosts fail. Crawlers are `scrapy crawl`
processes, and talk to a redis-server, each through a proxy that cuts, delays, tears and swallows. The server is killed, frozen, wiped,
restored and followed by its replica. What goes wrong is drawn from the seed; the last line sums it up, and the exit code says whether it
is as it must be: what a server has lost explains what follows from that, and no more (`Loss`). The parts are in `chaos_crawl/`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from chaos_crawl.run import Plan, run


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="of trouble")
    parser.add_argument("--crawlers", type=int, default=4)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=None, help="names of troubles, see the table in chaos_crawl/troubles.py")
    parser.add_argument("--keep", type=Path, help="folder for logs and data; a temporary one unless given")
    given = parser.parse_args()
    plan = Plan(given.seconds, given.crawlers, given.pages, given.hosts, given.seed, given.only)
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
        return asyncio.run(run(plan, given.keep))
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        return asyncio.run(run(plan, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
