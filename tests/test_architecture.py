"""Imports point one way."""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import optimal_frontier

ROOT = Path(optimal_frontier.__file__).parent
PURE = ("detection", "estimation", "optimization", "scheduling", "simulation")
BASE = {"errors", "settings", "validation"}
#: Re-export names of `papers`, which they load when a name is asked for; type checkers see the imports.
REEXPORTING = ("estimation", "optimization", "scheduling")
#: Modules of `papers` that belong to the command: experiments and their pictures.
OF_THE_COMMAND = ("_commands", "_drawing")
#: Part of the package -> the parts that it may import, besides itself.
MAY_IMPORT = {
    "errors": set(),
    "settings": {"errors"},
    "validation": {"errors"},
    "reexports": set(),
    "detection": BASE,
    "estimation": BASE,
    "optimization": BASE,
    "scheduling": BASE | {"estimation", "optimization"},
    "simulation": BASE | {"detection", "estimation", "optimization", "scheduling"},
    "state": BASE | {"scheduling"},
    "papers": BASE | {"estimation", "optimization", "scheduling", "simulation"},
    "frontier": BASE | {"detection", "estimation", "optimization", "scheduling", "simulation", "state"},
}
MAY_IMPORT["integrations"] = MAY_IMPORT["frontier"] | {"frontier"}
MAY_IMPORT["cli"] = MAY_IMPORT["integrations"] | {"integrations", "papers"}

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


@functools.cache
def reexported() -> set[str]:
    """Full names under which `papers` can be had elsewhere."""
    found = set()
    for package in REEXPORTING:
        names = imported(ROOT / package / "__init__.py")
        found |= {f"optimal_frontier.{package}.{name.split('.')[-1]}" for name in names if name.startswith("optimal_frontier.papers.")}
    return found


def is_of_the_command(path: Path) -> bool:
    return part_of(path) == "papers" and path.stem.endswith(OF_THE_COMMAND)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path):
    """errors, settings <- pure packages; errors, settings <- state; all of those <- frontier <- integrations <- cli.

    The pure packages that mathematics needs <- papers <- cli. The command's modules of `papers` are loaded by the command alone.
    """
    part = part_of(path)
    if part == "":
        return  # the package itself imports `Addon` only when it is asked for: see below
    assert part in MAY_IMPORT, f"{part} has no place in the order of imports"
    allowed = MAY_IMPORT[part] | {part, "__version__"}
    if is_of_the_command(path):
        allowed |= {"cli"}
    if path.name == "__init__.py" and path.parent.name in REEXPORTING:
        allowed |= {"papers", "reexports"}
    names = {name for name in imported(path) if name.startswith("optimal_frontier.")}
    used = {name.split(".")[1] for name in names}
    assert used <= allowed
    if "papers" not in allowed | {part}:  # not by the back door either
        assert not names & reexported()


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) in (*PURE, "papers", *BASE, "state", "frontier")], ids=str)
def test_frameworks_are_known_to_integrations_only(path):
    """Pure packages import neither redis, scrapy nor frontera; state knows redis alone; frontier knows none of them."""
    allowed = {"redis"} if part_of(path) == "state" else set()
    tops = {name.split(".")[0] for name in imported(path)}
    assert tops & {"redis", "scrapy", "frontera", "twisted"} <= allowed


