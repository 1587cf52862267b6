"""A Redis or Valkey of one's own for a benchmark, and what it says of itself."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import redis

#: Seconds for which a server may take to start, or to rewrite its file.
PATIENCE_S = 120.0


class Server:
    """One server on a Unix socket in a directory of its own; nothing is saved unless `log_writes` is called."""

    def __init__(self, program: str, cpu: int) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="of-visits-")
        self.socket = str(Path(self.folder.name) / "s")
        self.url = f"unix://{self.socket}"
        options = ["--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no", "--dir", self.folder.name]
        options += ["--enable-debug-command", "local"]  # for `restore`
        self.process = subprocess.Popen(["taskset", "-c", str(cpu), program, *options], stdout=subprocess.DEVNULL)
        self.client = redis.Redis(unix_socket_path=self.socket, protocol=2)
        self._wait(self._answers)

    def cpu_s(self) -> float:
        """CPU seconds of the server so far, user and system."""
        said = self.client.info("cpu")
        return float(said["used_cpu_user"] + said["used_cpu_sys"])

    def computed_ms(self) -> float:
        """Milliseconds for which the main thread of the server has run."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1e6

    def memory(self) -> int:
        """Bytes of its data."""
        return int(self.client.info("memory")["used_memory"])

    def keep(self) -> None:
        """Write a snapshot of its data."""
        self.client.save()

    def restore(self) -> None:
        """Put its data back to the snapshot."""
        self.client.execute_command("DEBUG", "RELOAD", "NOSAVE")

    def log_writes(self) -> None:
        """Begin an append-only file."""
        self.client.config_set("auto-aof-rewrite-percentage", 0)
        self.client.config_set("appendfsync", "no")
        self.client.config_set("appendonly", "yes")
        self._wait(lambda: self._file()["aof_enabled"] and not self._file()["aof_rewrite_in_progress"])

    def logged(self) -> int:
        """Bytes of the append-only file."""
        return int(self._file()["aof_current_size"])

    def watch_calls(self, longer_than_s: float) -> None:
        """Forget what was slow until now; note calls that take longer than this."""
        self.client.config_set("slowlog-log-slower-than", round(longer_than_s * 1e6))
        self.client.config_set("slowlog-max-len", 10_000)
        self.client.slowlog_reset()

    def slow_calls(self) -> list[float]:
        """Milliseconds of the calls that were noted, longest first; of scripts only."""
        return sorted(
            (entry["duration"] / 1e3 for entry in self.client.slowlog_get(10_000) if b"EVALSHA" in entry["command"]), reverse=True
        )

    def close(self) -> None:
        self.client.close()
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def _file(self) -> dict[str, Any]:
        said: dict[str, Any] = self.client.info("persistence")
        return said

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False

    @staticmethod
    def _wait(is_so: Any) -> None:
        end = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > end:
                raise TimeoutError("the server did not get ready")
            time.sleep(0.05)


def host_of(i: int, hosts: int) -> str:
    """Host of the i-th page of a benchmark."""
    return f"www.example-{i % hosts:06d}.org"


def url_of(i: int, hosts: int) -> str:
    """URL of the i-th page, 80 characters long."""
    return f"https://{host_of(i, hosts)}/section/{i % 97:02d}/article-{i:08d}-{'abcdefghijklmnopqrstuvwxyz' * 3}"[:80]
