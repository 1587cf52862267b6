"""What is wrong is said in one clear line; the spider closes, nothing is fetched, and no password shows."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from crawler import Crawler
from misbehaving_site import MisbehavingSite

from optimal_frontier.state.namespace import SCHEMA

SPIDER = """
    class Tester(Base):
        paths = ["/static/0"]
"""

BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown": ({"of_CRAWL_RAET": 5}, "unknown setting OPTIMAL_FRONTIER_CRAWL_RAET; did you mean OPTIMAL_FRONTIER_CRAWL_RATE?"),
    "no such callable": (
        {"of_RULES": [{"host": "a", "fingerprint": "json.nothing"}]},
        "OPTIMAL_FRONTIER_RULES[0]['fingerprint'] = 'json.nothing': expected one of 'text', 'body', 'near' or the dotted path",
    ),
    "malformed number": ({"of_CRAWL_RATE": "fast"}, "OPTIMAL_FRONTIER_CRAWL_RATE = 'fast'"),
    "malformed rules": ({"of_RULES": [{"pattern": "("}]}, "OPTIMAL_FRONTIER_RULES[0]['pattern'] = '('"),
    "malformed limit of Frontera's": ({"MAX_REQUESTS": "many"}, "MAX_REQUESTS: expected a number of 0 or more, not 'many'"),
    "malformed delay of Frontera's": ({"DELAY_ON_EMPTY": -1}, "DELAY_ON_EMPTY: expected a number of 0 or more, not -1"),
    "no such scheme": (
        {"of_SCHEMES": "https,htttp"},
        "OPTIMAL_FRONTIER_SCHEMES: Scrapy has no download handler for 'htttp'; expected some of ",
    ),
    "a scheme that is switched off": (
        {"of_SCHEMES": ["http", "ftp"], "DOWNLOAD_HANDLERS": {"ftp": None}},
        "OPTIMAL_FRONTIER_SCHEMES: Scrapy has no download handler for 'ftp'; expected some of ",
    ),
    "no such solver": ({"CANONICAL_SOLVER": "frontera.no.Such"}, "Frontera's manager cannot be built; see MIDDLEWARES, CANONICAL_SOLVER"),
    "malformed URL": ({"of_REDIS_URL": "redis//user:hunter2@nowhere"}, "OPTIMAL_FRONTIER_REDIS_URL"),
    "no such socket": ({"of_REDIS_URL": "unix:///nowhere/redis.sock"}, "there is no such socket"),
    "no such host": ({"of_REDIS_URL": "redis://user:hunter2@nowhere.invalid"}, "host name cannot be resolved"),
}


def _is_refused(running: Any, site: MisbehavingSite, line: str) -> None:
    assert running.wait() == 0
    critical = [text for text in running.log.splitlines() if " CRITICAL: " in text]
    assert len(critical) == 1, running.log
    assert line in critical[0]
    assert "Traceback" not in running.log
    assert " ERROR: " not in running.log
    assert "hunter2" not in running.log
    assert running.stats["reason"] == "optimal_frontier_error"
    assert running.stats["optimal_frontier/refused"] in critical[0]
    assert not site.fetches


@pytest.mark.parametrize("fault", BAD_SETTINGS)
def test_bad_setting_closes_the_spider(fault: str, crawl: Crawler, site: MisbehavingSite) -> None:
    """One line names the setting."""
    settings, line = BAD_SETTINGS[fault]
    with crawl(SPIDER, **settings) as running:
        _is_refused(running, site, line)


def test_callbacks_that_the_spider_does_not_have_are_named(crawl: Crawler, site: MisbehavingSite) -> None:
    """In one line: the crawl goes on, as spiders of a project may share its settings."""
    spider = SPIDER + "\n        def parse_item(self, response):\n            pass\n"
    with crawl(spider, of_CALLBACKS="parse,parse_item,parse_itm,name") as running:
        running.until(lambda: site.fetches)
        running.stop()
    lines = [line for line in running.log.splitlines() if " INFO: " in line and "CALLBACKS" in line]
    assert len(lines) == 1, running.log
    said = "OPTIMAL_FRONTIER_CALLBACKS: the spider 'tester' has no method 'parse_itm', 'name'; is it of another spider?"
    assert lines[0].endswith(said)


def test_closed_port_closes_the_spider(crawl: Crawler, site: MisbehavingSite) -> None:
    """Redis that is not there is no reason for a traceback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with crawl(SPIDER, of_REDIS_URL=f"redis://user:hunter2@127.0.0.1:{port}/0") as running:
        _is_refused(running, site, "connection refused")


@pytest.fixture
def guest(redis_client: redis.Redis, namespace: str) -> Iterator[str]:
    """A user of the server that needs a password."""
    redis_client.execute_command("ACL", "SETUSER", namespace, "on", ">right", "~*", "+@all")
    yield namespace
    redis_client.execute_command("ACL", "DELUSER", namespace)


def test_wrong_password_closes_the_spider(crawl: Crawler, site: MisbehavingSite, redis_socket: str, guest: str) -> None:
    """The password is in no line of the output."""
    with crawl(SPIDER, of_REDIS_URL=f"unix://{guest}:hunter2@{redis_socket}", LOG_LEVEL="DEBUG") as running:
        _is_refused(running, site, "wrong password or user")


@pytest.mark.parametrize(
    ("key", "command", "line"),
    [
        ("meta", ["HSET", "schema", "99"], "schema '99'"),
        ("meta", ["SET", "something of another program"], "holds a string"),
        ("q", ["SADD", "x"], "holds a set"),
    ],
)
def test_foreign_keys_are_refused_and_left_alone(
    key: str, command: list[str], line: str, crawl: Crawler, site: MisbehavingSite, redis_client: redis.Redis, namespace: str
) -> None:
    """Another schema, or another program's value under our key: nothing that is stored is lost."""
    full = f"{namespace}:{{0}}:{key}"
    redis_client.execute_command(command[0], full, *command[1:])
    before = redis_client.dump(full)
    with crawl(SPIDER) as running:
        _is_refused(running, site, line)
    assert redis_client.dump(full) == before


def test_namespace_of_another_spider_is_refused(crawl: Crawler, site: MisbehavingSite, redis_client: redis.Redis, namespace: str) -> None:
    """It belongs to the spider that used it first; the line names the setting that helps."""
    redis_client.hset(f"{namespace}:{{0}}:meta", mapping={"schema": SCHEMA, "spider": "other"})
    with crawl(SPIDER) as running:
        _is_refused(running, site, "belongs to the spider 'other', this one is 'tester'; give it an OPTIMAL_FRONTIER_NAMESPACE")
    assert redis_client.hget(f"{namespace}:{{0}}:meta", "spider") == b"other"
