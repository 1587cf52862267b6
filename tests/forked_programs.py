"""Programs in processes of their own that start at once: forked from a process that has imported what they need.

An interpreter with Scrapy and all that comes with it takes 1.6 s of processor time to start; the crawls of the tests are several hundred.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from scrapy.settings import default_settings

#: Imported once: all that a crawl imports by and by, 0.7 s of processor time. The reactor is not among them, as each process installs its
#: own; nor is what imports it, as the handler of FTP does in some versions. None of them starts a thread.
PRELOADED = [
    "scrapy.crawler",
    "scrapy.core.downloader.handlers.http11",
    "scrapy.core.engine",
    "scrapy.logformatter",
    "scrapy.spiderloader",
    "scrapy.statscollectors",
    "scrapy.utils.misc",
    *sorted(
        {
            path.rpartition(".")[0]
            for name, components in vars(default_settings).items()
            if name.endswith("_BASE") and name != "DOWNLOAD_HANDLERS_BASE" and isinstance(components, dict)
            for path in (*components, *components.values())
            if isinstance(path, str) and path.startswith("scrapy.")
        }
    ),
    "tldextract.tldextract",
    "scipy.special.cython_special",
    "frontera.core.manager",
    "frontera.contrib.canonicalsolvers",
    "frontera.contrib.middlewares.fingerprint",
    "optimal_frontier",
    "optimal_frontier.frontier.planning.thread",
    "optimal_frontier.integrations.scrapy.scheduler",
    "optimal_frontier.integrations.frontera.backend",
]


def _run(command: Sequence[str], folder: str, logs: Sequence[str | Connection], environment: Mapping[str, str], given: str) -> None:
    """Be ``python`` with these arguments, in a session of its own, with stdout and stderr in files or pipes, and stdin from a file."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.dup2(os.open(given, os.O_RDONLY), 0)
    sys.stdin = os.fdopen(0, closefd=False)
    streams = []
    for standard, log in zip((1, 2), logs, strict=True):
        is_pipe = isinstance(log, Connection)
        os.dup2(log.fileno() if is_pipe else os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), standard)
        # Who writes into a pipe has to see to it that the lines arrive, as it is with an interpreter of its own; but for those of stderr.
        streams.append(os.fdopen(standard, "w", buffering=-1 if is_pipe and standard == 1 else 1, closefd=False))
    sys.stdout, sys.stderr = streams
    sys.path.insert(0, folder)
    try:
        if command[0] == "-m":
            sys.argv = list(command[1:])
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(command)
            runpy.run_path(command[0], run_name="__main__")
    finally:
        # What an interpreter does at its end, and multiprocessing leaves out.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()


class ForkedProgram:
    """A running program; what `subprocess.Popen` has of its kind.

    Parameters
    ----------
    command : sequence of str
        A program and its arguments, or ``-m`` and a module.
    folder : Path
        That it works in.
    log : Path or Connection
        What it writes to stdout and stderr is appended to this file, or goes into this end of a pipe.
    environment : mapping
        All of its environment.
    errors : Path or Connection, optional
        Where what it writes to stderr goes instead.
    given : Path, optional
        What it reads from stdin.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        log: Path | Connection,
        environment: Mapping[str, str],
        errors: Path | Connection | None = None,
        given: Path = Path(os.devnull),
    ) -> None:
        logs = [each if isinstance(each, Connection) else str(each) for each in (log, errors or log)]
        self._process = _CONTEXT.Process(target=_run, args=(list(command), str(folder), logs, dict(environment), str(given)))
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        """Return how it ended, or None."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code, or minus the number of the signal."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def run_forked(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, as `subprocess.run` does that captures text; kill it after ``timeout`` seconds."""
    out, errors, stdin = (folder / f"forked.{name}" for name in ("out", "err", "in"))
    for path, text in ((out, ""), (errors, ""), (stdin, given)):
        path.write_text(text)
    program = ForkedProgram(command, folder, out, environment, errors, stdin)
    try:
        code = program.wait(timeout)
    finally:
        program.kill()
    return subprocess.CompletedProcess(list(command), code, out.read_text(), errors.read_text())


_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(PRELOADED)
