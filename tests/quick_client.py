"""A client whose pipelines have neither a pool nor retries: a third of what a played crawl takes is what redis-py does beside the call."""

from __future__ import annotations

import threading
from typing import Any

import redis
from hiredis import pack_command
from redis.exceptions import ResponseError

from optimal_frontier.state.connection import Connection


class QuickClient(redis.Redis):  # type: ignore[misc]  # redis is untyped
    """As `redis.Redis`, but that pipelines send and read on a connection of their thread, and that is all."""

    def pipeline(self, transaction: bool = True, shard_hint: Any = None) -> Any:
        """Return a quick pipeline, unless it is to be a transaction."""
        return super().pipeline(transaction, shard_hint) if transaction else _Pipeline(self)

    def of_thread(self) -> Any:
        """Return the connection of this thread; the pool closes it with all others."""
        threads = self.__dict__.get("threads") or self.__dict__.setdefault("threads", threading.local())
        if not hasattr(threads, "connection"):
            threads.connection = self.connection_pool.get_connection()
        return threads.connection

    def close(self) -> None:
        """Close all connections."""
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
        connection, callbacks = self._client.of_thread(), self._client.response_callbacks
        # In one piece: for each piece the kernel is called, and the server may be woken.
        connection.send_packed_command([b"".join(map(pack_command, self._commands))], check_health=False)
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


def make_quick(connection: Connection) -> Connection:
    """Let a connection to a single server have such a client, until it reconnects; return it."""
    connection._client = QuickClient.from_pool(connection.client.connection_pool)
    return connection
