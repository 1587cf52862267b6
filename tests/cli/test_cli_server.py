"""``server``: the embedded server on its own, until it is stopped."""

from __future__ import annotations

import os
import signal
import time

import pytest
import redis

from .running_command import running


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_runs_until_it_is_stopped(tmp_path, nowhere, stop):
    url = f"embedded://{tmp_path}/data"
    with running("--redis-url", url, "--namespace", "n", "server") as process:
        lines = [process.stdout.readline() for _ in range(3)]
        path = lines[1].split()[1]
        assert lines[2].rstrip().endswith(f"redis-cli -s {path} hgetall 'n:{{0}}:stats'")
        with redis.Redis(unix_socket_path=path) as client:
            assert client.ping()
        if stop == signal.SIGINT:
            # Killed, it is run again.
            pid = int((tmp_path / "data" / "server.pid").read_text())
            os.kill(pid, signal.SIGKILL)
            _wait_for_answer(path)
        process.send_signal(stop)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert not (tmp_path / "data" / "server.json").exists()


def _wait_for_answer(path: str) -> None:
    give_up = time.monotonic() + 10
    while True:
        try:
            with redis.Redis(unix_socket_path=path) as client:
                client.ping()
            return
        except redis.ConnectionError:
            assert time.monotonic() < give_up
            time.sleep(0.05)


def test_a_server_of_the_users_is_not_run(run):
    result = run("server")
    assert result.exit_code == 2
    assert "expected embedded" in result.stderr
