"""docs/redis.md says what the code does: its tables are the rendered ones, and it names every key and counter of the scripts."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from optimal_frontier.state.keys import KEY_TYPES, KEYS
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
