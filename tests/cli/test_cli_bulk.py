"""``forget``, ``force``, ``reparse`` and ``importance`` of many pages, and how they are chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from optimal_frontier.cli import interruption
from optimal_frontier.state.rows import ACTIVE, DONE, ONCE, RETIRED, UNCONDITIONAL

from .stored_crawl import HOT, UNSEEN, WARM, WORTHLESS, Crawl

ALL = (HOT, WARM, WORTHLESS, UNSEEN)


@pytest.fixture
def asked(monkeypatch):
    """Standard input is a terminal."""

    monkeypatch.setattr("optimal_frontier.cli.page_selection.can_ask", lambda: True)


def flagged(crawl: Crawl) -> set[str]:
    return {url for url in ALL if crawl.row(url).flags & UNCONDITIONAL}


@pytest.mark.parametrize(
    ("chosen", "pages"),
    [
        (["--host", "a.example"], {HOT, WARM}),
        (["--host", "b.example"], {WORTHLESS}),
        (["--host", "b.example:8080"], {WORTHLESS}),
        (["--host", "A.example", "--pattern", "warm"], {WARM}),
        (["--pattern", r"\?x=\d$"], {WARM}),
        (["--pattern", "less$|hot"], {WORTHLESS, HOT}),
        (["--all"], {HOT, WARM, WORTHLESS}),
        ([HOT, WORTHLESS], {HOT, WORTHLESS}),
        (["--host", "a.example", "--pattern", "nowhere"], set()),
    ],
)
def test_pages_are_chosen_by_name_host_pattern_or_all(run, crawl, chosen, pages):
    result = run("reparse", *chosen, "--yes")
    assert result.exit_code == 0, result.output
    assert flagged(crawl) == pages
    assert result.stdout.startswith(f"{len(pages)} to be parsed again")


def test_pages_are_chosen_by_their_state(run, crawl, ask):
    """What is gone for good is kept until somebody forgets it, and of a site whose pages come and go that is ever more."""
    for _ in range(2):
        crawl.fail_at(HOT, "410")
    assert run("forget", "--state", "retired", "--host", "b.example", "--yes").stdout == "0 forgotten\n"
    assert HOT in run("forget", "--state", "retired", "--pattern", "hot", "--dry-run").stdout
    assert run("forget", "--state", "retired", "--yes").stdout == "1 forgotten\n"
    assert (ask("status")["retired"], ask("status")["pages"], ask("check")["ok"]) == (0, 3, True)
    assert run("importance", "2", "--state", "active", "--yes").stdout.startswith("3 of importance 2")


@pytest.mark.parametrize(
    "command",
    [["forget"], ["force", "--pattern", "."], ["reparse", "--pattern", "x"], ["importance", "3"], ["forget", "--dry-run"], ["pages"]],
)
def test_a_host_without_pages_is_an_error_that_names_it(run, crawl, command):
    """One that is known by name only, too: all of its pages were forgotten."""
    run("forget", WORTHLESS, UNSEEN)
    for host in ("nowhere.example", "b.example:8080"):
        result = run(*command, "--host", host)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == f"optimal-frontier: no page of host '{host}' is known\n"


def test_a_file_lists_pages_one_a_line(run, crawl):
    Path("urls.txt").write_text(f"{HOT}\n\n{WARM}\nhttp://a.example/unknown\nno url\n")
    result = run("force", "--file", "urls.txt", "--yes")
    assert result.exit_code == 1
    assert result.stdout == "2 due now\n"
    assert "http://a.example/unknown is not known" in result.stderr
    assert "urls.txt:5: expected a URL" in result.stderr
    assert flagged(crawl) == {HOT, WARM}


@pytest.mark.parametrize(
    "chosen", [[], [HOT, "--all"], ["--all", "--host", "a"], ["--all", "--state", "retired"], [HOT, "--file", "urls.txt"]]
)
def test_pages_are_chosen_in_one_way(run, crawl, chosen):
    Path("urls.txt").write_text(HOT)
    result = run("forget", *chosen)
    assert result.exit_code == 2
    assert "which pages?" in result.stderr


def test_a_pattern_that_is_none_is_wrong_usage(run, crawl):
    result = run("forget", "--pattern", "(")
    assert result.exit_code == 2
    assert "expected a regular expression" in result.stderr


@pytest.mark.parametrize("command", [["forget"], ["force"], ["reparse"], ["importance", "3"]])
def test_a_dry_run_tells_and_changes_nothing(run, crawl, command):
    before = {url: crawl.row(url) for url in ALL}
    result = run(*command, "--host", "a.example", "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.startswith("would ")
    assert " 2 pages\n" in result.stdout
    assert HOT in result.stdout
    assert {url: crawl.row(url) for url in ALL} == before


def test_nobody_is_asked_where_there_is_no_terminal(run, crawl):
    result = run("forget", "--all")
    assert result.exit_code == 2
    assert "forget 4 pages?" in result.stderr
    assert "--yes" in result.stderr
    assert crawl.row(HOT).visits


@pytest.mark.parametrize(("answer", "left"), [("y\n", 1), ("n\n", 4), ("\n", 4)])
def test_a_person_is_asked(run, crawl, asked, answer, left):
    result = run("forget", "--pattern", "hot|warm|worthless", input=answer)
    assert "forget 3 pages? [y/N]" in result.output
    assert crawl.namespace.command("HLEN", crawl.key("pages")) == left


def test_forget_of_all_leaves_nothing(run, crawl, ask):
    crawl.add(*(f"http://many.example/{i}" for i in range(600)))
    crawl.namespace.command("HSET", crawl.key("pages"), b"d" * 12, b"damaged")
    assert run("forget", "--all", "--yes").stdout == "605 forgotten\n"
    assert crawl.namespace.command("EXISTS", *(crawl.key(name) for name in ("pages", "q", "f", "memory", "kept:h1"))) == 0
    assert ask("check")["ok"] is True


def test_a_memory_that_cannot_be_read_keeps_nobody_from_forgetting(run, crawl, ask):
    crawl.namespace.command("HSET", crawl.key("memory"), crawl.page(HOT), b"\xc1 no msgpack")
    assert run("forget", HOT).exit_code == 0
    assert ask("check")["ok"] is True


def test_a_row_that_cannot_be_read_ends_nothing(run, crawl):
    crawl.namespace.command("HSET", crawl.key("pages"), crawl.page(HOT), b"short")
    assert crawl.add(HOT, WARM)[0] == 0
    for command in ("force", "reparse"):
        result = run(command, HOT)
        assert "Traceback" not in result.output
    assert "1 damaged" in run("reparse", "--all", "--yes").stdout
    assert run("forget", HOT).exit_code == 0
    assert crawl.namespace.command("HEXISTS", crawl.key("pages"), crawl.page(HOT)) == 0


def test_ctrl_c_says_how_many_were_done(run, crawl, monkeypatch):
    crawl.add(*(f"http://many.example/{i}" for i in range(1200)))
    turns = iter([False, True])

    class Stopped(interruption.Interruption):
        @property
        def happened(self):
            return next(turns, True)

        @happened.setter
        def happened(self, value):
            pass

    monkeypatch.setattr("optimal_frontier.cli.page_selection.Interruption", Stopped)
    result = run("forget", "--host", "many.example", "--yes")
    assert result.exit_code == 1
    assert "stopped: 512 of 1,200 done" in result.stderr
    assert result.stdout == "512 forgotten\n"


# Reparse.


def test_pages_are_parsed_again_one_after_the_other(run, crawl):
    """The plan has one fetch a second, so three pages are due within three seconds; one that comes sooner anyway keeps its time."""
    for url in (HOT, WARM, WORTHLESS):
        row = crawl.row(url)
        crawl.rewrite(url, a=(1.0 if url == WARM else 1e6) + crawl.namespace.now() - row.b / 1e6, s=0.0, e=0.0, l=2e6)
    now = crawl.namespace.now()
    assert run("reparse", "--all", "--yes").exit_code == 0
    due = sorted(crawl.row(url).b / 1e6 + crawl.row(url).a - now for url in (HOT, WARM, WORTHLESS))
    assert 0 < due[0] <= 2.0
    assert due[-1] <= 4.01
    assert crawl.row(WARM).l in (2e6, crawl.row(WARM).a)


def test_the_next_answer_comes_in_full_and_reaches_the_callback(run, crawl):
    run("reparse", HOT, "--now")
    (handout,) = [handout for handout in crawl.dispatch(10) if handout.record["url"] == HOT]
    assert handout.row.flags & UNCONDITIONAL
    crawl.see(handout)
    assert not crawl.row(HOT).flags & UNCONDITIONAL


def test_what_was_fetched_once_is_fetched_once_more(run, crawl, ask):
    crawl.add("http://c.example/once", state=ONCE, meta={b"scrapy_meta": {"revisit": False}})
    crawl.see_all()
    assert crawl.row("http://c.example/once").state == DONE
    assert run("reparse", "http://c.example/once", "--now").stdout == "due now: http://c.example/once\n"
    assert ask("check")["ok"] is True
    crawl.see(crawl.lease("http://c.example/once"))
    assert crawl.row("http://c.example/once").state == DONE
    assert ask("check")["ok"] is True


def test_what_cannot_be_parsed_is_left_and_told(run, crawl):
    for _ in range(2):
        crawl.fail_at(HOT, "410")
    crawl.lease(UNSEEN)
    result = run("reparse", "--all", "--yes")
    assert "1 retired" in result.stdout
    assert crawl.row(HOT).state == RETIRED
    assert run("reparse", UNSEEN).stdout == f"in flight, and left as they are: {UNSEEN}\n"


def test_a_plan_leaves_the_times_of_a_reparse_alone(run, crawl):
    run("reparse", WORTHLESS, "--now")
    before = crawl.row(WORTHLESS)
    assert run("plan").exit_code == 0
    assert crawl.row(WORTHLESS) == before


# Importance.


def test_importance_is_set_as_if_it_had_been_stated(run, crawl, ask):
    result = run("importance", "2.5", "--host", "a.example", "--host", "a.example", "--yes")
    assert result.exit_code == 0, result.output
    assert result.stdout == "2 of importance 2.5\n"
    assert [crawl.row(url).importance for url in (HOT, WARM, WORTHLESS)] == [2.5, 2.5, pytest.approx(0.001)]
    run("importance", "7", UNSEEN)
    (handout,) = [handout for handout in crawl.dispatch(10) if handout.record["url"] == UNSEEN]
    assert handout.stated == 7.0
    assert ask("check")["ok"] is True


@pytest.mark.parametrize("value", ["0", "-1", "inf", "nan", "much"])
def test_importances_that_are_none(run, crawl, value):
    assert run("importance", "--", value, HOT).exit_code == 2


@pytest.mark.parametrize("value", ["-5", "-.5", "-1e3", "0", "many"])
def test_an_importance_that_is_none_is_named_in_one_line(run, crawl, value):
    """One below 0 is no option either."""
    result = run("importance", value, HOT)
    assert (result.exit_code, result.stdout) == (2, "")
    said = f"optimal-frontier: importance VALUE is '{value}': expected a number above 0, and URLs behind it\n"
    assert result.stderr == said


def test_two_who_force_a_retired_page_count_it_once(run, crawl, ask):
    for _ in range(2):
        crawl.fail_at(HOT, "410")
    assert run("force", HOT, HOT).exit_code == 0
    run("force", HOT)
    assert ask("status")["retired"] == 0
    assert crawl.row(HOT).state == ACTIVE
    assert ask("check")["ok"] is True
