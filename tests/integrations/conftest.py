"""Fixtures of the real crawls: a misbehaving site, a runner of crawls, and a look into Redis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawler import Crawler, crawler
from crawls import State
from frontera.core.manager import FrontierManager
from frontera.settings import Settings
from misbehaving_site import MisbehavingSite
from plain_frontera import BACKEND, CONTENT_HASHES, FINGERPRINTS, PlainState, Start


@pytest.fixture
def site() -> Iterator[MisbehavingSite]:
    """A site of the test's own."""
    with MisbehavingSite() as running:
        yield running


@pytest.fixture
def crawl(tmp_path: Path, site: MisbehavingSite, redis_socket: str, namespace: str) -> Crawler:
    """Start a crawl of the test's site in the test's namespace."""
    return crawler(tmp_path, site, redis_socket, namespace)


@pytest.fixture
def state(redis_socket: str, namespace: str) -> Iterator[State]:
    """What the test's namespace holds."""
    held = State(f"unix://{redis_socket}", namespace)
    yield held
    held.close()


@pytest.fixture
def plain_state(redis_socket: str, namespace: str) -> Iterator[PlainState]:
    """What the test's namespace holds, by Frontera's fingerprints."""
    held = PlainState(f"unix://{redis_socket}", namespace)
    yield held
    held.close()


@pytest.fixture
def start(redis_socket: str, namespace: str) -> Iterator[Start]:
    """Start managers of plain Frontera; those that still run at the end are stopped."""
    managers: list[FrontierManager] = []

    def build(**given: Any) -> FrontierManager:
        attributes = {
            "BACKEND": BACKEND,
            "MIDDLEWARES": [FINGERPRINTS, CONTENT_HASHES],
            "OPTIMAL_FRONTIER_REDIS_URL": f"unix://{redis_socket}",
            "OPTIMAL_FRONTIER_NAMESPACE": namespace,
            "OPTIMAL_FRONTIER_MIN_INTERVAL": 600,
            "OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 0.2,
        }
        roles = {name: given.pop(name) for name in ("db_worker", "strategy_worker") if name in given}
        manager = FrontierManager.from_settings(Settings(attributes=attributes | given), **roles)
        managers.append(manager)
        return manager

    yield build
    for manager in managers:
        if manager._started and not manager._stopped:
            manager.stop()
