"""``plot``: pictures that show what the estimates say."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from judged_crawl import JudgedCrawl

from optimal_frontier.cli import plot_command as plotting
from optimal_frontier.cli.drawing import save
from optimal_frontier.cli.project import Workplace
from optimal_frontier.frontier.planning.curve import read_crawl_curve
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.optimization.objectives import marginal_values
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.redis_url import parse_redis_url

pytest.importorskip("matplotlib")

#: What a PNG begins with.
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def workplace_of(**values: object) -> Workplace:
    values = {"CRAWL_RATE": 3.0} | values
    settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()})
    return Workplace(settings, parse_redis_url("redis://127.0.0.1:1", Path()))


@pytest.fixture(scope="module")
def many(redis_socket: str) -> Iterator[JudgedCrawl]:
    """300 pages of all kinds, some of which are not worth a visit, and one plan; tests only read it."""
    store = JudgedCrawl(redis_socket, f"test-{uuid.uuid4().hex[:12]}")
    rng = np.random.default_rng(0)
    urls = [f"http://h{i % 9}.example/{i}" for i in range(300)]
    for url in urls:
        store.add(url, importance=float(rng.pareto(1.2) + 0.1))
    while store.see_all():
        pass
    for url in urls:
        store.rewrite(url, shape=2.0, time=10 ** rng.uniform(-2, 4), min_interval=10.0)
    store.advance(0.001)
    Planner(store.namespace, workplace_of().settings).plan()
    yield store
    store.close()


def labels_of(drawn) -> list[str]:
    return [text.get_text() for legend in drawn.legends for text in legend.get_texts()]


@pytest.mark.parametrize("kind", plotting.KINDS)
def test_a_png_is_written(run, crawl, tmp_path, kind):
    path = tmp_path / f"{kind}.png"
    result = run("plot", kind, str(path))
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"written: {path}\n", "")
    assert path.read_bytes().startswith(SIGNATURE)
    assert path.stat().st_size > 20_000


@pytest.mark.parametrize("arguments", [["colours", "out.png"], ["frontier", "nowhere/out.png"], ["rates", "out.txt"]], ids=" ".join)
def test_what_cannot_be_drawn_is_said_in_one_line(run, crawl, arguments):
    result = run("plot", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    if arguments[0] == "colours":
        assert all(kind in result.stderr for kind in plotting.KINDS)


def test_without_matplotlib_it_says_what_to_install(run, crawl, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("plot", "rates", "out.png")
    assert result.exit_code == 2
    assert "pip install 'optimal-frontier[plot]'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_before_the_first_plan_there_is_nothing_to_draw(run, store):
    result = run("plot", "frontier", "out.png")
    assert result.exit_code == 1
    assert "there is no plan yet" in result.stderr
    assert not Path("out.png").exists()


@pytest.mark.parametrize("low", [0.01, 1.0])
def test_the_drawn_curve_is_the_curve(many, low):
    """Between the plans it is made of, too, to a thousandth of a point in the hundred; and it never falls."""
    curve = read_crawl_curve(many.namespace, workplace_of().settings)
    budgets, freshness = plotting.smooth(curve, low, 30.0)
    assert (np.diff(freshness) >= 0).all()
    for at in range(0, len(budgets), 7):
        assert freshness[at] == pytest.approx(curve.at(float(budgets[at])).freshness, abs=1e-3)


def test_the_frontier_shows_the_present_budget_and_its_slope(many):
    workplace = workplace_of()
    curve = read_crawl_curve(many.namespace, workplace.settings)
    now = curve.at(3.0)
    drawn = plotting.draw_frontier(curve, workplace)
    (axes,) = drawn.axes
    _, dot, tangent, best = axes.get_lines()
    assert (dot.get_xdata(), dot.get_ydata()) == (pytest.approx([3.0]), pytest.approx([now.freshness]))
    x, y = tangent.get_data()
    assert np.diff(y) / np.diff(x) == pytest.approx([now.slope] * (len(x) - 1))
    assert best.get_ydata()[0] == pytest.approx(curve.limit().freshness)
    assert axes.get_xscale() == "log"
    assert "per second" in axes.get_xlabel()
    assert any("present budget (CRAWL_RATE): 3/s" in label for label in labels_of(drawn))


@pytest.mark.parametrize("way", [{}, {"POLICY": "poisson"}, {"OBJECTIVE": "changes"}], ids=str)
def test_the_threshold_line_parts_the_pages(many, way):
    """Pages below it are not visited more than they must be; what is above it is, or is not worth more than that."""
    workplace = workplace_of(**way)
    curve = read_crawl_curve(many.namespace, workplace.settings)
    plan = curve.plan(3.0)
    least = np.maximum(curve.problem.min_rate, curve.problem.asked)
    drawn = plotting.draw_rates(curve, workplace)
    axes = drawn.axes[0]
    (line,) = axes.get_lines()
    left, visited = axes.collections
    x, y = line.get_data()
    threshold = y if way == {"OBJECTIVE": "changes"} else y / x
    assert threshold == pytest.approx([plan.multiplier] * 2)
    for dots, above in ((left, False), (visited, True)):
        change_rate, importance = dots.get_offsets().T
        worth = importance if way == {"OBJECTIVE": "changes"} else importance / change_rate
        assert len(worth) > 3
        if above:
            assert (worth > plan.multiplier).all()
        else:
            objective, policy = way.get("OBJECTIVE", "freshness"), way.get("POLICY", "periodic")
            marginal = marginal_values(importance, change_rate, np.full(len(worth), least[0]), objective, policy)
            assert marginal.max() <= plan.multiplier * (1 + 1e-6)
            assert np.mean(worth <= plan.multiplier) > 0.8
    assert np.allclose(visited.get_array(), plan.rates[plan.rates > least * (1 + 1e-6)])
    assert {"importance"} == {axes.get_ylabel()}
    assert "per second" in axes.get_xlabel()
    assert "per second" in drawn.axes[1].get_ylabel()
    assert any("visited no more than they must be" in label for label in labels_of(drawn))


def test_of_a_large_crawl_some_pages_are_drawn_and_it_says_so(many, monkeypatch):
    monkeypatch.setattr(plotting, "MOST_DOTS", 40)
    workplace = workplace_of()
    axes = plotting.draw_rates(read_crawl_curve(many.namespace, workplace.settings), workplace).axes[0]
    assert sum(len(dots.get_offsets()) for dots in axes.collections) == 40
    assert "40 of 300 pages" in axes.get_title()


def test_a_namespace_that_looks_like_a_formula_is_shown_as_it_is(many, tmp_path):
    workplace = workplace_of(NAMESPACE="a$\\frac$é")
    path = tmp_path / "out.png"
    save(plotting.draw_frontier(read_crawl_curve(many.namespace, workplace.settings), workplace), path)
    assert path.read_bytes().startswith(SIGNATURE)


def test_pages_that_are_all_alike_can_be_drawn(store, tmp_path):
    """One importance, one change rate; and enough budget for all of them, so that there is no threshold."""
    store.add(*(f"http://h.example/{i}" for i in range(3)))
    store.see_all()
    for rate in (1.0, 100.0):
        workplace = workplace_of(CRAWL_RATE=rate)
        Planner(store.namespace, workplace.settings).plan()
        curve = read_crawl_curve(store.namespace, workplace.settings)
        for kind, draw in plotting.KINDS.items():
            save(draw(curve, workplace), tmp_path / f"{kind}.png")


@pytest.mark.parametrize("exploration", ["median", "epsilon", "explore-then-commit"])
@pytest.mark.parametrize("kind", plotting.KINDS)
def test_every_exploration_is_drawn(many, kind, exploration):
    """The axis of change rates says which they are."""
    workplace = workplace_of(EXPLORATION=exploration)
    drawn = plotting.KINDS[kind](read_crawl_curve(many.namespace, workplace.settings), workplace)
    label = drawn.axes[0].get_xlabel()
    assert "median" in label if kind == "rates" else "budget" in label


def labels_in(axis) -> list[tuple[float, float, str]]:
    """Begin and end (pixels, along the axis) of the labels that are shown, in order, and what they say."""
    renderer = axis.get_figure().canvas.get_renderer()
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()) if low <= tick.get_loc() <= high]
    texts = [text for tick in ticks for text in (tick.label1, tick.label2) if text.get_visible() and text.get_text()]
    boxes = [(text.get_window_extent(renderer), text.get_text()) for text in texts]
    is_x = axis.axis_name == "x"
    return sorted((box.x0, box.x1, said) if is_x else (box.y0, box.y1, said) for box, said in boxes)


@pytest.mark.parametrize("span", [1.02, 1.3, 3.0, 9.0, 30.0, 90.0, 1e4])
def test_labels_of_rates_do_not_collide_however_little_they_span(redis_socket, namespace, span):
    """Of change rates, importances and revisit rates: at least two of each, none on another."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    store = JudgedCrawl(redis_socket, namespace)
    rng = np.random.default_rng(0)
    urls = [f"http://h{i % 9}.example/{i}" for i in range(60)]
    for url in urls:
        store.add(url, importance=float(0.1 * span ** rng.uniform(0, 1)))
    while store.see_all():
        pass
    for url in urls:
        store.rewrite(url, shape=2.0, time=33.0 * span ** rng.uniform(0, 1), min_interval=0.001)
    store.advance(0.001)
    Planner(store.namespace, workplace_of().settings).plan()
    drawn = plotting.draw_rates(read_crawl_curve(store.namespace, workplace_of().settings), workplace_of())
    FigureCanvasAgg(drawn)
    drawn.draw_without_rendering()  # labels are laid out, no pixel is painted
    axes, bar = drawn.axes
    for axis in (axes.xaxis, axes.yaxis, bar.yaxis):
        labels = labels_in(axis)
        assert len({said for *_, said in labels}) == len(labels) >= 2, labels
        assert all(end < begin for (_, end, _), (begin, _, _) in pairwise(labels)), labels
    store.close()
