"""``page URL``: the numbers agree with a calculation by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaincinv

from optimal_frontier.cli.page_facts import change_rates
from optimal_frontier.frontier.judging.waits import Terms, change_rate_of, interval_of, intervals_of_rows
from optimal_frontier.scheduling.exploration import LEARNING_SHARE
from optimal_frontier.scheduling.numbers import wait_at_price
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import LAYOUT, ONCE, Row

from .explained import explained, settings_of
from .stored_crawl import HOT, LOG_PRICE, UNSEEN, WARM, WORTHLESS


def test_the_estimate_is_the_gamma_posterior(ask, crawl):
    answer = ask("page", HOT)
    low, median, high = gammaincinv(3.0, [0.025, 0.5, 0.975]) / 10.0
    assert answer["posterior"] == {"shape": 3.0, "time": 10.0, "is_prior": False}
    assert answer["change_rate"] == pytest.approx(median, rel=1e-6)
    assert answer["change_rate_mean"] == pytest.approx(0.3)
    assert answer["change_rate_interval"] == pytest.approx([low, high], rel=1e-6)
    assert answer["bits"] == "110"
    assert (answer["observations"], answer["changes"], answer["visits"], answer["attempts"]) == (3, 2, 4, 4)
    assert answer["importance"] == 4.0
    assert answer["host"] == "a.example"
    assert answer["state"] == "active"
    assert answer["content_fingerprint"] == crawl.row(HOT).content.hex()
    assert answer["fingerprint"] == crawl.page(HOT).hex()


def test_the_deadline_is_made_of_its_five_numbers(ask, crawl):
    answer = ask("page", HOT)
    numbers = answer["numbers"]
    wait = min(max(numbers["a"] + numbers["s"] * LOG_PRICE, numbers["e"]), numbers["l"])
    assert numbers["b"] == crawl.row(HOT).b / 1e6
    assert answer["deadline"] == pytest.approx(numbers["b"] + wait, abs=1e-5)
    assert answer["due_in_seconds"] == pytest.approx(answer["deadline"] - answer["time"])
    assert (answer["queued"], answer["in_flight"], answer["lateness_seconds"]) == (True, False, 0.0)
    score = float(crawl.namespace.command("ZSCORE", crawl.key("q"), crawl.page(HOT)))
    assert score / 1e6 == pytest.approx(answer["deadline"], abs=1e-5)


def test_the_deadline_moves_with_the_price(ask, crawl):
    """Visits move the price between two plans; the numbers stay."""
    before = ask("page", HOT)
    crawl.publish(LOG_PRICE + 0.5)
    after = ask("page", HOT)
    assert after["numbers"] == before["numbers"]
    assert after["deadline"] == pytest.approx(before["deadline"] + 0.5 * before["numbers"]["s"])
    assert after["price"] == pytest.approx(math.exp(LOG_PRICE + 0.5))
    assert after["rate"] < before["rate"]


def test_a_deadline_that_passed_is_late(ask, crawl):
    crawl.advance(100.0)
    answer = ask("page", HOT)
    assert answer["lateness_seconds"] == pytest.approx(-answer["due_in_seconds"])
    assert "Its deadline passed" in answer["why"]


def test_at_its_rate_a_page_is_worth_the_price(ask, crawl):
    answer = ask("page", WARM)
    wait, _ = wait_at_price(LOG_PRICE, 1.0, answer["change_rate"])
    assert answer["interval"] == pytest.approx(wait)
    assert answer["rate"] == pytest.approx(1 / wait)
    assert answer["threshold"] == answer["price"] == pytest.approx(1.0)
    assert answer["marginal"] == pytest.approx(answer["threshold"], rel=1e-6)
    assert answer["marginal_at_rate_0"] == pytest.approx(answer["importance"] / answer["change_rate"])
    assert "a visit is worth the price then, 1." in answer["why"]


def test_a_page_of_a_host_at_its_limit_pays_more(ask, run, crawl):
    """And says so: what the host adds comes from the plan."""
    crawl.replan(prices={crawl.host_number(WARM): 0.7})
    answer = ask("page", WARM)
    assert (answer["price"], answer["threshold"]) == (pytest.approx(1.0), pytest.approx(math.exp(0.7)))
    assert answer["interval"] == pytest.approx(wait_at_price(LOG_PRICE + 0.7, 1.0, answer["change_rate"])[0])
    assert answer["marginal"] == pytest.approx(answer["threshold"], rel=1e-6)
    assert "its host is at its limit (HOST_DELAY, HOST_MAX_RATE)" in answer["why"]
    assert "2.014 on its host, which is at its limit; 1 in the crawl" in run("page", WARM).stdout
    assert ask("page", WORTHLESS)["threshold"] == pytest.approx(1.0)


def test_a_page_that_is_not_worth_the_price_is_held_to_its_longest_interval(ask, run, crawl):
    answer = ask("page", WORTHLESS)
    assert answer["interval"] == pytest.approx(30 * 86_400)
    assert answer["marginal_at_rate_0"] < answer["threshold"]
    assert "held to its longest interval; the best that a visit could be worth is 0.0004282, the price 1" in answer["why"]
    assert "a never" in run("page", WORTHLESS).stdout


def test_a_page_that_was_given_up_at_a_higher_price_says_so(ask, crawl):
    """Its interval is the one that its deadline is made of, here and in ``pages``."""
    crawl.rewrite(HOT, a=math.inf, s=0.0)
    answer = ask("page", HOT)
    assert answer["given_up"]
    assert answer["interval"] == pytest.approx(answer["due_in_seconds"], rel=1e-4) == pytest.approx(30 * 86_400)
    assert "Given up while the price was higher: a visit is worth up to" in answer["why"]
    assert {row["url"]: row["interval"] for row in ask("pages")}[HOT] == answer["interval"]


def test_a_page_whose_visits_are_worth_less_than_the_price_of_the_moment_says_so(ask, crawl):
    """It goes by the price that lasts, and by the slope from there on."""
    crawl.publish(4.0, lasting_log_price=0.0)
    crawl.renumber(HOT)
    answer = ask("page", HOT)
    wait, slope = wait_at_price(0.0, 4.0, answer["change_rate"])
    assert answer["marginal_at_rate_0"] < answer["price"]
    assert not answer["given_up"]
    assert answer["interval"] == pytest.approx(wait + 4.0 * slope, rel=1e-6)
    assert "by the price 1 that lasts; that of now, 54.6, is above what any visit to it is worth, 14.96" in answer["why"]
    assert {row["url"]: row["interval"] for row in ask("pages")}[HOT] == pytest.approx(answer["interval"], rel=1e-6)


def test_a_page_without_a_longest_interval_goes_on_being_learned(crawl):
    """At a share of 1% of the budget; nobody asks for that while explore-then-commit is committed."""
    crawl.rewrite(WORTHLESS, max_interval=3e38)
    crawl.replan()
    answer = explained(crawl, WORTHLESS)
    assert answer["rate"] is answer["interval"] is answer["max_interval"] is None
    assert answer["exploration_interval"] == pytest.approx(10.0 / 0.97 / LEARNING_SHARE)
    assert answer["due_in_seconds"] == pytest.approx(answer["exploration_interval"] - 20.5, rel=1e-6)
    assert "so that it goes on being learned" in answer["why"]
    crawl.replan(exploration="explore-then-commit", exploration_horizon=1.0)
    answer = explained(crawl, WORTHLESS)
    assert answer["deadline"] is answer["due_in_seconds"] is answer["exploration_interval"] is None
    assert (
        "Not revisited: the best that a visit could be worth, importance / change rate = 0.0004282, is below the price 1" in answer["why"]
    )
    assert "its importance = " in explained(crawl, WORTHLESS, OBJECTIVE="changes")["why"]


def test_a_page_without_a_visit_has_the_prior(ask, crawl):
    answer = ask("page", UNSEEN)
    assert answer["posterior"] == {"shape": 1.0, "time": 10.0, "is_prior": True}
    assert answer["waiting_for_first_visit"] is answer["queued"] is True
    assert answer["bits"] == ""
    nulls = ("rate", "deadline", "numbers", "last_seen_seconds_ago", "last_attempt_seconds_ago", "content_fingerprint")
    assert {answer[name] for name in nulls} == {None}
    assert "Not visited yet" in answer["why"]


def test_a_page_says_where_its_prior_comes_from(ask, run, crawl):
    """Its pattern, how many siblings, what they taught."""
    crawl.replan(priors={crawl.row(UNSEEN).pattern: (2.0, 5.0, 3)})
    facts = ask("page", UNSEEN)["siblings"]
    assert facts | {"pattern": "/*", "pages": 3, "shape": 2.0, "time": 5.0} == facts
    assert facts["change_rate"] == pytest.approx(gammaincinv(2.0, 0.5) / 5.0, rel=1e-6)
    assert facts["change_rate"] == ask("page", UNSEEN)["change_rate"]
    assert f"/*: 3 taught {facts['change_rate']:.4g}/s (prior Gamma, shape and time 2, 5 s)" in run("page", UNSEEN).stdout
    assert "none yet" not in run("page", UNSEEN).stdout
    crawl.replan(priors={crawl.row(UNSEEN).pattern: (2.0, 5.0, 0)})
    assert "none yet; its host and the crawl teach" in run("page", UNSEEN).stdout


def test_a_page_whose_siblings_are_alike_says_so(ask, run, crawl):
    """Before its first bit a prior says as little as any; after it siblings count as far as they are alike."""
    own = ask("page", HOT)["posterior"]
    crawl.replan(priors={crawl.row(url).pattern: (20.0, 20.0 * own["time"] / own["shape"], 3) for url in (HOT, UNSEEN)})
    believed = ask("page", HOT)["posterior"]
    assert believed["shape"] == pytest.approx(own["shape"] + 18.0)
    assert believed["shape"] / believed["time"] == pytest.approx(own["shape"] / own["time"])
    assert ask("page", UNSEEN)["posterior"]["shape"] == 2.0
    assert "3 taught" in run("page", HOT).stdout
    assert "(its pages are alike: Gamma, shape and time 20, " in run("page", HOT).stdout


def test_before_a_plan_siblings_have_taught_nothing(ask, run, crawl):
    crawl.add("http://d.example/x/1")
    facts = ask("page", "http://d.example/x/1")["siblings"]
    assert facts == {"pattern": "/x/*", "pages": 0, "shape": None, "time": None, "change_rate": None}
    assert "/x/*: nothing learned yet" in run("page", "http://d.example/x/1").stdout


def test_before_the_first_plan_there_is_no_prior_and_no_price(ask, store):
    store.add(UNSEEN, HOT)
    store.see(store.lease(HOT))
    answer = ask("page", UNSEEN)
    assert answer["posterior"] is answer["change_rate"] is answer["threshold"] is answer["price"] is None
    assert "Fetched before the first plan" in ask("page", HOT)["why"]


def test_a_pinned_page_says_so(ask, crawl):
    crawl.rewrite(WARM, min_interval=10.0, max_interval=10.0)
    crawl.replan()
    answer = ask("page", WARM)
    assert answer["min_interval"] == answer["max_interval"] == answer["interval"] == 10.0
    assert "Every 10 s: pinned by RULES." in answer["why"]
    crawl.replan(stretch=1.5)
    answer = ask("page", WARM)
    assert answer["interval"] == 15.0
    assert "stretched because such intervals do not fit the budget" in answer["why"]


def test_a_page_at_its_shortest_interval_says_so(ask, crawl):
    crawl.rewrite(HOT, min_interval=60.0)
    crawl.replan()
    answer = ask("page", HOT)
    assert answer["interval"] == 60.0
    assert answer["marginal"] > 0
    assert "Every 1 min: worth more than that (price 1), but held to its shortest interval." in answer["why"]


def test_a_request_under_way_and_a_failing_page_say_so(ask, crawl):
    crawl.make_due(HOT)
    assert "It is wanted now." in ask("page", HOT)["why"]
    handout = crawl.lease(HOT)
    answer = ask("page", HOT)
    assert (answer["in_flight"], answer["queued"]) == (True, False)
    assert "under way" in answer["why"]
    crawl.fail(handout)
    answer = ask("page", HOT)
    assert answer["failures"] == 1
    assert 1.0 <= answer["due_in_seconds"] <= 2.0
    assert "fails" in answer["why"]
    crawl.add("http://c.example/never")
    crawl.fail(crawl.lease("http://c.example/never"))
    assert "Never fetched: 1 attempt failed" in ask("page", "http://c.example/never")["why"]


def test_what_is_fetched_once_says_how_that_goes(ask, crawl):
    url, asked = "http://c.example/once", "Fetched once and not revisited, as its request or RULES say."
    crawl.add(url, state=ONCE, meta={b"scrapy_meta": {"revisit": False}})
    assert ask("page", url)["why"].startswith(asked)
    crawl.fail(crawl.lease(url), "503")
    assert (
        f"{asked} Never fetched: 1 attempt failed; tried again at growing intervals. At its last attempt the server"
        in ask("page", url)["why"]
    )
    assert ask("check")["ok"] is True
    crawl.fail_at(url, "403")
    assert f"{asked} That is done. At its last attempt" in ask("page", url)["why"]
    assert ask("check")["ok"] is True


def test_a_lease_that_ran_out_is_queued_again(ask, crawl):
    crawl.make_due(HOT)
    crawl.lease(HOT)
    crawl.advance(61.0)
    answer = ask("page", HOT)
    assert (answer["in_flight"], answer["queued"]) == (False, True)


def test_a_retired_page_says_how_it_comes_back(ask, crawl):
    for _ in range(2):
        crawl.fail_at(HOT, "404")
    answer = ask("page", HOT)
    assert answer["state"] == "retired"
    assert answer["rate"] is answer["deadline"] is answer["numbers"] is None
    assert "force" in answer["why"]


def test_only_the_last_32_bits_are_kept(ask, crawl):
    for at in range(40):
        crawl.advance(5.0)
        crawl.visit(HOT, bit=at % 2)
    assert ask("page", HOT)["bits"] == "01" * 16


def test_the_url_may_be_written_otherwise(ask, crawl):
    """Identity is Scrapy's fingerprint: order of the query and the fragment do not count."""
    assert ask("page", "http://A.example/warm?x=1#top")["fingerprint"] == crawl.page(WARM).hex()


