"""Users of Redis with few rights: those of deploy/users.acl suffice, and none of their commands is there for nothing."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner, Result
from crawls import crawling
from misbehaving_site import MisbehavingSite
from real_server import binary_of, free_port, real_server

import optimal_frontier
from optimal_frontier.cli import main

ROOT = Path(optimal_frontier.__file__).parent
USERS = (ROOT.parent / "deploy" / "users.acl").read_text()
#: What stands for a namespace and for passwords in the file.
NAMESPACE, PASSWORDS = "shop", {"crawler": "CHANGE-ME-1", "watcher": "CHANGE-ME-2"}
#: What redis-py sends by methods of its client, for a database other than 0 too.
OF_THE_CLIENT = {"ping", "info", "select", "script|load"}
#: Which namespaces there are is asked only where none is named; that would show the names of all keys to these users.
NOT_GRANTED = {"scan"}

SPIDER = """
    class Tester(Base):
        paths = ["/pages/6", "/counter/0", "/moved/static/9", "/status/404"]
        def parse(self, response):
            for link in response.css("a"):
                yield response.follow(link)
"""
READING = (
    ["status", "--json"],
    ["pages", "--json"],
    ["page", "@/counter/0", "--json"],
    ["check", "--json"],
    ["sources", "--json"],
    ["changes"],
    ["noise", "@/counter/0"],
    ["whatif", "--rate", "5", "--json"],
    ["export", "-"],
)
STEERING = (
    ["ping", "@/static/1"],
    ["plan", "--once"],
    ["force", "@/static/1"],
    ["importance", "2", "@/static/2"],
    ["forget", "@/static/3"],
    ["check", "--repair"],
)


def granted(user: str) -> set[str]:
    """Return the commands that the file allows a user."""
    (line,) = (line for line in USERS.splitlines() if line.startswith(f"user {user} "))
    return {word[1:] for word in line.split() if word.startswith("+")}


class Server:
    """A server with the users of the file, on TCP."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.admin = redis.Redis(port=port, username="admin", password="admin", protocol=2)

    def url(self, user: str) -> str:
        return f"redis://{user}:{PASSWORDS[user]}@127.0.0.1:{self.port}/1"

    def refused(self) -> list[str]:
        """What the server has refused to these users since it was asked last: commands and keys."""
        entries = [
            f"{entry['username']}: {entry['object']}"
            for entry in self.admin.acl_log()
            if not str(entry["object"]).startswith("client|")  # the name of the client's library, which nobody needs
        ]
        self.admin.acl_log_reset()
        return entries


