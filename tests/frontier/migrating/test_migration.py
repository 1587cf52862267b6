"""``migrate``: a namespace that the first edition wrote goes on in this one.

``schema_3.json`` has the keys that a crawl of commit f1527f6 left after eight seconds with a site on loopback. Of its pages one changes
often, one has an ETag, one is gone, one fails, one has moved, one is pinned, one has update times, one states its importance; a POST was
fetched once; two pages of another host were found last. Values are base64.
"""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from judged_crawl import scrapys

from optimal_frontier.cli import main
from optimal_frontier.frontier.migrating.migration import Migration
from optimal_frontier.state.aliases import locate
from optimal_frontier.state.connection import connect
from optimal_frontier.state.namespace import SCHEMA, Namespace
from optimal_frontier.state.partition import Ask, dispatch_call, parse_dispatch
from optimal_frontier.state.reading import read_page
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import ACTIVE, DONE, RETIRED

SITE = "http://127.0.0.1:18991"
DUMP = json.loads((Path(__file__).parent / "schema_3.json").read_text())


#: Pages that stand in the queue.
PATHS = ("often", "tagged")


def at(path: str) -> bytes:
    """The identity of a page of the site."""
    return scrapys(f"{SITE}/{path}")


def raw(value):
    return base64.b64decode(value) if isinstance(value, str) else value


def restore(client, name: str) -> None:
    for old, (kind, value) in DUMP.items():
        key = old.replace("small:", f"{name}:", 1)
        if kind == "string":
            client.set(key, raw(value))
        elif kind == "hash":
            client.hset(key, mapping={raw(field): raw(told) for field, told in value.items()})
        elif kind == "list":
            client.rpush(key, *map(raw, value))
        elif kind == "set":
            client.sadd(key, *map(raw, value))
        elif kind == "zset":
            client.zadd(key, {raw(member): score for member, score in value})
        else:
            for at, fields in value:
                client.xadd(key, {raw(field): raw(told) for field, told in fields.items()}, id=at)


@pytest.fixture
def old(redis_socket, namespace):
    connection = connect(parse_redis_url(f"unix://{redis_socket}", Path()))
    found = Namespace(connection, namespace)
    restore(connection.client, namespace)
    yield found
    connection.close()


