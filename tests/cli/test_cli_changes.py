"""``changes``: the feed as people and pipes read it."""

from __future__ import annotations

import json
import signal
import threading
import time

import pytest

from .stored_crawl import HOT, WARM


def rows(result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def visit(crawl, url: str, bit: int, made: bytes) -> None:
    crawl.store.advance(10.0)
    crawl.visit(url, bit=bit, content=bytes(4) + made * 16)


def test_the_latest_come_last_with_what_they_were_before(run, crawl):
    visit(crawl, HOT, 1, b"\1")
    visit(crawl, WARM, 0, b"\2")
    visit(crawl, HOT, 1, b"\3")
    told = rows(run("changes", "--json", "--limit", "2"))
    assert [(change["url"], change["previous"], change["fingerprint"]) for change in told] == [
        (HOT, "07" * 16, "01" * 16),
        (HOT, "01" * 16, "03" * 16),
    ]
    assert told[0]["time"] <= told[1]["time"]
    lines = run("changes", "--limit", "1").stdout.splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(f"01010101 -> 03030303  {HOT}")


def test_all_that_changed_so_far_is_there(run, crawl):
    assert len(rows(run("changes", "--json", "--limit", "1000"))) == 4
    assert run("changes", "--limit", "0").stdout == ""


def test_entries_of_an_older_version_tell_what_they_have(run, crawl):
    crawl.store.command("XADD", crawl.store.key("changes"), "*", "slot", 1, "time", "5.000", "record", b"\x80")
    told = rows(run("changes", "--json", "--limit", "1"))[0]
    assert told | {"slot": 1, "time": 5.0, "url": "", "previous": "", "fingerprint": ""} == told
    assert "--------" in run("changes", "--limit", "1").stdout


@pytest.mark.parametrize("arguments", [("--limit", "-1"), ("--limit", "x"), ("surplus",)])
def test_wrong_usage(run, crawl, arguments):
    assert run("changes", *arguments).exit_code == 2


def test_following_tells_what_comes_until_it_is_stopped(run, crawl):
    """As ``tail -f``: those so far, then each new one."""

    def go_on() -> None:
        time.sleep(0.3)
        visit(crawl, WARM, 1, b"\4")
        time.sleep(1.2)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=go_on)
    thread.start()
    told = rows(run("changes", "--follow", "--json", "--limit", "1"))
    thread.join()
    assert [change["url"] for change in told][1:] == [WARM]
