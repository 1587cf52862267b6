"""Whatever stands in Redis: a command gives its answer, or says in one line why it has none."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from click.testing import CliRunner
from each_value import each

from optimal_frontier.cli import main
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.state import checking
from optimal_frontier.state.layouts import PartitionState, pack_doubles
from optimal_frontier.state.namespace import Namespace

from .stored_crawl import HOT, Crawl

JUNK = b"junk\xff\x00"
NAN = struct.pack("<d", float("nan"))
#: Commands that read, and those that change something.
READING = (["status"], ["check"], ["export", "-"], ["pages"], ["page", HOT], ["noise", "a.example"], ["whatif"], ["changes"])
ALL = (*READING, ["plan", "--once"], ["importance", "2", HOT], ["import", "list.csv"])
PLAN = ("time", "first_time", "measured_at", "prior_time", "fetched", "measured_fetches", "exploration_bits", "exploration_rounds")
SHOWN = ("exploration_held", "given_up", "hosts_at_limit", "hubs", "groups", "clocks_open", "rhythms_open", "young_patterns")

#: What is damaged, as a command of Redis (@ marks a key, HOT and HOST stand for what they are in the crawl), and those that read it.
DAMAGES = [
    (["ZADD", "@q", "inf", "HOT"], (["check"], ["export", "-"], ["status"], ["page", HOT])),
    (["ZADD", "@flagged", "inf", "a.example 00ff"], (["export", "-"], ["status"])),
    (["HSET", "@opens", "HOST4", NAN * 3], (["export", "-"], ["page", HOT], ["status"])),
    (["SET", "@d", NAN * len(PartitionState._fields)], READING),
    (["SET", "@d", pack_doubles(PartitionState(at=1e300))], (["status"], ["page", HOT], ["pages"])),
    (["HSET", "@memory", "HOT", b"\xc1"], (["pages"], ["noise", "a.example"], ["noise", HOT], ["page", HOT], ["export", "-"])),
    (["XADD", "@changes", "*", JUNK, JUNK], (["changes"], ["changes", "--json"])),
    (["XADD", "@changes", "*", "page", "x", "time", "soon"], (["changes"],)),
    (["XADD", "@changes", "*", "page", "x", "time", "1e300"], (["changes"], ["changes", "--json"])),
    (["HSET", "@hosts:names", "HOST", b"\xff\xfe"], ALL),
    (["HSET", "@hosts:names", "9" * 5000, "many"], READING),
    (["LPUSH", "@lateness", "nan inf 1e400 x", JUNK], (["status"], ["status", "--json"])),
    (["HSET", "@stats", "fetched", "nan"], ALL),
    *((["HSET", "@plan", *(word for name in PLAN for word in (name, value))], ALL) for value in (JUNK, b"nan", b"9" * 23, b"9" * 5000)),
    (["HSET", "@plan", JUNK, JUNK], ALL),
    (["HSET", "@plan", "groups", "3", "clocks_open", JUNK, "rhythms_open", "0"], READING),
    (["HSET", "@plan", *(word for name in SHOWN for word in (name, "1e400"))], READING),
    (["HSET", "@meta", "schema", b"\xff"], (["status"], ["check"], ["import", "list.csv"], ["migrate"])),
    (["HSET", "@meta", "schema", "migration, removing all"], (["migrate"], ["status"])),
]


@pytest.fixture
def restored(crawl: Crawl, nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> Crawl:
    """A crawl whose pages have memories, with a list of pages to import."""
    monkeypatch.setattr(checking, "PAUSE_S", 0.0)
    Path("list.csv").write_text(f"{HOT},3\nhttp://new.example/\n")
    return crawl


def words_of(crawl: Crawl, damage: list) -> list:
    number = crawl.host_number(HOT)
    stand = {"HOT": crawl.page(HOT), "HOST": number, "HOST4": number.to_bytes(4, "little")}
    return [crawl.key(word[1:]) if str(word).startswith("@") else stand.get(word, word) for word in damage]


@each("case", DAMAGES)
def test_a_damaged_value_ends_no_command_with_a_traceback(run, restored, case):
    damage, commands = case
    client = restored.namespace.connection.client
    before = {key: client.dump(key) for key in client.scan_iter(f"{restored.namespace.name}:*", count=1000)}
    client.execute_command(*words_of(restored, damage))
    for command in commands:
        result = run(*command)  # fails the test at any other exception than an exit
        assert result.exit_code in (0, 1), (command, result.output)
    client.delete(*client.scan_iter(f"{restored.namespace.name}:*", count=1000))
    for key, value in before.items():
        client.restore(key, 0, value)


@each("field", ["shape", "time"])
@each("value", [float("inf"), float("nan"), 0.0])
def test_a_page_whose_belief_is_damaged_is_listed(run, crawl, field, value):
    """As one of which nothing was learned."""
    crawl.rewrite(HOT, **{field: value})
    result = run("pages")
    assert result.exit_code == 0
    assert HOT in result.stdout


def test_a_plan_that_counts_wrongly_is_not_planned_by(run, ask, crawl):
    """What its fields say then is not known, and another plan can be made, which has them all."""
    crawl.namespace.command("HSET", crawl.key("plan"), *(word for name in PLAN for word in (name, "9" * 23)))
    assert run("plan", "--once").exit_code == 0
    plan = crawl.namespace.hash("plan")
    assert all(value != "9" * 23 for value in plan.values())
    assert run("check").exit_code == 0


def test_a_weight_makes_no_host_of_a_damaged_name(run, crawl):
    """The page is told as a damaged one, and its row stays as it was."""
    before = crawl.row(HOT)
    crawl.namespace.command("HSET", crawl.key("hosts:names"), crawl.host_number(HOT), b"\xff\xfe")
    assert run("importance", "2", HOT).stdout == "0 of importance 2, 1 damaged, and left as they are (see check)\n"
    assert crawl.row(HOT) == before
    assert sorted(crawl.namespace.connection.client.hkeys(crawl.key("hosts"))) == [b"a.example", b"b.example:8080"]


def test_a_name_of_a_host_that_was_overwritten_comes_back(run, crawl):
    crawl.namespace.command("HSET", crawl.key("hosts:names"), crawl.host_number(HOT), "elsewhere.example")
    result = run("check", "--repair")
    assert (result.exit_code, run("check").stdout) == (0, "ok, 4 pages\n")
    assert "repaired: host a.example is not named by its number" in result.stdout
    assert crawl.namespace.command("HGET", crawl.key("hosts:names"), crawl.host_number(HOT)).decode() == host_of(HOT)


def test_a_page_out_of_any_time_is_due(run, crawl):
    """Of an export its place is that of a page that is due, and what is damaged beside it is left out."""
    words = {"q": ["ZADD", "@q", "inf", "HOT"], "d": ["SET", "@d", NAN * len(PartitionState._fields)]}
    for damage in (*words.values(), ["HSET", "@opens", "HOST4", NAN * 3], ["ZADD", "@flagged", "inf", "a.example 00ff"]):
        crawl.namespace.command(*words_of(crawl, damage))
    text = run("export", "-").stdout
    (line,) = (line for line in text.splitlines() if f'"{crawl.page(HOT).hex()}"' in line)
    assert '"due":2' in line
    assert not any(name in text for name in ('"nan"', '"opens"', '"flagged"', '"d":'))


def test_a_key_whose_name_is_no_text_hides_no_namespace(crawl, redis_client, redis_socket):
    """It is listed among those that there are."""
    bot = crawl.namespace.name + "-bot"
    redis_client.hset(bot.encode() + b":\xff:{0}:meta", "schema", "4")
    Namespace(crawl.namespace.connection, f"{bot}:x").open(spider="x")
    result = CliRunner().invoke(main, ["--redis-url", f"unix://{redis_socket}", "--namespace", bot, "status"])
    assert isinstance(result.exception, SystemExit)
    assert f"there are {bot}:\\xff, {bot}:x" in result.stderr
