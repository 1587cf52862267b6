"""Frontera's manager, whose middlewares may raise: one link costs no other, and no lease is left behind. Without any it is passed by."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from frontera.contrib.canonicalsolvers.basic import BasicCanonicalSolver

from optimal_frontier.errors import OptimalFrontierError

#: What is passed on: Frontera's checks of how it is called, and what is wrong with settings or Redis.
_PASSED_ON = (AssertionError, OptimalFrontierError)


def guard(manager: Any, refuse: Callable[[Any, Exception], None], give_up: Callable[[Any], None]) -> None:
    """Guard the four calls of a manager by which requests come in and results come back.

    Parameters
    ----------
    manager : FrontierManager
    refuse : callable
        Gets a request that a middleware raised at, and the exception. Frontera's own raise at a URL that cannot be parsed.
    give_up : callable
        Gets every request that came back. Where a middleware raised or took it out, its lease is to be ended there.
    """
    add_seeds, links_extracted = manager.add_seeds, manager.links_extracted
    page_crawled, request_error = manager.page_crawled, manager.request_error

    def add_guarded(seeds: Any) -> None:
        _each(add_seeds, seeds, refuse)

    def extract_guarded(request: Any, links: Any) -> None:
        _each(lambda some: links_extracted(request, some), links, refuse)

    def crawl_guarded(response: Any) -> None:
        try:
            page_crawled(response)
        finally:
            give_up(getattr(response, "request", None))

    def fail_guarded(request: Any, error: Any) -> Any:
        try:
            return request_error(request, error)
        finally:
            give_up(request)

    manager.add_seeds, manager.links_extracted = add_guarded, extract_guarded
    manager.page_crawled, manager.request_error = crawl_guarded, fail_guarded


def start_passing_by(manager: Any) -> None:
    """Start a manager; requests and results go straight to its backend, unless something of the user's is in between, or logs them.

    Frontera's own canonical solver only looks at requests of Frontera's redirect middleware. With MAX_REQUESTS the manager counts.
    That is decided once: a level of its logs that is set later shows nothing.
    """
    manager.start()
    loggers = (logging.getLogger(name) for name in ("manager", "manager.components"))
    is_empty = not manager.middlewares and type(manager.canonicalsolver) is BasicCanonicalSolver
    if not is_empty or any(each.isEnabledFor(logging.DEBUG) for each in loggers):
        return
    backend = manager.backend
    manager.add_seeds, manager.links_extracted = backend.add_seeds, backend.links_extracted
    manager.page_crawled, manager.request_error = backend.page_crawled, backend.request_error
    if not manager.max_requests:
        manager.get_next_requests = backend.get_next_requests


def _each(add: Callable[[Any], None], requests: Sequence[Any], refuse: Callable[[Any, Exception], None]) -> None:
    """Add requests together, or one at a time where that fails: what has come in already comes in once more, which changes nothing."""
    try:
        add(requests)
    except _PASSED_ON:
        raise
    except Exception as error:
        if len(requests) == 1:
            refuse(requests[0], error)
            return
        for request in requests:
            _each(add, [request], refuse)
