"""``export`` and ``import``: everything that was learned goes from one namespace to another."""

from __future__ import annotations

import gzip
import json
import os
from copy import copy as copy_of
from pathlib import Path

import pytest
from click.testing import CliRunner
from judged_crawl import JudgedCrawl

from optimal_frontier.cli import main
from optimal_frontier.frontier.dispatching.held_pages import bring_back
from optimal_frontier.frontier.judging.callback_errors import after_callback_error
from optimal_frontier.frontier.judging.holding import hold
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.state.exporting import export_lines
from optimal_frontier.state.keys import KEYS
from optimal_frontier.state.layouts import HostTurns, PartitionState, pack_doubles
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.rows import ONCE, TRANSIENT
from optimal_frontier.state.source_lessons import pack_record

from .stored_crawl import HOT, UNSEEN, WARM, WORTHLESS, Crawl

MOVED = "http://elsewhere.example/hot"


@pytest.fixture
def rich(crawl: Crawl) -> Crawl:
    """A crawl with something of everything: moved, retired, done, failed, pinned and weighed pages, first visits with priorities."""
    crawl.move(HOT, MOVED)
    crawl.add("http://c.example/gone", "http://c.example/once", "http://c.example/fails", importance=2.5)
    crawl.add("http://c.example/post", state=ONCE, method="POST", body=b"\x00\xff")
    crawl.see_all()
    for _ in range(2):
        crawl.fail_at("http://c.example/gone", "410")
    crawl.fail_at("http://c.example/fails", "503")
    crawl.add("http://c.example/first", priority=7.0)
    crawl.add("http://d.example/second", priority=-2.0, importance=3.0)
    crawl.add("http://d.example/transient", state=TRANSIENT, meta={b"scrapy_meta": {"x": (1, {2, 3})}})
    crawl.namespace.command("HSET", crawl.key("sources"), "c.example sitemap", pack_record([0.1 * at for at in range(16)]))
    crawl.namespace.command("ZADD", crawl.key("flagged"), "1234.5", "c.example 00ff")
    return crawl


def target_of(socket: str, name: str) -> list[str]:
    return ["--redis-url", f"unix://{socket}", "--namespace", name]


def told(namespace: Namespace) -> list[str]:
    """What an export says, but for where and when it was made, in one order."""
    header, *lines = export_lines(namespace)
    pages = sorted(json.dumps(line, sort_keys=True) for line in lines)
    return [json.dumps({name: header[name] for name in ("schema", "pages", "meta")}), *pages]


@pytest.fixture
def other(redis_socket: str, namespace: str):
    """Another namespace on the same server, which is opened by `opened`."""

    class Other:
        name = f"{namespace}-other"
        target = target_of(redis_socket, name)

        def run(self, *arguments: str, **options):
            result = CliRunner().invoke(main, [*self.target, *arguments], **options)
            assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
            return result

        def opened(self, crawl: JudgedCrawl, partitions: int = 1) -> Namespace:
            found = Namespace(crawl.namespace.connection, self.name)
            found.open(create=False)
            assert found.partitions == partitions
            return found

    return Other()


def test_a_round_trip_is_exact(run, rich, other, nowhere):
    result = run("export", "state.jsonl")
    assert result.exit_code == 0, result.output
    assert "pages, " in result.stdout
    assert other.run("import", "state.jsonl").exit_code == 0
    assert told(other.opened(rich)) == told(rich.namespace)
    assert other.run("check").stdout.startswith("ok, ")
    assert not (nowhere / "state.jsonl.part").exists()
    again = other.run("export", "again.jsonl")
    assert again.exit_code == 0
    assert sorted(Path("again.jsonl").read_text().splitlines()[1:]) == sorted(Path("state.jsonl").read_text().splitlines()[1:])


def test_counters_that_stand_at_nothing_come_whole(run, crawl, other):
    """No page waits for its first visit: so the original says, and so does an export of what was imported."""
    crawl.see_all()
    assert crawl.namespace.counts()["pending"] == 0
    assert run("export", "state.jsonl").exit_code == 0
    assert other.run("import", "state.jsonl").exit_code == 0
    assert other.opened(crawl).counts()["pending"] == 0
    assert told(other.opened(crawl)) == told(crawl.namespace)


