"""What stands before the name of a command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """What was given before the command; None where nothing was."""

    redis_url: str | None = None
    namespace: str | None = None
    project: Path | None = None
    spider: str | None = None
