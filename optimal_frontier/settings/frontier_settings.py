"""The settings, parsed into one frozen object."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings.contents import check_options
from optimal_frontier.settings.parsing import number
from optimal_frontier.settings.rules import PageRule, Rules
from optimal_frontier.settings.table import PREFIX, TABLE
from optimal_frontier.settings.urls import UrlLimits

#: Half-width of Scrapy's random download delay, as a share of it, unless it was switched off.
_JITTER: Final = 0.5
#: Relative difference of bounds that leave one interval, but do not pin the page.
_APART: Final = 1e-6
#: A slot that holds a request back is full until it is answered, and asks for the next one after that; 7% were measured at 0.5 s.
_HAND_OVER: Final = 0.08


@dataclass(frozen=True)
class FrontierSettings:
    """The parsed settings. Times in seconds, rates per second; ``crawl_rate`` None is "auto"."""

    redis_url: str
    namespace: str
    partitions: int
    crawl_rate: float | None
    discovery_share: float
    discovery_value: bool
    objective: Literal["freshness", "changes"]
    policy: Literal["periodic", "poisson"]
    exploration: Literal["median", "epsilon", "explore-then-commit"]
    resolve_interval: float
    min_interval: float
    max_interval: float
    rules: Rules
    host_delay: float
    host_max_rate: float | None
    lease_seconds: float
    fingerprint: str
    fingerprint_include: tuple[str, ...]
    fingerprint_exclude: tuple[str, ...]
    fingerprint_ignore: tuple[str, ...]
    fingerprint_distance: int
    conditional_get: bool
    callback_on: str
    item_field: str | None
    ignored_parameters: tuple[str, ...]
    fold_urls: tuple[str, ...]
    canonical_links: bool
    max_depth: int | None
    host_max_pages: int | None
    pattern_max_pages: int | None
    url_limits: UrlLimits
    sources: tuple[str, ...]
    close_after: int | None
    #: Seconds between two requests to a host on average, by HOST_DELAY, HOST_MAX_RATE and Scrapy's own random delay; what plans count with.
    host_period: float = 0.0

    def interval_bounds(self, rule: PageRule) -> tuple[float, float]:
        """Return the least and most seconds between two visits of a page; equal where RULES pin it (``interval``), and nowhere else.

        The bounds of a rule go before MIN_INTERVAL and MAX_INTERVAL. Where they exclude each other, the rule's stand, and its max_interval
        before its min_interval.
        """
        longest = rule.max_interval if rule.max_interval is not None else self.max_interval
        shortest = rule.min_interval if rule.min_interval is not None else self.min_interval
        if shortest < longest or (rule.min_interval is not None and rule.min_interval == rule.max_interval):
            return shortest, longest
        # A pinned page may come back sooner than its interval, others not: they are told apart by a difference that means nothing.
        return (longest * (1.0 - _APART), longest) if rule.max_interval is not None else (shortest, shortest * (1.0 + _APART))

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> FrontierSettings:
        """Parse settings.

        Parameters
        ----------
        values : mapping
            Full names to values, as in settings.py; other names are ignored, except BOT_NAME and DOWNLOAD_DELAY, which give defaults.

        Raises
        ------
        ConfigurationError
            A name under the prefix is unknown, or a value is outside its range.
        """
        known = {setting.full_name for setting in TABLE}
        for name in values:
            if isinstance(name, str) and name.startswith(PREFIX) and name not in known:
                close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
                hint = f"; did you mean {close[0]}?" if close else f"; known are {', '.join(sorted(known))}"
                raise ConfigurationError(f"unknown setting {name}{hint}")
        parsed: dict[str, Any] = {}
        for setting in TABLE:
            value = values.get(setting.full_name, setting.default)
            if setting.name == "NAMESPACE" and value is None:
                value = values.get("BOT_NAME", "scrapybot")
            parsed[setting.name.lower()] = setting.parse(setting.full_name, value)
        options = {"fingerprint": parsed["fingerprint"]}
        options |= {key: parsed[f"fingerprint_{key}"] for key in ("include", "exclude", "ignore")}
        check_options(options, lambda key: f"{PREFIX}FINGERPRINT" + ("" if key == "fingerprint" else f"_{key.upper()}"))
        download_delay = number("DOWNLOAD_DELAY", values.get("DOWNLOAD_DELAY", 0) or 0, "seconds, 0 or more", lambda x: 0 <= x < math.inf)
        if parsed["host_delay"] is None:
            parsed["host_delay"] = download_delay
        pause = max(parsed["host_delay"], 1.0 / parsed["host_max_rate"] if parsed["host_max_rate"] is not None else 0.0)
        parsed["host_period"] = mean_host_period(pause, download_delay)
        if parsed["min_interval"] > parsed["max_interval"]:
            raise ConfigurationError(
                f"{PREFIX}MIN_INTERVAL = {parsed['min_interval']:g}: expected at most {PREFIX}MAX_INTERVAL = {parsed['max_interval']:g}"
            )
        if parsed["policy"] == "poisson" and parsed["objective"] != "freshness":
            raise ConfigurationError(
                f"{PREFIX}POLICY = 'poisson': expected {PREFIX}OBJECTIVE = 'freshness' with it, not {parsed['objective']!r}; "
                "rates of memoryless visits are known for freshness only"
            )
        return cls(**parsed)


def mean_host_period(host_delay: float, download_delay: float) -> float:
    """Return the mean seconds between two requests to a host when both its delay here and Scrapy's slot hold requests back.

    Parameters
    ----------
    host_delay : float
        HOST_DELAY or 1/HOST_MAX_RATE, whichever is longer, seconds.
    download_delay : float
        DOWNLOAD_DELAY, which Scrapy draws anew for each request between half and one and a half of it, seconds.

    Returns
    -------
    float
        Expectation of the larger of the two, seconds, and where Scrapy draws, `_HAND_OVER` more for passing from one to the other.

    Examples
    --------
    >>> round(mean_host_period(1.0, 1.0), 3), mean_host_period(5.0, 1.0), mean_host_period(1.0, 0.0)
    (1.215, 5.0, 1.0)
    """
    least, most = (1 - _JITTER) * download_delay, (1 + _JITTER) * download_delay
    if host_delay >= most:
        return host_delay
    below = max(host_delay - least, 0.0)
    start = max(host_delay, least)
    return (1 + _HAND_OVER) * (below * host_delay + (most**2 - start**2) / 2) / (most - least)