def test_both_hand_out_the_same_in_the_same_order(run, rich, other, redis_socket):
    run("export", "state.jsonl")
    other.run("import", "state.jsonl")
    rich.advance(3.0)
    copy = copy_of(rich)
    copy.namespace = other.opened(rich)
    copy.namespace.command("SET", copy.namespace.key("d"), rich.namespace.command("GET", rich.key("d")))
    mine = [handout.record["url"] for handout in rich.dispatch(20)]
    assert len(mine) > 5
    assert [handout.record["url"] for handout in copy.dispatch(20)] == mine


def placed(namespace: Namespace) -> tuple[PartitionState | None, dict[bytes, HostTurns | None]]:
    """What a partition keeps of itself, and the turns of its hosts by name."""
    hosts, opens = (namespace.connection.client.hgetall(namespace.key(name)) for name in ("hosts", "opens"))
    turns = {host: HostTurns.stored(opens.get(int(number).to_bytes(4, "little"))) for host, number in hosts.items()}
    return PartitionState.stored(namespace.command("GET", namespace.key("d"))), turns


@pytest.mark.parametrize("is_of_before", [False, True])
def test_the_state_of_a_partition_and_the_turns_of_hosts_come_whole(run, rich, other, nowhere, is_of_before):
    """All that they have; of an export of before the last two doubles of the one and the last of the others are 0."""
    space, client = rich.namespace, rich.namespace.connection.client
    before = PartitionState(rich.time * 1e6, -2.5, 0.3, 1.7, 0.01, 7, 3, 12345, 99, rich.time * 1e6 - 5e6)
    client.set(space.key("d"), pack_doubles(before))
    for number in map(int, client.hvals(space.key("hosts"))):
        turns = HostTurns(before.at + number, before.at + 2e6 + number, before.at + 1e6 + number)
        client.hset(space.key("opens"), number.to_bytes(4, "little"), pack_doubles(turns))
    run("export", "state.jsonl")
    told_state, told_turns = placed(space)
    assert len(told_turns) > 2
    if is_of_before:
        lines = [json.loads(line) for line in Path("state.jsonl").read_text().splitlines()]
        for line in lines:
            line.update({name: line[name][:kept] for name, kept in (("d", 7), ("opens", 2)) if name in line})
        Path("state.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        told_state = before._replace(run=0.0, dispatches=0.0, clock=0.0)
        told_turns = {host: turns._replace(awaited=0.0) for host, turns in told_turns.items()}
    assert other.run("import", "state.jsonl").exit_code == 0
    assert placed(other.opened(rich)) == (told_state, told_turns)
    assert told_state == (before._replace(run=0.0, dispatches=0.0, clock=0.0) if is_of_before else before)


@pytest.mark.parametrize("name", ["state.jsonl.gz", "state.jsonl"])
def test_a_name_that_ends_in_gz_is_packed_and_both_are_read(run, rich, other, name):
    assert run("export", name).exit_code == 0
    raw = Path(name).read_bytes()
    assert (raw[:2] == b"\x1f\x8b") is name.endswith(".gz")
    lines = (gzip.decompress(raw) if name.endswith(".gz") else raw).splitlines()
    assert json.loads(lines[0])["optimal_frontier"] == "export"
    assert other.run("import", "-", input=raw).exit_code == 0
    assert told(other.opened(rich)) == told(rich.namespace)


def test_standard_output_has_nothing_but_the_lines(run, rich):
    lines = [json.loads(line) for line in run("export", "-").stdout.splitlines()]
    assert [next(iter(line)) for line in (lines[0], lines[-1])] == ["optimal_frontier", "end"]
    (hot,) = (line for line in lines if line.get("url") == MOVED)
    assert hot["row"]["visits"] >= 3
    assert "record" not in hot or hot["record"]


@pytest.mark.parametrize("partitions", [3, 7])
def test_another_number_of_partitions(run, rich, other, ask, nowhere, partitions, monkeypatch):
    run("export", "state.jsonl")
    settings = {"OPTIMAL_FRONTIER_PARTITIONS": partitions}
    monkeypatch.setattr("optimal_frontier.cli.project._project_settings", lambda given: (dict(settings), nowhere))
    assert other.run("import", "state.jsonl").exit_code == 0
    found = other.opened(rich, partitions)
    assert other.run("check").stdout.startswith("ok, ")
    page = json.loads(other.run("page", HOT, "--json").stdout)
    assert page["url"] == MOVED
    assert page["visits"] == ask("page", MOVED)["visits"]
    before, after = ask("status"), json.loads(other.run("status", "--json").stdout)
    counted = ("pages", "fetched", "pending_first_visit", "observations", "changes", "retired", "in_flight", "last_plan", "neighbourhoods")
    for name in counted:
        assert after[name] == before[name], name
    other.run("export", "back.jsonl")
    found.connection.client.delete(*found.connection.client.scan_iter(f"{other.name}:*"))
    settings["OPTIMAL_FRONTIER_PARTITIONS"] = 1
    assert other.run("import", "back.jsonl").exit_code == 0
    pages = [[line for line in told(n) if '"page"' in line or '"alias": ' in line] for n in (rich.namespace, other.opened(rich))]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("arguments", [[], ["--merge"]])
@pytest.mark.parametrize("partitions", [1, 5])
def test_held_pages_and_lost_items_are_counted_where_they_are(run, rich, other, nowhere, monkeypatch, partitions, arguments):
    """Held pages of a partition that counts none would never come back."""
    rich.make_due(MOVED, WARM)
    for handout in rich.dispatch(20):
        observation = hold(handout) if handout.page == rich.page(WARM) else rich.judged(handout, Visit(handout.received))
        rich.end([after_callback_error(observation, "callback", "KeyError")] if observation.outcome == "ok" else [observation])
    before = rich.namespace.counts()
    assert before["held"] == 1
    assert before["lost_callback"] > 0
    run("export", "state.jsonl")
    settings = {"OPTIMAL_FRONTIER_PARTITIONS": partitions}
    monkeypatch.setattr("optimal_frontier.cli.project._project_settings", lambda given: (dict(settings), nowhere))
    if arguments:
        Path("urls.csv").write_text("http://new.example/\n")
        other.run("import", "urls.csv")
    assert other.run("import", *arguments, "state.jsonl").exit_code == 0
    found = other.opened(rich, partitions)
    assert {name: found.counts()[name] for name in ("held", "lost_callback")} == {name: before[name] for name in ("held", "lost_callback")}
    assert bring_back(found, lambda name: True) == 1


def test_what_is_in_flight_is_due(run, rich, other):
    leased = [handout.record["url"] for handout in rich.dispatch(20)]
    assert leased
    assert run("export", "state.jsonl").exit_code == 0
    other.run("import", "state.jsonl")
    assert json.loads(other.run("status", "--json").stdout)["in_flight"] == 0
    assert other.run("check").stdout.startswith("ok, ")


def test_a_namespace_that_is_not_empty_is_refused(run, rich, other):
    run("export", "state.jsonl")
    result = run("import", "state.jsonl")
    assert result.exit_code == 1
    assert "is not empty" in result.stderr
    assert "--merge" in result.stderr


def test_merge_adds_what_is_not_known_and_leaves_what_is(run, rich, other, nowhere):
    run("export", "state.jsonl")
    Path("urls.csv").write_text(f"{WARM}\nhttp://new.example/\n")
    other.run("import", "urls.csv")
    other.opened(rich).command("SET", f"{other.name}:{{0}}:d", rich.namespace.command("GET", rich.key("d")))
    result = other.run("import", "--merge", "state.jsonl")
    assert result.exit_code == 0, result.output
    assert "known" in result.stdout
    assert other.run("check").stdout.startswith("ok, ")
    # It waited for its first visit: it takes over what was learned.
    assert json.loads(other.run("page", WARM, "--json").stdout)["visits"] == json.loads(run("page", WARM, "--json").stdout)["visits"]
    assert json.loads(other.run("page", HOT, "--json").stdout)["url"] == MOVED
    assert json.loads(other.run("page", "http://c.example/gone", "--json").stdout)["state"] == "retired"
    again = other.run("import", "--merge", "state.jsonl")
    assert again.stdout.startswith("0 new, ")


def test_a_part_of_an_export_makes_no_namespace(run, rich, other):
    run("export", "state.jsonl")
    whole = Path("state.jsonl").read_bytes()
    Path("part.jsonl").write_bytes(whole[: whole.rindex(b'{"end"')])
    result = other.run("import", "part.jsonl")
    assert result.exit_code == 1
    assert "part.jsonl: the export is not whole" in result.stderr
    refused = other.run("status")
    assert refused.exit_code == 1
    assert "has not ended" in refused.stderr
    assert other.run("import", "state.jsonl").exit_code == 0
    assert told(other.opened(rich)) == told(rich.namespace)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"page": "zz"}\n', "no line of an export"),
        (b"nothing\n", "expected a line of an export"),
        (b'{"nonsense": 1}\n', "no line of an export"),
        (b'{"page": "000000000000000000000000", "host": "a", "url": "http://a/", "row": {"state": 900}}\n', "no line of an export"),
    ],
)
def test_a_line_that_is_none_ends_the_import(run, rich, other, line, says):
    run("export", "state.jsonl")
    header, rest = Path("state.jsonl").read_bytes().split(b"\n", 1)
    Path("broken.jsonl").write_bytes(header + b"\n" + line + rest)
    result = other.run("import", "broken.jsonl")
    assert result.exit_code == 1
    assert says in result.stderr


