"""Fixtures of every test: a clean environment and one real server.

Tests share the server and keep apart by `namespace`; nothing is ever flushed.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import redis
import redis.utils
from _pytest.doctest import DoctestModule
from clocked_namespace import ClockedNamespace, open_namespace
from hypothesis import settings
from judged_crawl import JudgedCrawl

from optimal_frontier.state.embedded import EmbeddedServer

# No example of a property test fails because the machine is busy. The rest is hypothesis' own: with CI set its profile for that.
settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")
#: Files whose tests wait for real crawls, or for nodes of clusters, most of the time.
_WAITING = ("tests/integrations/", "tests/state/test_cluster")
# redis-py 8 reads its version from its metadata for every connection: a third of what it takes to open a namespace.
redis.utils.get_lib_version = functools.cache(redis.utils.get_lib_version)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays until the end: each worker would look through all of it for garbage again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class _Examples:
    """Only files with examples in docstrings are looked through for them, which each worker does with every file otherwise."""

    @staticmethod
    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        found = yield
        return found if b">>>" in file_path.read_bytes() else [one for one in found if not isinstance(one, DoctestModule)]


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin it is asked about the package, too."""
    config.pluginmanager.register(_Examples())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where workers share the files out, those that mostly wait stand between those that work: else all wait at once, then all work."""
    if not hasattr(config, "workerinput"):
        return
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    waiting = [name for name in files if name.startswith(_WAITING)]
    working = [name for name in files if name.startswith("tests/") and not name.startswith(_WAITING)]
    if len(working) < len(waiting):
        return
    # The last third has none of them: whoever is last is not to wait alone.
    places = {name: (at + 0.5) / len(working) for at, name in enumerate(working)}
    places |= {name: 0.67 * (at + 0.5) / len(waiting) for at, name in enumerate(waiting)}
    items[:] = [item for name in sorted(files, key=lambda name: places.get(name, 1.0)) for item in files[name]]


@pytest.fixture(scope="session", autouse=True)
def runtime_dir() -> Iterator[Path]:
    """Private directory of all sockets; nothing of the caller's shell reaches the tests, and no server outlives them."""
    path = Path(tempfile.mkdtemp(prefix="of-", dir="/tmp"))  # short: socket paths are limited
    with pytest.MonkeyPatch.context() as environment:
        for name in list(os.environ):
            if name.startswith(("OPTIMAL_FRONTIER_", "SCRAPY_")):
                environment.delenv(name)
        environment.setenv("XDG_RUNTIME_DIR", str(path))
        yield path
    left_running = [str(socket_path) for socket_path in path.iterdir() if _accepts(socket_path)]
    shutil.rmtree(path)
    assert not left_running, f"tests left servers running: {left_running}"


@pytest.fixture(scope="session")
def redis_socket(runtime_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Unix socket of the one server of the session."""
    server = EmbeddedServer(tmp_path_factory.mktemp("redis"))
    path = server.ensure()
    with redis.Redis(unix_socket_path=path) as client:
        client.config_set("appendonly", "no")  # nobody reads that file, and every reply would wait until it is written
    yield path
    server.release()


@pytest.fixture
def namespace() -> str:
    """Prefix of the test's own keys."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def redis_client(redis_socket: str) -> Iterator[redis.Redis]:
    """Client of the session's server; replies are bytes."""
    client = redis.Redis(unix_socket_path=redis_socket, protocol=2)
    yield client
    client.close()


@pytest.fixture
def store(redis_socket: str, namespace: str) -> Iterator[ClockedNamespace]:
    """An empty namespace at the time START; nothing moves its clock but the test."""
    opened = open_namespace(redis_socket, namespace)
    yield opened
    opened.connection.close()


@pytest.fixture
def judged(redis_socket: str, namespace: str) -> Iterator[JudgedCrawl]:
    """A crawl without pages at the time START, whose visits are judged; nothing moves its clock but the test."""
    crawl = JudgedCrawl(redis_socket, namespace)
    yield crawl
    crawl.close()


def _accepts(socket_path: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(socket_path))
    except OSError:
        return False
    return True


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: empty, and in no project."""
    directory = tmp_path / "nowhere"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory
