"""``page URL``: the numbers agree with a calculation by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from optimal_frontier.cli.estimates import marginal_value
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.optimization import changes_periodic, freshness_periodic, freshness_poisson
from optimal_frontier.scheduling.exploration import learning_rate, page_uniforms
from optimal_frontier.settings import FrontierSettings

from .stored_crawl import HOT, UNSEEN, WARM, WORTHLESS


def test_the_estimate_is_the_gamma_posterior(ask, crawl):
    answer = ask("page", HOT)
    gamma = scipy.stats.gamma(3.0, scale=1 / 10.0)
    assert answer["posterior"] == {"shape": 3.0, "time": 10.0, "is_prior": False}
    assert answer["change_rate"] == pytest.approx(gamma.median(), rel=1e-6)
    assert answer["change_rate_mean"] == pytest.approx(0.3)
    assert answer["change_rate_interval"] == pytest.approx(list(gamma.interval(0.95)), rel=1e-6)
    assert answer["bits"] == "110"
    assert (answer["observations"], answer["changes"], answer["visits"], answer["attempts"]) == (3, 2, 4, 4)
    assert answer["importance"] == 4.0
    assert answer["host"] == "a.example"
    assert answer["state"] == "active"
    assert answer["content_fingerprint"] == "07" * 16


def test_the_deadline_is_when_the_credit_reaches_1(ask, crawl):
    answer = ask("page", WARM)
    # Forced when it had earned nothing: credit 1, of which the visit took 1; it earns at its rate since.
    assert answer["rate"] > 0
    earned = answer["rate"] * (answer["time"] - answer["planned_at"])
    at_plan = answer["credit"] - earned
    assert answer["deadline"] == pytest.approx(answer["planned_at"] + (1 - at_plan) / answer["rate"], abs=1e-5)
    assert answer["due_in_seconds"] == pytest.approx(answer["deadline"] - answer["time"])
    assert answer["interval"] == pytest.approx(1 / answer["rate"])
    queued = crawl.store.command("ZSCORE", crawl.store.key("due:1"), crawl.slot_of(WARM))
    assert answer["queued"] is (queued is not None)
    if queued is not None:
        assert float(queued) == pytest.approx(answer["deadline"], abs=1e-5)


def test_at_its_rate_a_page_is_worth_the_threshold(ask, crawl):
    answer = ask("page", WARM)
    assert answer["threshold"] == crawl.report.multiplier
    assert answer["marginal"] == pytest.approx(answer["threshold"], rel=1e-6)
    assert answer["marginal_at_rate_0"] == pytest.approx(answer["importance"] / answer["change_rate"])
    assert "as much as anywhere else" in answer["why"]


def test_a_page_that_is_not_worth_a_visit_goes_on_being_learned(ask, run, crawl):
    """At a share of 1% of the budget."""
    answer = ask("page", WORTHLESS)
    assert answer["rate"] == pytest.approx(learning_rate(3, crawl.report.revisit_budget), rel=1e-9)
    assert answer["exploration_interval"] == pytest.approx(answer["interval"], rel=1e-9)
    assert answer["marginal_at_rate_0"] < answer["threshold"]
    assert "so that it goes on being learned" in answer["why"]
    assert 'EXPLORATION "median"' in run("page", WORTHLESS).stdout


def test_a_page_that_is_not_worth_a_visit_says_so(ask, run, crawl):
    """Nobody asks for one while explore-then-commit is committed."""
    crawl.replan(EXPLORATION="explore-then-commit", CLOSE_AFTER=1)
    answer = ask("page", WORTHLESS)
    assert answer["rate"] == 0
    assert answer["interval"] is answer["deadline"] is answer["due_in_seconds"] is None
    assert answer["marginal_at_rate_0"] < answer["threshold"]
    assert "below the threshold" in answer["why"]
    assert "below the threshold" in run("page", WORTHLESS).stdout


def test_a_page_without_a_visit_has_the_prior(ask, crawl):
    answer = ask("page", UNSEEN)
    taught = crawl.store.priors()[-1]
    assert answer["posterior"] == {"shape": taught["shape"], "time": taught["time"], "is_prior": True}
    assert answer["waiting_for_first_visit"] is answer["queued"] is True
    assert answer["bits"] == ""
    nulls = ("rate", "deadline", "credit", "last_seen_seconds_ago", "last_attempt_seconds_ago", "content_fingerprint")
    assert {answer[name] for name in nulls} == {None}
    assert "Not visited yet" in answer["why"]


def test_a_page_says_where_its_prior_comes_from(ask, run, crawl):
    """Its pattern, how many siblings, what they taught: one that changes often is all that it has on its host."""
    facts = ask("page", UNSEEN)["siblings"]
    assert facts["pattern"] == "/*"
    assert 0.5 < facts["pages"] < 1.0
    default = np.log(2) / float(crawl.store.hash("published")["prior_time"])
    assert default < facts["change_rate"] < 4.7 / 2.0
    assert facts["change_rate"] == ask("page", UNSEEN)["change_rate"]
    shown = run("page", UNSEEN).stdout
    assert f"/*: {facts['pages']:.3g} taught {facts['change_rate']:.4g}/s" in shown
    crawl.store.add(crawl.page("http://c.example/?id=1"), crawl.page("http://a.example/other?b", pattern=""))
    crawl.replan()
    assert (
        ask("page", "http://c.example/?id=1")["siblings"] | {"pages": 0.0, "pattern": "/?id"}
        == ask("page", "http://c.example/?id=1")["siblings"]
    )
    assert "none yet; its host and the crawl teach" in run("page", "http://c.example/?id=1").stdout
    assert ask("page", "http://a.example/other?b")["siblings"]["pattern"] is None
    assert "other patterns of its host" in run("page", "http://a.example/other?b").stdout


def test_before_a_plan_siblings_have_taught_nothing(ask, run, store, crawl):
    crawl.store.add(crawl.page("http://d.example/x/1"))
    facts = ask("page", "http://d.example/x/1")["siblings"]
    assert facts == {"pattern": "/x/*", "pages": 0.0, "shape": None, "time": None, "change_rate": None}
    assert "/x/*: nothing learned yet" in run("page", "http://d.example/x/1").stdout


def test_before_the_first_plan_there_is_no_prior(ask, store, crawl):
    store.command("DEL", store.key("published"))
    answer = ask("page", UNSEEN)
    assert answer["posterior"] is answer["change_rate"] is answer["threshold"] is None


def test_a_pinned_page_says_so(ask, crawl):
    crawl.store.add(crawl.page("http://c.example/", min_rate=0.1, max_rate=0.1, gap=5.0))
    crawl.store.visit_all()
    crawl.store.plan(crawl.slot_of("http://c.example/"), 0.1)
    answer = ask("page", "http://c.example/")
    assert answer["min_interval"] == answer["max_interval"] == answer["interval"] == 10.0
    assert "pinned" in answer["why"]


def test_a_request_under_way_and_a_failing_page_say_so(ask, crawl):
    crawl.store.advance(1.0)  # its least gap
    crawl.force(HOT)
    handout = crawl.lease(HOT)
    answer = ask("page", HOT)
    assert answer["in_flight"] is True
    assert answer["queued"] is False
    assert "under way" in answer["why"]
    crawl.store.observe(handout, "failed", horizon=20.0)
    answer = ask("page", HOT)
    assert answer["failures"] == 1
    assert 1.0 <= answer["due_in_seconds"] <= 2.0
    assert "fails" in answer["why"]


def test_a_retired_page_says_how_it_comes_back(ask, crawl):
    crawl.store.advance(1.0)  # its least gap
    crawl.visit(HOT, "gone")
    crawl.store.advance(10.0)  # its backoff is over
    for handout in crawl.store.dispatch(10)[0]:
        crawl.store.observe(handout, "gone" if handout.record["url"] == HOT else "released", horizon=20.0)
    answer = ask("page", HOT)
    assert answer["state"] == "retired"
    assert "force" in answer["why"]


def test_only_the_last_32_bits_are_kept(ask, crawl):
    for at in range(40):
        crawl.store.advance(5.0)
        crawl.visit(HOT, bit=at % 2, shape=3.0, time=10.0)
    assert ask("page", HOT)["bits"] == "01" * 16


def test_the_url_may_be_written_otherwise(ask, crawl):
    """Identity is Scrapy's fingerprint: order of the query and the fragment do not count."""
    assert ask("page", "http://A.example/warm?x=1#top")["slot"] == crawl.slot_of(WARM)


