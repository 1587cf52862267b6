"""The ``optimal-frontier`` command: reads the state and shows it, plans, imports pages, runs the embedded server."""

from __future__ import annotations

from optimal_frontier.cli.application import main

__all__ = ["main"]
