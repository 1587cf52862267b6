"""The command as a process of its own, which never outlives a test."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path
from typing import IO

from forked_programs import ForkedProgram

#: Seconds after which a process is killed, so that reading from it ends.
LIMIT_S = 20.0


class RunningCommand:
    """A running command, with what `subprocess.Popen` has of it."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        pipes = [Pipe(duplex=False) for _ in range(2)]
        self.stdout, self._stderr = (_text_of(os.dup(reader.fileno())) for reader, _ in pipes)
        command = ["-m", "optimal_frontier.cli", *arguments]
        self._program = ForkedProgram(command, Path.cwd(), pipes[0][1], os.environ, pipes[1][1])
        for end in (end for pipe in pipes for end in pipe):
            end.close()
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        self._program.send_signal(number)

    def communicate(self) -> tuple[str, str]:
        """Return what it writes until its end, to stdout and stderr."""
        told = self.stdout.read(), self._stderr.read()
        self.returncode = self._program.wait()
        return told

    def kill(self) -> None:
        """End it at once."""
        self._program.kill()

    def close(self) -> None:
        """End it, wait for that, and close the pipes."""
        self.kill()
        self._program.wait()
        self.stdout.close()
        self._stderr.close()


def _text_of(descriptor: int) -> IO[str]:
    return os.fdopen(descriptor, encoding="utf-8")


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[RunningCommand]:
    """Start ``optimal-frontier`` with these arguments."""
    process = RunningCommand(arguments)
    timer = threading.Timer(LIMIT_S, process.kill)
    timer.start()
    try:
        yield process
    finally:
        timer.cancel()
        process.close()
