"""Imports point one way."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
    "state": BASE | {"estimation", "scheduling"},
    "papers": BASE | {"estimation", "optimization", "scheduling", "simulation"},
    "frontier": BASE | {"detection", "estimation", "optimization", "scheduling", "simulation", "state"},
}
MAY_IMPORT["integrations"] = MAY_IMPORT["frontier"] | {"frontier"}
MAY_IMPORT["cli"] = MAY_IMPORT["integrations"] | {"integrations", "papers"}

MODULES = sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


class Syntax(NamedTuple):
    """What is looked at of a module.

    Attributes
    ----------
    imported : frozenset of str
        Full names of all modules that it imports anywhere in it, also for typing only.
    too_many : tuple of str
        Functions with more than `MOST_PARAMETERS` that no command line has asked for.
    """

    imported: frozenset[str]
    too_many: tuple[str, ...]


@functools.cache
def syntax_of(path: Path) -> Syntax:
    """Read once: to parse all modules takes seconds."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    too_many = [function.name for function in functions if parameters_of(function) > MOST_PARAMETERS and not is_command(function)]
    return Syntax(imported_by(path, nodes), tuple(too_many))


def imported(path: Path) -> frozenset[str]:
    return syntax_of(path).imported


def imported_by(path: Path, nodes: list[ast.AST]) -> frozenset[str]:
    names: set[str] = set()
    package = ("optimal_frontier", *path.relative_to(ROOT).parts[:-1])
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return frozenset(names)


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


def test_imports_point_one_way():
    """errors, settings <- pure packages; errors, settings <- state; all of those <- frontier <- integrations <- cli.

    The pure packages that mathematics needs <- papers <- cli. The command's modules of `papers` are loaded by the command alone.
    """
    for path in MODULES:
        part = part_of(path)
        if part == "":
            continue  # the package itself imports `Addon` only when it is asked for: see below
        assert part in MAY_IMPORT, f"{part} has no place in the order of imports"
        allowed = MAY_IMPORT[part] | {part, "__version__"}
        if is_of_the_command(path):
            allowed |= {"cli"}
        if path.name == "__init__.py" and path.parent.name in REEXPORTING:
            allowed |= {"papers", "reexports"}
        names = {name for name in imported(path) if name.startswith("optimal_frontier.")}
        used = {name.split(".")[1] for name in names}
        assert used <= allowed, path
        if "papers" not in allowed | {part}:  # not by the back door either
            assert not names & reexported(), path


def rooms() -> list[str]:
    """Folders of the package in the order of docs/architecture.md, from the top of its table."""
    page = (ROOT.parent / "docs" / "architecture.md").read_text()
    return [f"optimal_frontier.{room.rstrip('/').replace('/', '.')}." for room in re.findall(r"^\| `([\w/]+/)` \|", page, re.MULTILINE)]


def test_a_room_imports_only_rooms_above_it():
    """As the page of rooms says; each module but the package's own stands in one of them."""
    order = rooms()

    def place(name: str) -> int | None:
        return next((at for at, room in enumerate(order) if f"{name}.".startswith(room)), None)

    for path in MODULES:
        name = ".".join((ROOT.name, *path.relative_to(ROOT).with_suffix("").parts))
        own = place(name)
        if path.name == "__init__.py" and (own is None or path.parent.name in REEXPORTING):
            continue
        assert own is not None or path.parent == ROOT, f"{name} has no room"
        found = {other: at for other in imported(path) if (at := place(other)) is not None}
        beneath = {other for other, at in found.items() if own is not None and at > own}
        assert not {other for other in beneath if not (is_of_the_command(path) and other.startswith("optimal_frontier.cli."))}, name


def test_frameworks_are_known_to_integrations_only():
    """Pure packages import neither redis, scrapy nor frontera; state knows redis alone; frontier knows none of them."""
    for path in (path for path in MODULES if part_of(path) in (*PURE, "papers", *BASE, "state", "frontier")):
        allowed = {"redis"} if part_of(path) == "state" else set()
        tops = {name.split(".")[0] for name in imported(path)}
        assert tops & {"redis", "scrapy", "frontera", "twisted"} <= allowed, path


