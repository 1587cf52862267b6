"""``status``: the fields that the contract names, right in numbers, null where nothing is known."""

from __future__ import annotations

import re

import numpy as np
import pytest
from click.testing import CliRunner
from judged_crawl import START, JudgedCrawl

from optimal_frontier.cli import main
from optimal_frontier.cli.status_command import describe
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.partition import count_calls
from optimal_frontier.state.reading import read_status


def test_every_figure_of_a_crawl_is_right(ask, crawl):
    answer = ask("status")
    assert answer["namespace"] == crawl.namespace.name
    assert answer["spider"] == "test"
    assert answer["partitions"] == 1
    assert answer["pages"] == 4
    assert answer["fetched"] == 3
    assert answer["pending_first_visit"] == 1
    assert answer["retired"] == 0
    assert answer["hosts"] == 2
    assert answer["visits"] == 9
    assert answer["observations"] == 6
    assert answer["changes"] == 4
    assert answer["in_flight"] == 0
    assert answer["budget"] == 1.0
    assert answer["revisit_budget"] == 1.0
    assert answer["planned_rate"] == 0.97
    assert answer["feasible"] is True
    assert answer["estimated_freshness"] == 0.75
    assert answer["multiplier"] == answer["price"] == 1.0
    assert answer["last_plan"] == {"time": START + 30.0, "seconds": 0.01, "pages": 3}
    assert answer["plan_overdue"] is False
    assert answer["change_rate"] == {"p10": 0.05, "p50": 0.1, "p90": 2.0}
    late = [0.1] * 3 + [0.2] * 2 + [0.3]
    assert answer["lateness_seconds"] == {"p50": pytest.approx(np.percentile(late, 50)), "p99": pytest.approx(np.percentile(late, 99))}


def test_partitions_are_summed(redis_socket, namespace, ask):
    """Pages, rates and budgets are told by partition, all else of a plan is of the crawl."""
    crawl = JudgedCrawl(redis_socket, namespace, partitions=3)
    urls = [f"http://h{at}.example/" for at in range(9)]
    crawl.add(*urls)
    assert crawl.see_all() == 9
    crawl.publish(-1.0, pages=3, planned_rate=0.5, estimated_freshness=0.9, multiplier=0.37, seconds=0.2)
    answer = ask("status")
    assert (answer["partitions"], answer["pages"], answer["hosts"], answer["fetched"], answer["visits"]) == (3, 9, 9, 9, 9)
    assert (answer["budget"], answer["revisit_budget"], answer["planned_rate"]) == (3.0, 3.0, 1.5)
    assert (answer["estimated_freshness"], answer["multiplier"], answer["last_plan"]["pages"]) == (0.9, 0.37, 9)
    assert answer["price"] == pytest.approx(np.exp(-1.0))
    crawl.advance(1e9)
    handed = [handout for k in range(3) for handout in crawl.dispatch(2, partition=k)]
    assert ask("status")["in_flight"] == len(handed)
    assert {row["url"] for row in ask("pages")} == set(urls)
    crawl.close()


def test_what_304s_saved_is_shown(ask, run, crawl):
    assert "not modified  0 answers 304, 0 B saved" in run("status").stdout
    crawl.namespace.command("HSET", crawl.key("stats"), "not_modified", 1200, "bytes_saved", 34_567_890, "validator_lies", 2)
    answer = ask("status")
    assert (answer["not_modified"], answer["bytes_saved"], answer["validator_lies"]) == (1200, 34_567_890, 2)
    assert "1,200 answers 304, 34.6 MB saved; 2 found to be lies" in run("status").stdout


def test_due_counts_what_is_past_its_deadline_and_not_leased(ask, crawl):
    crawl.advance(1e3)
    assert ask("status")["due"] == 2  # the third is not worth the price
    assert len(crawl.dispatch(1)) == 1
    answer = ask("status")
    assert (answer["due"], answer["in_flight"]) == (1, 1)


def test_the_price_is_the_one_that_visits_have_moved(ask, run, crawl):
    crawl.publish(0.25, multiplier=1.0, pages=3)
    answer = ask("status")
    assert (answer["price"], answer["multiplier"]) == (pytest.approx(np.exp(0.25)), 1.0)
    assert "1.284 of a visit; 1 by the plan" in run("status").stdout


