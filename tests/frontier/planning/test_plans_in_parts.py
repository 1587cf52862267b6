"""Large crawls: solved in parts, planned under a lock that is renewed meanwhile."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crawled import START, Crawl, new_page, open_crawl, page_of, parse
from real_server import binary_of, free_port, real_server

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.frontier.planning.solving import Problem, Sums, solve
from optimal_frontier.frontier.planning.solving_parts import ProblemParts, solve_parts
from optimal_frontier.frontier.planning.timed import TimedPages
from optimal_frontier.settings import Timetable
from optimal_frontier.state.connection import connect
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import Row

PARTS, HOSTS = 7, 40
COLUMNS = ("importance", "change_rate", "min_rate", "max_rate", "asked", "host")
LIMITS = np.random.default_rng(1).uniform(2.0, 6.0, HOSTS)


def world(n: int = 3000, seed: int = 0, **values: Any) -> Problem:
    """Pages as a crawl has them, a few of which seem never to change."""
    rng = np.random.default_rng(seed)
    change_rate = np.where(rng.random(n) < 0.05, 0.0, 10 ** rng.uniform(-6, 1, n))
    plain = Problem(
        10 ** rng.uniform(-2, 2, n), change_rate, np.full(n, 1e-9), np.ones(n), np.full(n, 1e-3), False,
        rng.integers(0, HOSTS, n), None, "freshness", "periodic",
    )  # fmt: skip
    return replace(plain, **values)


def picked(problem: Problem, at: np.ndarray) -> Problem:
    discovery = None if problem.discovery is None else problem.discovery[at]
    return replace(problem, **{name: getattr(problem, name)[at] for name in COLUMNS}, discovery=discovery)


def in_parts(problem: Problem) -> ProblemParts:
    """The same pages in parts of two partitions."""
    cuts = np.array_split(np.arange(len(problem.importance)), PARTS)
    sample = picked(problem, np.arange(0, len(problem.importance), 5))
    return ProblemParts([at % 2 for at in range(PARTS)], lambda at: picked(problem, cuts[at]), lambda: (sample, 0.2), problem.limit)


DISCOVERY = np.where(np.random.default_rng(2).random(3000) < 0.02, 0.05, 0.0)


@pytest.mark.parametrize(("objective", "policy"), [("freshness", "periodic"), ("changes", "periodic"), ("freshness", "poisson")])
@pytest.mark.parametrize(
    ("values", "budget"),
    [
        ({}, 150.0),
        ({"limit": LIMITS}, 100.0),
        ({"discovery": DISCOVERY}, 150.0),
        ({"discovery": DISCOVERY, "limit": LIMITS}, 100.0),
        ({"asked": np.full(3000, 0.03)}, 150.0),  # exploration asks for three fifths of the budget
        ({"asked": np.full(3000, 0.2)}, 150.0),  # for four times of it
        ({"min_rate": np.full(3000, 0.2)}, 150.0),  # so do minima
        ({"min_rate": np.full(3000, 0.02), "limit": LIMITS}, 100.0),  # minima take most of the limits of hosts
        ({"is_even": True, "asked": np.full(3000, 0.05)}, 150.0),
        ({}, 15_000.0),  # the budget serves all
    ],
)
def test_parts_are_planned_as_the_whole_is(objective, policy, values, budget):
    """Price, freshness, rates, response, what hosts add: to the stated accuracy of the budget."""
    problem = world(objective=objective, policy=policy, **values)
    whole, parts = solve(problem, budget), solve_parts(in_parts(problem), budget)
    assert parts.log_price == pytest.approx(whole.log_price, abs=2e-5)
    assert parts.freshness == pytest.approx(whole.freshness, rel=1e-5)
    sums = parts.by_partition
    # On hosts of few pages a page that is just worth its price is visited or not, where the whole is planned with a mixture.
    assert sum(some.rate for some in sums.values()) == pytest.approx(whole.rates.sum(), rel=3e-5 if problem.limit is None else 2e-4)
    assert sum(some.response for some in sums.values()) == pytest.approx(whole.response.sum(), rel=1e-3, abs=1e-6)
    of_first = np.concatenate(np.array_split(np.arange(3000), PARTS)[::2])
    assert sums[0].pages == len(of_first)
    assert sums[0].rate == pytest.approx(whole.rates[of_first].sum(), rel=1e-3)
    if problem.limit is not None:
        np.testing.assert_allclose(parts.extra, whole.extra, atol=2e-3)
        assert (parts.extra > 0).any()
    assert (parts.feasible, parts.least) == (whole.feasible, pytest.approx(whole.least))
    assert parts.stretch == pytest.approx(whole.stretch)
    assert parts.held == pytest.approx(whole.held, abs=5)
    assert parts.unused == pytest.approx(whole.unused, rel=1e-3, abs=1e-9 * budget)


def test_a_price_to_start_from_saves_looks_and_changes_nothing():
    problem, looks = world(), [0, 0]

    def counted(number: int) -> ProblemParts:
        parts = in_parts(problem)

        def part(at: int) -> Problem:
            looks[number] += 1
            return parts.part(at)

        return replace(parts, part=part)

    far = solve_parts(counted(0), 150.0, 1e-3)
    near = solve_parts(counted(1), 150.0, far.multiplier * 1.001)
    assert near.multiplier == pytest.approx(far.multiplier, rel=1e-5)
    assert looks[1] <= 4 * PARTS < looks[0]


def test_pages_with_update_times_are_bought_at_the_one_price():
    """Those of a part are planned as they are beside all others."""
    problem = world()
    rows = np.arange(0, 400, 4)
    timetable = Timetable(1000.0, (100.0, 400.0, 900.0), (0.3, 0.6, 1.0))
    chances = np.random.default_rng(5).uniform(0.1, 0.9, (len(rows), 3))
    bounds = problem.min_rate[rows], problem.max_rate[rows]
    timed = TimedPages.of_timetable(timetable, rows, chances, problem.importance[rows], bounds, "freshness")
    parts = in_parts(problem)
    cut = ProblemParts(parts.partitions, lambda at: replace(parts.part(at), timed=timed if at == 0 else None), parts.sample, None)
    assert len(parts.part(0).importance) > rows[-1]
    whole, found = solve(replace(problem, timed=timed), 150.0), solve_parts(cut, 150.0)
    assert found.log_price == pytest.approx(whole.log_price, abs=1e-4)
    assert found.freshness == pytest.approx(whole.freshness, rel=1e-5)


@pytest.mark.parametrize("values", [{}, {"discovery": DISCOVERY}, {"min_rate": np.full(3000, 0.02)}, {"min_rate": np.full(3000, 0.03)}])
@pytest.mark.parametrize("budget", [100.0, 15_000.0])
def test_a_host_of_more_pages_than_are_looked_at_together_has_the_price_that_it_has_beside_others(monkeypatch, values, budget):
    """Its pages are looked at part by part, too. Minima may take all of what hosts admit."""
    problem = world(host=np.minimum(np.arange(3000) % 6, 4), limit=np.array([40.0] * 4 + [24.0]), **values)
    whole, together = solve(problem, budget), solve_parts(in_parts(problem), budget)
    monkeypatch.setattr("optimal_frontier.frontier.planning.solving_parts._TOGETHER", 700)  # one has 1,000, the others 500
    seen, joined = set(), Problem.joined
    monkeypatch.setattr(Problem, "joined", lambda parts: (seen.update(*(part.host.tolist() for part in parts)), joined(parts))[1])
    alone = solve_parts(in_parts(problem), budget)
    np.testing.assert_allclose(alone.extra, whole.extra, atol=2e-3)
    np.testing.assert_allclose(alone.extra, together.extra, atol=1e-4)
    assert alone.extra[4] > 0
    assert alone.freshness == pytest.approx(together.freshness, rel=1e-6)
    assert 4 not in seen


def timed_in_parts(problem: Problem) -> tuple[Problem, ProblemParts, list[int]]:
    """Pages of which many have one timetable and believe the same of it; the same in parts; and a list of the parts that are made."""
    rows, looks = np.arange(0, 428), list[int]()
    problem = replace(problem, importance=np.where(np.arange(3000) < 428, 1.0, problem.importance))
    timetable = Timetable(1000.0, (100.0, 400.0, 900.0), (0.3, 0.6, 1.0))
    bounds = problem.min_rate[rows], problem.max_rate[rows]
    timed = TimedPages.of_timetable(timetable, rows, np.full((428, 3), 0.5), problem.importance[rows], bounds, "freshness")
    parts = in_parts(problem)

    def part(at: int) -> Problem:
        looks.append(at)
        return replace(parts.part(at), timed=timed if at == 0 else None)

    return replace(problem, timed=timed), replace(parts, part=part), looks


@pytest.mark.parametrize("values", [{}, {"min_rate": np.full(3000, 0.0005)}, {"limit": LIMITS / 100}])
def test_what_is_asked_for_pages_with_update_times_goes_to_others(values):
    """Minima and exploration ask for more than there is: pages that are visited at update times do not take it."""
    whole, parts, _ = timed_in_parts(world(**values))
    one, other = solve(whole, 1.0), solve_parts(parts, 1.0)
    assert other.log_price == pytest.approx(one.log_price, abs=1e-4)
    assert sum(some.rate for some in other.by_partition.values()) == pytest.approx(one.rates.sum(), rel=1e-4)
    assert other.freshness == pytest.approx(one.freshness, rel=1e-4)


def test_where_spending_jumps_over_the_budget_the_price_is_found_soon():
    """Pages that are alike are bought together. Their price is that of the plan before, and it is looked at from both sides."""
    whole, parts, looks = timed_in_parts(world())
    found = solve_parts(parts, 20.0)
    assert found.log_price == pytest.approx(solve(whole, 20.0).log_price, abs=1e-3)
    assert sum(some.rate for some in found.by_partition.values()) == pytest.approx(20.0, rel=3e-3)
    assert len(looks) < 60 * PARTS
    looks.clear()
    again = solve_parts(parts, 20.0, found.multiplier)
    assert again.log_price == pytest.approx(found.log_price, abs=1e-8)
    assert len(looks) < 40 * PARTS


@pytest.mark.parametrize("values", [{}, {"limit": LIMITS}, {"policy": "poisson"}, {"discovery": DISCOVERY}])
@pytest.mark.parametrize("budget", [1e-3, 100.0, 1e5])
def test_a_part_of_which_no_page_is_planned_changes_nothing(values, budget):
    problem = world(**values)
    parts, nobody = in_parts(problem), picked(problem, np.arange(0))
    more = replace(parts, partitions=[2, *parts.partitions], part=lambda at: parts.part(at - 1) if at else nobody)
    one, other = solve_parts(parts, budget), solve_parts(more, budget)
    assert other.log_price == one.log_price
    assert other.freshness == one.freshness
    assert other.by_partition == {**one.by_partition, 2: Sums(0, 0.0, 0.0)}


def test_an_error_in_a_part_is_raised_and_what_is_left_is_not_done():
    parts, seen = in_parts(world()), []

    def part(at: int) -> Problem:
        seen.append(at)
        if at == 1:
            raise ValueError("broken")
        return parts.part(at)

    with pytest.raises(ValueError, match="broken"):
        solve_parts(replace(parts, part=part), 150.0)
    assert len(seen) <= PARTS


# Crawls.


@pytest.fixture
def large(monkeypatch):
    """All crawls are large ones."""
    monkeypatch.setattr("optimal_frontier.frontier.planning.crawl_solving.WHOLE", 0)


@pytest.mark.parametrize("values", [{}, {"HOST_MAX_RATE": 1.0}, {"POLICY": "poisson"}, {"EXPLORATION": "epsilon"}])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_crawl_in_parts_is_published_and_written_as_a_whole_one(redis_socket, namespace, monkeypatch, values, partitions):
    stored = []
    for number, whole in enumerate((200_000, 0)):
        monkeypatch.setattr("optimal_frontier.frontier.planning.crawl_solving.WHOLE", whole)
        crawl = open_crawl(redis_socket, f"{namespace}-{number}", partitions=partitions)
        crawl.crawled(600, settings=parse(CRAWL_RATE=12, **values))
        crawl.add(new_page("h1/waits"))
        report = Planner(crawl.namespace, parse(CRAWL_RATE=12, **values)).plan()
        rows = {page: head for k in range(partitions) for page, head in crawl.rows(k).items()}
        stored.append((report, [crawl.plan(k) for k in range(partitions)], rows, [crawl.published(k) for k in range(partitions)]))
        crawl.namespace.connection.close()
    (one, plans, rows, published), (other, same, again, like) = stored
    assert other.planned_rate == pytest.approx(one.planned_rate, rel=1e-5)
    assert other.multiplier == pytest.approx(one.multiplier, rel=1e-4)
    assert (other.pages, other.queued) == (one.pages, one.queued)
    for mine, its in zip(plans, same, strict=True):
        for name in ("pages", "share", "planned_rate", "budget", "estimated_freshness", "prior_time", "hosts_at_limit"):
            assert float(its[name]) == pytest.approx(float(mine[name]), rel=1e-4), name
    for mine, its in zip(published, like, strict=True):
        assert its.host_prices == pytest.approx(mine.host_prices, abs=2e-3)
    assert rows.keys() == again.keys()
    for page, head in rows.items():
        for name in ("a", "s", "l"):
            assert again[page][name] == pytest.approx(head[name], rel=1e-2, abs=1e-3)


def test_the_sample_of_a_large_crawl_takes_from_partitions_what_they_are_of_it(redis_socket, namespace, monkeypatch, large):
    """However many there are, it is as large; a small one counts no more than its pages do."""
    monkeypatch.setattr("optimal_frontier.frontier.planning.crawl_solving._SAMPLE", 60)
    crawl = open_crawl(redis_socket, namespace, partitions=8)
    crawl.add(*(new_page(f"big/{i}") for i in range(1200)), *(new_page(f"small{i}/1") for i in range(120)))
    slow, fast = {"shape": 1.0, "time": 1e6}, {"shape": 1.0, "time": 1.0}
    crawl.observe_many([(handout, slow if handout.host == "big" else fast) for handout in crawl.firsts()])
    planner = Planner(crawl.namespace, parse(CRAWL_RATE=12))
    planner.plan()
    assert len(planner.crawl.median) <= 2 * 60 + 8
    assert float(crawl.plan()["change_rate_p50"]) == pytest.approx(np.log(2) / 1e6, rel=0.01)
    crawl.namespace.connection.close()


@pytest.mark.parametrize("fetched", [0, 30])
@pytest.mark.parametrize("values", [{}, {"HOST_MAX_RATE": 1.0}])
def test_a_large_crawl_of_which_most_pages_wait_for_their_first_visit_is_planned(crawl, monkeypatch, large, fetched, values):
    """They stand together, as they were found together."""
    planner = Planner(crawl.namespace, parse(CRAWL_RATE=12, **values))
    spans = planner.crawl.spans
    monkeypatch.setattr(planner.crawl, "spans", lambda size=0: spans(20))
    crawl.crawled(fetched)
    planner.plan()
    crawl.add(*(new_page(f"h1/waits{i}") for i in range(100)))
    report = planner.plan()
    assert report is not None
    assert report.pages == fetched
    assert (report.planned_rate > 0) is (fetched > 0)


def slowed(crawl: Crawl, planner: Planner, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Make every part take so long."""
    part = planner.crawl.part
    monkeypatch.setattr(planner.crawl, "part", lambda span: (time.sleep(seconds), part(span))[1])


