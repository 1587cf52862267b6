"""The price law against the first edition's two dispatchers: one harness, the same worlds, seeds and slots.

    PYTHONPATH=$PWD python benchmarks/price_against_first_edition.py --seeds 8             # learned change rates
    PYTHONPATH=$PWD python benchmarks/price_against_first_edition.py --seeds 4 --known     # known ones

Every cell is a world (A, B, C; 1,000 pages, 200 days, an event on day 110) and what befalls it: nothing, half and double the
bandwidth, an outage of nine days, 20 hosts with a limit, a tenth of the pages pinned, minima of 1.5 budgets, change rates that jump. Pages
are fetched one at a time, with 16 in flight, and (price only) 16 at a time. The figure is the freshness from the event on, transient
included, as a share of what evenly spaced visits reach at known rates and the real bandwidth; under overload it is the visits of the page
that has fewest, as a share of even ones (parts of intervals count as parts).

The first edition runs from git, in a process of its own with its own package on the path; its credit is ``edf``, its live price ``index``.
``index`` has one queue for all hosts in its simulation, so it has no figure for hosts. Results are kept as JSON lines (``--keep``), and
what is there is not run again. ``difference`` is price less the better of the two, with twice its standard error over seeds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

FIRST_EDITION = "f1527f6"
HERE = Path(__file__).resolve().parent
#: World, cell, fetches in flight, fetches handed out at once.
Key = tuple[str, str, int, int]


@contextlib.contextmanager
def first_edition() -> Iterator[str]:
    """A tree of the first edition for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "-C", HERE.parent, "archive", FIRST_EDITION, "optimal_frontier"], check=True, capture_output=True)
        subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
        yield folder


def run(script: str, package: str | Path, options: list[str], target: Path) -> None:
    """Run crawls with a package on the path; what they print is kept."""
    environment = {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{HERE}"}
    partial = target.with_suffix(".partial")
    with partial.open("w") as lines:
        subprocess.run([sys.executable, HERE / script, *options], check=True, env=environment, stdout=lines)
    partial.replace(target)


def read(paths: list[Path], known: bool) -> dict[Key, dict[str, dict[int, float]]]:
    """Fractions by cell, dispatcher and seed."""
    found: dict[Key, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        for line in path.read_text().splitlines():
            one = json.loads(line)
            if one["known"] == known:
                found[one["world"], one["cell"], one["flight"], one.get("batch", 1)][one["run"]][one["seed"]] = one["fraction"]
    return found


def show(found: dict[Key, dict[str, dict[int, float]]]) -> None:
    print(f"{'world':5} {'cell':11} {'fetches':12} {'edf':>7} {'index':>7} {'price':>7}  difference        seeds")
    for (world, cell, flight, batch), runs in sorted(found.items(), key=lambda item: (item[0][2:], item[0][:2])):
        if "price" not in runs:
            continue
        rivals = {name: found[world, cell, flight, 1][name] for name in ("edf", "index") if name in found[world, cell, flight, 1]}
        seeds = sorted(set(runs["price"]).intersection(*rivals.values()))
        if not seeds:
            continue
        compared = rivals | {"price": runs["price"]}
        means = {name: float(np.mean([values[seed] for seed in seeds])) for name, values in compared.items()}
        best = max(rivals, key=lambda name: means[name], default="price")
        apart = np.array([runs["price"][seed] - compared[best][seed] for seed in seeds])
        error = 2.0 * apart.std(ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else float("nan")
        fetches = "one at a time" if flight == batch == 1 else f"{flight} in flight" if batch == 1 else f"{batch} at a time"
        cells = " ".join(f"{means[name]:7.4f}" if name in means else f"{'-':>7}" for name in ("edf", "index", "price"))
        print(f"{world:5} {cell:11} {fetches:13} {cells}  {apart.mean():+.4f} ± {error:.4f}  {len(seeds):5}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--known", action="store_true", help="Change rates are known.")
    parser.add_argument("--cells", nargs="+", help="These only.")
    parser.add_argument("--keep", type=Path, default=Path("price_against_first_edition"), help="Folder of results.")
    options = parser.parse_args()
    options.keep.mkdir(exist_ok=True)
    passed = [
        "--seeds",
        str(options.seeds),
        *(["--known"] if options.known else []),
        *(["--cells", *options.cells] if options.cells else []),
    ]
    name = "_".join(["known" if options.known else "learned", str(options.seeds), *(options.cells or [])])
    first, price = options.keep / f"first_{name}.jsonl", options.keep / f"price_{name}.jsonl"
    if not first.exists():
        with first_edition() as folder:
            run("first_edition_crawls.py", folder, passed, first)
    if not price.exists():
        run("second_edition_crawls.py", HERE.parent, passed, price)
    show(read([first, price], options.known))


if __name__ == "__main__":
    main()