def test_an_export_of_another_schema_is_refused(run, rich, other):
    run("export", "state.jsonl")
    text = Path("state.jsonl").read_text().replace('"schema": "4"', '"schema": "5"', 1)
    Path("newer.jsonl").write_text(text)
    result = other.run("import", "newer.jsonl")
    assert result.exit_code == 1
    assert "schema '5'" in result.stderr


def test_rows_that_cannot_be_read_are_left_out_and_told(run, rich):
    rich.namespace.command("HSET", rich.key("pages"), b"x" * 12, b"short")
    result = run("export", "state.jsonl")
    assert result.exit_code == 1
    assert "1 rows cannot be read" in result.stderr


def test_where_nothing_can_be_written(run, rich):
    result = run("export", "no/such/state.jsonl")
    assert result.exit_code == 2
    assert "there is no directory" in result.stderr


def test_a_link_stays_one_and_its_file_is_written(run, crawl, nowhere):
    """Also where there is no file yet at its end."""
    Path("there").mkdir()
    for target in ("there/old.jsonl", "there/new.jsonl"):
        link = Path(f"{Path(target).stem}.link")
        link.symlink_to(target)
        if "old" in target:
            Path(target).write_text("old")
        assert run("export", str(link)).exit_code == 0
        assert link.is_symlink()
        assert Path(target).read_text().startswith('{"optimal_frontier"')
    assert sorted(path.name for path in Path("there").iterdir()) == ["new.jsonl", "old.jsonl"]
    Path("astray.link").symlink_to("no/such/state.jsonl")
    assert "there is no directory" in run("export", "astray.link").stderr


