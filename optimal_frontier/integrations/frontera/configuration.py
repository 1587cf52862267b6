"""Our settings as Frontera's settings objects hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from frontera.core.manager import FrontierManager

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings import NO_SPIDER, PREFIX, FrontierSettings

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


def settings_of(settings: Any, spider: str = NO_SPIDER) -> FrontierSettings:
    """Parse the OPTIMAL_FRONTIER_ settings in a Frontera settings object, as they are for a spider.

    Raises
    ------
    ConfigurationError
        A name is unknown, or a value is outside its range.
    """
    return FrontierSettings.parse(names_and_values(settings), spider)


def check_limits(manager: Any) -> None:
    """Refuse limits of Frontera's manager that are none.

    Raises
    ------
    ConfigurationError
        MAX_REQUESTS or MAX_NEXT_REQUESTS is no whole number of 0 or more.
    """
    for name, value in (("MAX_REQUESTS", manager.max_requests), ("MAX_NEXT_REQUESTS", manager.max_next_requests)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ConfigurationError(f"{name}: expected a whole number of 0 or more, not {value!r}")


def number_of(settings: Any, name: str) -> float | None:
    """Return a number that one of Frontera's settings holds; None where a Scrapy project does not set it.

    Raises
    ------
    ConfigurationError
        It is no number of 0 or more.
    """
    value = given(settings, name)
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf or isinstance(value, bool):
        raise ConfigurationError(f"{name}: expected a number of 0 or more, not {value!r}")
    return number


def whole_number_of(settings: Any, name: str) -> int | None:
    """Return the same where only whole numbers make sense; as text, too (``scrapy crawl -s``)."""
    number = number_of(settings, name)
    if number is not None and number != int(number):
        raise ConfigurationError(f"{name}: expected a whole number of 0 or more, not {given(settings, name)!r}")
    return None if number is None else int(number)


def given(settings: Any, name: str) -> Any:
    """Return what a Frontera settings object was given; of one over Scrapy's settings, None for what is only Frontera's default."""
    held = vars(settings)
    value = held.get("attributes", {}).get(name)
    crawler_settings = held.get("_crawler_settings")
    return crawler_settings.get(name) if value is None and crawler_settings is not None else value


def manager_of(settings: Any) -> FrontierManager:
    """Return Frontera's manager.

    Raises
    ------
    ConfigurationError
        A class that MIDDLEWARES, CANONICAL_SOLVER, REQUEST_MODEL ... name cannot be loaded, or is of another kind.
    """
    try:
        return FrontierManager.from_settings(settings)
    except (AssertionError, ImportError, NameError, TypeError, ValueError) as error:
        names = "MIDDLEWARES, CANONICAL_SOLVER, URL_FINGERPRINT_FUNCTION, REQUEST_MODEL or RESPONSE_MODEL"
        raise ConfigurationError(f"Frontera's manager cannot be built; see {names}: {error}") from error