def test_a_plan_that_is_solved_for_longer_than_its_lock_lives_lands(crawl, monkeypatch, large):
    """And nobody takes the lock meanwhile."""
    monkeypatch.setattr("optimal_frontier.frontier.planning.lock.LOCK_S", 1.0)
    monkeypatch.setattr("optimal_frontier.frontier.planning.lock.RENEW_S", 0.05)
    crawl.crawled(300)
    one, other = (Planner(crawl.namespace, parse(CRAWL_RATE=5)) for _ in range(2))
    spans = one.crawl.spans
    monkeypatch.setattr(one.crawl, "spans", lambda size=0: spans(20))
    slowed(crawl, one, monkeypatch, 0.15)
    reports, turned_away = [], []
    began = time.monotonic()
    thread = threading.Thread(target=lambda: reports.append(one.plan()))
    thread.start()
    while thread.is_alive():
        turned_away.append(not one.lock.fences or not other.lock.take())
        time.sleep(0.02)
    thread.join()
    assert time.monotonic() - began > 2.0
    assert reports[0] is not None
    assert reports[0].written == reports[0].queued > 100
    assert sum(turned_away) >= len(turned_away) - 1  # the last one may have come after it
    assert len(turned_away) > 10


def test_a_planner_that_was_held_up_goes_on_unless_another_has_planned(crawl, monkeypatch, large):
    """A lock that ran out and that nobody took is taken again; one that somebody took is lost."""
    crawl.crawled(30)
    one, other = (Planner(crawl.namespace, parse(CRAWL_RATE=5)) for _ in range(2))
    monkeypatch.setattr("optimal_frontier.frontier.planning.lock.RENEW_S", 0.0)
    problem, meanwhile = one.crawl.begin_problem, []

    def held_up(*arguments: Any) -> None:
        crawl.namespace.command("DEL", crawl.namespace.key("planner"))
        meanwhile.append(other.plan() if len(meanwhile) else None)
        problem(*arguments)

    monkeypatch.setattr(one.crawl, "begin_problem", held_up)
    assert one.plan() is not None
    assert one.plan() is None
    assert [report is not None for report in meanwhile] == [False, True]
    assert crawl.plan()["number"] == "2"


