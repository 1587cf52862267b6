"""The report's figures: exact on a record worked by hand, 1 for a clairvoyant schedule and 0 for a uniform one."""

import json

import numpy as np
import pytest
from demo.plot import optimal_curve, plot_run
from demo.record import FetchRecord, LogFollower
from demo.report import alive_seconds, fresh_seconds, freshness_over_time, largest_burst, measure, optimum
from demo.world import World, make_world
from example_client import periodic_visits, record_of

LONG = 2000.0


def test_fresh_seconds_by_hand():
    world = World(
        importance=np.array([1.0, 1.0, 2.0, 1.0]),
        change_rate=np.array([0.2, 0.0, 0.1, 0.1]),
        death=np.array([np.inf, np.inf, 8.0, np.inf]),
        changes=(np.array([3.0, 5.0]), np.array([]), np.array([9.0]), np.array([])),
        links=((), (), (), ()),
    )
    # Page 0: current 1-3, stale 3-4, current (version 2) 4-5, stale 5-10. Page 1: from 2 on. Page 2: 0-8, dies. Page 3: never fetched.
    rows = [[1.0, 0, 1, 200], [4.0, 0, 2, 200], [2.0, 1, 1, 200], [0.0, 2, 1, 200], [9.0, 2, 0, 404], [5.0, -1, 0, 404]]
    record = FetchRecord.from_rows(rows)
    edges = np.array([0.0, 4.5, 10.0])
    assert fresh_seconds(world, record, edges) == pytest.approx(np.array([[2.5, 0.5], [2.5, 5.5], [4.5, 3.5], [0, 0]]))
    assert alive_seconds(world, edges)[2] == pytest.approx([4.5, 3.5])
    assert freshness_over_time(world, record, np.array([0.0, 10.0])) == pytest.approx((3 + 8 + 2 * 8) / (10 + 10 + 2 * 8 + 10))


def test_answers_304_keep_a_copy_current_and_are_counted_with_what_they_saved():
    """Page 0 is revisited four times in the window, and had not changed at three of them; one of these was answered in full."""
    changes = (np.array([7.0]), np.array([50.0]))
    world = World(np.ones(2), np.array([0.2, 0.1]), np.full(2, np.inf), changes, ((), ()))
    visits = [(0.5, 1, 200, 90), (1.0, 1, 304, 90), (3.0, 1, 304, 90), (4.0, 1, 200, 90), (6.0, 1, 304, 90), (8.0, 2, 200, 91)]
    rows = [[at, 0, version, status, size] for at, version, status, size in visits]
    record = FetchRecord.from_rows([*rows, [5.0, 1, 1, 200, 70], [9.0, 1, 0, 404, 0]])
    assert fresh_seconds(world, record, np.array([2.0, 10.0]))[0] == pytest.approx(5.0 + 2.0)
    report = measure(world, record, 2.0, 10.0)
    assert (report.unchanged, report.not_modified) == (3, 2)
    assert (report.bytes_saved, report.bytes_full) == (180, 4 * 90 + 1 + 70)


def test_largest_burst_is_over_any_window():
    assert largest_burst(np.array([])) == 0
    assert largest_burst(np.array([0.0, 4.0, 4.9, 5.0, 8.9, 20.0])) == 4


@pytest.mark.parametrize("seed", [1, 2])
def test_clairvoyant_schedule_closes_the_gap_and_uniform_none_of_it(seed):
    world = make_world(seed, LONG)
    rng = np.random.default_rng(seed)
    living = np.isinf(world.death)
    _, best_rates, _ = optimum(world.importance * living, world.change_rate, 48.0)
    for rates, gap in ((best_rates, 1.0), (48.0 / living.sum() * living, 0.0)):
        report = measure(world, record_of(world, *periodic_visits(rates, 0.0, LONG, rng)), LONG / 2, LONG)
        assert report.gap_closed == pytest.approx(gap, abs=0.06)
        assert report.fetch_rate == pytest.approx(48.0, rel=0.01)
        assert report.pages_fetched == 300
        assert report.uniform < report.optimum


def test_window_without_fetches_is_refused():
    world = make_world(1, 10.0)
    with pytest.raises(ValueError, match=r"no fetch between 5\.0 and 10\.0"):
        measure(world, FetchRecord.from_rows([[1.0, 0, 1, 200]]), 5.0, 10.0)


def test_optimal_curve_meets_the_optimum():
    world = make_world(1)
    _, rates, multiplier = optimum(world.importance, world.change_rate, 48.0)
    page = int((rates * world.change_rate).argmax())
    change_rate, revisit_rate = optimal_curve(world.importance[page], multiplier)
    rising = slice(0, int(change_rate.argmax()))
    # At one change rate the optimum may lie on either branch of no curve but the one that revisits often.
    assert np.interp(world.change_rate[page], change_rate[rising], revisit_rate[rising]) == pytest.approx(rates[page], rel=1e-3)


def test_log_is_read_while_it_grows(tmp_path):
    log = tmp_path / "site.jsonl"
    log.write_text("[1.5,3,1,200]\n[2.0,4,")
    follower = LogFollower(log)
    assert follower.read_new() == [[1.5, 3, 1, 200]]
    with log.open("a") as more:
        more.write("7,200]\n")
    assert follower.read_new() == [[2.0, 4, 7, 200]]
    assert follower.record().version.tolist() == [1, 7]


def test_figures_are_json_and_the_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    world = make_world(3)
    _, rates, _ = optimum(world.importance, world.change_rate, 48.0)
    record = record_of(world, *periodic_visits(rates, 2.0, 92.0, np.random.default_rng(0)))
    report = measure(world, record, 47.0, 92.0)
    assert json.loads(json.dumps(report.figures()))["pages"] == 300
    plot_run(world, record, report, tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
