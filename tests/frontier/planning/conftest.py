"""Fixtures: an empty crawl at the time START."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crawled import Crawl, open_crawl


@pytest.fixture
def crawl(redis_socket: str, namespace: str) -> Iterator[Crawl]:
    """An empty namespace of one partition; nothing moves its clock but the test."""
    opened = open_crawl(redis_socket, namespace)
    yield opened
    opened.namespace.connection.close()
