"""Frontera's own tester, over Frontera's own graph sites: whatever it asserts holds, and every page is fetched and revisited."""

from __future__ import annotations

import importlib.util
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import frontera
import pytest
from frontera.utils.tester import BaseDownloaderSimulator, DownloaderSimulator, FrontierTester
from plain_frontera import FINGERPRINTS, PlainState, Start

#: Most runs of the tester until every page was visited often enough.
RUNS = 30
VISITS = 2


def _data() -> ModuleType:
    # By its path: the package around it imports SQLAlchemy, and its models work with no version that can be installed today.
    spec = importlib.util.spec_from_file_location("frontera_graph_data", Path(frontera.__file__).parent / "utils" / "graphs" / "data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GRAPHS = _data().GRAPHS


@dataclass
class Page:
    """A page of a graph, as Frontera's tester reads it."""

    url: str
    is_seed: bool = False
    status: str | None = "200"
    links: list[Page] = field(default_factory=list)

    @property
    def has_errors(self) -> bool:
        return self.status is None


class GraphInMemory:
    """What Frontera's graph manager keeps in SQL: the first page of each site is a seed."""

    def __init__(self, graph: Any) -> None:
        self._pages: dict[str, Page] = {}
        for site in graph.sites:
            for n, (url, links) in enumerate(getattr(site, "pages", site)):
                page = self._page(url, is_seed=n == 0)
                page.links += [self._page(link) for link in dict.fromkeys(links)]

    def _page(self, url: str, is_seed: bool = False) -> Page:
        return self._pages.setdefault(url, Page(url, is_seed))

    def get_page(self, url: str) -> Page:
        return self._pages[url]

    @property
    def pages(self) -> list[Page]:
        return list(self._pages.values())

    @property
    def seeds(self) -> list[Page]:
        return [page for page in self.pages if page.is_seed]

    @property
    def reached(self) -> set[str]:
        """URLs to which links lead from the seeds."""
        found, left = set(), self.seeds
        while left:
            page = left.pop()
            if page.url not in found:
                found.add(page.url)
                left += page.links
        return found


def run(
    start: Start, graph: GraphInMemory, simulator: BaseDownloaderSimulator, batch: int, wanted: set[str], **settings: Any
) -> Counter[str]:
    """Run the tester until every wanted page was fetched often enough; return how often each was."""
    fetched: Counter[str] = Counter()
    for _ in range(RUNS):
        manager = start(
            TEST_MODE=True,
            MAX_REQUESTS=2 * len(wanted),
            OPTIMAL_FRONTIER_MIN_INTERVAL=0.01,
            OPTIMAL_FRONTIER_MAX_INTERVAL=0.02,
            **settings,
        )
        tester = FrontierTester(manager, graph, simulator, max_next_requests=batch)
        tester.run(add_all_pages=bool(settings))
        for requests, _, _ in tester.sequence:
            assert len(requests) <= batch
            fetched.update(request.url for request in requests)
        if all(fetched[url] >= VISITS for url in wanted):
            return fetched
    raise AssertionError(f"after {RUNS} runs: {fetched}")


@pytest.mark.parametrize("batch", [1, 5, 100])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name.replace(" ", "-"))
def test_every_page_of_a_graph_site_is_fetched_and_revisited(start: Start, plain_state: PlainState, graph: Any, batch: int) -> None:
    """Names such as A1, or URLs; requests are POSTs with headers, cookies and meta, all of which come back."""
    pages = GraphInMemory(graph)
    fetched = run(start, pages, BaseDownloaderSimulator(), batch, pages.reached)
    assert set(fetched) == pages.reached
    assert plain_state.counts["pages"] == len(pages.reached)
    assert plain_state.in_flight == 0
    assert not plain_state.counts.get("leases_expired")
    assert min(plain_state.at(url)["visits"] for url in pages.reached) >= VISITS


@pytest.mark.parametrize("graph", [GRAPHS[1], GRAPHS[7]], ids=lambda graph: graph.name.replace(" ", "-"))
def test_a_slow_downloader_says_which_hosts_are_overused(start: Start, plain_state: PlainState, graph: Any) -> None:
    """Frontera's simulator takes two requests of a host at a time; of names without a host, too."""
    pages = GraphInMemory(graph)
    assert set(run(start, pages, DownloaderSimulator(rate=2), 5, pages.reached)) == pages.reached
    assert plain_state.in_flight == 0


MIDDLEWARES = [
    "frontera.contrib.middlewares.domain.DomainMiddleware",
    FINGERPRINTS,
    "frontera.contrib.middlewares.fingerprint.DomainFingerprintMiddleware",
]


def test_pages_that_fail_are_tried_again(start: Start, plain_state: PlainState) -> None:
    """All of Frontera's middlewares, every page a seed; one page has no answer, one is gone."""
    pages = GraphInMemory(GRAPHS[0])
    pages.get_page("A11").status, pages.get_page("A12").status = None, "404"
    # Those that the tester adds by itself: seeds, and links of pages without errors.
    known = {page.url for page in pages.seeds} | {link.url for page in pages.pages if not page.has_errors for link in page.links}
    good = known - {"A11", "A12"}
    run(start, pages, BaseDownloaderSimulator(), 5, good, MIDDLEWARES=MIDDLEWARES)
    assert plain_state.at("A11")["failures"] > 0
    assert plain_state.at("A12")["gone"] > 0
    assert plain_state.at("A11")["visits"] == plain_state.at("A12")["visits"] == 0
