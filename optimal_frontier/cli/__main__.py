"""``python -m optimal_frontier.cli``: the same as ``optimal-frontier``."""

from __future__ import annotations

from optimal_frontier.cli import main

if __name__ == "__main__":
    main(prog_name="optimal-frontier")
