"""The settings: one declared table, parsed into one frozen object.

Names are those of Scrapy's settings.py with the prefix ``OPTIMAL_FRONTIER_``. A value may be a string, as ``scrapy crawl -s NAME=VALUE``
gives it. An unknown name under the prefix, or a value outside its range, raises `ConfigurationError` at start, naming the setting.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from optimal_frontier.errors import ConfigurationError

PREFIX: Final = "OPTIMAL_FRONTIER_"
DAY_S: Final = 86_400.0
#: Update times of a page at most: a bit mask of them fits a double.
MOST_UPDATE_TIMES: Final = 48
#: Least seconds between two update times of a page.
LEAST_BETWEEN_UPDATES_S: Final = 1.0
#: Half-width of Scrapy's random download delay, as a share of it, unless it was switched off.
_JITTER: Final = 0.5
#: A slot that holds a request back is full until it is answered, and asks for the next one after that; 7% were measured at 0.5 s.
_HAND_OVER: Final = 0.08


@dataclass(frozen=True)
class Timetable:
    """When a page may be republished (``update_times``).

    Attributes
    ----------
    period : float
        Seconds after which the times come again; periods are counted from 1970-01-01 00:00 UTC.
    times : tuple of float
        Update times, seconds from the start of a period, rising, in [0, period).
    probabilities : tuple of float
        With which the page changes at each, as RULES have it: what is believed before its bits have said something.
    """

    period: float
    times: tuple[float, ...]
    probabilities: tuple[float, ...]

    @property
    def text(self) -> str:
        """What is stored: the period, then time and probability in turn, separated by blanks."""
        pairs = (value for pair in zip(self.times, self.probabilities, strict=True) for value in pair)
        return " ".join(map(repr, (self.period, *pairs)))

    @classmethod
    def of_text(cls, text: str) -> Timetable:
        """Read what is stored.

        Examples
        --------
        >>> Timetable.of_text("86400.0 21600.0 0.5 64800.0 1.0")
        Timetable(period=86400.0, times=(21600.0, 64800.0), probabilities=(0.5, 1.0))
        """
        period, *pairs = map(float, text.split())
        return cls(period, tuple(pairs[::2]), tuple(pairs[1::2]))


@dataclass(frozen=True)
class PageRule:
    """What RULES says of one page; None where they say nothing.

    Attributes
    ----------
    importance : float or None
        Used where the request's own ``meta["importance"]`` says nothing.
    min_interval, max_interval : float or None
        Bounds on the revisit interval, seconds; equal for a pinned page (``interval``).
    revisit : bool
        False: fetch once.
    update_times : Timetable or None
        When the page may be republished (``update_times``, ``period``).
    """

    importance: float | None = None
    min_interval: float | None = None
    max_interval: float | None = None
    revisit: bool = True
    update_times: Timetable | None = None


@dataclass(frozen=True)
class Rule:
    """One entry of RULES."""

    pattern: re.Pattern[str] | None
    host: str | None
    values: Mapping[str, Any]

    def matches(self, url: str) -> bool:
        """Tell whether the rule speaks of ``url`` (pattern: searched in the URL; host: with its port where it is not the default)."""
        if self.pattern is not None:
            return self.pattern.search(url) is not None
        parts = urlsplit(url)
        return self.host in (parts.hostname, parts.netloc.rpartition("@")[2].lower())


@dataclass(frozen=True)
class Rules:
    """All of RULES. Every rule that matches applies, in order; of two that set the same value the later one wins."""

    entries: tuple[Rule, ...] = ()

    def of(self, url: str) -> PageRule:
        """Return what the rules say of ``url``."""
        merged: dict[str, Any] = {}
        for rule in self.entries:
            if rule.matches(url):
                if "interval" in rule.values:
                    merged.pop("min_interval", None)
                    merged.pop("max_interval", None)
                    merged.pop("update_times", None)
                elif "min_interval" in rule.values or "max_interval" in rule.values:
                    merged.pop("interval", None)
                if "update_times" in rule.values:
                    merged.pop("interval", None)
                merged.update(rule.values)
        if "interval" in merged:
            merged["min_interval"] = merged["max_interval"] = merged.pop("interval")
        return PageRule(**merged) if merged else PageRule()

    def digest(self) -> str:
        """Return a text that changes when the rules do; stored beside the columns that were made from them."""
        rows = [[r.pattern.pattern if r.pattern else None, r.host, sorted(r.values.items())] for r in self.entries]
        return json.dumps(rows, separators=(",", ":"), default=lambda timetable: timetable.text)


def _fail(name: str, value: object, expected: str) -> ConfigurationError:
    return ConfigurationError(f"{name} = {value!r}: expected {expected}")


def _number(name: str, value: object, expected: str, valid: Callable[[float], bool]) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else math.nan  # type: ignore[arg-type]  # whatever the user wrote
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number) or not valid(number):
        raise _fail(name, value, expected)
    return number


def _positive(name: str, value: object) -> float:
    return _number(name, value, "a number of seconds above 0", lambda x: 0 < x < math.inf)


def _crawl_rate(name: str, value: object) -> float | None:
    if value == "auto":
        return None
    return _number(name, value, 'fetches per second above 0, or "auto"', lambda x: 0 < x < math.inf)


def _share(name: str, value: object) -> float:
    return _number(name, value, "a share from 0 to below 1", lambda x: 0 <= x < 1)


def _host_delay(name: str, value: object) -> float | None:
    if value is None or value == "None":
        return None
    return _number(name, value, "seconds, 0 or more, or None for DOWNLOAD_DELAY", lambda x: 0 <= x < math.inf)


def _host_max_rate(name: str, value: object) -> float | None:
    if value is None or value == "None":
        return None
    return _number(name, value, "fetches per second above 0, or None", lambda x: 0 < x < math.inf and 1 / x < math.inf)


def _half_life(name: str, value: object) -> float | None:
    if value is None or value == "None":
        return None
    return _number(name, value, "seconds above 0, or None", lambda x: 0 < x < math.inf)


def _choice(*choices: str) -> Callable[[str, object], str]:
    def parse(name: str, value: object) -> str:
        if value not in choices:
            raise _fail(name, value, " or ".join(f'"{c}"' for c in choices))
        return str(value)

    return parse


def _close_after(name: str, value: object) -> int | None:
    if value is None or value == "None":
        return None
    return int(_number(name, value, "a whole number of fetches, 1 or more, or None", lambda x: 1 <= x < math.inf and x == int(x)))


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _fail(name, value, "a non-empty string")
    return value


def _redis_url(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        # Not quoted: even a value of the wrong type may hold a password.
        raise ConfigurationError(f"{name}: expected a non-empty string, not {type(value).__name__}")
    return value


def _namespace(name: str, value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[^\s{}*?\[\]]{1,200}", value):
        raise _fail(name, value, "1 to 200 characters without white space, braces, brackets, * and ? (it is the prefix of Redis keys)")
    return value


def _rule(name: str, at: int, entry: object) -> Rule:
    where = f"{name}[{at}]"
    if not isinstance(entry, Mapping):
        raise _fail(where, entry, 'a dict with "pattern" or "host" and values for the pages it matches')
    known = {"pattern", "host", "importance", "min_interval", "max_interval", "interval", "revisit", "update_times", "period"}
    for key in entry:
        if key not in known:
            raise ConfigurationError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}")
    if ("pattern" in entry) == ("host" in entry):
        raise _fail(where, dict(entry), 'exactly one of "pattern" and "host"')
    pattern = None
    if "pattern" in entry:
        try:
            pattern = re.compile(entry["pattern"])
        except (re.error, TypeError) as error:
            raise _fail(f"{where}['pattern']", entry["pattern"], f"a regular expression ({error})") from error
        if not isinstance(pattern.pattern, str):
            raise _fail(f"{where}['pattern']", entry["pattern"], "a regular expression of text, not bytes")
    host = _text(f"{where}['host']", entry["host"]).lower() if "host" in entry else None
    values: dict[str, Any] = {}
    for key in ("importance", "min_interval", "max_interval", "interval"):
        if key in entry:
            expected = "a number above 0" if key == "importance" else "a number of seconds above 0"
            values[key] = _number(f"{where}[{key!r}]", entry[key], expected, lambda x: 0 < x < math.inf)
    if "interval" in values and ("min_interval" in values or "max_interval" in values):
        raise ConfigurationError(f"{where}: interval pins the page; it excludes min_interval and max_interval")
    if values.get("min_interval", 0.0) > values.get("max_interval", math.inf):
        raise ConfigurationError(f"{where}: min_interval {values['min_interval']} is above max_interval {values['max_interval']}")
    if "revisit" in entry:
        if not isinstance(entry["revisit"], bool):
            raise _fail(f"{where}['revisit']", entry["revisit"], "True or False")
        values["revisit"] = entry["revisit"]
    if "update_times" in entry:
        values["update_times"] = _timetable(where, entry)
        if "interval" in values:
            raise ConfigurationError(f"{where}: interval pins the page; it excludes update_times {entry['update_times']!r}")
    elif "period" in entry:
        raise ConfigurationError(f"{where}: period {entry['period']!r} is that of update_times, which are missing")
    return Rule(pattern, host, values)


def _timetable(where: str, entry: Mapping[str, Any]) -> Timetable:
    period = _number(f"{where}['period']", entry.get("period", DAY_S), "a number of seconds, 1 or more", lambda x: 1 <= x < math.inf)
    name, given = f"{where}['update_times']", entry["update_times"]
    if not isinstance(given, list | tuple) or not 0 < len(given) <= MOST_UPDATE_TIMES:
        raise _fail(name, given, f"a list of 1 to {MOST_UPDATE_TIMES} times, each seconds or (seconds, probability)")
    times, probabilities = [], []
    for at, item in enumerate(given):
        pair = item if isinstance(item, list | tuple) else (item, 1.0)
        if len(pair) != 2:
            raise _fail(f"{name}[{at}]", item, "seconds or (seconds, probability)")
        within = f"seconds within the period, from 0 to below {period:g}"
        times.append(_number(f"{name}[{at}]", pair[0], within, lambda x: 0 <= x < period))
        probabilities.append(_number(f"{name}[{at}]", pair[1], "a probability from 0 to 1", lambda x: 0 <= x <= 1))
        if at and times[-1] < times[-2] + LEAST_BETWEEN_UPDATES_S:
            raise _fail(f"{name}[{at}]", item, f"rising times, {LEAST_BETWEEN_UPDATES_S:g} s or more after {times[-2]:g}")
    if len(times) > 1 and times[0] + period < times[-1] + LEAST_BETWEEN_UPDATES_S:
        raise _fail(name, given, f"a last time {LEAST_BETWEEN_UPDATES_S:g} s or more before the first one of the next period")
    return Timetable(period, tuple(times), tuple(probabilities))


def _rules(name: str, value: object) -> Rules:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise _fail(name, value, f"a list of dicts, or the same as JSON ({error})") from error
    if not isinstance(value, list | tuple):
        raise _fail(name, value, "a list of dicts")
    return Rules(tuple(_rule(name, at, entry) for at, entry in enumerate(value)))


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    name: str
    default: Any
    parse: Callable[[str, object], Any]
    meaning: str

    @property
    def full_name(self) -> str:
        return PREFIX + self.name


#: Every setting there is. ``docs/settings.md`` is held to this table by a test.
TABLE: Final = (
    Setting(
        "REDIS_URL",
        "embedded",
        _redis_url,
        "where the state lives: embedded, embedded:///path, a redis-py URL, or redis+cluster://host:port",
    ),
    Setting("NAMESPACE", None, _namespace, "prefix of all keys, BOT_NAME unless set; belongs to one spider"),
    Setting("CRAWL_RATE", "auto", _crawl_rate, 'budget, fetches per second over all crawlers; "auto": as fast as the downloader goes'),
    Setting("DISCOVERY_SHARE", 0.2, _share, "share of the budget kept for first visits while there are any; 1 with CLOSE_AFTER"),
    Setting("OBJECTIVE", "freshness", _choice("freshness", "changes"), "what is maximised: time current, or changes seen per second"),
    Setting(
        "POLICY",
        "periodic",
        _choice("periodic", "poisson"),
        "how the visits of a page follow each other: evenly spaced, or memoryless at Azar's rates",
    ),
    Setting(
        "DISPATCH",
        "edf",
        _choice("edf", "index"),
        "which page comes next: the earliest deadline, or the one whose visit is worth most, by a live price that follows the budget",
    ),
    Setting(
        "EXPLORATION",
        "median",
        _choice("median", "mean", "thompson", "epsilon", "explore-then-commit"),
        "which change rates plans are made from, and how pages that are not worth a visit go on being looked at",
    ),
    Setting("HALF_LIFE", None, _half_life, "seconds after which what was learned of a change rate counts half; None: it is kept"),
    Setting("RESOLVE_INTERVAL", 60.0, _positive, "seconds between plans"),
    Setting("MIN_INTERVAL", 1.0, _positive, "least seconds between two visits of a page"),
    Setting("MAX_INTERVAL", 30 * DAY_S, _positive, "most seconds between two visits of a page"),
    Setting("RULES", [], _rules, "importance, interval bounds, update times and revisiting by URL pattern or host"),
    Setting("HOST_DELAY", None, _host_delay, "seconds between two requests to a host, over all crawlers; None: DOWNLOAD_DELAY"),
    Setting("HOST_MAX_RATE", None, _host_max_rate, "most fetches per second to a host, over all crawlers; None: no limit but HOST_DELAY"),
    Setting("LEASE_SECONDS", 60.0, _positive, "a lease that is not renewed for this long is handed out again"),
    Setting("FINGERPRINT", "text", _choice("text", "body"), "what of a page counts as its content"),
    Setting("CALLBACK_ON", "fetch", _choice("fetch", "change"), "which visits reach the callback: every one, or first visits and changes"),
    Setting("CLOSE_AFTER", None, _close_after, "close the spider when every page was fetched this many times; None: run on"),
)


@dataclass(frozen=True)
class FrontierSettings:
    """The parsed settings. Times in seconds, rates per second; ``crawl_rate`` None is "auto"."""

    redis_url: str
    namespace: str
    crawl_rate: float | None
    discovery_share: float
    objective: Literal["freshness", "changes"]
    policy: Literal["periodic", "poisson"]
    dispatch: Literal["edf", "index"]
    exploration: Literal["median", "mean", "thompson", "epsilon", "explore-then-commit"]
    half_life: float | None
    resolve_interval: float
    min_interval: float
    max_interval: float
    rules: Rules
    host_delay: float
    host_max_rate: float | None
    lease_seconds: float
    fingerprint: str
    callback_on: str
    close_after: int | None
    #: Seconds between two requests to a host on average, by HOST_DELAY, HOST_MAX_RATE and Scrapy's own random delay; what plans count with.
    host_period: float = 0.0

    @property
    def first_visit_share(self) -> float:
        """Share of the budget for first visits while there are any; all of it for a crawl that is to end (CLOSE_AFTER)."""
        return self.discovery_share if self.close_after is None else 1.0

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
        download_delay = _number("DOWNLOAD_DELAY", values.get("DOWNLOAD_DELAY", 0) or 0, "seconds, 0 or more", lambda x: 0 <= x < math.inf)
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
        if parsed["dispatch"] == "index" and parsed["discovery_share"] == 0:
            raise ConfigurationError(
                f"{PREFIX}DISPATCH = 'index': expected {PREFIX}DISCOVERY_SHARE above 0 with it; by price there is always a page to "
                "revisit, and new ones would never have their turn"
            )
        if parsed["policy"] == "poisson" and parsed["dispatch"] == "index":
            raise ConfigurationError(
                f"{PREFIX}DISPATCH = 'index': expected {PREFIX}POLICY = 'periodic' with it, not 'poisson'; "
                "visits by their worth are evenly spaced"
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
