"""Our settings as Frontera's settings objects hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from optimal_frontier.settings import PREFIX, FrontierSettings

#: Scrapy's settings that give ours a default.
_DEFAULTS_FROM: Final = ("BOT_NAME", "DOWNLOAD_DELAY", "DOWNLOAD_DELAY_JITTER")


def names_and_values(settings: Any) -> Mapping[str, Any]:
    """Return what a Frontera settings object was given, Scrapy's settings behind an adapter included."""
    # Not getattr: Frontera's settings raise KeyError for an attribute that is missing.
    held = vars(settings)
    values: dict[str, Any] = dict(held.get("attributes", {}))
    crawler_settings = held.get("_crawler_settings")
    if crawler_settings is not None:
        # Only what is ours: Scrapy warns of every deprecated setting that is asked for.
        names = [name for name in crawler_settings if isinstance(name, str) and (name.startswith(PREFIX) or name in _DEFAULTS_FROM)]
        values |= {name: crawler_settings.get(name) for name in names}
    return values


def settings_of(settings: Any) -> FrontierSettings:
    """Parse the OPTIMAL_FRONTIER_ settings in a Frontera settings object.

    Raises
    ------
    ConfigurationError
        A name is unknown, or a value is outside its range.
    """
    return FrontierSettings.parse(names_and_values(settings))
