"""A Redis Cluster as a client sees it: the nodes that a URL names, and one of them that answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import redis
from redis import cluster as redis_cluster
from redis import exceptions as redis_errors

#: Schemes of URLs of clusters, and those of single servers that mean the same otherwise.
CLUSTER_SCHEMES: Final = {"redis+cluster": "redis", "rediss+cluster": "rediss"}
#: Of redis-py's options for a single server, those that it does not want for a cluster.
_NOT_FOR_CLUSTERS: Final = frozenset({"connection_class", "db", "host", "port", "retry"})


class Node(NamedTuple):
    """Where a node is."""

    host: str
    port: int


def name_of(node: Node) -> str:
    """Return how a node is shown.

    Examples
    --------
    >>> name_of(Node("::1", 6379))
    '[::1]:6379'
    """
    host = f"[{node.host}]" if ":" in node.host else node.host
    return f"{host}:{node.port}"


def nodes_of(rest: str) -> tuple[tuple[Node, ...], str]:
    """Return the nodes that a URL names, and the URL with the first of them only; both without the scheme.

    Raises
    ------
    ValueError
        A host is missing, or a port is none; the text may quote a part of a password.

    Examples
    --------
    >>> nodes_of("user:word@a:7000,b/?socket_timeout=5")
    ((Node(host='a', port=7000), Node(host='b', port=6379)), 'user:word@a:7000/?socket_timeout=5')
    """
    place = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, hosts = place.rpartition("@")
    parts = [urlsplit(f"redis://{host}") for host in hosts.split(",")]
    if len(parts) > 1 and not all(part.hostname for part in parts):
        raise ValueError("a host is missing")
    nodes = tuple(Node(part.hostname or "localhost", part.port or 6379) for part in parts)
    return nodes, f"{user}{at}{parts[0].netloc}{rest[len(place) :]}"


def refused_options(options: Mapping[str, Any]) -> list[str]:
    """Return the names of options about TLS that redis-py's client of clusters would pass over in silence."""
    taken = getattr(redis_cluster, "REDIS_ALLOWED_KEYS", None)
    return [] if taken is None else sorted(name for name in options if name.startswith("ssl_") and name not in taken)


def cluster_client(options: Mapping[str, Any], nodes: Sequence[Node]) -> Any:
    """Return a client of the cluster of some nodes; the first one that answers tells of all others.

    Only the map of slots is this client's: calls go to its nodes' own clients, in one pipeline each.

    Parameters
    ----------
    options : mapping
        Of redis-py, as for a single server.
    nodes : sequence of Node

    Raises
    ------
    redis.exceptions.RedisClusterException
        None of them answers, or they are no cluster.
    """
    given = {name: value for name, value in options.items() if name not in _NOT_FOR_CLUSTERS}
    if options.get("connection_class") is redis.SSLConnection:
        given["ssl"] = True
    return redis.RedisCluster(startup_nodes=[redis_cluster.ClusterNode(*node) for node in nodes], **given)


def answering(client: Any) -> Any:
    """Return the client of a primary that answers; one that is down may have a successor soon, and is no reason to refuse the others."""
    lost: Exception | None = None
    for node in client.get_primaries():
        of_node = client.get_redis_connection(node)
        try:
            of_node.ping()
        except (redis_errors.ConnectionError, redis_errors.TimeoutError) as error:
            lost = error
        else:
            return of_node
    raise lost if lost is not None else redis_errors.ConnectionError("the cluster has no primaries")
