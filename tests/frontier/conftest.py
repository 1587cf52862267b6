"""Fixtures: an empty namespace whose clock stands still."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from timed_namespace import TimedNamespace, open_namespace


@pytest.fixture
def space(redis_socket: str, namespace: str) -> Iterator[TimedNamespace]:
    """One partition at the time START; nothing moves its clock but the test."""
    opened = open_namespace(redis_socket, namespace)
    opened.command("HSET", opened.key("meta"), "opened", repr(opened.now()))
    yield opened
    opened.connection.close()


@pytest.fixture
def four(redis_socket: str, namespace: str) -> Iterator[TimedNamespace]:
    """The same of four partitions."""
    opened = open_namespace(redis_socket, namespace, 4)
    yield opened
    opened.connection.close()
