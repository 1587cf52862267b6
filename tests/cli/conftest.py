"""A crawl as it is stored, with a clock that stands still, and the command run against it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from judged_crawl import JudgedCrawl

from optimal_frontier.cli import main

from .stored_crawl import Crawl


@pytest.fixture
def store(judged: JudgedCrawl) -> JudgedCrawl:
    """An empty namespace whose clock stands still."""
    return judged


@pytest.fixture
def crawl(redis_socket: str, namespace: str) -> Iterator[Crawl]:
    """Four pages and a plan."""
    stored = Crawl(redis_socket, namespace)
    yield stored
    stored.close()


@pytest.fixture
def target(redis_socket: str, namespace: str) -> list[str]:
    """Options that name the test's own namespace."""
    return ["--redis-url", f"unix://{redis_socket}", "--namespace", namespace]


@pytest.fixture
def run(nowhere: Path, target: list[str]) -> Callable[..., Result]:
    """Run the command on the test's namespace, outside of any project."""

    def invoke(*arguments: str, **options: Any) -> Result:
        result = CliRunner().invoke(main, [*target, *arguments], **options)
        # Whatever happens, no traceback: only the exits that click itself makes.
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


@pytest.fixture
def ask(run: Callable[..., Result]) -> Callable[..., Any]:
    """Run a reading command with --json, and return what it says."""

    def invoke(*arguments: str, code: int = 0) -> Any:
        result = run(*arguments, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    return invoke
