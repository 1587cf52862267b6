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
from optimal_frontier.settings import PREFIX, TABLE

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
DOCUMENTS = sorted([ROOT / "README.md", *DOCS.glob("*.md")])


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


def test_where_is_names_modules_that_exist():
    """A path is that in the package, in `frontier/`, or in `state/`."""
    package = ROOT / "optimal_frontier"
    named = re.findall(r"`([\w/.-]+(?:\.py|\.lua|/))`", (DOCS / "where.md").read_text())
    places = (ROOT, package, package / "frontier", package / "state")
    assert len(named) > 100
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


def test_the_page_of_rooms_names_modules_that_exist_and_takes_two_pages():
    """The last column has modules of the room in the first."""
    package, lines = ROOT / "optimal_frontier", (DOCS / "architecture.md").read_text().splitlines()
    assert len(lines) <= 120
    missing = []
    for room, (_, _, modules, *_) in rows_of(DOCS / "architecture.md").items():
        places = [package / room, package / "frontier" / room] if room.endswith("/") else []  # the others are threads
        for name in re.findall(r"`([\w/.]+)`", modules) if places else []:
            if not any((place / f"{name}{ending}").exists() for place in places for ending in ("", ".py")):
                missing.append(room + name)
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path):
    """Files exist, and so do the headings that a link names."""
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", path.read_text()):
        name, _, anchor = target.partition("#")
        linked = path.parent / name if name else path
        assert linked.exists(), target
        headings = [re.sub(r"[^\w\- ]", "", line.lstrip("# ")).lower().replace(" ", "-") for line in linked.read_text().splitlines()]
        assert not anchor or anchor in headings, target


def test_settings_page_has_every_stat():
    """Whatever is counted under optimal_frontier/ in Scrapy's stats."""
    text = (DOCS / "settings.md").read_text()
    for path in (ROOT / "optimal_frontier/integrations").rglob("*.py"):
        for name in re.findall(r'_value\(f?"(optimal_frontier/[\w/]+)', path.read_text()):
            assert name in text, f"{name} of {path.name}"


def shown_page() -> dict:
    """What ``page --json`` showed in the run of docs/maths.md."""
    (text,) = blocks_of(DOCS / "maths.md", "json")
    return json.loads(text)


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
    for name in ("change_rate", "change_rate_mean", "marginal_at_rate_0", "rate", "interval"):
        assert lines[name][0] == pytest.approx(page[name], rel=2e-5), name
    # The numbers were made at the price of the last visit: exact there, and to first order now.
    assert lines["to_first_order"][0] == pytest.approx(page["interval"], rel=1e-3)
    assert lines["slope"][0] == pytest.approx(page["numbers"]["s"], rel=0.05)
    assert lines["change_rate_interval"] == pytest.approx(page["change_rate_interval"], abs=1e-6)
    assert lines["deadline"][0] == pytest.approx(page["deadline"], abs=2e-3)
    assert lines["due_in_seconds"][0] == pytest.approx(page["due_in_seconds"], abs=2e-3)


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