def test_of_two_crawlers_with_a_long_queue_one_always_lands(redis_socket, namespace, monkeypatch, large):
    """Whatever the one does, the other's plan is whole: no plan is lost to both."""
    monkeypatch.setattr("optimal_frontier.frontier.planning.lock.LOCK_S", 1.0)
    monkeypatch.setattr("optimal_frontier.frontier.planning.lock.RENEW_S", 0.1)
    crawl = open_crawl(redis_socket, namespace)
    crawl.crawled(3000, hosts=3)
    crawl.advance(1e8)  # all are overdue
    spaces = [open_crawl(redis_socket, namespace).namespace for _ in range(2)]
    crawl.set_time(crawl.at)
    planners = [Planner(space, parse(CRAWL_RATE=5)) for space in spaces]
    for planner in planners:
        run = planner.namespace.run
        monkeypatch.setattr(planner.namespace, "run", lambda calls, run=run: (time.sleep(0.03), run(calls))[1])
    landed: list[int] = []
    for _ in range(4):
        reports: list[object] = []
        threads = [threading.Thread(target=lambda p=planner, into=reports: into.append(p.plan())) for planner in planners]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        landed.append(sum(report is not None for report in reports))
    assert min(landed) >= 1
    assert int(crawl.plan()["number"]) == sum(landed)
    for space in (*spaces, crawl.namespace):
        space.connection.close()


