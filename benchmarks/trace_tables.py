"""Tables of docs/maths.md on recorded changes, as Markdown: from what `simulate trace FILE... --json` says. `make evidence` runs both.

python benchmarks/trace_tables.py ANSWER.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


def rows_of(answer: dict[str, Any], budget: str) -> list[list[str]]:
    """Return head and rows of the table of a budget: traces side by side, geometric means last."""
    crawls = [crawl for crawl in answer["crawls"] if crawl["budget"] == budget]
    found = {(one["world"], one["policy"]): one for one in answer["standings"]}
    means = {one["policy"]: one["of_uniform"] for one in answer["means"] if one["budget"] == budget}
    policies = dict.fromkeys(policy for _, policy in found)
    even = [found.get((crawl["world"], "uniform")) for crawl in crawls]
    rows = [
        ["", *(crawl["trace"] for crawl in crawls), *(["mean"] if means else [])],
        ["pages; changes", *(f"{crawl['pages']:,}; {crawl['changes']:,}" for crawl in crawls), *([""] if means else [])],
        [
            "uniform's staleness",
            *(f"{100 - 100 * one['freshness']['mean']:.1f}%" if one else "–" for one in even),
            *([""] if means else []),
        ],
    ]
    for policy in policies:
        if policy != "uniform":
            shares = [found[crawl["world"], policy]["of_uniform"] for crawl in crawls]
            rows.append([f"`{policy}`", *map(_share, shares), *([f"{means[policy]:.2f}"] if policy in means else [])])
    return rows


def _share(share: dict[str, float | None]) -> str:
    if share["mean"] is None:
        return "–"
    return f"{share['mean']:.2f}" + ("" if share["error"] is None else f" ±{share['error']:.2f}")


def main() -> None:
    """Print a table for each budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answer", type=Path)
    answer = json.loads(parser.parse_args().answer.read_text())
    for budget in dict.fromkeys(crawl["budget"] for crawl in answer["crawls"]):
        head, *rows = rows_of(answer, budget)
        print(f"{budget}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
        print(*(f"| {' | '.join(row)} |" for row in rows), sep="\n", end="\n\n")


if __name__ == "__main__":
    main()
