"""``page`` and ``pages``: the update model of a page: Poisson, bursts, update times with what was learned and when it is due."""

from __future__ import annotations

import pytest
from judged_crawl import START

from optimal_frontier.cli.pages_command import list_pages
from optimal_frontier.estimation.bursts import REJECTED
from optimal_frontier.frontier.judging.update_times import key_of
from optimal_frontier.state.memory import Memory

from .explained import explained, settings_of
from .stored_crawl import HOT, WARM, Crawl
from .test_cli_project import make_project

DAY = 86_400.0
RULES = [{"pattern": "/hot", "update_times": [21_600, (64_800, 0.25)]}]


@pytest.fixture
def timed(redis_socket, namespace):
    """The stored crawl under rules that know when HOT changes; it was visited under them."""
    crawl = Crawl(redis_socket, namespace, settings=settings_of(RULES=RULES))
    crawl.visit(HOT, bit=1)
    yield crawl
    crawl.close()


def test_the_model_is_told_with_its_times_and_the_next_visit_is_at_one(tmp_path, run, ask, timed):
    timed.visit(HOT, bit=0)
    timed.namespace.command("HDEL", timed.key("memory"), timed.page(HOT))
    answer = explained(timed, HOT, RULES=RULES)
    assert answer["model"] == {
        "name": "quasi-deterministic",
        "period": DAY,
        "is_learned": False,
        "update_times": [
            {"seconds": 21_600.0, "probability": pytest.approx(0.99), "stated": 1.0, "bought": True},
            {"seconds": 64_800.0, "probability": 0.25, "stated": 0.25, "bought": True},
        ],
    }
    assert answer["rate"] == pytest.approx(2 / DAY)
    upcoming = min((at - START % DAY) % DAY for at in (21_600, 64_800))
    assert answer["deadline"] == pytest.approx(START + upcoming + 0.1, abs=0.02)
    assert answer["marginal"] is answer["marginal_at_rate_0"] is None
    project = make_project(tmp_path / "p", f"OPTIMAL_FRONTIER_RULES = {RULES}\n")
    text = run("--project", str(project), "page", HOT).output
    assert "quasi-deterministic, by RULES: changes at 06:00 UTC (99%), 18:00 UTC (25%) of every 1 d; probabilities stated" in text
    assert "Visited at or soon after 06:00 UTC, 18:00 UTC, never shortly before" in text
    (row,) = [row for row in ask("--project", str(project), "pages") if row["url"] == HOT]
    assert row["deadline"] == pytest.approx(answer["deadline"])
    assert row["interval"] == pytest.approx(answer["interval"])


def test_what_was_learned_and_what_is_not_worth_a_visit_is_told(timed):
    timetable = settings_of(RULES=RULES).rules.of(HOT).update_times
    memory = Memory(betas=((1.0, 99.0), (30.0, 10.0)), timetable=key_of(timetable))
    timed.namespace.command("HSET", timed.key("memory"), timed.page(HOT), memory.pack())
    timed.add(HOT, importance=1e-4)
    answer = explained(timed, HOT, RULES=RULES)
    assert answer["model"]["is_learned"]
    assert [row["probability"] for row in answer["model"]["update_times"]] == pytest.approx([0.01, 0.75])
    assert [row["bought"] for row in answer["model"]["update_times"]] == [False, True]
    assert "one at the other is not" in answer["why"]
    timed.add(HOT, importance=1e-9)
    timed.rewrite(HOT, max_interval=3 * DAY)
    answer = explained(timed, HOT, RULES=RULES)
    assert "No visit at an update time is worth the price" in answer["why"]
    assert "once in 3 d" in answer["why"]
    # Of other update times nothing was learned.
    other = [{"pattern": "/hot", "update_times": [1000, 2000]}]
    assert explained(timed, HOT, RULES=other)["model"]["is_learned"] is False


def test_many_pages_with_update_times_have_their_intervals(timed):
    (row,) = [row for row in list_pages(timed.namespace, settings_of(RULES=RULES), "rate", 0) if row["url"] == HOT]
    assert row["interval"] == pytest.approx(explained(timed, HOT, RULES=RULES)["interval"])


def test_a_page_without_a_rule_is_poisson(ask, run, crawl):
    facts = {"name": "poisson", "is_bursty": False, "statistic": 0.0, "rejected_from": REJECTED, "has_enough_bits": False}
    crawl.rewrite(WARM, score=0.0, variance=0.0)
    assert ask("page", WARM)["model"] == facts
    assert "Poisson: its bits do not speak against it" in run("page", WARM).output


def test_a_page_whose_changes_come_in_bursts_says_so(ask, run, crawl):
    """It is planned as Poisson all the same."""
    crawl.rewrite(WARM, surprise=0.5, score=18.0, variance=4.0, spread=40.0)
    model = ask("page", WARM)["model"]
    assert (model["name"], model["is_bursty"], model["statistic"]) == ("poisson", True, 9.0)
    assert "Poisson, though its changes come in bursts (test for bursts 9, rejected from" in run("page", WARM).output
    assert "Its changes come in bursts" in ask("page", WARM)["why"]
