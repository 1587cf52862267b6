"""Namespaces whose clock stands still."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from timed_namespace import TimedNamespace, new_page, open_namespace


@pytest.fixture
def space(redis_socket: str, namespace: str) -> Iterator[TimedNamespace]:
    """An empty namespace of one partition at the time START; nothing moves its clock but the test."""
    opened = open_namespace(redis_socket, namespace)
    yield opened
    opened.connection.close()


@pytest.fixture
def two(redis_socket: str, namespace: str) -> Iterator[TimedNamespace]:
    """The same of two partitions."""
    opened = open_namespace(redis_socket, namespace, 2)
    yield opened
    opened.connection.close()


@pytest.fixture(scope="module")
def formula_space(redis_socket: str) -> Iterator[TimedNamespace]:
    """One page, for tests that put many numbers to it."""
    opened = open_namespace(redis_socket, f"test-{uuid.uuid4().hex[:12]}")
    opened.add(new_page("h/1"))
    yield opened
    opened.connection.close()