def test_a_read_that_broke_off_loses_no_page(redis_socket, namespace, monkeypatch):
    """What was not taken in is read at the next plan, not forgotten."""
    monkeypatch.setattr("optimal_frontier.frontier.planning.page_table.SMALL", 10)
    monkeypatch.setattr("optimal_frontier.frontier.planning.page_table.SCAN_COUNT", 20)
    monkeypatch.setattr("optimal_frontier.frontier.planning.page_table.CHUNK", 100)
    crawl = open_crawl(redis_socket, namespace)
    crawl.crawled(600, hosts=3)
    planner = Planner(crawl.namespace, parse(CRAWL_RATE=20))
    assert planner.plan().read == 600
    table = planner.crawl.tables[0]
    calls = iter(range(9))

    def breaks() -> None:
        if next(calls, None) is None:
            raise StateUnavailableError("Redis is away")

    # All pages are worth more by now, which who reads on from there learns of every one.
    stored, key = crawl.rows(), crawl.namespace.key("pages")
    assert float(table.pages["importance"].max()) < 5.0
    heads = {page: Row.unpack(head.tobytes())._replace(importance=5.0).pack() for page, head in stored.items()}
    crawl.namespace.command("HSET", key, *(part for pair in heads.items() for part in pair))
    with pytest.raises(StateUnavailableError):
        table.read(0.9, 0.0, breaks)
    assert 0 < np.count_nonzero(table.pages["importance"] == 5.0) < 300
    table.read(0.9, 0.0)
    assert set(table.pages["importance"].tolist()) == {5.0}
    for _ in range(80):  # three times through all of them
        planner.plan()
        assert table.pages.count == 600
    assert set(table.pages["id"].tolist()) == crawl.rows().keys() == {page_of(f"h{i % 3}/{i}") for i in range(600)}
    crawl.namespace.connection.close()


