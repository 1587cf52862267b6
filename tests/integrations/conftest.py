"""Fixtures of the real crawls: a misbehaving site, a runner of crawls, and a look into Redis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawler import Crawler, crawler
from crawls import State
from misbehaving_site import MisbehavingSite


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
