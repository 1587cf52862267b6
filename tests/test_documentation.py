"""The documents say what the code does: settings, keys, counters, layouts, and the calculation by hand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.frontier.exploring import Progress
from optimal_frontier.scheduling import credit_at, deadline
from optimal_frontier.settings import PREFIX, TABLE
from optimal_frontier.state import columns
from optimal_frontier.state.store import KEY_TYPES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
DOCUMENTS = sorted([ROOT / "README.md", *DOCS.glob("*.md")])

#: Keys of which there are several, and their types.
MANY_KEYS = {
    "page:C": "string",
    "seen:C": "string",
    "plan:C": "string",
    "index:C": "string",
    "content:C": "string",
    "committed:C": "string",
    "prior:C": "string",
    "watch:C": "string",
    "bought:C": "string",
    "bursts:C": "string",
    "due:H": "zset",
    "first:H": "zset",
    "owner:O": "set",
    "retired:H": "list",
    "aliased:S": "list",
}


def rows_of(path: Path) -> dict[str, list[str]]:
    """Cells of every table row of a document, by the name in its first cell."""
    rows = {}
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `") and len(cells) > 1:
            rows.setdefault(cells[0].strip("`"), cells)
    return rows


def blocks_of(path: Path, language: str) -> list[str]:
    """Contents of the fenced blocks of a language; "" for those that name none."""
    # Split at the fences, so that the end of one block is not taken for the start of another.
    pieces = re.split(r"^```(.*)\n", path.read_text(), flags=re.MULTILINE)
    return [pieces[at + 1] for at in range(1, len(pieces) - 1, 4) if pieces[at].strip() == language]


SETTINGS_ROWS = rows_of(DOCS / "settings.md")
KEY_ROWS = rows_of(DOCS / "redis.md")


@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: setting.name)
def test_settings_page_has_every_setting_with_its_default(setting):
    """A row of docs/settings.md has the full name, then the default as Python writes it."""
    assert setting.full_name in SETTINGS_ROWS
    default = setting.default
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    assert SETTINGS_ROWS[setting.full_name][1].strip("`") == shown


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_names_an_unknown_setting(path):
    """Whatever stands behind the prefix is in the table."""
    known = {setting.full_name for setting in TABLE}
    assert set(re.findall(rf"\b{PREFIX}\w+", path.read_text())) <= known


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path):
    """Files exist, and so do the headings that a link names."""
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", path.read_text()):
        name, _, anchor = target.partition("#")
        linked = path.parent / name if name else path
        assert linked.exists(), target
        headings = [re.sub(r"[^\w\- ]", "", line.lstrip("# ")).lower().replace(" ", "-") for line in linked.read_text().splitlines()]
        assert not anchor or anchor in headings, target


@pytest.mark.parametrize(("name", "kind"), (KEY_TYPES | MANY_KEYS).items())
def test_redis_page_has_every_key_with_its_type(name, kind):
    """And says what bounds it and who writes it."""
    assert f"P {name}" in KEY_ROWS
    cells = KEY_ROWS[f"P {name}"]
    assert cells[1] == kind
    assert len(cells) == 6
    assert cells[4]
    assert cells[5]


def test_redis_page_has_no_other_keys():
    """What it lists exists."""
    listed = {name.removeprefix("P ") for name in KEY_ROWS if name.startswith("P ")}
    assert listed == KEY_TYPES.keys() | MANY_KEYS.keys()


def test_redis_page_lists_every_key_of_the_scripts():
    """The header of the shared prelude names the same keys."""
    prelude = (ROOT / "optimal_frontier/state/lua/_prelude.lua").read_text()
    named = set(
        re.findall(r"\bP\.([a-z]+(?::(?:[a-z]+|[CHOS]))?)\b", "\n".join(line for line in prelude.splitlines() if line.startswith("--")))
    )
    listed = {name.removeprefix("P ") for name in KEY_ROWS if name.startswith("P ")}
    assert named <= listed


@pytest.mark.parametrize("name", columns.LAYOUTS)
def test_redis_page_has_the_layouts(name):
    """Width, fields in order, and the struct that scripts unpack."""
    layout = columns.LAYOUTS[name]
    _, width, struct, fields = KEY_ROWS[name] if name in KEY_ROWS else next(_layout_rows(name))
    prelude = (ROOT / "optimal_frontier/state/lua/_prelude.lua").read_text()
    assert int(width) == layout.itemsize
    assert f"{name} = '{struct.strip('`')}'" in prelude
    places = [re.search(rf"\b{field}\b", fields) for field in layout.names or ()]
    assert all(places)
    assert [place.start() for place in places] == sorted(place.start() for place in places)


def _layout_rows(name):
    for line in (DOCS / "redis.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] == name and len(cells) == 4:
            yield cells


def test_redis_page_names_the_states():
    """Number and name of each."""
    text = (DOCS / "redis.md").read_text()
    for number, name in enumerate(columns.STATE_NAMES):
        assert f"{number} {name}" in text


def test_redis_page_has_every_counter():
    """Whatever a script counts in P.stats."""
    text = (DOCS / "redis.md").read_text()
    for path in (ROOT / "optimal_frontier/state/lua").glob("*.lua"):
        source = path.read_text()
        counted = re.findall(r"\bP \.\. 'stats', '(\w+)'", source) + re.findall(r"\bcount\('(\w+)'", source)
        for name in counted:
            assert f"`{name}" in text, f"{name} of {path.name}"


def test_redis_page_has_every_field_of_a_plan():
    """As the planner publishes them."""
    text = (DOCS / "redis.md").read_text()
    source = (ROOT / "optimal_frontier/frontier/planner.py").read_text()
    fields = re.search(r"fields: dict\[str, Any\] = \{(.*?)\n        \}", source, re.DOTALL)
    assert fields
    for name in [*re.findall(r'^\s+"(\w+)":', fields[1], re.MULTILINE), *Progress("median").fields()]:
        assert f"`{name}`" in text, name


def test_settings_page_has_every_stat():
    """Whatever is counted under optimal_frontier/ in Scrapy's stats."""
    text = (DOCS / "settings.md").read_text()
    for path in (ROOT / "optimal_frontier/integrations").rglob("*.py"):
        for name in re.findall(r'_value\(f?"(optimal_frontier/[\w/]+)', path.read_text()):
            assert name in text, f"{name} of {path.name}"


