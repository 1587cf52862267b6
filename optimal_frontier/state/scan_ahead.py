"""Reads a large hash by HSCAN. The next reply is asked for before the last one is looked at, so that neither side waits."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple


class Scan(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    key : str
        The hash.
    cursor : int
        Where to go on; 0: at the beginning.
    at_once : int
        Entries of a reply, about.
    most : float
        Entries after which nothing is asked for ahead; inf: to the end.
    """

    key: str
    cursor: int
    at_once: int
    most: float


def scan_ahead(client: Any, scan: Scan) -> Generator[tuple[int, list[bytes]]]:
    """Yield replies: where to go on (0: that was all), and fields and values in turn.

    Parameters
    ----------
    client : redis.Redis
        Of one node. The scan has a connection of its own until it ends or is closed, so that other commands go between two replies.
    scan : Scan
        What is asked for.
    """
    pool = client.connection_pool
    connection, is_asked, left = pool.get_connection(), True, scan.most
    try:
        connection.send_command("HSCAN", scan.key, scan.cursor, "COUNT", scan.at_once)
        while is_asked:
            told, found = connection.read_response()
            cursor, left = int(told), left - len(found) // 2
            is_asked = cursor > 0 and left > 0
            if is_asked:
                connection.send_command("HSCAN", scan.key, cursor, "COUNT", scan.at_once)
            yield cursor, found
    finally:
        if is_asked:  # a reply may be under way that nobody reads
            connection.disconnect()
        pool.release(connection)
