"""Our settings as Frontera's settings objects hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optimal_frontier.settings import FrontierSettings


def names_and_values(settings: Any) -> Mapping[str, Any]:
    """Return what a Frontera settings object was given, Scrapy's settings behind an adapter included."""
    values: dict[str, Any] = dict(getattr(settings, "attributes", {}))
    crawler_settings = getattr(settings, "_crawler_settings", None)
    if crawler_settings is not None:
        values |= {name: crawler_settings.get(name) for name in crawler_settings}
    return values


def settings_of(settings: Any) -> FrontierSettings:
    """Parse the OPTIMAL_FRONTIER_ settings in a Frontera settings object.

    Raises
    ------
    ConfigurationError
        A name is unknown, or a value is outside its range.
    """
    return FrontierSettings.parse(names_and_values(settings))