@pytest.fixture
def run(redis_socket, namespace, nowhere):
    def invoke(*arguments):
        result = CliRunner().invoke(main, ["--redis-url", f"unix://{redis_socket}", "--namespace", namespace, *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


def page(space: Namespace, path: str):
    url = path if "://" in path else f"{SITE}/{path}"
    found = read_page(space, scrapys(url)[:12], "127.0.0.1:18991")
    assert found is not None, url
    return found


def test_everything_that_was_learned_is_there(old, run):
    assert run("status").exit_code == 1
    assert "optimal-frontier migrate" in run("status").stderr
    result = run("migrate")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("11 pages taken over from schema 3")
    old.open(spider="small", create=False)
    often = page(old, "often")
    assert (often.row.state, often.row.visits > 5, often.row.changes > 3) == (ACTIVE, True, True)
    assert often.row.shape > 1
    assert any(often.row.content)
    assert often.row.tag > 0
    assert often.memory.noise
    assert page(old, "tagged").memory.etag == b'"7"'
    assert page(old, "gone").row.state == RETIRED
    failing = page(old, "failing").row
    assert (failing.failures, failing.failed) == (3, 3)
    pinned = page(old, "pinned").row
    assert pinned.min_interval == pinned.max_interval == 2.0
    weighed = page(old, "weighed")
    assert (weighed.stated, weighed.row.importance) == (4.5, 4.5)
    assert weighed.record["headers"] == {b"X-Own": [b"1"]}
    still = page(old, "still")
    assert (still.stated, still.row.importance) == (0.0, 0.5)
    assert page(old, "moved").record["url"] == f"{SITE}/arrived"
    assert page(old, "moved").aliases == (f"{SITE}/moved",)
    assert page(old, "often").words.validators[2] == 2.0
    assert sum(place is not None for place in locate(old, [scrapys(f"http://localhost:18991/{name}") for name in ("waits", "waits2")])) == 2
    assert run("check").stdout == "ok, 11 pages\n"


def test_pages_keep_their_next_visits_and_the_crawl_goes_on(old, run):
    scores = {raw(member): score for member, score in DUMP["small:{0}:due:1"][1]}
    run("migrate")
    old.open(create=False)
    slots = {raw(name): raw(slot) for name, slot in DUMP["small:{0}:ids"][1].items()}
    for path in ("often", "tagged", "pinned", "still"):
        found = page(old, path)
        due = found.row.b / 1e6 + found.row.a
        slot = next(slot for name, slot in slots.items() if name == scrapys(f"{SITE}/{path}"))
        assert due == pytest.approx(max(scores[slot], found.row.b / 1e6), abs=0.01)
    handouts = parse_dispatch(0, old.run([dispatch_call(0, Ask(64))])[0]).handouts
    assert {handout.record["url"] for handout in handouts} >= {f"{SITE}/often", f"{SITE}/pinned"}


def test_nothing_of_the_old_schema_stays_and_a_second_time_does_nothing(old, run, namespace):
    run("migrate")
    keys = {key.decode().rsplit("}:", 1)[1] for key in old.connection.client.scan_iter(f"{namespace}*")}
    assert not keys & {"ids", "records", "page:0", "seen:0", "due:1", "patterns", "published"}
    assert not list(old.connection.client.scan_iter(f"{namespace}~*"))
    again = run("migrate")
    assert (again.exit_code, again.stdout) == (0, f"namespace {namespace!r} has schema {SCHEMA} already\n")


def test_who_was_interrupted_begins_again(old, run):
    first = Migration(old, 3)
    header, lines = first.header()
    seen = iter([False] * 6)
    assert not first.take_over(header, lines, lambda count: None, lambda: next(seen, True))
    assert old.command("HGET", old.key("meta"), "schema") == b"3"
    second = Migration(old, 1)
    assert second.take_over(*second.header(), lambda count: None, lambda: False)
    third = Migration(old, 1)
    assert third.header()[0] is None
    third.settle()
    assert Migration(old, 1).is_done
    assert run("check").stdout == "ok, 11 pages\n"


def test_a_running_crawl_is_refused(old, run):
    seconds, _ = old.command("TIME")
    old.command("ZADD", old.key("owners"), seconds, "somebody")
    result = run("migrate")
    assert result.exit_code == 1
    assert "is running" in result.stderr
    assert old.command("HGET", old.key("meta"), "schema") == b"3"


def test_where_no_data_are_nothing_is_made(run, tmp_path):
    """A mistyped folder is no new embedded server."""
    result = run("--redis-url", f"embedded://{tmp_path}/none", "--namespace", "shop", "migrate")
    assert result.exit_code == 1
    assert result.stderr == f"optimal-frontier: nothing is stored yet in {tmp_path}/none: run a crawl or an import first\n"
    assert not (tmp_path / "none").exists()


def test_who_names_another_namespace_is_told_which_there_are(old, run, namespace):
    restore(old.connection.client, f"{namespace}:news")
    result = run("--namespace", f"{namespace}:new", "migrate")
    assert result.exit_code == 1
    assert f"nothing is stored yet under namespace '{namespace}:new'" in result.stderr
    assert result.stderr.endswith(f"{namespace}:news\n")


DAMAGES = [
    ("records", b"2", b"\xff"),
    ("hosts:names", b"1", b"\xff"),
    ("hosts:names", b"\xff", b"1"),
    ("ids", None, b"\xff"),
    ("failed", b"3", b"\xff"),
    ("trust", b"1:validators", b"\xff"),
    ("meta", b"clock", b"never"),
    ("meta", b"slots", b""),
    ("meta", b"arrivals", b"1e999"),
    ("stats", b"visits", b"many"),
    ("seen:0", None, b"\xff" * 76),
    ("due:1", None, b"\xff"),
]


@pytest.mark.parametrize(("name", "field", "value"), DAMAGES)
def test_what_cannot_be_read_costs_nothing_else(name, field, value, old, run):
    """Of a page that cannot be read the others are taken over, and it is told."""
    client, key = old.connection.client, old.key(name)
    if name == "seen:0":
        client.setrange(key, 0, value)
    elif name == "due:1":
        client.zadd(key, {value: 1.0, client.zrange(key, 0, 0)[0]: math.inf})
    else:
        client.hset(key, field or next(iter(client.hkeys(key))), value)
    lost = int(name in ("records", "ids", "seen:0"))
    result = run("migrate")
    assert result.stdout.startswith(f"{11 - lost} pages taken over")
    assert (result.exit_code, result.stderr) == ((1, "1 pages could not be read, and were left out\n") if lost else (0, ""))
    assert run("check").stdout == f"ok, {11 - lost} pages\n"


def test_pages_that_stood_in_no_queue_are_due_by_their_rate(old, run):
    """Schema 3 queued what was due within two plans; what waited for an update time under an ``auto`` budget was queued far behind."""
    client = old.connection.client
    slots = {path: raw(DUMP["small:{0}:ids"][1][text]) for text in DUMP["small:{0}:ids"][1] for path in PATHS if raw(text) == at(path)}
    scores = {path: client.zscore(old.key("due:1"), slots[path]) for path in PATHS}
    client.zrem(old.key("due:1"), slots["often"])
    client.zadd(old.key("due:1"), {slots["tagged"]: 1e13 + scores["tagged"]})
    run("migrate")
    old.open(create=False)
    for path in PATHS:
        found = page(old, path).row
        assert found.b / 1e6 + found.a == pytest.approx(max(scores[path], found.b / 1e6), abs=0.01)


def test_other_schemas_are_refused(old, run):
    old.command("HSET", old.key("meta"), "schema", "2")
    result = run("migrate")
    assert result.exit_code == 1
    assert "there is a way to schema" in result.stderr


def test_what_was_fetched_once_left_no_url_and_is_not_known_any_more(old, run):
    run("migrate")
    old.open(create=False)
    states = [value[4] for value in old.command("HVALS", old.key("pages"))]
    assert DONE not in states
    assert len(states) == 11
