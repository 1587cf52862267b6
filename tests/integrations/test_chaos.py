"""The chaos harness, short: a wiped server, a replica that takes over, a killed crawler, a clock that is off; and what its checks let
pass.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs a redis-server of its own")
def test_chaos_loses_nothing(tmp_path: Path) -> None:
    """All of what the harness checks, on 60 pages."""
    troubles = ["wipe_server", "fail_over", "kill_crawler", "set_clock"]
    size = ["--seconds", "16", "--crawlers", "2", "--pages", "60", "--hosts", "20", "--seed", "5"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "chaos.py"), *size, "--keep", str(tmp_path / "kept"), "--only", *troubles],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.rstrip().endswith("all is well")
    assert [name for name in troubles if f"{name} " not in done.stdout.splitlines()[-1]] == []


@pytest.mark.parametrize(
    ("before", "after", "faults"),
    [
        pytest.param(19.9, 31.0, 1, id="told before what is lost"),
        pytest.param(20.1, 29.9, 1, id="both by the server that knew of both"),
        pytest.param(20.1, 31.0, 0, id="forgotten"),
        pytest.param(30.5, 31.0, 0, id="handed out before the loss, and sent after it"),
        pytest.param(31.5, 34.0, 1, id="both afterwards"),
    ],
)
def test_a_loss_explains_what_it_made_the_server_forget_and_no_more(
    monkeypatch: pytest.MonkeyPatch, before: float, after: float, faults: int
) -> None:
    """Two crawlers on one page, a fetch that comes too soon, one while the host has asked for none; a server that was told what it lost
    between 20 and 30 s."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from chaos_crawl.checks import Loss, asked_while_held, fetched_twice_at_once, short_gaps
    from chaos_crawl.site import Fetch

    fetches = [Fetch("host", "/p/1", "one", before, before + 20), Fetch("host", "/p/1", "other", after, after + 1)]
    assert fetched_twice_at_once(fetches, [Loss(20, 30)]) == faults
    assert short_gaps(fetches, 20, [Loss(20, 30)])[0] == faults
    held = [Fetch("host", "/p/1", "one", before, before + 0.01, 503, 30), Fetch("host", "/p/2", "other", after, after)]
    assert asked_while_held(held, [Loss(20, 30)]) == faults


@pytest.mark.parametrize(("late_s", "faults"), [(0.0, 1), (0.004, 1), (0.07, 0)])
def test_a_site_that_was_held_up_itself_blames_no_crawler(monkeypatch: pytest.MonkeyPatch, late_s: float, faults: int) -> None:
    """What it saw late may have come sooner."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from chaos_crawl.checks import short_gaps
    from chaos_crawl.site import Fetch

    fetches = [Fetch("host", "/p/1", "one", 20.0, 20.01, late_s=late_s), Fetch("host", "/p/2", "other", 20.19, 20.2)]
    assert short_gaps(fetches, 0.25, [])[0] == faults
