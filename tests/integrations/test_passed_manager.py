"""Scrapy's requests and results pass Frontera's manager by, unless something of the user's would miss them there."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from frontera.contrib.canonicalsolvers.basic import BasicCanonicalSolver
from frontera.core.components import Middleware
from scrapy.settings import Settings

from optimal_frontier.integrations.frontera.configuration import manager_of
from optimal_frontier.integrations.frontera.guarded_manager import start_passing_by
from optimal_frontier.integrations.scrapy.foreign_settings import FronteraSettings, quieten_frontera

CALLS = ("add_seeds", "links_extracted", "page_crawled", "request_error", "get_next_requests")


class Watching(Middleware):  # type: ignore[misc]  # frontera is untyped
    """A middleware of the user's."""

    def frontier_start(self) -> None: ...

    def frontier_stop(self) -> None: ...

    def add_seeds(self, seeds: Any) -> Any:
        return seeds

    def page_crawled(self, response: Any) -> Any:
        return response

    def links_extracted(self, request: Any, links: Any) -> Any:
        return request

    def request_error(self, page: Any, error: Any) -> Any:
        return page


class Solver(BasicCanonicalSolver):  # type: ignore[misc]  # frontera is untyped
    """A canonical solver of the user's."""


@pytest.fixture
def quiet() -> Iterator[logging.Logger]:
    """Frontera's loggers as our scheduler leaves them."""
    loggers = [logging.getLogger(name) for name in ("manager", "manager.components")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.NOTSET)
    quieten_frontera()
    yield loggers[1]
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def _passed(**given: Any) -> set[str]:
    """Return the calls that go straight to the backend."""
    manager = manager_of(FronteraSettings(Settings(given)))
    session: Any = object()  # is not asked for anything
    manager.backend.attach(session, lambda *_: None, lambda _: b"")
    start_passing_by(manager)
    return {name for name in CALLS if getattr(manager, name) == getattr(manager.backend, name)}


def test_without_anything_of_the_users_all_calls_pass(quiet: logging.Logger) -> None:
    assert _passed() == set(CALLS)


@pytest.mark.parametrize(
    "given", [{"MIDDLEWARES": [f"{__name__}.Watching"]}, {"CANONICAL_SOLVER": f"{__name__}.Solver", "MIDDLEWARES": []}]
)
def test_a_component_of_the_users_sees_them(given: dict[str, Any], quiet: logging.Logger) -> None:
    assert _passed(**given) == set()


def test_who_asks_for_fronteras_debug_records_gets_them(quiet: logging.Logger) -> None:
    quiet.setLevel(logging.DEBUG)
    assert _passed() == set()


def test_requests_are_counted_where_there_is_a_most_of_them(quiet: logging.Logger) -> None:
    assert _passed(MAX_REQUESTS=3) == set(CALLS) - {"get_next_requests"}