@pytest.mark.parametrize(("url", "code", "said"), [("http://a.example/unknown", 1, "is not known"), ("no-url", 2, "no URL")])
def test_a_page_that_is_none(run, crawl, url, code, said):
    result = run("page", url)
    assert result.exit_code == code
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_page_is_explained_by_the_policy(crawl):
    """Memoryless: as much as the price by Azar's formula, and its interval is a mean."""
    assert explained(crawl, HOT)["policy"] == "periodic"
    answer = explained(crawl, HOT, POLICY="poisson")
    assert answer["policy"] == "poisson"
    assert answer["marginal"] == pytest.approx(answer["threshold"], rel=1e-6)
    assert " on average: a visit is worth the price then" in answer["why"]
    crawl.rewrite(HOT, min_interval=10.0, max_interval=10.0)
    assert explained(crawl, HOT, POLICY="poisson")["policy"] == "periodic"


def test_a_page_says_that_all_are_explored(crawl):
    crawl.replan(exploration="explore-then-commit", exploration_rounds=3.5)
    answer = explained(crawl, WORTHLESS)
    assert answer["interval"] == pytest.approx(10.0 / 0.97)
    assert 'explored at even intervals (EXPLORATION "explore-then-commit")' in answer["why"]


def test_a_page_that_was_picked_says_so(crawl):
    """Some phase picks it, by its identity; the others do not."""
    said = set()
    for phase in range(1, 40):
        crawl.replan(exploration="epsilon", exploration_number=phase)
        answer = explained(crawl, WORTHLESS)
        picked = answer["exploration_interval"] is not None
        assert (f"Every 10.3 s at least: picked in phase {phase} " in answer["why"]) == picked
        said.add(picked)
    assert said == {True, False}


