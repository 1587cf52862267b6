"""Users of Redis with few rights: those of deploy/users.acl suffice, and none of their commands is there for nothing."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
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


def test_users_suffice_for_a_crawl_and_for_the_commands(
    server: Server, site: MisbehavingSite, tmp_path: Path, nowhere: Path
) -> None:
    """The server refuses nothing; MONITOR of the same run is a part of what is granted."""
    crawl_until(server, site, tmp_path / "crawl", 60)
    assert server.refused() == []
    for user, lines in (("crawler", [*READING, *STEERING]), ("watcher", READING)):
        for words in lines:
            done = command(server, site, user, words)
            assert done.exit_code == 0, f"{user}: {words}: {done.output}"
    assert server.refused() == []
