"""The settings, parsed into one frozen object."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings.contents import check_options
from optimal_frontier.settings.parsing import number
from optimal_frontier.settings.rules import PageRule, Rules
from optimal_frontier.settings.table import PREFIX, TABLE
from optimal_frontier.settings.trust_settings import SourceLimits
from optimal_frontier.settings.urls import UrlLimits

#: Half-width of Scrapy's random download delay, as a share of it (DOWNLOAD_DELAY_JITTER), unless it is set.
_JITTER: Final = 0.5
#: Relative difference of bounds that leave one interval, but do not pin the page.
_APART: Final = 1e-6

#: Scrapy's BOT_NAME unless set.
BOT_NAME: Final = "scrapybot"
#: The name that stands for a spider where there is none.
NO_SPIDER: Final = "frontera"
_NOT_IN_NAMES: Final = re.compile(r"[\s{}*?\[\]]")


def default_namespace(bot_name: str, spider: str) -> str:
    """Return the NAMESPACE of a spider that sets none.

    Examples
    --------
    >>> default_namespace("shop", "prices"), default_namespace("shop", "my prices")
    ('shop:prices', 'shop:my%20prices')
    """
    return _quoted(f"{bot_name}:{spider}")


def _quoted(name: str) -> str:
    return _NOT_IN_NAMES.sub(lambda found: quote(found[0], safe=""), name)


@dataclass(frozen=True)
class FrontierSettings:
    """The parsed settings. Times in seconds, rates per second; ``crawl_rate`` None is "auto"."""

    redis_url: str
    namespace: str
    partitions: int
    serve_partitions: tuple[int, ...] | None
    crawl_rate: float | None
    discovery_share: float
    discovery_value: bool
    objective: Literal["freshness", "changes"]
    policy: Literal["periodic", "poisson"]
    exploration: Literal["median", "epsilon", "explore-then-commit"]
    neighbourhoods: bool
    resolve_interval: float
    min_interval: float
    max_interval: float
    rules: Rules
    host_delay: float
    host_max_rate: float | None
    lease_seconds: float
    result_timeout: float
    fingerprint: str
    fingerprint_include: tuple[str, ...]
    fingerprint_exclude: tuple[str, ...]
    fingerprint_ignore: tuple[str, ...]
    fingerprint_distance: int
    template_changes: str
    conditional_get: bool
    callback_on: str
    item_field: str | None
    # Checked here; `fingerprinter.folding_of` reads them, as Scrapy makes its fingerprinter before there is a scheduler.
    ignored_parameters: tuple[str, ...]
    fold_urls: tuple[str, ...]
    canonical_links: bool
    max_depth: int | None
    host_max_pages: int | None
    pattern_max_pages: int | None
    url_limits: UrlLimits
    sources: tuple[str, ...]
    source_limits: SourceLimits
    source_hosts: tuple[str, ...]
    schemes: tuple[str, ...]
    private_links: bool
    callbacks: tuple[str, ...] | None
    url_keys: tuple[str, ...]
    close_after: int | None
    #: Seconds between two requests that a slot of one downloader lets through on average, by DOWNLOAD_DELAY alone.
    slot_period: float = 0.0
    #: The namespace that earlier versions made where NAMESPACE is not set; empty where it is.
    former_namespace: str = ""

    @property
    def host_pause(self) -> float:
        """Mean seconds between two requests to a host over all crawlers, by HOST_DELAY and HOST_MAX_RATE; 0: no limit."""
        return max(self.host_delay, 1.0 / self.host_max_rate if self.host_max_rate is not None else 0.0)

    @property
    def has_clocks(self) -> bool:
        """Whether time runs on the clocks of neighbourhoods; memoryless visits have none."""
        return self.neighbourhoods and self.policy == "periodic"

    @property
    def looks_at_young_pages(self) -> bool:
        """Whether pages that have just appeared may have early looks: they buy freshness, and are learned from the log of clocks."""
        return self.has_clocks and self.objective == "freshness"

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
    def parse(cls, values: Mapping[str, Any], spider: str = NO_SPIDER) -> FrontierSettings:
        """Parse settings.

        Parameters
        ----------
        values : mapping
            Full names to values, as in settings.py; other names are ignored, except BOT_NAME, which gives a default, and
            DOWNLOAD_DELAY and DOWNLOAD_DELAY_JITTER, which plans count with.
        spider : str
            Name of the spider, for the default of NAMESPACE and for ``%(name)s`` in URL_KEYS.

        Raises
        ------
        ConfigurationError
            A name under the prefix is unknown, or a value is outside its range.
        """
        known = {setting.full_name for setting in TABLE}
        for name in values:
            if isinstance(name, str) and name.startswith(PREFIX) and name not in known:
                # Without the prefix, which would make any two short names alike.
                close = difflib.get_close_matches(name.removeprefix(PREFIX), [setting.name for setting in TABLE], n=1, cutoff=0.7)
                hint = f"; did you mean {PREFIX}{close[0]}?" if close else f"; known are {', '.join(sorted(known))}"
                raise ConfigurationError(f"unknown setting {name}{hint}")
        parsed: dict[str, Any] = {}
        for setting in TABLE:
            value = values.get(setting.full_name, setting.default)
            if setting.name == "NAMESPACE" and value is None:
                parsed["former_namespace"] = _quoted(str(values.get("BOT_NAME") or BOT_NAME))
                value = default_namespace(parsed["former_namespace"], spider)
            parsed[setting.name.lower()] = setting.parse(setting.full_name, value)
        check_served(parsed["serve_partitions"], parsed["partitions"])
        parsed["url_keys"] = tuple(key.replace("%(name)s", spider) for key in parsed["url_keys"])
        options = {"fingerprint": parsed["fingerprint"]}
        options |= {key: parsed[f"fingerprint_{key}"] for key in ("include", "exclude", "ignore")}
        check_options(options, lambda key: f"{PREFIX}FINGERPRINT" + ("" if key == "fingerprint" else f"_{key.upper()}"))
        download_delay = number("DOWNLOAD_DELAY", values.get("DOWNLOAD_DELAY", 0) or 0, "seconds, 0 or more", lambda x: 0 <= x < math.inf)
        if parsed["host_delay"] is None:
            parsed["host_delay"] = download_delay
        jitter = values.get("DOWNLOAD_DELAY_JITTER", _JITTER)
        jitter = number("DOWNLOAD_DELAY_JITTER", jitter, "a share, 0 or more", lambda x: 0 <= x < math.inf)
        parsed["slot_period"] = mean_slot_period(download_delay, jitter)
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


def check_served(served: tuple[int, ...] | None, partitions: int) -> None:
    """See that a namespace has the partitions of SERVE_PARTITIONS.

    Raises
    ------
    ConfigurationError
        It has not.
    """
    if served is not None and served[-1] >= partitions:
        raise ConfigurationError(
            f"{PREFIX}SERVE_PARTITIONS names partition {served[-1]}: expected 0 to {partitions - 1}, as there are {partitions} "
            f"({PREFIX}PARTITIONS)"
        )


def mean_slot_period(delay: float, jitter: float) -> float:
    """Return the mean seconds between two requests that a slot of Scrapy's downloader lets through while more wait in it.

    Parameters
    ----------
    delay : float
        Of the slot, seconds.
    jitter : float
        Share of it by which the delay is random, either way; more than 1 counts as 1.

    Notes
    -----
    The slot draws a delay and waits, and then draws another one: if that is longer than what has passed, it waits on. With uniform draws
    between c = 1 - j and 1 + j the mean f(x) after a share x of the range solves f(x) = (c + 2 j x) x + integral of f from x to 1, which
    gives 1 + (2 e - 5) j from the start on. A host's delay that is longer holds; one that is shorter or as long adds nothing to it.

    Examples
    --------
    >>> round(mean_slot_period(1.0, 0.5), 3), mean_slot_period(2.0, 0.0)
    (1.218, 2.0)
    """
    return delay * (1.0 + (2.0 * math.e - 5.0) * min(jitter, 1.0))
