"""``whatif``: the planner's own arithmetic, asked about budgets that the crawl does not have."""

from __future__ import annotations

import dataclasses

import pytest

from optimal_frontier.cli.whatif_command import LADDER, forecast, why_no_more
from optimal_frontier.frontier.planning.curve import read_crawl_curve
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.scheduling.exploration import LEARNING_SHARE
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.partition import draw_call

from .stored_crawl import HOT, WARM, Crawl

#: The crawls that the planner plans in different ways.
WAYS = {
    "plain": {},
    "hosts": {"HOST_DELAY": 3.0},
    "changes": {"OBJECTIVE": "changes"},
    "memoryless": {"POLICY": "poisson"},
    "memoryless on hosts": {"POLICY": "poisson", "HOST_MAX_RATE": 0.3},
    "to an end": {"CLOSE_AFTER": 9},
    "epsilon on hosts": {"EXPLORATION": "epsilon", "HOST_DELAY": 3.0},
    "exploring": {"EXPLORATION": "explore-then-commit", "CLOSE_AFTER": 99},
    "committed": {"EXPLORATION": "explore-then-commit", "CLOSE_AFTER": 1},
}


def settings_of(**values: object) -> FrontierSettings:
    """The settings of the stored crawl, some of them replaced."""
    values = {"CRAWL_RATE": 1.0, "RESOLVE_INTERVAL": 10.0} | values
    return FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()})