@pytest.fixture(scope="module", params=["redis", "valkey"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that knows the users of the file, and `admin`."""
    folder = tmp_path_factory.mktemp("acl")
    (folder / "users.acl").write_text(USERS + "user admin on >admin ~* &* +@all\n")
    with real_server(binary_of(request.param), folder, {"port": free_port(), "aclfile": folder / "users.acl"}) as port:
        made = Server(port)
        yield made
        made.admin.close()


@pytest.fixture
def site() -> Iterator[MisbehavingSite]:
    with MisbehavingSite() as running:
        yield running


def command(server: Server, site: MisbehavingSite, user: str, words: list[str]) -> Result:
    """Run the command as a user; ``@`` stands for the site."""
    target = ["--redis-url", server.url(user), "--namespace", NAMESPACE]
    return CliRunner().invoke(main, target + [site.url(word[1:]) if word.startswith("@") else word for word in words])


def settings(server: Server, user: str = "crawler") -> dict[str, object]:
    return {"OPTIMAL_FRONTIER_REDIS_URL": server.url(user), "OPTIMAL_FRONTIER_NAMESPACE": NAMESPACE}


def crawl_until(server: Server, site: MisbehavingSite, folder: Path, visits: int) -> None:
    """Crawl with all that asks Redis for more: sources, URL_KEYS, clocks of neighbourhoods, pacing of hosts."""
    site.sitemap = [("/static/20", "2026-01-01"), ("/static/21", "2026-01-02")]
    further = {
        "OPTIMAL_FRONTIER_SOURCES": [site.url("/sitemap.xml")],
        "OPTIMAL_FRONTIER_URL_KEYS": [f"{NAMESPACE}:urls"],
        "OPTIMAL_FRONTIER_NEIGHBOURHOODS": True,
        "OPTIMAL_FRONTIER_HOST_MAX_RATE": 50,
    }
    with redis.Redis.from_url(server.url("crawler")) as client, crawling(folder, site.url(""), SPIDER, settings(server) | further) as run:
        client.lpush(f"{NAMESPACE}:urls", site.url("/static/30"))

        def seen() -> bool:
            counts = {name.decode(): int(value) for name, value in client.hgetall(f"{NAMESPACE}:{{0}}:stats").items()}
            has_plan = client.exists(f"{NAMESPACE}:{{0}}:plan")
            return bool(counts.get("visits", 0) >= visits and counts.get("pushed") and has_plan)

        run.until(seen)
        run.stop()
        assert "lacks a permission" not in run.log
        assert "Traceback" not in run.log, run.log


def test_users_suffice_for_a_crawl_and_for_the_commands(server: Server, site: MisbehavingSite, tmp_path: Path, nowhere: Path) -> None:
    """The log of refusals stays empty over a crawl, and over all that looks at it and steers it."""
    crawl_until(server, site, tmp_path / "crawl", 60)
    assert server.refused() == []
    for user, lines in (("crawler", [*READING, *STEERING]), ("watcher", READING)):
        for words in lines:
            done = command(server, site, user, words)
            assert done.exit_code == 0, f"{user}: {words}: {done.output}"
    assert server.refused() == []


@pytest.mark.parametrize("missing", ["hsetnx", "zadd", "evalsha", "script|load"])
def test_a_missing_command_is_named_in_one_line(missing: str, server: Server, site: MisbehavingSite, tmp_path: Path) -> None:
    """Whether it is missing at the start or within a script."""
    server.admin.flushall()
    server.admin.execute_command("ACL", "SETUSER", "crawler", f"-{missing}")
    try:
        with crawling(tmp_path, site.url(""), SPIDER, settings(server)) as run:
            run.wait()
            critical = [line for line in run.log.splitlines() if " CRITICAL: optimal_frontier: " in line]
            assert len(critical) == 1, run.log
            assert "lacks a permission: " in critical[0]
            assert f"'{missing}'" in critical[0]
            assert "Traceback" not in run.log
    finally:
        server.admin.execute_command("ACL", "SETUSER", "crawler", f"+{missing}")
        server.admin.flushall()
        server.admin.acl_log_reset()


def test_who_reads_may_not_write(server: Server, site: MisbehavingSite, tmp_path: Path, nowhere: Path) -> None:
    """A command that would change something is refused in one line; so is a crawl, and so are keys of others."""
    crawl_until(server, site, tmp_path / "crawl", 5)
    for words, refused in ((["ping", "@/static/1"], "'xadd'"), (["plan", "--once"], "'script|load'"), (["forget", "@/static/3"], "'")):
        done = command(server, site, "watcher", words)
        assert done.exit_code == 1
        assert len(done.stderr.splitlines()) == 1
        assert "lacks a permission" in done.stderr
        assert refused in done.stderr
    elsewhere = CliRunner().invoke(main, ["--redis-url", server.url("watcher"), "--namespace", "other", "status"])
    assert (elsewhere.exit_code, "permissions" in elsewhere.stderr, "key" in elsewhere.stderr) == (1, True, True)
    nothing = CliRunner().invoke(main, ["--redis-url", server.url("watcher"), "--namespace", "shop:none", "status"])
    assert (nothing.exit_code, "nothing is stored yet under namespace 'shop:none'" in nothing.stderr) == (1, True)
    server.admin.acl_log_reset()


@functools.cache
def words_of_the_code() -> frozenset[str]:
    """Return what scripts call, and what stands first in a list, a tuple or a call of the package; in lower case."""
    found: set[str] = set()
    for path in ROOT.glob("state/lua/*.lua"):
        found |= set(re.findall(r"(?:call|many)\('([A-Z]+)'", path.read_text()))
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            words = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.List | ast.Tuple) else []
            if words and isinstance(words[0], ast.Constant) and isinstance(words[0].value, str):
                found.add(words[0].value)
    return frozenset(name.lower() for name in found if name.isupper())


def test_no_command_is_granted_for_nothing(server: Server) -> None:
    """The crawler's commands are those of the code; the reader's are those of them that change nothing."""
    flags = {str(name): command["flags"] for name, command in server.admin.command().items()}
    used = (words_of_the_code() & flags.keys()) - NOT_GRANTED
    assert granted("crawler") == used | OF_THE_CLIENT | {"multi", "exec"}
    assert granted("watcher") < granted("crawler")
    assert not [name for name in granted("watcher") if "|" not in name and "write" in flags[name]]
    assert not granted("watcher") & {"evalsha", "script|load"}


def test_documentation_shows_the_file() -> None:
    """The users of docs/deployment.md are those of the file."""
    assert USERS in (ROOT.parent / "docs" / "deployment.md").read_text()
