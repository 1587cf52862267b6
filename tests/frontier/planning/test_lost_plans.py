"""Plans that are lost on their way: the next one says what they could not."""

from __future__ import annotations

from typing import Any

import pytest
from crawled import Crawl, open_crawl, parse

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.planning.neighbourhood_clocks import NeighbourhoodClocks
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.state.namespace import Namespace


class BreakingNamespace(Namespace):
    """Its server is away once, before a call of the script ``breaks_at``."""

    breaks_at = ""

    def run(self, calls):
        if calls and calls[0].script == self.breaks_at:
            self.breaks_at = ""
            raise StateUnavailableError("gone")
        return super().run(calls)


@pytest.fixture
def large_crawl(redis_socket, namespace, monkeypatch):
    """A crawl of which each plan reads a small part."""
    monkeypatch.setattr("optimal_frontier.frontier.planning.page_table.SMALL", 10)
    monkeypatch.setattr("optimal_frontier.frontier.planning.page_table.SCAN_COUNT", 20)
    crawl = open_crawl(redis_socket, namespace, kind=BreakingNamespace)
    yield crawl
    crawl.namespace.connection.close()


@pytest.mark.parametrize("breaks_at", ["publish_plan", "write_plan"])
def test_numbers_that_a_plan_could_not_write_are_written_by_the_next_one(large_crawl: Crawl, breaks_at: str) -> None:
    """Though it reads a small part of the pages only."""
    large_crawl.crawled(600)
    planner = Planner(large_crawl.namespace, parse(CRAWL_RATE=20))
    large_crawl.namespace.breaks_at = breaks_at
    with pytest.raises(StateUnavailableError):
        planner.plan()
    planner.plan()
    numbers = {page: head.tobytes() for page, head in large_crawl.rows().items()}
    assert Planner(large_crawl.namespace, parse(CRAWL_RATE=20)).plan().queued == 0
    assert {page: head.tobytes() for page, head in large_crawl.rows().items()} == numbers


def test_visits_before_a_read_that_failed_count_for_the_next_one(large_crawl: Crawl) -> None:
    """A plan reads as large a share as was visited since the last read, twice over."""
    large_crawl.crawled(600)
    planner = Planner(large_crawl.namespace, parse(CRAWL_RATE=20))
    planner.plan()
    large_crawl.namespace.command("HINCRBY", large_crawl.namespace.key("stats"), "ended", 200)
    planner.crawl.begin([0])
    with pytest.raises(ZeroDivisionError):
        planner.crawl.read(0, 0.0, lambda: 1 / 0)
    assert planner.plan().read >= 400


def test_a_partition_that_was_emptied_is_known_to_be_empty_at_once(large_crawl: Crawl) -> None:
    """Its pages would hold their share of the budget for as long as they are remembered."""
    large_crawl.crawled(600)
    planner = Planner(large_crawl.namespace, parse(CRAWL_RATE=20))
    assert planner.plan().pages == 600
    large_crawl.namespace.command("DEL", large_crawl.namespace.key("pages"))
    assert planner.plan().pages == 0


def test_first_looks_that_could_not_be_loaded_are_loaded_by_the_next_plan(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection was lost in between: no plan was ever made after that."""
    crawl.crawled(30)
    planner, lost = Planner(crawl.namespace, parse(CRAWL_RATE=5)), []
    command = crawl.namespace.command

    def loses(*arguments: Any, **where: Any) -> Any:
        if arguments[0] == "GET" and arguments[1].endswith("youth") and not lost:
            lost.append(True)
            raise StateUnavailableError("lost")
        return command(*arguments, **where)

    monkeypatch.setattr(crawl.namespace, "command", loses)
    with pytest.raises(StateUnavailableError):
        planner.plan()
    planner.due_in()
    planner.catch_up()
    assert planner.plan().pages == 30
    assert lost


def test_clocks_that_could_not_be_loaded_are_loaded_by_the_next_plan(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored of them is not taken for nothing, and not overwritten."""
    crawl.crawled(30)
    Planner(crawl.namespace, parse(CRAWL_RATE=5)).plan()
    planner, loaded = Planner(crawl.namespace, parse(CRAWL_RATE=5)), []
    load = NeighbourhoodClocks.load

    def breaks(clocks: NeighbourhoodClocks, round_s: float) -> None:
        loaded.append(clocks)
        if len(loaded) == 1:
            raise StateUnavailableError("gone")
        load(clocks, round_s)

    monkeypatch.setattr(NeighbourhoodClocks, "load", breaks)
    planner.crawl.begin([0])
    planner.crawl.read(0, 0.0)
    planner.crawl.problem({}, crawl.at)
    assert planner.keeper is not None
    with pytest.raises(StateUnavailableError):
        planner.keeper.take_in(0, crawl.at, takes_over=False)
    planner.keeper.take_in(0, crawl.at, takes_over=False)
    assert planner.keeper.clocks[0] is loaded[1]
