"""What goes wrong between Redis and us, in our own words: the one place where redis-py's exceptions become ours."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from redis import exceptions as redis_errors
from redis.connection import parse_url

from optimal_frontier.errors import SchemaMismatchError, StateError, StateForbiddenError, StateUnavailableError
from optimal_frontier.state.cluster_nodes import Node, name_of
from optimal_frontier.state.redis_url import ConnectionSpec
from optimal_frontier.state.scripts import commands_at

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

#: What servers say to a wrong password, whatever it is; words of a user name or password that are masked in it would be told by that.
_WRONG_PASSWORD = "invalid username-password pair or user is disabled."

_REDIRECTIONS = {
    redis_errors.MovedError: "MOVED",
    redis_errors.AskError: "ASK",
    redis_errors.TryAgainError: "TRYAGAIN",
    redis_errors.ClusterDownError: "CLUSTERDOWN",
    redis_errors.MasterDownError: "MASTERDOWN",
}


@contextlib.contextmanager
def translated(spec: ConnectionSpec, key: str = "", *, is_new: bool = False) -> Iterator[list[Any]]:
    """Turn redis-py's exceptions into `StateError` and its kin, with the cause kept.

    Parameters
    ----------
    spec : ConnectionSpec
        Whose `display` the message shows.
    key : str, optional
        Key that the block works on, to be named when it holds another type.
    is_new : bool, optional
        The block makes a connection: one that is closed at once may be to a server that speaks TLS only.

    Yields
    ------
    list
        Where the block may put the client that it calls: of a cluster the message names its node.
    """
    called: list[Any] = []
    try:
        yield called
    except redis_errors.DataError:
        raise  # a programming error: redis-py cannot encode an argument
    except (redis_errors.RedisError, redis_errors.RedisClusterException) as exc:
        if spec.cluster and called:
            at = called[0].connection_pool.connection_kwargs
            spec = replace(spec, display=f"{spec.display}, node {name_of(Node(at['host'], at['port']))}")
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
    if spec.url and text != _WRONG_PASSWORD:
        options = parse_url(spec.url)
        for secret in (options.get("password"), options.get("username")):
            # Short words would take harmless letters out of every message, and a user name may be part of the host's.
            if secret and len(secret) > 2 and secret not in spec.display:
                text = text.replace(secret, "***")
    return text
