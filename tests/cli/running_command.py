"""The command as a process of its own, which never outlives a test."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator

#: Seconds after which a process is killed, so that reading from it ends.
LIMIT_S = 20.0


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start ``optimal-frontier`` with these arguments."""
    command = [sys.executable, "-m", "optimal_frontier.cli", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        timer = threading.Timer(LIMIT_S, process.kill)
        timer.start()
        try:
            yield process
        finally:
            timer.cancel()
            process.kill()
