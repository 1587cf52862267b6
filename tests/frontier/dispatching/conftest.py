"""Namespaces for tests of moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clocked_namespace import ClockedNamespace, open_namespace


@pytest.fixture(params=[1, 5])
def pages(request: pytest.FixtureRequest, redis_socket: str, namespace: str) -> Iterator[ClockedNamespace]:
    """A namespace of one partition, or of several, where most moves between hosts change it."""
    opened = open_namespace(redis_socket, namespace, request.param)
    yield opened
    opened.connection.close()
