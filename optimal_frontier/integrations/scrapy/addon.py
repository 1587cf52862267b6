"""The add-on: wires scheduler, middlewares and extension, and never overrides what the user set."""

from __future__ import annotations

from typing import Any, Final

from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.utils.misc import load_object

from optimal_frontier.integrations.scrapy.change_detection import ChangeDetectionMiddleware
from optimal_frontier.integrations.scrapy.meta_refresh import PatientMetaRefreshMiddleware
from optimal_frontier.integrations.scrapy.progress import FrontierStats
from optimal_frontier.integrations.scrapy.robots_txt import PatientRobotsTxtMiddleware
from optimal_frontier.integrations.scrapy.scheduler import OptimalScheduler
from optimal_frontier.integrations.scrapy.spider_middleware import FrontierSpiderMiddleware

#: Outermost of Scrapy's own downloader middlewares, so that it sees what the engine will see.
DOWNLOADER_ORDER: Final = 25
#: Nearest to the engine, so that it sees requests as the engine will.
SPIDER_ORDER: Final = 25
#: As Scrapy's own extensions.
EXTENSION_ORDER: Final = 0
_PROJECT: Final = 20


class Addon:
    """``ADDONS = {"optimal_frontier.Addon": 500}`` in settings.py is all that a project needs."""

    def update_settings(self, settings: Any) -> None:
        """Fill in SCHEDULER, the two middlewares and the extension where the user has not.

        Raises
        ------
        ConfigurationError
            Never: bad settings are reported when the spider opens, in one line.
        """
        if (settings.getpriority("SCHEDULER") or 0) < _PROJECT:
            settings.set("SCHEDULER", OptimalScheduler, priority="addon")
        _insert(settings, "DOWNLOADER_MIDDLEWARES", ChangeDetectionMiddleware, DOWNLOADER_ORDER)
        if _entry_of(OptimalScheduler, [settings["SCHEDULER"]]) is not None:
            _replace(settings, "DOWNLOADER_MIDDLEWARES", MetaRefreshMiddleware, PatientMetaRefreshMiddleware)
            _replace(settings, "DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware, PatientRobotsTxtMiddleware)
        _insert(settings, "SPIDER_MIDDLEWARES", FrontierSpiderMiddleware, SPIDER_ORDER)
        _insert(settings, "EXTENSIONS", FrontierStats, EXTENSION_ORDER)


def _insert(settings: Any, name: str, component: type, order: int) -> None:
    # A user may have set another order, or None to leave it out.
    if _entry_of(component, _configured(settings, name)) is None:
        settings[name].set(component, order, priority="addon")


def _replace(settings: Any, name: str, component: type, other: type) -> None:
    """Put another component in the place of one of Scrapy's, unless the user has said something of either."""
    configured = _configured(settings, name)
    entry = _entry_of(component, configured)
    if entry is None or _entry_of(component, settings[name]) is not None or _entry_of(other, configured) is not None:
        return
    settings[name].set(other, configured[entry], priority="addon")
    settings[name].set(entry, None, priority="addon")


def _configured(settings: Any, name: str) -> Any:
    return settings.getwithbase(name) if hasattr(settings, "getwithbase") else settings[name]


def _entry_of(component: type, configured: Any) -> Any:
    """Return the name or class by which a component is configured; None: it is not."""
    for entry in configured:
        # Others are not imported: what is set to None may not even exist.
        name_in_path = entry.rpartition(".")[2] if isinstance(entry, str) else ""
        if entry is component or (name_in_path == component.__name__ and load_object(entry) is component):
            return entry
    return None