#: Most parameters of a function, ``self`` apart.
MOST_PARAMETERS = 7
#: Functions whose users call them by keyword: those of the public interface, and the one that makes a page of all that is known of it.
MANY_PARAMETERS = {"solve_periodic", "solve_poisson", "simulate", "new_page"}


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether click calls it, with one parameter for each option of the command line."""
    return any(ast.unparse(decorator).startswith("click.command") for decorator in function.decorator_list)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_have_at_most_seven_parameters(path):
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for function in functions:
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
        names = [name for name in names if name not in ("self", "cls")]
        assert len(names) <= MOST_PARAMETERS or function.name in MANY_PARAMETERS or is_command(function), function.name


#: Most lines of a module: one that needs more holds more than one concept.
MOST_LINES_OF_A_MODULE = 500


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_are_short(path):
    assert len(path.read_text().splitlines()) <= MOST_LINES_OF_A_MODULE


def test_every_module_has_a_name_of_its_own():
    """But for those that stand for their folders."""
    names = [path.name for path in MODULES if not path.name.startswith("__")]
    assert sorted(names) == sorted(set(names))


def test_every_part_of_the_package_is_there():
    """The order above speaks of what exists."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert folders <= set(MAY_IMPORT)


def loaded_by(code: str, *packages: str) -> list[str]:
    """Modules of these packages that are loaded once a fresh interpreter has run some code."""
    code = (
        f"{code}\nimport sys\nprint(*sorted(name for name in sys.modules if f'{{name}}.'.startswith({tuple(f'{p}.' for p in packages)})))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout.split()


LIVE = sorted(
    ".".join(("optimal_frontier", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in MODULES
    if part_of(path) in {"errors", "settings", *PURE, "state", "frontier", "integrations"}
)


def test_the_live_crawl_loads_nothing_of_papers():
    """Nor do the simulations; every module that a crawl could import is imported here."""
    assert loaded_by("\n".join(f"import {name}" for name in LIVE), "optimal_frontier.papers", "optimal_frontier.cli") == []


def test_the_command_loads_no_experiment_before_it_is_asked_for():
    loaded = loaded_by("import optimal_frontier.cli", "optimal_frontier.papers", "optimal_frontier.cli.simulate_commands")
    assert not [name for name in loaded if name.endswith((*OF_THE_COMMAND, "simulate_commands"))]


@pytest.mark.parametrize("path", [p for p in MODULES if is_of_the_command(p)], ids=lambda path: path.stem)
def test_modules_of_experiments_can_be_the_first_to_be_imported(path):
    """The command registers them by name, so there is no cycle."""
    module = ".".join(("optimal_frontier", *path.relative_to(ROOT).with_suffix("").parts))
    assert module in loaded_by(f"import {module}", module)


@pytest.mark.parametrize("package", REEXPORTING)
def test_names_of_papers_are_where_users_know_them(package):
    """All of the package's names can be imported, each by itself and by ``*``; a wrong one is an AttributeError."""
    module = importlib.import_module(f"optimal_frontier.{package}")
    assert set(module.__all__) <= set(dir(module))
    everything: dict[str, object] = {}
    exec(f"from optimal_frontier.{package} import *", everything)
    for name in module.__all__:
        assert everything[name] is getattr(module, name)
    tree = ast.parse((ROOT / package / "__init__.py").read_text())
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    typed = {alias.name: node.module for node in froms if ".papers." in node.module for alias in node.names}
    assert typed
    assert set(typed) <= set(module.__all__)
    for name, source in typed.items():  # what a type checker sees is what is there
        assert getattr(module, name) is getattr(importlib.import_module(source), name)
    with pytest.raises(AttributeError, match="slove"):
        module.slove  # noqa: B018


@pytest.mark.parametrize(
    "module", ["optimal_frontier", *(f"optimal_frontier.{name}" for name in PURE if (ROOT / name / "__init__.py").exists())]
)
def test_importing_a_pure_package_loads_no_framework(module):
    """Also not by way of something else that it imports."""
    assert loaded_by(f"import {module}", "redis", "scrapy", "frontera", "twisted") == []


def test_the_addon_is_imported_when_asked_for():
    """``ADDONS = {"optimal_frontier.Addon": 500}`` works, and a wrong name is an AttributeError."""
    assert optimal_frontier.Addon.__name__ == "Addon"
    with pytest.raises(AttributeError, match="Addno"):
        optimal_frontier.Addno  # noqa: B018