#: Most parameters of a function, ``self`` apart.
MOST_PARAMETERS = 7
#: Functions whose users call them by keyword: those of the public interface, and the one that makes a page of all that is known of it.
MANY_PARAMETERS = {"solve_periodic", "solve_poisson", "simulate", "new_page"}


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether click calls it, with one parameter for each option of the command line."""
    return any(ast.unparse(decorator).startswith("click.command") for decorator in function.decorator_list)


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def test_functions_have_at_most_seven_parameters():
    for path in MODULES:
        assert set(syntax_of(path).too_many) <= MANY_PARAMETERS, path


#: Most lines of a module: one that needs more holds more than one concept.
MOST_LINES_OF_A_MODULE = 500


def test_modules_are_short():
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= MOST_LINES_OF_A_MODULE, path


def test_every_module_has_a_name_of_its_own():
    """But for those that stand for their folders."""
    names = [path.name for path in MODULES if not path.name.startswith("__")]
    assert sorted(names) == sorted(set(names))


def test_every_part_of_the_package_is_there():
    """The order above speaks of what exists."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert folders <= set(MAY_IMPORT)


#: An interpreter that has loaded what the package imports of others, apart from frameworks, and nothing of the package. It runs some code
#: in a child of its own, line by line, and prints which modules that has left.
_FRESH = """
import json, os, sys
import click, msgpack, numpy, rich.console, rich.table, scipy.special, scipy.stats
assert not [name for name in sys.modules if name.partition(".")[0] in ("optimal_frontier", "redis", "scrapy", "frontera", "twisted")]
for code in map(json.loads, sys.stdin):
    child = os.fork()
    if child == 0:
        exec(code)
        print(json.dumps(sorted(sys.modules)), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        print("null", flush=True)
"""


@pytest.fixture(scope="module")
def fresh() -> Iterator[subprocess.Popen[str]]:
    """Started once: to load numpy and scipy anew for each module takes a second."""
    with subprocess.Popen([sys.executable, "-c", _FRESH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def loaded_by(fresh: subprocess.Popen[str], code: str, *packages: str) -> list[str]:
    """Modules of these packages that are loaded once an interpreter without any of them has run some code."""
    fresh.stdin.write(json.dumps(code) + "\n")
    fresh.stdin.flush()
    loaded = json.loads(fresh.stdout.readline())
    assert loaded is not None, f"failed: {code}"
    return [name for name in loaded if f"{name}.".startswith(tuple(f"{package}." for package in packages))]


LIVE = sorted(
    ".".join(("optimal_frontier", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in MODULES
    if part_of(path) in {"errors", "settings", *PURE, "state", "frontier", "integrations"}
)


def test_the_live_crawl_loads_nothing_of_papers(fresh):
    """Nor do the simulations; every module that a crawl could import is imported here."""
    assert loaded_by(fresh, "\n".join(f"import {name}" for name in LIVE), "optimal_frontier.papers", "optimal_frontier.cli") == []


def test_the_command_loads_no_experiment_before_it_is_asked_for(fresh):
    loaded = loaded_by(fresh, "import optimal_frontier.cli", "optimal_frontier.papers", "optimal_frontier.cli.simulate_commands")
    assert not [name for name in loaded if name.endswith((*OF_THE_COMMAND, "simulate_commands"))]


@pytest.mark.parametrize("path", [p for p in MODULES if is_of_the_command(p)], ids=lambda path: path.stem)
def test_modules_of_experiments_can_be_the_first_to_be_imported(fresh, path):
    """The command registers them by name, so there is no cycle."""
    module = ".".join(("optimal_frontier", *path.relative_to(ROOT).with_suffix("").parts))
    assert module in loaded_by(fresh, f"import {module}", module)


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
def test_importing_a_pure_package_loads_no_framework(fresh, module):
    """Also not by way of something else that it imports."""
    assert loaded_by(fresh, f"import {module}", "redis", "scrapy", "frontera", "twisted") == []


def test_the_addon_is_imported_when_asked_for():
    """``ADDONS = {"optimal_frontier.Addon": 500}`` works, and a wrong name is an AttributeError."""
    assert optimal_frontier.Addon.__name__ == "Addon"
    with pytest.raises(AttributeError, match="Addno"):
        optimal_frontier.Addno  # noqa: B018
