"""optimal_frontier: a crawl frontier for Scrapy that keeps changing pages as fresh as a fetch budget allows.

One line in ``settings.py`` wires it: ``ADDONS = {"optimal_frontier.Addon": 500}``. The pure packages `detection`, `estimation`,
`optimization` and `scheduling` can be used on their own and import neither redis, scrapy nor frontera; `Addon` is therefore imported
only when it is asked for.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optimal_frontier.integrations.scrapy.addon import Addon

__all__ = ["Addon", "__version__"]

__version__ = version("optimal-frontier")


def __getattr__(name: str) -> Any:
    if name == "Addon":
        from optimal_frontier.integrations.scrapy.addon import Addon

        return Addon
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
