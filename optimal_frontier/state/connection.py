"""Connections to Redis: one server, or the nodes of a cluster, and for the embedded server a hold on it."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from typing import TYPE_CHECKING, Any

import redis
from redis import exceptions as redis_errors

from optimal_frontier.errors import StateError
from optimal_frontier.state.cluster_nodes import answering, cluster_client
from optimal_frontier.state.redis_failures import translated
from optimal_frontier.state.redis_url import DEFAULTS, ConnectionSpec, client_options

if TYPE_CHECKING:
    from optimal_frontier.state.embedded import EmbeddedServer

#: Seconds by which each further look for a slot that was moved is put off.
_MAP_PAUSE_S = 0.02
#: Oldest Redis with every command that the scripts use; any Valkey has them.
MIN_REDIS_VERSION = (6, 2)


class _PromptTls(redis.SSLConnection):  # type: ignore[misc]  # redis is untyped
    """A connection whose handshake ends with the time for connecting, not that for a reply: a server without TLS says nothing at all."""

    socket_timeout: Any

    def _connect(self) -> Any:
        reply_s = self.socket_timeout
        self.socket_timeout = min((s for s in (reply_s, self.socket_connect_timeout) if s is not None), default=None)
        try:
            connected = super()._connect()
        finally:
            self.socket_timeout = reply_s
        connected.settimeout(reply_s)
        return connected


class Connection:
    """A client of one Redis, and for the embedded one a hold on the server. Made by `connect`; threads may share it.

    Use as a context manager, or call `close`.
    """

    def __init__(self, spec: ConnectionSpec) -> None:
        self.spec = spec
        self._mutex = threading.RLock()
        self._client: Any = None
        self._server: EmbeddedServer | None = None
        # Names of scripts that clients have loaded, by identity of the client.
        self._scripts: dict[int, set[str]] = {}
        if spec.data_dir is not None:
            # Imported here because it needs a Unix, which a client of a remote Redis does not.
            from optimal_frontier.state.embedded import EmbeddedServer

            self._server = EmbeddedServer(spec.data_dir)

    def __repr__(self) -> str:
        return f"Connection({self.spec.display!r})"

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def client(self) -> Any:
        """The `redis.Redis`, replies as bytes; ask again after `reconnect`. Calls belong inside `translated`."""
        if self._client is None:
            raise StateError(f"the connection to {self.spec.display} is closed")
        return self._client

    def client_of(self, key: str) -> Any:
        """Return the client of the node that has ``key``: of a single server the one there is. Calls belong inside `translated`."""
        client = self.client
        if not self.spec.cluster:
            return client
        node = client.get_node_from_key(key)
        if node is None:
            raise redis_errors.ConnectionError("CLUSTERDOWN no node serves our keys")
        return client.get_redis_connection(node)

    def has_moved(self, result: object) -> bool:
        """Tell whether a cluster has sent a call elsewhere, without running it; `read_map` says where to."""
        return self.spec.cluster and isinstance(result, redis_errors.AskError | redis_errors.TryAgainError | redis_errors.MovedError)

    def read_map(self, tries: int) -> None:
        """Read anew which node of a cluster has which slot; a little later each time, as nodes tell each other in a moment."""
        time.sleep(tries * _MAP_PAUSE_S)
        self.client.nodes_manager.initialize()

    def scripts_of(self, client: Any) -> set[str]:
        """Return the names of the scripts that a client has loaded, to be added to."""
        return self._scripts.setdefault(id(client), set())

    def forget_scripts(self) -> None:
        """A server has forgotten its scripts, or is another."""
        self._scripts.clear()

    def translated(self, key: str = "") -> contextlib.AbstractContextManager[object]:
        """`translated` for this connection."""
        return translated(self.spec, key)

    def reconnect(self) -> None:
        """Make the connection usable again: restart an embedded server that is dead, and replace a client that gets no answer.

        Raises
        ------
        StateUnavailableError
            Redis still cannot be reached; call again later.
        """
        with self._mutex:
            socket_path = self._server.ensure() if self._server else None
            # Of several threads that lost the connection the first repairs it, and the others must not take it away again.
            if self._client is not None and _is_usable(self._client, socket_path):
                return
            client = _make_client(self.spec, socket_path)
            try:
                with translated(self.spec, is_new=self._client is None):
                    node = answering(client) if self.spec.cluster else client
                    node.ping()
                    _check_version(node, self.spec)
            except BaseException:
                client.close()
                raise
            if self._client is not None:
                self._client.close()
            self._client = client
            self._scripts.clear()

    def eviction_policy(self) -> str:
        """Return by what policy the server removes any key once its memory is full; empty: it keeps ours, or does not say."""
        try:
            with translated(self.spec):
                told = (answering(self.client) if self.spec.cluster else self.client).info("memory")
        except StateError:  # as in `_check_version`; an outage shows itself soon
            return ""
        policy = str(told.get("maxmemory_policy", ""))
        return policy if policy.startswith("allkeys") and told.get("maxmemory") else ""

    def close(self) -> None:
        """Close the client and release the embedded server; a second call does nothing."""
        with self._mutex:
            if self._client is not None:
                self._client.close()
                self._client = None
            if self._server is not None:
                self._server.release()


def connect(spec: ConnectionSpec) -> Connection:
    """Connect to Redis and see that it answers and is new enough; starts or joins the embedded server.

    Raises
    ------
    StateUnavailableError
        Redis cannot be reached, or refuses the user or password.
    StateError
        The server is too old.
    """
    connection = Connection(spec)
    try:
        connection.reconnect()
    except BaseException:
        connection.close()
        raise
    return connection


def _make_client(spec: ConnectionSpec, socket_path: str | None) -> Any:
    if socket_path is not None:
        options = {**DEFAULTS, "connection_class": redis.UnixDomainSocketConnection, "path": socket_path}
    else:
        options = client_options(spec.url)
    if not spec.cluster:
        if options.get("connection_class") is redis.SSLConnection:
            options["connection_class"] = _PromptTls
        return redis.Redis.from_pool(redis.ConnectionPool(**options))
    with translated(spec, is_new=True):
        return cluster_client(options, spec.nodes)


def _is_usable(client: Any, socket_path: str | None) -> bool:
    if socket_path is not None and client.connection_pool.connection_kwargs.get("path") != socket_path:
        return False
    try:
        if isinstance(client, redis.RedisCluster):
            # A node that was lost may have a successor by now. Any node tells, so one that is down is no fault of the others.
            client.nodes_manager.initialize()
        else:
            client.ping()
    except (redis_errors.RedisError, redis_errors.RedisClusterException):
        return False
    return True


def _check_version(client: Any, spec: ConnectionSpec) -> None:
    try:
        info = client.info("server")
    except redis_errors.ResponseError as error:
        # A careful administrator may forbid INFO, by a right or by `rename-command`; then the scripts will tell.
        if isinstance(error, redis_errors.NoPermissionError) or "unknown command" in str(error).lower():
            return
        raise
    if "valkey_version" in info:
        return
    version = str(info.get("redis_version", "unknown"))
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < MIN_REDIS_VERSION:
        wanted = ".".join(map(str, MIN_REDIS_VERSION))
        raise StateError(
            f"Redis at {spec.display} (OPTIMAL_FRONTIER_REDIS_URL) has version {version}; expected {wanted} or newer, or Valkey"
        )