@pytest.mark.parametrize(("url", "code", "said"), [("http://a.example/unknown", 1, "is not known"), ("no-url", 2, "no URL")])
def test_a_page_that_is_none(run, crawl, url, code, said):
    result = run("page", url)
    assert result.exit_code == code
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(("objective", "value"), [("freshness", freshness_periodic), ("changes", changes_periodic)])
@pytest.mark.parametrize("rate", [0.05, 1.0, 30.0])
def test_the_marginal_value_is_the_derivative_of_the_objective(objective, value, rate):
    step = rate * 1e-6
    slope = (value([2.0], [0.7], [rate + step]) - value([2.0], [0.7], [rate - step])) / (2 * step)
    assert marginal_value(2.0, 0.7, rate, objective) == pytest.approx(slope, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("rate", [0.05, 1.0, 30.0])
def test_the_marginal_value_of_memoryless_visits_is_the_derivative_of_azars_objective(rate):
    step = rate * 1e-6
    slope = (freshness_poisson([2.0], [0.7], [rate + step]) - freshness_poisson([2.0], [0.7], [rate - step])) / (2 * step)
    assert marginal_value(2.0, 0.7, rate, "freshness", "poisson") == pytest.approx(slope, rel=1e-4, abs=1e-9)
    assert marginal_value(2.0, 0.7, 0.0, "freshness", "poisson") == pytest.approx(2.0 / 0.7)


def test_a_page_is_explained_by_the_policy_of_its_plan(ask, run, crawl):
    """Memoryless: as much as anywhere else by Azar's formula, and its interval is a mean."""
    assert ask("page", HOT)["policy"] == "periodic"
    settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_CRAWL_RATE": 1.0, "OPTIMAL_FRONTIER_POLICY": "poisson"})
    assert Planner(crawl.store, settings).plan() is not None
    answer = ask("page", HOT)
    assert answer["policy"] == "poisson"
    assert answer["marginal"] == pytest.approx(answer["threshold"], rel=1e-6)
    assert " on average: one more visit is then worth" in answer["why"]
    assert " on average\n" in run("page", HOT).stdout
    assert ask("status")["policy"] == "poisson"
    assert ", memoryless visits" in run("status").stdout


def test_the_marginal_value_has_no_cancellation():
    x = 1e-9
    assert marginal_value(1.0, x, 1.0, "changes") == pytest.approx(x * x / 2, rel=1e-6)
    assert marginal_value(1.0, 1e300, 1e-300, "changes") == 1.0
    assert marginal_value(1.0, 0.0, 1.0, "freshness") == 0.0
    assert np.isfinite(marginal_value(1.0, 1e-4, 1.0, "freshness"))


def test_a_page_is_explained_by_the_exploration_of_its_plan(ask, run, crawl):
    """Which choice was used, and the change rate that it made of the posterior; by that the page is worth the threshold."""
    posterior = scipy.stats.gamma(3.0, scale=1 / 10.0)
    said = {"median": "", "mean": "mean of its posterior", "thompson": "Planned with draw 8 from its posterior", "epsilon": ""}
    number = page_uniforms([crawl.slot_of(HOT)], 8)[0]  # three pages, six bits: round 3
    rates = {"median": posterior.median(), "mean": 0.3, "thompson": posterior.ppf(number), "epsilon": posterior.median()}
    for exploration, rate in rates.items():
        crawl.replan(EXPLORATION=exploration)
        answer = ask("page", HOT)
        assert answer["exploration"] == exploration
        assert answer["planned_change_rate"] == pytest.approx(rate, rel=1e-6)
        assert answer["change_rate"] == pytest.approx(posterior.median(), rel=1e-6)
        assert said[exploration] in answer["why"]
        if answer["rate"] < 1.0:  # its shortest interval
            assert answer["marginal"] == pytest.approx(answer["threshold"], rel=1e-6)
        assert f'EXPLORATION "{exploration}"' in run("page", HOT).stdout
        assert ask("status")["exploration"] == exploration


def test_a_page_says_that_all_are_explored_and_what_it_was_committed_to(ask, run, crawl):
    """Three rounds are over: the third stretch explores from 3 to 5."""
    crawl.replan(EXPLORATION="explore-then-commit")
    answer = ask("page", WORTHLESS)
    assert answer["rate"] == pytest.approx(0.97 * crawl.report.revisit_budget / 3)
    assert "explored at even intervals until round 5" in answer["why"]
    assert ask("status")["is_exploring"] is True
    assert ", exploring, round 3" in run("status").stdout
    crawl.store.command("HINCRBY", crawl.store.key("stats"), "observations", 8)
    crawl.replan(EXPLORATION="explore-then-commit")
    crawl.store.advance(5.0)
    crawl.visit(HOT, bit=1, shape=9.0, time=3.0)
    answer = ask("page", HOT)
    assert answer["planned_change_rate"] == pytest.approx(0.3)
    assert answer["change_rate_mean"] == pytest.approx(3.0)
    assert "mean that it had when exploring ended" in answer["why"]
    assert "explored again from round 7" in answer["why"]
    assert ", committed, round" in run("status").stdout
    assert ask("check") is not None


def test_a_page_that_was_picked_says_so(ask, crawl):
    """One of the three is, by its number; the others do not."""
    crawl.replan(EXPLORATION="epsilon")
    numbers = page_uniforms(range(3), 2)  # round 3 is in the second phase
    for url in (HOT, WARM, WORTHLESS):
        picked = numbers[crawl.slot_of(url)] < 0.25
        assert ("Picked in phase 2" in ask("page", url)["why"]) == picked
