"""The embedded server: who starts it, who stops it, and what survives."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from optimal_frontier.errors import StateUnavailableError
from optimal_frontier.state import embedded
from optimal_frontier.state.embedded import EmbeddedServer

#: A user in its own process: says its socket, and leaves when its standard input closes.
USER = """
import sys
from pathlib import Path
from optimal_frontier.state.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
print(server.ensure(), flush=True)
try:
    sys.stdin.read()
except KeyboardInterrupt:
    pass
server.release()
"""


def is_running(data_dir: Path) -> bool:
    """Whether a server holds the directory; not by its pid, which may be reused or a zombie."""
    if not (data_dir / "server.lock").exists():
        return False
    with (data_dir / "server.lock").open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def server_pid(data_dir: Path) -> int:
    return int(json.loads((data_dir / "server.json").read_text())["pid"])


def call(socket_path: str, *command: str | bytes) -> object:
    with redis.Redis(unix_socket_path=socket_path, protocol=2) as client:
        return client.execute_command(*command)


def wait_until(condition: Callable[[], bool], limit_s: float = 10.0) -> None:
    give_up = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.005)


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "data"
    yield path
    if path.is_dir():  # leave nothing running, whatever the test did
        last = EmbeddedServer(path)
        if is_running(path):
            last.ensure()
            last.release()
        assert not is_running(path)


@pytest.fixture
def user(data_dir: Path) -> Iterator[Callable[[], tuple[subprocess.Popen[str], str]]]:
    """Starts users in processes of their own; those still there at the end are killed."""
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [sys.executable, "-c", USER, str(data_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_starts_on_a_unix_socket_only_and_stops_with_its_last_user(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    assert server.socket_path is None
    socket_path = server.ensure()
    assert server.socket_path == socket_path
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    assert stat.S_IMODE(os.stat(socket_path).st_mode) == 0o700
    assert json.loads((data_dir / "server.json").read_text())["socket"] == socket_path
    assert is_running(data_dir)
    server.release()
    assert not is_running(data_dir)
    assert not Path(socket_path).exists()
    server.release()  # a second call does nothing


def test_runs_as_the_design_says(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    with redis.Redis(unix_socket_path=server.ensure(), protocol=2, decode_responses=True) as client:
        wanted = {
            "appendonly": "yes",
            "appendfsync": "everysec",
            "aof-use-rdb-preamble": "yes",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        assert {name: client.config_get(name)[name] for name in wanted} == wanted
    server.release()


def test_data_survive_a_restart(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    call(server.ensure(), "SET", "key", "value")
    server.release()
    assert call(server.ensure(), "GET", "key") == b"value"
    server.release()


def test_two_users_of_one_process_share_a_server(data_dir: Path) -> None:
    first, second = EmbeddedServer(data_dir), EmbeddedServer(data_dir / ".." / "data")
    assert first.ensure() == second.ensure()
    pid = server_pid(data_dir)
    first.release()
    assert is_running(data_dir)
    assert server_pid(data_dir) == pid
    second.release()
    assert not is_running(data_dir)


def test_many_threads_and_users_start_one_server(data_dir: Path) -> None:
    shared = EmbeddedServer(data_dir)
    users = [EmbeddedServer(data_dir) for _ in range(8)] + [shared] * 8
    with ThreadPoolExecutor(16) as pool:
        paths = set(pool.map(EmbeddedServer.ensure, users))
        assert len(paths) == 1
        assert (data_dir / "server.log").read_text().count("Ready to accept connections") == 1
        list(pool.map(EmbeddedServer.release, users))
    assert not is_running(data_dir)


def test_two_processes_share_and_the_last_one_stops_it(data_dir: Path, user: Callable[[], tuple[subprocess.Popen[str], str]]) -> None:
    (first, path), (second, path_again) = user(), user()
    assert path == path_again
    first.communicate()
    assert first.returncode == 0
    assert call(path, "PING")
    second.communicate()
    assert second.returncode == 0
    assert not is_running(data_dir)


def test_a_killed_user_does_not_count(data_dir: Path, user: Callable[[], tuple[subprocess.Popen[str], str]]) -> None:
    process, path = user()
    mine = EmbeddedServer(data_dir)
    assert mine.ensure() == path
    process.kill()
    process.communicate()
    mine.release()
    assert not is_running(data_dir)


def test_the_server_of_killed_users_is_joined_by_the_next(data_dir: Path, user: Callable[[], tuple[subprocess.Popen[str], str]]) -> None:
    process, path = user()
    pid = server_pid(data_dir)
    process.kill()
    process.communicate()
    assert is_running(data_dir)
    mine = EmbeddedServer(data_dir)
    assert mine.ensure() == path
    assert server_pid(data_dir) == pid
    mine.release()
    assert not is_running(data_dir)


def test_a_process_that_forgets_to_release_does_so_at_its_end(data_dir: Path) -> None:
    script = USER.partition("print(")[0] + "server.ensure(); sys.exit(1)"
    assert subprocess.run([sys.executable, "-c", script, str(data_dir)], check=False, capture_output=True).stderr == b""
    assert not is_running(data_dir)


def test_ctrl_c_does_not_reach_the_server(data_dir: Path, user: Callable[[], tuple[subprocess.Popen[str], str]]) -> None:
    process, path = user()
    mine = EmbeddedServer(data_dir)
    mine.ensure()
    pid = server_pid(data_dir)
    assert os.getpgid(pid) != os.getpgid(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # the user leads its own group, as it would in a terminal
    process.communicate()
    assert call(path, "PING")
    assert server_pid(data_dir) == pid
    mine.release()


def test_a_forked_child_neither_stops_nor_holds_the_server(data_dir: Path) -> None:
    # In a process of its own, because forking one that has threads is unsafe.
    script = """