@pytest.fixture
def curious(crawl: Crawl) -> Crawl:
    """With a page that was fetched once and has no bit yet, and redirects that took a tenth of the budget."""
    crawl.add("http://c.example/new")
    crawl.see(crawl.lease("http://c.example/new"))
    crawl.namespace.command("HSET", crawl.key("plan"), "extra_fetches", "0", "time", repr(crawl.time - 60.0))
    crawl.namespace.run([draw_call(0, 0.0, 6)])
    return crawl


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_at_the_present_budget_it_says_what_the_next_plan_will(curious, way):
    """Freshness, multiplier, planned rate and feasibility, with DISCOVERY_SHARE, bounds, host limits and redirects taken off."""
    settings = settings_of(**way)
    point = read_crawl_curve(curious.namespace, settings).at(1.0)
    report = Planner(curious.namespace, settings).plan()
    assert report is not None
    assert report.revisit_budget < 0.95
    assert point.revisit_budget == pytest.approx(report.revisit_budget, rel=1e-9)
    if settings.exploration in ("median", "epsilon"):  # the others plan with other change rates, `status` goes by the medians
        assert point.freshness == pytest.approx(report.estimated_freshness, rel=1e-9)
    assert point.multiplier == pytest.approx(report.multiplier, rel=1e-6)
    assert point.planned_rate == pytest.approx(report.planned_rate, rel=1e-9)
    assert point.feasible == report.feasible


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("budget", [0.02, 0.3, 2.0])
def test_the_slope_is_what_one_more_fetch_adds(curious, way, budget):
    curve = read_crawl_curve(curious.namespace, settings_of(**way))
    step = 1e-3 * budget
    measured = (curve.at(budget + step).freshness - curve.at(budget - step).freshness) / (2 * step)
    assert curve.at(budget).slope == pytest.approx(measured, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("budget", [0.05, 0.4])
def test_the_budget_for_a_freshness_buys_it(curious, way, budget):
    curve = read_crawl_curve(curious.namespace, settings_of(**way))
    point = curve.at(budget)
    assert point.slope > 0
    found = curve.budget_for(point.freshness)
    assert found is not None
    assert found.budget == pytest.approx(budget, rel=1e-5)
    assert found.freshness == pytest.approx(point.freshness, rel=1e-9)


def test_of_twice_the_budget_redirects_take_twice_as_much(curious):
    """And first visits no more than those that wait can use."""
    curve = read_crawl_curve(curious.namespace, settings_of())
    assert curve.waiting == 1
    assert curve.at(1.0).revisit_budget == pytest.approx(1 - 0.1 - 0.1, rel=1e-3)
    assert curve.at(2.0).revisit_budget == pytest.approx(2 - 0.1 - 0.2, rel=1e-3)
    assert curve.at(0.1).revisit_budget == pytest.approx(0.1 - 0.02 - 0.01, rel=1e-3)


def test_what_is_believed_of_a_page_does_not_depend_on_the_budget_asked_about(curious):
    """The prior is that of a plan at the present budget."""
    curve = read_crawl_curve(curious.namespace, settings_of())
    assert curve.crawl.priors.default_time == pytest.approx(5 / curve.at(1.0).revisit_budget)
    before = curve.problem.change_rate.copy()
    curve.plan(0.1)
    curve.plan(10.0)
    assert (curve.problem.change_rate == before).all()


def test_without_options_it_shows_a_ladder_around_the_present_budget(ask, run, crawl):
    """An "auto" budget is the one that the last plan measured."""
    answer = ask("whatif")
    assert answer["budget_is_measured"] is True
    assert [row["budget"] for row in answer["rates"]] == list(LADDER)
    assert [row["is_present"] for row in answer["rates"]] == [factor == 1 for factor in LADDER]
    assert answer["present"] == answer["rates"][LADDER.index(1.0)]
    freshness = [row["freshness"] for row in answer["rates"]]
    assert freshness == sorted(freshness)
    assert [row["gain"] for row in answer["rates"]] == pytest.approx([value - answer["present"]["freshness"] for value in freshness])
    lines = run("whatif").stdout.splitlines()
    assert len([line for line in lines if "%" in line]) == len(LADDER)
    assert len([line for line in lines if "present, as measured" in line]) == 1


def test_asked_rates_come_as_asked_and_the_present_one_beside_them(ask, run, crawl):
    answer = ask("whatif", "--rate", "3", "--rate", "0.5")
    assert [row["budget"] for row in answer["rates"]] == [3.0, 0.5]
    assert answer["present"]["budget"] == 1.0
    assert answer["targets"] == []
    # One page is held at the learning rate, a share of the budget: a part of what one more fetch per second gives goes there.
    share = answer["rates"][1]["multiplier"] / sum(page["importance"] for page in ask("pages"))
    assert share * (1 - LEARNING_SHARE / 3 - 1e-4) < answer["rates"][1]["slope"] < share * (1 + 1e-6)
    shown = [line.split()[0] for line in run("whatif", "--rate", "3", "--rate", "0.5").stdout.splitlines() if "%" in line]
    assert shown == ["0.5", "1", "3"]


def test_an_option_may_have_several_values(ask, crawl):
    answer = ask("whatif", "--rate", "3", "0.5", "--freshness=0.2", "30%", "--rate", "2")
    assert [row["budget"] for row in answer["rates"]] == [3.0, 0.5, 2.0]
    assert [target["freshness"] for target in answer["targets"]] == [0.2, 0.3]


@pytest.mark.parametrize("text", ["0.5", "50%", " 50 %"])
def test_a_freshness_may_be_a_share_or_a_percentage(ask, crawl, text):
    (target,) = ask("whatif", "--freshness", text)["targets"]
    assert target["freshness"] == 0.5
    assert target["reachable"] is True
    (row,) = ask("whatif", "--rate", repr(target["budget"]))["rates"]
    assert row["freshness"] == pytest.approx(0.5, rel=1e-9)


def test_people_get_targets_in_words(run, crawl):
    result = run("whatif", "--freshness", "50%", "--freshness", "0.999")
    assert result.exit_code == 0
    present, reachable, beyond = result.stdout.splitlines()
    assert present.startswith("present  1/s gives ")
    assert reachable.startswith("50% takes 0.")
    assert reachable.endswith("times the present budget")
    assert beyond.startswith("99.9% is out of reach of any budget: the best is ")
    assert "to pages without a first visit" in beyond
    assert beyond.endswith("(1 wait for theirs)")


def test_what_no_budget_can_reach_is_explained(curious):
    """By cause; with the best that can be reached the causes sum to everything."""
    crawl = curious
    for _ in range(2):
        crawl.advance(60.0)
        crawl.fail_at(WARM, "503")
    plain, slow = (read_crawl_curve(crawl.namespace, settings_of(HOST_DELAY=delay)).limit() for delay in (0.0, 5.0))
    total = 4.0 + 1.0 + 0.001 + 1.0 + 1.0
    for limit in (plain, slow):
        assert limit.freshness + limit.not_fetched + limit.bounds + limit.hosts + limit.failures == pytest.approx(1.0)
        assert limit.not_fetched == pytest.approx(1 / total)
        assert limit.bounds > 0
        assert limit.failures > 0
    assert plain.hosts == 0.0
    assert slow.hosts > 0
    assert slow.freshness < plain.freshness
    assert "limits of hosts" in why_no_more(slow)
    assert "limits of hosts" not in why_no_more(plain)
    assert "pages that fail" in why_no_more(plain)


def test_beyond_its_limit_more_budget_buys_nothing(crawl):
    curve = read_crawl_curve(crawl.namespace, settings_of(HOST_DELAY=5.0))
    limit = curve.limit()
    assert curve.at(limit.budget * 2).freshness == pytest.approx(limit.freshness, rel=1e-12)
    assert curve.at(limit.budget * 2).slope == 0.0
    assert curve.at(limit.budget * 0.98).freshness < limit.freshness
    assert curve.budget_for(limit.freshness * 1.001) is None


def test_minima_that_do_not_fit_are_said(crawl, capsys):
    from optimal_frontier.cli import whatif_command

    crawl.settings = settings_of(RULES=[{"host": "d.example", "interval": 2.0}])
    crawl.add(*(f"http://d.example/{i}" for i in range(4)))
    crawl.see_all()
    settings = settings_of()
    answer = forecast(read_crawl_curve(crawl.namespace, settings), settings, [1.0, 4.0], [0.3])
    assert [row["feasible"] for row in answer["rates"]] == [False, True]
    whatif_command._show(answer)
    assert "intervals asked for do not fit" in capsys.readouterr().out


def test_changes_are_shown_where_they_are_what_is_maximised(crawl, capsys):
    from optimal_frontier.cli import whatif_command

    settings = settings_of(OBJECTIVE="changes")
    answer = forecast(read_crawl_curve(crawl.namespace, settings), settings, [0.6, 2.0], [])
    changes = [row["changes_per_second"] for row in answer["rates"]]
    assert 0 < changes[0] < changes[1]
    whatif_command._show(answer)
    assert "changes seen/s" in capsys.readouterr().out
    step = 1e-3
    curve = read_crawl_curve(crawl.namespace, settings)
    measured = (curve.changes(0.6 + step) - curve.changes(0.6 - step)) / (2 * step)
    assert answer["rates"][0]["multiplier"] == pytest.approx(measured, rel=LEARNING_SHARE)


def test_nothing_is_written(run, crawl, redis_client, namespace):
    """Every key holds the same bytes afterwards, and no lock was taken."""

    def stored() -> dict[bytes, bytes]:
        return {key: redis_client.dump(key) for key in redis_client.scan_iter(f"{namespace}:*", count=10_000)}

    before = stored()
    for arguments in ([], ["--rate", "7"], ["--freshness", "0.5", "--freshness", "0.999", "--json"]):
        assert run("whatif", *arguments).exit_code == 0
    assert stored() == before


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--rate", value] for value in ("0", "-1", "nan", "inf", "fast", "")),
        *(["--freshness", value] for value in ("0", "95", "1.01", "101%", "-0.5", "nan", "%", "much")),
        ["12"],
        ["--json", "12"],
        ["--rate"],
        ["--rate", "1", "much"],
    ],
    ids=" ".join,
)
def test_wrong_usage(run, crawl, arguments):
    result = run("whatif", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")


def test_before_the_first_plan_there_is_one_clear_line(run, store):
    store.add(HOT)
    store.see_all()
    result = run("whatif")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no plan yet" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_plan_without_a_page_says_so(run, store):
    Planner(store.namespace, settings_of()).plan()
    result = run("whatif", "--rate", "5")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no page was fetched yet" in result.stderr


def test_nothing_stored_and_nobody_there_have_their_exit_codes(run, nowhere, target):
    from click.testing import CliRunner

    from optimal_frontier.cli import main

    assert run("whatif").exit_code == 1
    assert CliRunner().invoke(main, ["--redis-url", "redis://127.0.0.1:1", "whatif"]).exit_code == 3


def test_every_field_of_the_outlook_is_in_json(ask, crawl):
    from optimal_frontier.frontier.planning.curve import Limit, Outlook

    answer = ask("whatif", "--rate", "2")
    assert {field.name for field in dataclasses.fields(Outlook)} <= answer["rates"][0].keys()
    assert {field.name for field in dataclasses.fields(Limit)} == answer["limit"].keys()
