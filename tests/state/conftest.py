"""A store whose clock the test sets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clocked_store import ClockedStore, open_store


@pytest.fixture
def store(redis_socket: str, namespace: str) -> Iterator[ClockedStore]:
    """An empty namespace at the time START; nothing moves its clock but the test."""
    opened = open_store(redis_socket, namespace)
    yield opened
    opened.connection.close()
