"""Pages as sites serve them: each rendered by edition (what a reader would call its content) and by fetch (all else)."""

from __future__ import annotations

from .applications import APPLICATIONS
from .case import Case, Fetch
from .data import DATA
from .edits import EDITS
from .markup import MARKUP
from .widgets import WIDGETS

CASES: tuple[Case, ...] = (*MARKUP, *WIDGETS, *APPLICATIONS, *DATA, *EDITS)

__all__ = ["CASES", "Case", "Fetch"]
