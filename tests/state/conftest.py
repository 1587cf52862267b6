"""Namespaces whose clock stands still."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clocked_namespace import ClockedNamespace, open_namespace


@pytest.fixture
def space(redis_socket: str, namespace: str) -> Iterator[ClockedNamespace]:
    """An empty namespace of one partition at the time START; nothing moves its clock but the test."""
    opened = open_namespace(redis_socket, namespace)
    yield opened
    opened.connection.close()


@pytest.fixture
def two(redis_socket: str, namespace: str) -> Iterator[ClockedNamespace]:
    """The same of two partitions."""
    opened = open_namespace(redis_socket, namespace, 2)
    yield opened
    opened.connection.close()
