"""Connections to Redis, and the one place where redis-py's exceptions become ours."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import redis
from redis import exceptions as redis_errors
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.credentials import UsernamePasswordCredentialProvider
from redis.retry import Retry

from optimal_frontier.errors import ConfigurationError, SchemaMismatchError, StateError, StateForbiddenError, StateUnavailableError
from optimal_frontier.state.cluster_nodes import CLUSTER_SCHEMES, Node, answering, cluster_client, name_of, nodes_of, refused_options
from optimal_frontier.state.scripts import commands_at

if TYPE_CHECKING:
    from optimal_frontier.state.embedded import EmbeddedServer

#: Seconds to wait for a connection.
CONNECT_TIMEOUT_S = 5.0
#: Seconds to wait for a reply.
READ_TIMEOUT_S = 30.0
#: Seconds of idleness after which a connection is tried before it is used.
HEALTH_CHECK_S = 30
#: Seconds by which each further look for a slot that was moved is put off.
_MAP_PAUSE_S = 0.02
#: Oldest Redis with every command that the scripts use; any Valkey has them.
MIN_REDIS_VERSION = (6, 2)

# No retries: scripts are not all idempotent, and what to do about an outage is for the caller to decide. Protocol 2 gives the same replies
# under every version of redis-py.
_DEFAULTS: dict[str, Any] = {
    "decode_responses": False,
    "protocol": 2,
    "socket_connect_timeout": CONNECT_TIMEOUT_S,
    "socket_timeout": READ_TIMEOUT_S,
    "health_check_interval": HEALTH_CHECK_S,
    "retry": Retry(NoBackoff(), 0),
}

_EXPECTED = (
    'expected "embedded", embedded:///path, redis://host:port/db, rediss://host:port/db, unix:///path?db=0, '
    "redis+cluster://host:port,host:port or rediss+cluster://host:port"
)
_ENCODE = "'/', '?', '#' and '@' in a user name or password must be percent-encoded"

#: Options of redis-py that name a file or a folder for TLS.
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")

_UNAVAILABLE = {
    "LOADING": "is still loading its data",
    "BUSY": "is busy with a script that runs too long",
    "OOM": "is out of memory (its maxmemory is reached)",
    "READONLY": "is a read-only replica",
    "MASTERDOWN": "is a replica that lost its primary",
    "MISCONF": "refuses writes because it cannot save to its disk",
    "MOVED": "has moved our keys to another node",
    "ASK": "is moving our keys to another node",
    "CLUSTERDOWN": "is a cluster that is down",
    "NOREPLICAS": "refuses writes because it has too few replicas",
    "TRYAGAIN": "is moving keys between its nodes",
}

_REDIRECTIONS = {
    redis_errors.MovedError: "MOVED",
    redis_errors.AskError: "ASK",
    redis_errors.TryAgainError: "TRYAGAIN",
    redis_errors.ClusterDownError: "CLUSTERDOWN",
    redis_errors.MasterDownError: "MASTERDOWN",
}


@dataclass(frozen=True)
class ConnectionSpec:
    """A parsed OPTIMAL_FRONTIER_REDIS_URL.

    Attributes
    ----------
    display : str
        The URL without user, password and options: the only form that may be shown.
    url : str
        What redis-py gets; empty for the embedded server.
    data_dir : Path or None
        Data directory of the embedded server; None for any other.
    cluster : bool
        The URL is that of nodes of a Redis Cluster.
    nodes : tuple of Node
        Those nodes; any of them leads to all others.
    """

    display: str
    url: str = field(default="", repr=False)
    data_dir: Path | None = None
    cluster: bool = False
    nodes: tuple[Node, ...] = field(default=(), repr=False)


def parse_redis_url(url: str, project_dir: Path) -> ConnectionSpec:
    """Parse the setting OPTIMAL_FRONTIER_REDIS_URL; connects to nothing.

    Parameters
    ----------
    url : str
        ``embedded``, ``embedded:///path``, ``redis://``, ``rediss://``, ``unix://``, or ``redis+cluster://`` and ``rediss+cluster://`` (any
        nodes, with commas between them).
    project_dir : Path
        Under its ``.scrapy/optimal_frontier`` lie the data of ``embedded``.

    Raises
    ------
    ConfigurationError
        The URL is unusable. The message never quotes it: even a broken URL may hold a password.

    Examples
    --------
    >>> parse_redis_url("redis://user:secret@example.com/2", Path("."))
    ConnectionSpec(display='redis://example.com:6379/2', data_dir=None, cluster=False)
    """
    if not isinstance(url, str):
        raise _unusable(f"is a {type(url).__name__}, not a string")
    url = url.strip()
    if url == "embedded":
        return _embedded(Path(project_dir).absolute() / ".scrapy" / "optimal_frontier")
    scheme, separator, rest = url.partition("://")
    shown = scheme = scheme.lower()
    if not separator:
        raise _unusable("is no URL")
    scheme = CLUSTER_SCHEMES.get(shown, shown)
    if scheme not in ("embedded", "redis", "rediss", "unix"):
        raise _unusable("has an unknown scheme")
    nodes: tuple[Node, ...] = ()
    try:
        if shown in CLUSTER_SCHEMES:
            nodes, rest = nodes_of(rest)
        url = f"{scheme}://{rest}"
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # its text quotes what may be a piece of a password
        raise _unusable(f"has an unusable host or port; {_ENCODE}") from None
    if scheme == "embedded":
        path = unquote(parts.path)
        if parts.netloc or parts.query or parts.fragment or not path.strip("/") or "\0" in path:
            raise _unusable("names no absolute path after embedded:// (three slashes; '?' and '#' percent-encoded)")
        return _embedded(Path(path))
    if "@" in parts.path + parts.query or parts.fragment:
        raise _unusable(f"is misread; {_ENCODE}")
    if scheme == "unix":
        if not parts.path.strip("/"):
            raise _unusable("names no socket after unix:// (three slashes)")
    elif not re.fullmatch(r"/?\d*", parts.path):
        raise _unusable("has something other than a database number as its path")
    options = _client_options(url)
    db = options.get("db", 0)
    if scheme == "unix":
        return ConnectionSpec(f"unix://{parts.path}?db={db}", url)
    if nodes:
        if db:
            raise _unusable("names a database number; a cluster has only one")
        if refused := refused_options(options):
            raise _unusable(f"has options that redis-py does not take for clusters: {', '.join(refused)}")
        return ConnectionSpec(f"{shown}://{','.join(map(name_of, nodes))}", url, cluster=True, nodes=nodes)
    return ConnectionSpec(f"{scheme}://{name_of(Node(parts.hostname or 'localhost', port or 6379))}/{db}", url)


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

    def translated(self, key: str = "") -> contextlib.AbstractContextManager[None]:
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


@contextlib.contextmanager
def translated(spec: ConnectionSpec, key: str = "", *, is_new: bool = False) -> Iterator[None]:
    """Turn redis-py's exceptions into `StateError` and its kin, with the cause kept.

    Parameters
    ----------
    spec : ConnectionSpec
        Whose `display` the message shows.
    key : str, optional
        Key that the block works on, to be named when it holds another type.
    is_new : bool, optional
        The block makes a connection: one that is closed at once may be to a server that speaks TLS only.
    """
    try:
        yield
    except redis_errors.DataError:
        raise  # a programming error: redis-py cannot encode an argument
    except (redis_errors.RedisError, redis_errors.RedisClusterException) as exc:
        # A server that does not know AUTH quotes the password, and a traceback would show the cause.
        is_clean = _scrubbed(str(exc), spec) == str(exc)
        error = _translate(exc, spec, key)
        is_plain = spec.url.startswith(("redis://", "redis+cluster://"))
        if is_new and is_plain and isinstance(error, StateUnavailableError) and re.search("reset by peer|closed by server", str(error)):
            error = StateUnavailableError(f"{error}; a server that speaks TLS needs rediss:// or rediss+cluster://")
        raise error from (exc if is_clean else None)


def _translate(exc: Exception, spec: ConnectionSpec, key: str) -> StateError:
    # Only what a server has said is masked: a password may be a word of ours, and what is missing would tell it.
    text = _scrubbed(str(exc), spec)
    where = f"Redis at {spec.display} (OPTIMAL_FRONTIER_REDIS_URL)"
    # A code may stand anywhere: Redis before 7 wraps the errors of commands that a script calls.
    codes = set(re.findall(r"\b[A-Z]{3,}\b", str(exc)))
    if isinstance(exc, redis_errors.NoPermissionError) or "NOPERM" in codes:
        return StateForbiddenError(f"{where}: the user lacks a permission: {text}")
    if "user executing the script" in text or "ACL failure in script" in text:
        return StateForbiddenError(f"{where}: the user lacks a permission: {_refused_in_script(text)}")
    if isinstance(exc, redis_errors.AuthenticationError) or codes & {"NOAUTH", "WRONGPASS"}:
        hint = "" if spec.data_dir is not None or parse_url(spec.url).get("password") else " (the URL has no password)"
        return StateUnavailableError(f"wrong password or user for {spec.display} (OPTIMAL_FRONTIER_REDIS_URL): {text}{hint}")
    if isinstance(exc, redis_errors.AuthenticationWrongNumberOfArgsError):
        return StateUnavailableError(f"wrong password or user for {spec.display} (OPTIMAL_FRONTIER_REDIS_URL): it takes no user name")
    if isinstance(exc, redis_errors.BusyLoadingError):
        return StateUnavailableError(f"{where} {_UNAVAILABLE['LOADING']}")
    if isinstance(exc, redis_errors.ReadOnlyError):
        return StateUnavailableError(f"{where} {_UNAVAILABLE['READONLY']}")
    if isinstance(exc, redis_errors.OutOfMemoryError):
        return StateUnavailableError(f"{where} {_UNAVAILABLE['OOM']}")
    if isinstance(exc, redis_errors.RedisClusterException):
        # Raised when the map of slots is read: by a server that is no cluster, is not to be asked, or because no node answers.
        below = exc.__cause__ or exc.__context__
        while isinstance(below, redis_errors.RedisClusterException):
            below = below.__cause__ or below.__context__
        if "cluster support disabled" in str(below):
            return StateError(f"{where} is no cluster; redis:// is for a single server")
        if isinstance(below, redis_errors.RedisError):
            return _translate(below, spec, key)
        return StateUnavailableError(f"cannot reach {where}: {text}")
    if isinstance(exc, redis_errors.TimeoutError):
        hint = "; does it speak TLS at this port?" if "connecting" in text and spec.display.startswith("rediss") else ""
        return StateUnavailableError(f"{where} did not answer in time: {text}{hint}")
    if isinstance(exc, redis_errors.ConnectionError):
        return StateUnavailableError(f"cannot reach {where}: {_scrubbed(_reason(exc), spec)}")
    if "WRONGTYPE" in codes:
        what = f"the key {key!r}" if key else "one of our keys"
        return SchemaMismatchError(
            f"{where} holds another type under {what}, which some other program must have written; it was left untouched"
        )
    # Of the errors of clusters redis-py keeps the code to itself.
    codes |= {code for kind, code in _REDIRECTIONS.items() if isinstance(exc, kind)}
    for code, meaning in _UNAVAILABLE.items():
        if code in codes:
            return StateUnavailableError(f"{where} {meaning}: {text}")
    return StateError(f"{where} reports: {text}")


def _refused_in_script(text: str) -> str:
    """What a script was refused: Redis 7.0 and older tell the line of the script, not the command."""
    at = re.search(r"script: ([0-9a-f]{40}), on @user_script:(\d+)", text)
    commands = commands_at(at[1], int(at[2])) if at else []
    if not commands:
        return text
    names = " or ".join(f"'{name.lower()}'" for name in dict.fromkeys(commands))
    return f"this user has no permissions to run the {names} command in a script (ACL LOG tells more)"


def _reason(exc: BaseException) -> str:
    """What is wrong with a connection, from the operating system's error below redis-py's."""
    below: BaseException | None = exc
    while below is not None:
        if isinstance(below, ConnectionRefusedError):
            return "connection refused; is the server running?"
        if isinstance(below, socket.gaierror):
            return f"the host name cannot be resolved ({below.strerror})"
        if isinstance(below, FileNotFoundError):
            return "there is no such socket; is the server running?"
        if isinstance(below, PermissionError):
            return "permission denied"
        if isinstance(below, ssl.SSLError):
            return f"TLS failed: {below}"
        below = below.__cause__ or below.__context__
    return str(exc)


def _scrubbed(text: str, spec: ConnectionSpec) -> str:
    if spec.url:
        options = parse_url(spec.url)
        for secret in (options.get("password"), options.get("username")):
            # Short words would take harmless letters out of every message, and a user name may be part of the host's.
            if secret and len(secret) > 2 and secret not in spec.display:
                text = text.replace(secret, "***")
    return text


def _embedded(data_dir: Path) -> ConnectionSpec:
    return ConnectionSpec(f"embedded://{data_dir}", data_dir=data_dir)


def _unusable(fault: str) -> ConfigurationError:
    return ConfigurationError(f"OPTIMAL_FRONTIER_REDIS_URL {fault}; {_EXPECTED}")


def _client_options(url: str) -> dict[str, Any]:
    """Options of redis-py for a URL; what the URL says of timeouts wins over our defaults."""
    try:
        given = parse_url(url)
        if given.keys() & {"decode_responses", "protocol"}:
            raise _unusable("sets decode_responses or protocol, which are ours to set")
        options: dict[str, Any] = {**_DEFAULTS, **given}
        username, password = options.pop("username", None), options.pop("password", None)
        if username or password:
            # The pool's repr of some versions of redis-py shows a plain password.
            options["credential_provider"] = UsernamePasswordCredentialProvider(username, password)
        redis.ConnectionPool(**options).make_connection()  # connects to nothing, but refuses unknown options
    except (TypeError, ValueError, redis_errors.RedisError):
        raise _unusable("has an unknown or unusable option after its '?'") from None
    for name in _FILES:
        if name in given and not os.access(str(given[name]), os.R_OK):
            raise _unusable(f"names a file by {name} that is not there or cannot be read")
    return options


def _make_client(spec: ConnectionSpec, socket_path: str | None) -> Any:
    if socket_path is not None:
        options = {**_DEFAULTS, "connection_class": redis.UnixDomainSocketConnection, "path": socket_path}
    else:
        options = _client_options(spec.url)
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
    except redis_errors.NoPermissionError:
        return  # a careful administrator may forbid INFO; then the scripts will tell
    if "valkey_version" in info:
        return
    version = str(info.get("redis_version", "unknown"))
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < MIN_REDIS_VERSION:
        wanted = ".".join(map(str, MIN_REDIS_VERSION))
        raise StateError(
            f"Redis at {spec.display} (OPTIMAL_FRONTIER_REDIS_URL) has version {version}; expected {wanted} or newer, or Valkey"
        )