def test_a_server_that_is_started_anew_while_a_large_table_is_read_hides_no_page(namespace, monkeypatch, tmp_path):
    """It goes through the pages in another order than the one before, which has shown about half of them."""
    monkeypatch.setattr("optimal_frontier.frontier.planning.page_table.SMALL", 10)
    monkeypatch.setattr("optimal_frontier.frontier.planning.page_table.SCAN_COUNT", 20)
    monkeypatch.setattr("optimal_frontier.frontier.planning.page_table.LEAST_SHARE", 0.1)
    options, binary = {"port": free_port()}, binary_of("redis")
    with real_server(binary, tmp_path, options) as port:
        crawl = Crawl(Namespace(connect(parse_redis_url(f"redis://127.0.0.1:{port}", tmp_path)), namespace))
        crawl.namespace.open(spider="test")
        crawl.set_time(START)
        crawl.crawled(3000, hosts=3)
        planner = Planner(crawl.namespace, parse(CRAWL_RATE=20))
        planner.plan()
        table = planner.crawl.tables[0]
        table.read(0.5, 0.0)
        crawl.namespace.command("SAVE")
    with real_server(binary, tmp_path, options):
        crawl.namespace.connection.reconnect()
        crawl.run("forget", page_of("h1/1"))
        known = [(planner.plan(), table.pages.count)[1] for _ in range(40)]
        crawl.namespace.connection.close()
    assert min(known) == known[-1] == 2999
