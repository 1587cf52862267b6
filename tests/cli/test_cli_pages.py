"""``pages``: the table, sorted, cut and filtered."""

from __future__ import annotations

import numpy as np
import pytest

from optimal_frontier.cli import pages_command

from .stored_crawl import HOT, UNSEEN, VISITED, WARM, WORTHLESS


def urls(rows):
    return [row["url"] for row in rows]


def test_no_pages_are_no_table(run, ask, store):
    assert (run("pages").stdout, ask("pages")) == ("no pages\n", [])


def test_a_row_has_the_numbers_of_its_page(ask, crawl):
    row, page = ask("pages", "--limit", "1")[0], ask("page", HOT)
    assert row["url"] == HOT
    for name in ("host", "importance", "change_rate", "rate", "interval", "visits", "observations", "changes", "state", "in_flight"):
        assert row[name] == pytest.approx(page[name]) if isinstance(row[name], float) else row[name] == page[name]
    assert row["due_in_seconds"] == pytest.approx(page["due_in_seconds"])
    assert row["deadline"] == pytest.approx(page["deadline"])
    assert row["lateness_seconds"] == pytest.approx(page["lateness_seconds"])


def test_sorts_the_largest_first_and_what_is_not_known_last(ask, crawl):
    assert urls(ask("pages")) == [HOT, WARM, WORTHLESS, UNSEEN]
    assert urls(ask("pages", "--sort", "importance")) == [HOT, WARM, UNSEEN, WORTHLESS]
    rates = [row["change_rate"] for row in ask("pages", "--sort", "change_rate")]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1]


def test_sorts_by_lateness(ask, crawl):
    crawl.advance(200.0)
    rows = ask("pages", "--sort", "lateness")
    assert {rows[0]["url"], rows[1]["url"]} == {HOT, WARM}
    assert rows[0]["lateness_seconds"] > rows[1]["lateness_seconds"] > 0
    assert rows[0]["due_in_seconds"] == -rows[0]["lateness_seconds"]
    assert [row["lateness_seconds"] for row in rows[2:]] == [0.0, 0.0]


def test_equal_keys_come_in_the_same_order_each_time(ask, crawl):
    crawl.add(*(f"http://same{at}.example/" for at in range(30)))
    rows = urls(ask("pages", "--sort", "importance", "--limit", "0"))
    assert rows[0] == HOT
    assert rows == urls(ask("pages", "--sort", "importance", "--limit", "0"))
    assert urls(ask("pages", "--sort", "importance", "--limit", "9")) == rows[:9]


def test_a_leased_page_is_not_late(ask, crawl):
    crawl.advance(200.0)
    assert len(crawl.dispatch(10)) == 4
    rows = ask("pages", "--sort", "lateness")
    assert {row["lateness_seconds"] for row in rows} == {0.0}
    assert sum(row["in_flight"] for row in rows) == 4


def test_limit_and_host(ask, run, crawl):
    assert len(ask("pages", "--limit", "2")) == 2
    assert len(ask("pages", "--limit", "0")) == 4
    assert urls(ask("pages", "--host", "B.example:8080")) == [WORTHLESS, UNSEEN]
    assert urls(ask("pages", "--host", "b.example")) == [WORTHLESS, UNSEEN]
    for none in ("b.example:80", "a.example:8080", "elsewhere.example"):
        result = run("pages", "--host", none)
        assert result.exit_code == 1
        assert f"no page of host {none!r} is known" in result.stderr


@pytest.mark.parametrize("command", [["pages"], ["noise"], ["reparse"], ["forget"], ["force"], ["importance", "3"]], ids=" ".join)
def test_a_host_is_named_in_one_way(run, crawl, command):
    """As in RULES: without its port it is meant with any. A URL is none, and that is said in one line."""
    option = [] if command == ["noise"] else ["--host"]
    rest = [] if command in (["pages"], ["noise"]) else ["--dry-run"]
    for name in ("b.example", "B.example:8080"):
        assert run(*command, *option, name, *rest).exit_code == 0
    if option:
        result = run(*command, *option, "http://b.example:8080/", *rest)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "'http://b.example:8080/' is no host; expected its name" in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_what_is_not_known_is_null(ask, crawl):
    row = ask("pages", "--host", "b.example:8080")[1]
    assert (row["url"], row["rate"], row["interval"], row["deadline"]) == (UNSEEN, None, None, None)


def test_people_get_a_table_that_is_not_cut_off(run, crawl):
    long = "http://c.example/" + "x" * 500 + "[bold]"
    crawl.add(long)
    result = run("pages")
    assert result.exit_code == 0
    assert any(line.endswith(long) for line in result.stdout.splitlines())
    assert all(url in result.stdout for url in VISITED)


def test_what_would_steer_a_terminal_is_shown_as_text(run, crawl):
    crawl.namespace.command("HSET", crawl.key("hosts:names"), crawl.host_number(HOT), "\x1b[2Jevil")
    assert "\x1b" not in run("page", HOT).stdout
    assert np.isin("\\x1b[2Jevil", run("page", HOT).stdout.split())


def test_nothing_to_show_is_an_empty_table(ask, store):
    assert ask("pages") == []


def test_what_a_partition_has_in_common_is_worked_out_once_and_not_for_each_row(ask, crawl, monkeypatch):
    crawl.add(*(f"http://many{at}.example/" for at in range(30)))
    asked = []
    late = pages_command._Part.late
    monkeypatch.setattr(pages_command._Part, "late", property(lambda part: asked.append(part) or late.fget(part)))
    assert len(ask("pages", "--limit", "0")) == 34
    assert len(asked) <= 2  # to sort by, and to show
