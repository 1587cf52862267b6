"""Large hashes are read with one reply under way ahead of the reader."""

from __future__ import annotations

import math

import pytest
from timed_namespace import TimedNamespace

from optimal_frontier.errors import SchemaMismatchError
from optimal_frontier.state.scan_ahead import Scan

ENTRIES = 3000


@pytest.fixture
def key(space: TimedNamespace) -> str:
    key = space.key("kept")
    space.command("HSET", key, *(word for number in range(ENTRIES) for word in (f"f{number}", number)))
    return key


def calls(space: TimedNamespace) -> int:
    return int(space.connection.client.info("commandstats")["cmdstat_hscan"]["calls"])


def test_all_entries_come_and_the_last_reply_says_so(space: TimedNamespace, key: str) -> None:
    cursors, found = zip(*space.scan(Scan(key, 0, 100, math.inf)), strict=True)
    entries = {field: value for flat in found for field, value in zip(flat[::2], flat[1::2], strict=True)}
    assert entries == {b"f%d" % number: b"%d" % number for number in range(ENTRIES)}
    assert cursors[-1] == 0 < min(cursors[:-1])


def test_a_scan_goes_on_where_another_one_ended(space: TimedNamespace, key: str) -> None:
    """Who has closed it in the middle finds connections as good as before; other commands go in between."""
    scan, found = space.scan(Scan(key, 0, 100, math.inf)), set()
    for _ in range(5):
        cursor, flat = next(scan)
        found.update(flat[::2])
        assert space.command("HLEN", key) == ENTRIES
    scan.close()
    assert [space.command("HLEN", key) for _ in range(3)] == [ENTRIES] * 3
    found.update(field for _, flat in space.scan(Scan(key, cursor, 100, math.inf)) for field in flat[::2])
    assert len(found) == ENTRIES


def test_nothing_is_asked_for_beyond_what_is_wanted(space: TimedNamespace, key: str) -> None:
    before = calls(space)
    replies = list(space.scan(Scan(key, 0, 100, 150.0)))
    assert calls(space) - before == len(replies) == 2
    assert replies[-1][0] > 0


def test_what_is_no_hash_is_told_in_our_words(space: TimedNamespace) -> None:
    space.command("SET", space.key("text"), "x")
    with pytest.raises(SchemaMismatchError, match="another type"):
        list(space.scan(Scan(space.key("text"), 0, 100, math.inf)))
    assert list(space.scan(Scan(space.key("nothing"), 0, 100, math.inf))) == [(0, [])]