def test_a_page_that_is_checked_or_signalled_says_so(ask, crawl):
    crawl.rewrite(HOT, flags=4)
    assert "looked at again soon" in ask("page", HOT)["why"]
    crawl.rewrite(HOT, flags=2)
    assert "Sources tell of its changes" in ask("page", HOT)["why"]


def test_what_many_pages_get_is_what_one_gets():
    """Rates and intervals of arrays are those of one page: pinned, stretched, on hosts at their limits, without a bit, explored."""
    rng = np.random.default_rng(3)
    rows = [
        Row(
            host=int(rng.integers(1, 4)),
            b=1e15,
            importance=float(np.float32(10 ** rng.uniform(-3, 2))),
            min_interval=float(np.float32(rng.uniform(0, 50))),
            max_interval=float(np.float32(rng.choice([50.0, 500.0, 3e38]))),
            shape=float(np.float32(rng.choice([0.0, 1.5, 7.0]))),
            visits=int(rng.integers(0, 3)),
            pattern=int(rng.integers(1, 3)),
            failures=int(rng.integers(0, 2)),
        )
        for _ in range(300)
    ]
    rows = [row._replace(time=float(np.float32(rng.uniform(1, 100))) if row.shape else 0.0) for row in rows]
    rows += [row._replace(min_interval=50.0, max_interval=50.0) for row in rows[:20]]
    heads = np.frombuffer(b"".join(row.pack() for row in rows), LAYOUT)
    plan = {"time": "1.0", "number": "1", "log_price": "1.0", "prior_time": "30.0", "stretch": "1.25"}
    for more in ({}, {"exploration": "explore-then-commit", "exploration_rounds": "3.5"}, {"number": "0"}):
        published = Published.parse(plan | more, None, None)
        published = Published(**{**published.__dict__, "priors": {1: (1.2, 9.0), 2: (12.0, 90.0)}, "host_prices": {2: 0.4}})
        for policy in ("periodic", "poisson"):
            terms = Terms(1.1, published, settings_of(POLICY=policy))
            rates = change_rates(heads, published)
            assert rates == pytest.approx([change_rate_of(row, published) for row in rows], rel=1e-6)
            wanted = [interval_of(row, terms) if row.visits else None for row in rows]
            found = intervals_of_rows(heads, rates, terms)
            assert found == pytest.approx([math.nan if value is None else value for value in wanted], rel=1e-6, nan_ok=True)