def test_a_pipe_is_written_to_and_stays_one(run, crawl, nowhere):
    """Nothing else is said on standard output, which the pipe may be."""
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    result = run("export", "pipe")
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads(os.read(reader, 1 << 16).splitlines()[-1])["end"] == 4
    os.close(reader)
    assert Path("pipe").is_fifo()
    assert [path.name for path in nowhere.iterdir()] == ["pipe"]


def test_a_damaged_header_is_told_with_its_file(run, crawl, other):
    """Of an import and of a merge, before anything is changed."""
    run("export", "state.jsonl")
    header, _, rest = Path("state.jsonl").read_text().partition("\n")
    for name, value in (("pages", "many"), ("partitions", 0), ("meta", None), ("format", 9)):
        Path("broken.jsonl").write_text(json.dumps({**json.loads(header), name: value}) + "\n" + rest)
        for result in (other.run("import", "broken.jsonl"), run("import", "--merge", "broken.jsonl")):
            assert result.exit_code == 1
            (line,) = result.stderr.splitlines()
            assert line.startswith("optimal-frontier: broken.jsonl: ")
    assert not crawl.namespace.connection.client.exists(f"{other.name}:{{0}}:meta")


def test_every_key_is_exported_or_left_out_on_purpose():
    """What is left out: histories that nothing is decided by, the planner's lock, what is learned again of clocks and of young pages."""
    exported = "meta pages q f f:H opens hosts hosts:names hosts:words kept memory aliases retired:H d"
    of_plans = "plan priors prices stats flagged sources"
    left_out = "amended plans fence planner lateness changes visited clocks slots drainer refused_urls pings damaged grace youth"
    assert sorted(key.name for key in KEYS) == sorted(f"{exported} {of_plans} {left_out}".split())


def test_urls_of_an_export_are_readable(run, rich):
    run("export", "state.jsonl")
    urls = {json.loads(line).get("url") for line in Path("state.jsonl").read_text().splitlines() if '"page"' in line}
    assert {WARM, WORTHLESS, UNSEEN, MOVED} <= urls
