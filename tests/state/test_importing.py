"""Imports into one namespace: the one that began last fills it, and what an export says first is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from each_value import each
from timed_namespace import TimedNamespace, new_page

from optimal_frontier.errors import SchemaMismatchError, StateError
from optimal_frontier.state import importing
from optimal_frontier.state.export_lines import FORMAT, Line
from optimal_frontier.state.exporting import export_lines
from optimal_frontier.state.importing import Turn, Writer, begin, check_header, read_lines
from optimal_frontier.state.merging import Merger
from optimal_frontier.state.namespace import SCHEMA, Namespace

HEADER: Line = {"format": FORMAT, "schema": SCHEMA, "partitions": 2, "pages": 3, "meta": {"spider": "news"}}


def host_of(url: str) -> str:
    return url.split("/")[2]


@pytest.fixture
def lines(space: TimedNamespace) -> list[Line]:
    """An export of three pages of two hosts, with names that are no text."""
    space.add(*map(new_page, ("a/1", "a/2", "b/1")))
    space.command("HSET", space.key("sources"), b"a \xff", b"")
    space.command("ZADD", space.key("flagged"), 5, b"a \xfe")
    return list(export_lines(space))


@pytest.fixture
def empty(space: TimedNamespace) -> Iterator[Callable[[], Namespace]]:
    """Another namespace on the same server, as often as it is asked for."""
    yield lambda: Namespace(space.connection, f"{space.name}-copy")
    space.connection.client.delete(*space.connection.client.scan_iter(f"{space.name}-copy:*"))


def everything(namespace: Namespace) -> dict[bytes, Any]:
    client = namespace.connection.client
    return {key: client.dump(key) for key in client.scan_iter(f"{namespace.name}:*", count=1000)}


def fill(writer: Writer, lines: list[Line]) -> None:
    assert read_lines(iter(lines), writer.take, lambda _: None, lambda: False, "export")
    writer.end()


@pytest.mark.parametrize("taken", [0, 4, 99])
def test_of_two_imports_the_older_one_ends_and_leaves_nothing(lines, empty, monkeypatch, taken):
    """Wherever it is: the namespace has no key that the other one did not write."""
    monkeypatch.setattr(importing, "_BATCH", 1)
    turn = begin(empty(), lines[0], 1)
    turn.namespace.command("SET", turn.namespace.key("left"), "over")
    older = Writer(turn, host_of)
    for line in lines[1 : 1 + taken]:
        older.take(line)
    second = begin(empty(), lines[0], 1)
    newer = Writer(second, host_of)
    for act in (partial(older.take, lines[-2]), older.end, turn.finish, turn.check):
        with pytest.raises(StateError, match=r"another import into namespace '.*-copy' has begun"):
            act()
    fill(newer, lines[1:])
    second.finish()
    expected = everything(second.namespace)
    with pytest.raises(StateError, match="has begun"):
        turn.finish()
    assert everything(second.namespace) == expected
    second.namespace.open(create=False)
    assert [line for line in export_lines(second.namespace) if "page" in line] == [line for line in lines if "page" in line]
    assert "import" not in second.namespace.hash("meta")
    assert second.namespace.command("EXISTS", second.namespace.key("left")) == 0


def test_one_that_begins_between_look_and_change_is_seen(lines, empty, monkeypatch):
    """The later of two that begin at once removes what the other one wrote."""
    look, met = Turn._look, []

    def look_and_be_overtaken(turn: Turn) -> None:
        look(turn)
        if not met:
            met.append("")
            met[0] = begin(empty(), lines[0], 1)
            met[0].namespace.command("SET", met[0].namespace.key("left"), "over")

    monkeypatch.setattr(Turn, "_look", look_and_be_overtaken)
    turn = begin(empty(), lines[0], 1)
    turn.check()
    with pytest.raises(StateError, match="has begun"):
        met[0].check()
    assert list(everything(turn.namespace)) == [turn.namespace.key("meta").encode()]


def test_an_import_that_ended_is_begun_anew_whatever_it_left(lines, empty):
    """Where the number of partitions is damaged too, those that have anything are looked for."""
    turn = begin(empty(), lines[0], 3)
    fill(Writer(turn, host_of), lines[1:])
    turn.namespace.command("HSET", turn.namespace.key("meta"), "partitions", "abc")
    again = begin(empty(), lines[0], 1)
    assert list(everything(again.namespace)) == [again.namespace.key("meta").encode()]


@each("schema", [b"\xff", b"4", b"", b"3"])
def test_what_is_there_is_not_imported_into(empty, schema):
    namespace = empty()
    namespace.command("HSET", namespace.key("meta"), "schema", schema)
    with pytest.raises(StateError, match="is not empty"):
        begin(namespace, HEADER, 1)


def test_meta_of_an_export_never_says_that_all_is_there(empty):
    turn = begin(empty(), {**HEADER, "meta": {"schema": SCHEMA, "partitions": "9", "import": "x", "spider": "news"}}, 2)
    meta = turn.namespace.hash("meta")
    assert (meta["schema"], meta["partitions"], meta["spider"]) == ("import", "2", "news")
    turn.check()


BROKEN = [
    *(("pages", value) for value in (None, -1, 1.5, "3", True, [], 10**30)),
    *(("partitions", value) for value in (None, 0, 2.0, "2", True, [], 10**30, 16_385)),
    *(("meta", value) for value in (None, [], "x", {"spider": 5}, {"spider": None}, {"spider": "\ud800"}, {"\udcff": "x"})),
]


@each("case", BROKEN)
def test_a_damaged_header_is_refused_by_the_name_of_its_file(case):
    check_header(HEADER, "state.jsonl")
    name, value = case
    with pytest.raises(StateError, match=rf"^state.jsonl: the header of this export is damaged: expected .* '{name}'$"):
        check_header({**HEADER, name: value}, "state.jsonl")


def test_other_refusals_of_an_export_name_its_file():
    with pytest.raises(SchemaMismatchError, match=re.escape("state.jsonl: this export has form 9 and schema '4'")):
        check_header({**HEADER, "format": 9}, "state.jsonl")
    with pytest.raises(StateError, match=re.escape("state.jsonl: the export is not whole")):
        read_lines(iter([]), lambda _: None, lambda _: None, lambda: False, "state.jsonl")


def test_names_that_are_no_text_come_in_as_they_were(lines, empty, space):
    """By a merge as by an import of all."""
    turn = begin(empty(), lines[0], 1)
    fill(Writer(turn, host_of), lines[1:])
    turn.finish()
    copy = turn.namespace
    for name in ("sources", "flagged"):
        copy.command("DEL", copy.key(name))
    copy.open(create=False)
    merger = Merger(copy, lines[0], host_of)
    read_lines(iter(lines[1:]), merger.take, lambda _: None, lambda: False, "export")
    merger.end()
    assert copy.connection.client.hkeys(copy.key("sources")) == [b"a \xff"]
    assert copy.command("ZRANGE", copy.key("flagged"), 0, -1) == [b"a \xfe"]
