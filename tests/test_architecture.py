"""Imports point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import optimal_frontier

ROOT = Path(optimal_frontier.__file__).parent
PURE = ("detection", "estimation", "optimization", "scheduling", "simulation")
BASE = {"errors", "settings", "validation"}
#: Part of the package -> the parts that it may import, besides itself.
MAY_IMPORT = {
    "errors": set(),
    "settings": {"errors"},
    "validation": {"errors"},
    "detection": BASE,
    "estimation": BASE,
    "optimization": BASE,
    "scheduling": BASE | {"estimation", "optimization"},
    "simulation": BASE | {"detection", "estimation", "optimization", "scheduling"},
    "state": BASE,
    "frontier": BASE | {"detection", "estimation", "optimization", "scheduling", "simulation", "state"},
}
MAY_IMPORT["integrations"] = MAY_IMPORT["frontier"] | {"frontier"}
MAY_IMPORT["cli"] = MAY_IMPORT["integrations"] | {"integrations"}

MODULES = sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def imported(path: Path) -> set[str]:
    """Full names of all modules that ``path`` imports anywhere in it, also for typing only."""
    names: set[str] = set()
    package = ("optimal_frontier", *path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path):
    """errors, settings <- pure packages; errors, settings <- state; all of those <- frontier <- integrations <- cli."""
    part = part_of(path)
    if part == "":
        return  # the package itself imports `Addon` only when it is asked for: see below
    assert part in MAY_IMPORT, f"{part} has no place in the order of imports"
    used = {name.split(".")[1] for name in imported(path) if name.startswith("optimal_frontier.")}
    assert used <= MAY_IMPORT[part] | {part, "__version__"}


@pytest.mark.parametrize(
    "path", [p for p in MODULES if part_of(p) in (*PURE, "errors", "settings", "validation", "state", "frontier")], ids=str
)
def test_frameworks_are_known_to_integrations_only(path):
    """Pure packages import neither redis, scrapy nor frontera; state knows redis alone; frontier knows none of them."""
    allowed = {"redis"} if part_of(path) == "state" else set()
    tops = {name.split(".")[0] for name in imported(path)}
    assert tops & {"redis", "scrapy", "frontera", "twisted"} <= allowed


def test_every_part_of_the_package_is_there():
    """The order above speaks of what exists."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert folders <= set(MAY_IMPORT)


@pytest.mark.parametrize(
    "module", ["optimal_frontier", *(f"optimal_frontier.{name}" for name in PURE if (ROOT / name / "__init__.py").exists())]
)
def test_importing_a_pure_package_loads_no_framework(module):
    """Also not by way of something else that it imports."""
    code = f"import sys, {module}; print(sorted({{'redis', 'scrapy', 'frontera', 'twisted'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_the_addon_is_imported_when_asked_for():
    """``ADDONS = {"optimal_frontier.Addon": 500}`` works, and a wrong name is an AttributeError."""
    assert optimal_frontier.Addon.__name__ == "Addon"
    with pytest.raises(AttributeError, match="Addno"):
        optimal_frontier.Addno  # noqa: B018
