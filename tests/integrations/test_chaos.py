"""The chaos harness, short: a wiped server, a killed crawler, cut connections, a clock an hour ahead."""

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
    troubles = ["wipe_server", "kill_crawler", "cut", "set_clock"]
    size = ["--seconds", "8", "--crawlers", "2", "--pages", "60", "--hosts", "20", "--seed", "3"]
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
