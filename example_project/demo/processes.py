"""The two processes of a run: the site, and the crawl (an ordinary ``scrapy crawl``)."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from demo.site import page_url
from demo.world import World

#: The directory that holds scrapy.cfg.
PROJECT = Path(__file__).resolve().parent.parent

_SITE_START_S = 30.0
_STOP_S = 20.0
_TROUBLE = re.compile(r"\b(ERROR|CRITICAL)\b")


class RunError(Exception):
    """A process of the run failed; the message says which, with the end of its log."""


@dataclass(frozen=True)
class SiteAddress:
    """Where and since when the site runs: ``time.monotonic()`` at its start, and its ports."""

    epoch: float
    ports: list[int]


@contextmanager
def running_site(seed: int, seconds: float, log: Path, world: str = "independent") -> Iterator[SiteAddress]:
    """Start the site's process, and stop it in the end."""
    # A session of its own: Ctrl-C is for run.py alone, which then stops the others in order.
    site = subprocess.Popen(
        [sys.executable, "-m", "demo.site", "--world", world, "--seed", str(seed), "--seconds", str(seconds), "--log", str(log)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        line = site.stdout.readline() if site.stdout else ""
        if not line:
            raise RunError(f"the site did not start (exit code {site.wait(_SITE_START_S)})")
        yield SiteAddress(**json.loads(line))
    finally:
        _stop(site)
        for pipe in (site.stdin, site.stdout):
            if pipe:
                pipe.close()


class Crawl:
    """``scrapy crawl pages`` in a process of its own.

    Parameters
    ----------
    world : World
        For the first page's importance; all else the spider finds out.
    address : SiteAddress
        Where the site is.
    data : Path
        Directory of the crawl's state and log; empty, so that the run starts from nothing.
    timeout : float
        Seconds after which the spider closes.
    settings : sequence of str
        More settings, as NAME=VALUE.
    """

    def __init__(self, world: World, address: SiteAddress, data: Path, timeout: float, settings: list[str]) -> None:
        self.log = data / "crawl.log"
        self.redis_url = f"embedded://{data / 'state'}"
        options = [f"OPTIMAL_FRONTIER_REDIS_URL={self.redis_url}", f"CLOSESPIDER_TIMEOUT={timeout:g}", *settings]
        command = [sys.executable, "-m", "scrapy", "crawl", "pages"]
        command += ["-a", f"start_url={page_url(0, address.ports, world)}", "-a", f"start_importance={world.importance[0]:.6g}"]
        for option in options:
            command += ["-s", option]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def finish(self, patience: float) -> int:
        """Wait for the crawl to close by itself; returns its exit code.

        Raises
        ------
        RunError
            If it failed, or did not close in time.
        """
        try:
            code = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.stop()
            raise RunError(f"the crawl did not close within {patience:.0f} s of its timeout\n{self.tail()}") from None
        if code != 0:
            raise RunError(f"the crawl failed with exit code {code}\n{self.tail()}")
        return code

    def stop(self) -> None:
        """Stop it in whatever state it is: once gracefully, then for good."""
        _stop(self._process)

    def tail(self, lines: int = 25) -> str:
        """The end of its log."""
        return "\n".join(self._lines()[-lines:]) or "(its log is empty)"

    def trouble(self) -> list[str]:
        """Lines of its log that report an error."""
        return [line for line in self._lines() if _TROUBLE.search(line)]

    def _lines(self) -> list[str]:
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()


def _stop(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_S)
        return
    process.kill()
    process.wait()
