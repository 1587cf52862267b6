"""Changes of templates told from those of pages: how many are taken for changes of pages, and how many of pages' own are hidden.

    python benchmarks/template_events.py [--pages 300] [--seeds 4]

Pages of one host change by themselves, at rates a decade to each side of their mean, and are visited about once a change. ``deploys``:
a block that all have in common changes now and then; shown is the share of those visits with nothing but that which were counted as
changes (least: one in the number of pages), and of the pages' own changes that were hidden. In the other worlds there is no template, and
hidden is the share of all changes: ``stock``: the own change of each page is between two texts that all have in common, ``counters``: it
is from one number to the next, ``lists``: a fifth of the pages are lists of the other pages' prices, in which one price stands on 8 lists.
Each for numbers of pages and least shares of visits around those that count (marked).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from unittest.mock import patch
from zlib import crc32

import numpy as np

from optimal_frontier.detection.block_sums import with_sum
from optimal_frontier.frontier.judging import template_events
from optimal_frontier.frontier.judging.template_events import TemplateEvents
from optimal_frontier.state.messages import Handout
from optimal_frontier.state.rows import Row

#: Pages that show one price, and lists as a share of all pages.
LISTED, LISTS = 8, 0.2
DEPLOYS = 5
CHOICES = ((3, 0.75), (4, 0.5), (4, 0.75), (5, 0.75), (8, 0.75))


#: Number of a page -> its row, and its edition and the sum of its listed prices at the last visit.
Rows = dict[int, tuple[Row, tuple[int, int]]]


def text_hash(*parts: object) -> int:
    return crc32(repr(parts).encode())


@dataclass
class World:
    """Sums of pages over time, and their visits."""

    kind: str
    pages: int
    rng: np.random.Generator
    changed: int = 0
    hidden: int = 0
    touched: int = 0
    counted: int = 0
    state: np.ndarray = field(init=False)

    def run(self, visits_a_page: int = 30) -> None:
        rng, pages = self.rng, self.pages
        self.state = np.zeros(pages, np.int64)
        rates = np.exp(rng.normal(0.0, 1.0, pages))
        lists = int(LISTS * pages)
        shows = [rng.choice(lists, min(LISTED, lists), replace=False) for _ in range(pages)] if self.kind == "lists" else []
        prices = np.zeros(pages, np.int64)
        template, end = 0, float(visits_a_page)
        happenings = [(at, 1, page) for page in range(pages) for at in self._times(rates[page] * 0.7, end)]
        happenings += [(at, 0, page) for page in range(pages) for at in self._visits(rates[page], end)]
        if self.kind == "deploys":
            happenings += [((turn + 0.5) * end / DEPLOYS, 2, 0) for turn in range(DEPLOYS)]
        listed = np.zeros(pages, np.int64)
        judge = TemplateEvents()
        rows: Rows = {}
        for at, what, page in sorted(happenings):
            if what == 2:
                template += 1
            elif what == 1:
                self.state[page] += 1
                if shows and page >= lists:
                    listed[shows[page]] += text_hash("price", page, prices[page] + 1) - text_hash("price", page, prices[page])
                    prices[page] += 1
            else:
                self._visit(judge, rows, at, page, template, listed[page])

    def _visit(self, judge: TemplateEvents, rows: Rows, at: float, page: int, template: int, listed: int) -> None:
        number = int(self.state[page])
        own = {"stock": ("stock", number % 2), "counters": ("version", number)}.get(self.kind, (page, number))
        total = (text_hash("page", page) + text_hash(*own) + text_hash("footer", template) + int(listed)) % 2**32
        content = with_sum(repr((page, number, template, int(listed))).encode().ljust(16)[:16], total)
        before = rows.get(page)
        bits = 0
        if before is not None:
            row, was = before
            changed, is_own = row.content != content, was != (number, int(listed))
            handout = Handout(0, page.to_bytes(12, "big"), 1.0, at, at, 0.0, 0.0, row, 0.0, {}, "h")
            is_template, _ = judge.judge(handout, content, at, changed)
            bits = row.bits << 1 & 0xFF | (changed and not is_template)
            self.changed += is_own
            self.hidden += is_own and is_template
            if changed and not is_own:
                self.touched += 1
                self.counted += not is_template
        rows[page] = Row(b=at * 1e6, visits=1, tag=1, content=content, bits=bits), (number, int(listed))

    def _times(self, rate: float, end: float) -> np.ndarray:
        return np.sort(self.rng.uniform(0.0, end, self.rng.poisson(rate * end)))

    def _visits(self, rate: float, end: float) -> np.ndarray:
        return np.arange(self.rng.uniform(0.0, 1.0 / rate), end, 1.0 / rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    print(f"{'pages':>6}{'share':>7}{'deploys':>10}{'hidden':>9}{'stock':>9}{'counters':>10}{'lists':>9}")
    for pages, share in CHOICES:
        with patch.object(template_events, "SHOWN_BY", pages), patch.object(template_events, "LEAST_SHARE", share):
            found = {}
            for kind in ("deploys", "stock", "counters", "lists"):
                worlds = [World(kind, options.pages, np.random.default_rng(seed)) for seed in range(options.seeds)]
                for world in worlds:
                    world.run()
                found[kind] = [sum(getattr(world, name) for world in worlds) for name in ("changed", "hidden", "touched", "counted")]
        hidden = {kind: f"{one[1] / one[0]:.2%}" for kind, one in found.items()}
        is_chosen = (pages, share) == (template_events.SHOWN_BY, template_events.LEAST_SHARE)
        counted = f"{found['deploys'][3] / found['deploys'][2]:.2%}"
        print(
            f"{pages:>6}{share:>7}{counted:>10}{hidden['deploys']:>9}{hidden['stock']:>9}{hidden['counters']:>10}{hidden['lists']:>9}"
            f"{'  <' if is_chosen else ''}"
        )


if __name__ == "__main__":
    main()