import os, sys
from pathlib import Path
from optimal_frontier.state.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
server.ensure()
hold, release = os.pipe()
if not (child := os.fork()):
    os.close(release)
    os.read(hold, 1)
    server.release()
    os._exit(0)
if not (joined := os.fork()):
    server.ensure()
    server.release()
    os._exit(0)
os.waitpid(joined, 0)
assert server.ensure() and (Path(sys.argv[1]) / "server.json").exists()
server.release()
assert not (Path(sys.argv[1]) / "server.json").exists(), "the child kept the server"
os.close(release)
os.waitpid(child, 0)
"""
    subprocess.run([sys.executable, "-c", script, str(data_dir)], check=True)
    assert not is_running(data_dir)


def test_a_dead_server_is_restarted_by_every_user_at_once(data_dir: Path) -> None:
    users = [EmbeddedServer(data_dir) for _ in range(4)]
    path = {server.ensure() for server in users}.pop()
    call(path, "SET", "key", "value")
    first_pid = server_pid(data_dir)
    os.kill(first_pid, signal.SIGKILL)
    with ThreadPoolExecutor(4) as pool:
        paths = set(pool.map(EmbeddedServer.ensure, users))
    assert server_pid(data_dir) != first_pid
    assert call(paths.pop(), "GET", "key") == b"value"  # the AOF was written; only the fsync is once a second
    for server in users:
        assert is_running(data_dir)
        server.release()
    assert not is_running(data_dir)


def test_the_socket_file_of_a_dead_server_is_replaced(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    path = server.ensure()
    os.kill(server_pid(data_dir), signal.SIGKILL)
    wait_until(lambda: not is_running(data_dir))
    assert Path(path).exists()
    server.release()
    assert call(server.ensure(), "PING")
    server.release()


def test_a_hanging_server_gets_no_rival(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers on one append-only file would destroy it."""
    server = EmbeddedServer(data_dir)
    server.ensure()
    monkeypatch.setattr(embedded, "START_TIMEOUT_S", 0.05)
    pid = server_pid(data_dir)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(StateUnavailableError, match=f"pid {pid}.*has not answered"):
            EmbeddedServer(data_dir).ensure()
    finally:
        os.kill(pid, signal.SIGCONT)
    server.release()
    assert not is_running(data_dir)