def test_a_plan_that_is_three_intervals_old_is_overdue(crawl):
    settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_RESOLVE_INTERVAL": 10.0})
    crawl.set_time(START + 30.0 + 29.9)
    assert describe(read_status(crawl.namespace), settings)["plan_overdue"] is False
    crawl.set_time(START + 30.0 + 30.1)
    assert describe(read_status(crawl.namespace), settings)["plan_overdue"] is True


def test_exploration_is_told(ask, run, crawl):
    assert "median, round 3" in run("status").stdout
    crawl.replan(exploration="epsilon", exploration_number=2, exploration_held=1)
    assert "epsilon, phase 2, round 3; 1 pages at a rate that it asks for" in run("status").stdout
    crawl.replan(exploration="explore-then-commit", exploration_number=3, exploration_rounds=3.5)
    answer = ask("status")
    assert (answer["exploration"], answer["exploration_number"], answer["is_exploring"]) == ("explore-then-commit", 3, True)
    assert "explore-then-commit, stretch 3, exploring, round 3.5" in run("status").stdout
    crawl.replan(policy="poisson")
    assert ask("status")["policy"] == "poisson"
    assert ", memoryless visits" in run("status").stdout


def test_what_cannot_be_used_or_does_not_fit_is_said(run, crawl):
    crawl.replan(unused=0.4, feasible=0)
    shown = run("status").stdout
    assert "NOT FEASIBLE" in shown
    assert "0.4/s more cannot be used" in shown


def test_a_plan_of_no_page_says_nothing_of_limits_and_freshness(run, store):
    """All that there is waits for its first visit."""
    store.add("http://a.example/")
    assert re.search("freshness +–", run("plan").stdout)
    assert "more cannot be used" not in run("status").stdout


def test_what_is_not_known_yet_is_null(ask, store):
    answer = ask("status")
    nulls = ("budget", "revisit_budget", "planned_rate", "feasible", "estimated_freshness", "multiplier", "price", "last_plan")
    assert {answer[name] for name in nulls} == {None}
    assert answer["lateness_seconds"] == {"p50": None, "p99": None}
    assert answer["change_rate"] == {"p10": None, "p50": None, "p90": None}
    assert (answer["pages"], answer["fetched"], answer["due"], answer["observations"], answer["changes"]) == (0, 0, 0, 0, 0)
    assert answer["plan_overdue"] is False
    assert answer["time"] == START


def test_people_get_the_same_in_words(run, crawl):
    result = run("status")
    assert result.exit_code == 0
    assert "4 on 2 hosts" in result.stdout
    assert "4 in 6 observations" in result.stdout
    assert not [line for line in result.stdout.splitlines() if line != line.rstrip()]


def test_an_encoding_without_dashes_ends_no_command(target, store):
    result = CliRunner(charset="latin-1").invoke(main, [*target, "status"])
    assert (result.exit_code, result.exception) == (0, None)
    assert "freshness     ?\n" in result.stdout
    store.namespace.command("HSET", store.key("meta"), "spider", "\u87d1")
    assert '"spider": "\\u87d1"' in CliRunner(charset="latin-1").invoke(main, [*target, "status", "--json"]).stdout


def test_an_empty_namespace_is_said_to_be_empty(run, namespace):
    """Nothing is made by looking."""
    result = run("status")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"nothing is stored yet under namespace {namespace!r}" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert run("check").exit_code == 1


def test_traps_and_canonical_links_are_there_once_there_were_any(run, ask, crawl):
    """Links that were not followed by the reason, and pages that named another one."""
    assert "traps" not in run("status").stdout
    assert set(ask("status")["trapped"].values()) == {0}
    counts = {"trapped_url": 3, "trapped_host": 2, "canonical_followed": 5, "canonical_offhost": 1}
    crawl.namespace.run(count_calls(0, counts))
    answer = ask("status")
    assert {reason: links for reason, links in answer["trapped"].items() if links} == {"url": 3, "host": 2}
    assert answer["canonical"] == {"followed": 5, "refused": 0, "offhost": 1}
    shown = run("status").stdout
    assert "links not followed: 3 by url, 2 by host" in shown
    assert "5 pages became aliases; 0 times refused, 1 times of another host" in shown
