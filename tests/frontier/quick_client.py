"""A client whose pipelines have one connection, and neither retries nor a pool: half of what a played crawl takes is redis-py's own time."""

from __future__ import annotations

from typing import Any

import redis
from hiredis import pack_command
from redis.exceptions import ResponseError
from timed_namespace import TimedNamespace


class QuickClient(redis.Redis):
    """As `redis.Redis`, of one thread, and pipelines that are no transactions send and read, and that is all."""

    _connection: Any = None

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        return super().pipeline(transaction, shard_hint) if transaction else _Pipeline(self)

    def connected(self) -> Any:
        """The connection of all pipelines."""
        if self._connection is None:
            self._connection = self.connection_pool.get_connection()
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self.connection_pool.release(self._connection)
        super().close()
        self.connection_pool.disconnect()


class _Pipeline:
    def __init__(self, client: QuickClient) -> None:
        self._client = client
        self._commands: list[tuple[Any, ...]] = []

    def execute_command(self, *words: Any) -> None:
        self._commands.append(words)

    def execute(self, raise_on_error: bool) -> list[Any]:
        """Return the reply of each command, or the error that it is."""
        assert not raise_on_error
        connection, callbacks = self._client.connected(), self._client.response_callbacks
        connection.send_packed_command([pack_command(words) for words in self._commands], check_health=False)
        replies = []
        for words in self._commands:
            try:
                reply = connection.read_response()
            except ResponseError as error:
                reply = error
            else:
                callback = callbacks.get(words[0])
                reply = callback(reply) if callback else reply
            replies.append(reply)
        return replies


def make_quick(store: TimedNamespace) -> None:
    """Let a namespace that nobody else has a connection of use such a client from now on."""
    plain = store.connection.client
    if not isinstance(plain, QuickClient):
        store.connection._client = QuickClient.from_pool(plain.connection_pool)
