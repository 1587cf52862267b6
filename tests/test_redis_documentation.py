"""docs/redis.md says what the code does: its tables are the rendered ones, and it names every key and counter of the scripts."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from optimal_frontier.frontier.judging.waits import Terms
from optimal_frontier.frontier.planning.exploring import Progress
from optimal_frontier.frontier.planning.neighbourhood_clocks import NeighbourhoodClocks
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.frontier.planning.publishing import Plan
from optimal_frontier.frontier.planning.solving import Solved, Sums
from optimal_frontier.frontier.planning.youth import FirstLooks
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.keys import KEY_TYPES, KEYS
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import FIELDS, HEAD_BYTES

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "redis.md"
SCRIPTS = sorted((ROOT / "optimal_frontier" / "state" / "lua").glob("*.lua"))

_spec = importlib.util.spec_from_file_location("render_redis", ROOT / "docs" / "render_redis.py")
assert _spec is not None
assert _spec.loader is not None
render_redis = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(render_redis)


def test_the_tables_are_those_of_the_code():
    """If this fails: python docs/render_redis.py"""
    assert render_redis.rendered(PAGE.read_text()) == PAGE.read_text()
    assert f"has {HEAD_BYTES} bytes" in PAGE.read_text()


def test_every_key_and_every_field_is_there_with_its_bound_and_writer():
    text = PAGE.read_text()
    assert all(key.growth and key.writer for key in KEYS)
    assert all(f"| `P{key.name}` | {key.type} |" in text for key in KEYS)
    assert all(f"| `{name}` | `{code}` |" in text for name, code, _ in FIELDS)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_use_no_other_keys(path):
    known = KEY_TYPES.keys() | {key.name.removesuffix("H") for key in KEYS}
    used = set(re.findall(r"\bP \.\. '([a-z:]+)'", path.read_text()))
    assert used <= known


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_counter_of_the_scripts_is_told(path):
    """Whatever a script counts by itself; judges count more."""
    counted = re.findall(r"\bP \.\. 'stats', '(\w+)'", path.read_text()) + re.findall(r"\bsums\.(\w+) =", path.read_text())
    assert all(f"`{name}`" in PAGE.read_text() for name in counted)


def test_every_field_of_a_plan_is_told_and_no_other():
    """What a plan publishes with each EXPLORATION, and the number that the script adds."""
    text = PAGE.read_text()
    section = text[text.index("## The plan") : text.index("## Looking with redis-cli")]
    told = {name for line in section.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    script = next(path for path in SCRIPTS if path.stem == "publish_plan").read_text()
    added = set(re.findall(r"P \.\. 'plan', '(\w+)'", script))
    assert added == {"number"}
    for exploration in ("median", "epsilon", "explore-then-commit"):
        planner = Planner(Mock(), FrontierSettings.parse({"OPTIMAL_FRONTIER_EXPLORATION": exploration}))
        crawl = planner.crawl
        crawl.planned, crawl.planned_pages, crawl.progress = np.zeros(1, np.int64), 1, Progress(exploration)
        nothing = np.zeros(1)
        solved = Solved(nothing, 1.0, 0.0, nothing, nothing, 0.0, 0.0, 1.0, True, 0, by_partition={0: Sums(1, 0.0, 0.0)})
        planner.keeper.clocks[0], planner.keeper.youth[0] = NeighbourhoodClocks(Mock(), 0), FirstLooks()
        terms = {0: Terms(0.0, Published(), planner.settings)}
        fields = planner._fields(Plan(0.0, 0.0, 0, solved, crawl, {}, planner.ways.fields, terms, 0), 0, 1.0)
        assert fields.keys() | added == told