def test_look_script_reads_what_the_layouts_say():
    """The Lua of docs/redis.md names the fields in the order of the columns."""
    (script,) = blocks_of(DOCS / "redis.md", "lua")
    for name in ("page", "seen", "plan"):
        fields = re.search(rf"^  {name} = \{{(.*?)\}}", script, re.MULTILINE | re.DOTALL)
        assert fields
        assert tuple(re.findall(r"'(\w+)'", fields[1])) == columns.LAYOUTS[name].names
        assert f"{{'{name}', {columns.LAYOUTS[name].itemsize}, " in script


def shown_page() -> dict:
    """What ``page --json`` showed in the run of docs/maths.md."""
    (text,) = blocks_of(DOCS / "maths.md", "json")
    return json.loads(text)


def shown_columns() -> dict[str, float]:
    """What redis-cli showed of the same page in docs/redis.md."""
    return {name: float(value) for name, value in re.findall(r'"(\w+\.\w+) ([-\d.e+]+)"', (DOCS / "redis.md").read_text())}


def test_calculation_by_hand_prints_what_it_says():
    """Run as it stands, with nothing of ours."""
    (script,) = blocks_of(DOCS / "maths.md", "python")
    assert set(re.findall(r"^(?:import|from) (\w+)", script, re.MULTILINE)) <= {"math", "numpy"}
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout in blocks_of(DOCS / "maths.md", "")


def test_calculation_by_hand_agrees_with_what_page_showed():
    """Six digits of every number."""
    (printed,) = [block for block in blocks_of(DOCS / "maths.md", "") if "marginal_at_rate_0" in block]
    page = shown_page()
    lines = {line.split()[0]: [float(x) for x in line.split("(")[0].split()[1:]] for line in printed.splitlines()}
    for name in ("change_rate", "change_rate_mean", "marginal_at_rate_0", "rate", "interval", "credit"):
        assert lines[name][0] == pytest.approx(page[name], rel=2e-5), name
    assert lines["change_rate_interval"] == pytest.approx(page["change_rate_interval"], abs=1e-6)
    assert lines["deadline"][0] == pytest.approx(page["deadline"], abs=2e-3)
    assert lines["due_in_seconds"][0] == pytest.approx(page["due_in_seconds"], abs=2e-3)


def test_page_agrees_with_the_columns_that_redis_cli_showed():
    """The same page in both documents, and the code's formulas lead from one to the other."""
    page, stored = shown_page(), shown_columns()
    posterior = RatePosterior(stored["seen.shape"], stored["seen.time"])
    assert [posterior.median, *posterior.interval(0.95)] == pytest.approx([page["change_rate"], *page["change_rate_interval"]], rel=1e-9)
    credit = [stored[name] for name in ("seen.carry", "seen.settled", "plan.rate", "plan.base_time", "plan.base_credit")]
    assert credit_at(page["time"], *credit) == pytest.approx(page["credit"], abs=1e-6)
    due = deadline(*credit, stored["seen.last_attempt"], stored["page.gap"], stored["seen.failures"])
    assert due == pytest.approx(page["deadline"], abs=1e-5)
    assert format(int(stored["seen.bits"]), f"0{page['observations']}b") == page["bits"]
    for name in ("importance", "visits", "observations", "changes", "rate"):
        group = "page" if name == "importance" else "plan" if name == "rate" else "seen"
        assert stored[f"{group}.{name}"] == pytest.approx(page[name], rel=1e-15), name


def test_update_formula_of_the_maths_page_is_the_code():
    """The moments as docs/maths.md has them."""
    a, b, interval = 1.5, 30.0, 7.0
    posterior = RatePosterior(a, b)
    posterior.update(interval, True)
    s = b / (b + interval)
    z = 1 - s**a
    m1 = a / b * (1 - s ** (a + 1)) / z
    m2 = a * (a + 1) / b**2 * (1 - s ** (a + 2)) / z
    assert np.allclose([posterior.shape, posterior.time], [m1**2 / (m2 - m1**2), m1 / (m2 - m1**2)], rtol=1e-12)
