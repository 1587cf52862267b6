"""The setting OPTIMAL_FRONTIER_REDIS_URL: which URLs are understood, and what redis-py is to make of them. Connects to nothing."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import redis
from redis import exceptions as redis_errors
from redis.backoff import NoBackoff
from redis.connection import parse_url
from redis.credentials import UsernamePasswordCredentialProvider
from redis.retry import Retry

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.state.cluster_nodes import CLUSTER_SCHEMES, Node, name_of, nodes_of, refused_options

#: Seconds to wait for a connection.
CONNECT_TIMEOUT_S = 5.0
#: Seconds to wait for a reply.
READ_TIMEOUT_S = 30.0
#: Seconds of idleness after which a connection is tried before it is used.
HEALTH_CHECK_S = 30

# No retries: scripts are not all idempotent, and what to do about an outage is for the caller to decide. Protocol 2 gives the same replies
# under every version of redis-py.
DEFAULTS: dict[str, Any] = {
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

#: Options of redis-py that say how this program talks to it, are no text, or stand in front of the ``?``.
_OURS = {
    "command_packer",
    "credential_provider",
    "decode_responses",
    "encoding",
    "encoding_errors",
    "event_dispatcher",
    "host",
    "path",
    "port",
    "protocol",
    "redis_connect_func",
    "retry",
    "socket_type",
}
#: Those that are True or False, in the words that redis-py knows; it takes any other for True.
_FLAGS = {
    "legacy_responses",
    "retry_on_timeout",
    "socket_keepalive",
    "ssl_check_hostname",
    "ssl_validate_ocsp",
    "ssl_validate_ocsp_stapled",
}
_WORDS = dict.fromkeys(("1", "T", "TRUE", "Y", "YES"), True) | dict.fromkeys(("0", "F", "FALSE", "N", "NO"), False)
_TIMEOUTS = ("socket_timeout", "socket_connect_timeout")
#: Seconds; what a socket takes ends some way above.
_LONGEST_TIMEOUT_S = 1e9

#: Options of redis-py that name a file or a folder for TLS.
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")


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
        for host in (node.host for node in nodes or [Node(parts.hostname or "", 0)]):
            host.encode("idna")  # as the resolver of names does
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
    options = client_options(url)
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


def _embedded(data_dir: Path) -> ConnectionSpec:
    return ConnectionSpec(f"embedded://{data_dir}", data_dir=data_dir)


def _unusable(fault: str) -> ConfigurationError:
    return ConfigurationError(f"OPTIMAL_FRONTIER_REDIS_URL {fault}; {_EXPECTED}")


def client_options(url: str) -> dict[str, Any]:
    """Options of redis-py for a URL; what the URL says of timeouts wins over our defaults."""
    try:
        given = parse_url(url)
        told = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        if ours := sorted(told.keys() & _OURS):
            raise _unusable(f"sets {', '.join(ours)} after its '?', where that is not to be set")
        if unclear := sorted(name for name in told.keys() & _FLAGS if told[name].upper() not in _WORDS):
            raise _unusable(f"sets {', '.join(unclear)} to something else than True or False")
        given |= {name: _WORDS[told[name].upper()] for name in told.keys() & _FLAGS}
        ssl.TLSVersion(given.get("ssl_min_version", ssl.TLSVersion.TLSv1_2))
        if any(not 0.0 < given.get(name, READ_TIMEOUT_S) <= _LONGEST_TIMEOUT_S for name in _TIMEOUTS):
            raise _unusable(f"sets {' or '.join(_TIMEOUTS)} to something else than seconds, above 0 and up to {_LONGEST_TIMEOUT_S:g}")
        options: dict[str, Any] = {**DEFAULTS, **given}
        username, password = options.pop("username", None), options.pop("password", None)
        if username or password:
            # The pool's repr of some versions of redis-py shows a plain password.
            options["credential_provider"] = UsernamePasswordCredentialProvider(username, password)
        redis.ConnectionPool(**options).make_connection()  # connects to nothing, but refuses unknown options
    except (TypeError, ValueError, AttributeError, OverflowError, redis_errors.RedisError):
        raise _unusable("has an unknown or unusable option after its '?'") from None
    for name in _FILES:
        if name in given and not os.access(str(given[name]), os.R_OK):
            raise _unusable(f"names a file by {name} that is not there or cannot be read")
    return options