def test_a_server_that_was_started_where_tmp_is_another_one_is_told_from_one_that_hangs(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With PrivateTmp of systemd each service has one of its own; the advice was to stop the server of the others."""
    server = EmbeddedServer(data_dir)
    path = Path(server.ensure())
    monkeypatch.setattr(embedded, "START_TIMEOUT_S", 0.05)
    elsewhere = path.rename(path.with_suffix(".elsewhere"))
    try:
        with pytest.raises(StateUnavailableError, match=f"socket {path} is not to be found here: .*XDG_RUNTIME_DIR"):
            EmbeddedServer(data_dir).ensure()
    finally:
        elsewhere.rename(path)
    server.release()
    assert not is_running(data_dir)


def test_a_data_dir_deleted_under_its_server_starts_anew(data_dir: Path) -> None:
    abandoned = EmbeddedServer(data_dir)
    old_path = abandoned.ensure()
    call(old_path, "SET", "key", "value")
    shutil.rmtree(data_dir)
    fresh = EmbeddedServer(data_dir)
    assert call(fresh.ensure(), "GET", "key") is None
    fresh.release()
    assert not is_running(data_dir)
    abandoned.release()
    wait_until(lambda: not Path(old_path).exists())


@pytest.mark.parametrize("name", ["with space", 'quote"and\\slash', "ünïcödé", "long-" + "x" * 200])
def test_any_name_of_a_data_dir_works(tmp_path: Path, name: str) -> None:
    server = EmbeddedServer(tmp_path / name / "data")
    assert len(os.fsencode(server.ensure())) <= embedded.MAX_SOCKET_BYTES
    server.release()
    assert list((tmp_path / name / "data" / "appendonlydir").iterdir())


@pytest.mark.parametrize("given", [None, "relative", "/nonexistent", "/tmp", "/tmp/" + "x" * 80])
def test_an_unfit_runtime_dir_is_not_used(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    if given is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", given)
    path = embedded._runtime_dir()
    assert path == Path(f"/tmp/optimal_frontier-{os.geteuid()}")
    assert stat.S_IMODE(path.lstat().st_mode) == 0o700


def test_users_with_different_runtime_dirs_share_a_server(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = EmbeddedServer(data_dir), EmbeddedServer(data_dir)
    path = first.ensure()
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert second.ensure() == path
    first.release()
    second.release()
    assert not is_running(data_dir)


def test_a_link_is_no_private_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "link").symlink_to(tmp_path)
    assert embedded._is_private(str(tmp_path))
    assert not embedded._is_private(str(tmp_path / "link"))
    tmp_path.chmod(0o750)
    assert not embedded._is_private(str(tmp_path))


def test_corrupted_data_give_the_last_lines_of_the_log(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    call(server.ensure(), "SET", "key", "value")
    server.release()
    increments = next((data_dir / "appendonlydir").glob("*.incr.aof"))
    increments.write_bytes(b"*broken\r\n" * 100)
    with pytest.raises(StateUnavailableError, match=r"stopped while starting(?s:.)*server\.log(?s:.)*Bad file format") as caught:
        server.ensure()
    assert str(data_dir / "server.log") in str(caught.value)
    assert not is_running(data_dir)


def test_data_cut_off_by_a_crash_are_loaded(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    path = server.ensure()
    call(path, "SET", "key", "value")
    call(path, "SET", "key", "lost")
    server.release()
    increments = next((data_dir / "appendonlydir").glob("*.incr.aof"))
    increments.write_bytes(increments.read_bytes()[:-5])
    assert call(server.ensure(), "GET", "key") == b"value"
    server.release()


def test_a_program_that_cannot_run_is_an_error_of_ours(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "valkey-server"
    broken.write_bytes(b"\x7fELF no program")
    broken.chmod(0o755)
    monkeypatch.setattr(embedded, "_server_program", lambda: str(broken))
    with pytest.raises(StateUnavailableError, match="cannot run the embedded server of"):
        EmbeddedServer(data_dir).ensure()


def test_a_data_dir_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateUnavailableError, match=r"cannot run the embedded server of .*file"):
        EmbeddedServer(tmp_path / "file" / "data").ensure()


def test_a_large_log_is_set_aside(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o700)
    (data_dir / "server.log").write_bytes(b"x" * (embedded.MAX_LOG_BYTES + 1))
    server = EmbeddedServer(data_dir)
    server.ensure()
    server.release()
    assert (data_dir / "server.log").stat().st_size < embedded.MAX_LOG_BYTES
    assert (data_dir / "server.log.1").stat().st_size > embedded.MAX_LOG_BYTES
