"""Our settings as Frontera's settings objects hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings import PREFIX, FrontierSettings

#: Scrapy's settings that give ours a default.
_DEFAULTS_FROM: Final = ("BOT_NAME", "DOWNLOAD_DELAY")


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


def number_of(settings: Any, name: str, *, default: float | None = None) -> float | None:
    """Return a number that one of Frontera's settings holds; ``default`` where a Scrapy project does not set it.

    Raises
    ------
    ConfigurationError
        It is no number of 0 or more.
    """
    value = given(settings, name)
    if value is None:
        return default
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf or isinstance(value, bool):
        raise ConfigurationError(f"{name}: expected a number of 0 or more, not {value!r}")
    return number


def given(settings: Any, name: str) -> Any:
    """Return what a Frontera settings object was given; of one over Scrapy's settings, None for what is only Frontera's default."""
    held = vars(settings)
    value = held.get("attributes", {}).get(name)
    crawler_settings = held.get("_crawler_settings")
    return crawler_settings.get(name) if value is None and crawler_settings is not None else value
