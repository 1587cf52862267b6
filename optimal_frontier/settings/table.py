"""The one declared table of settings: name, default, parser, meaning."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings.contents import NEAR_DISTANCE, parse_distance, parse_kind, parse_patterns, parse_selectors
from optimal_frontier.settings.parsing import choice, fail, flag, listed, number
from optimal_frontier.settings.rules import parse_rules
from optimal_frontier.settings.timetable import DAY_S
from optimal_frontier.settings.trust_settings import SourceLimits, parse_callbacks, parse_schemes, parse_source_hosts, parse_source_limits
from optimal_frontier.settings.urls import (
    IGNORED,
    UrlLimits,
    page_limit,
    parse_folds,
    parse_limits,
    parse_names,
    parse_sources,
    parse_url_keys,
)

PREFIX: Final = "OPTIMAL_FRONTIER_"
#: As many as a Redis Cluster has slots.
MOST_PARTITIONS: Final = 16_384


def _positive(name: str, value: object) -> float:
    return number(name, value, "a number of seconds above 0", lambda x: 0 < x < math.inf)


def _crawl_rate(name: str, value: object) -> float | None:
    if value == "auto":
        return None
    return number(name, value, 'fetches per second above 0, or "auto"', lambda x: 0 < x < math.inf)


def _share(name: str, value: object) -> float:
    return number(name, value, "a share from 0 to below 1", lambda x: 0 <= x < 1)


def _host_delay(name: str, value: object) -> float | None:
    if value is None or value == "None":
        return None
    return number(name, value, "seconds, 0 or more, or None for DOWNLOAD_DELAY", lambda x: 0 <= x < math.inf)


def _host_max_rate(name: str, value: object) -> float | None:
    if value is None or value == "None":
        return None
    return number(name, value, "fetches per second above 0, or None", lambda x: 0 < x < math.inf and 1 / x < math.inf)


def _partitions(name: str, value: object) -> int:
    return int(number(name, value, f"a whole number from 1 to {MOST_PARTITIONS}", lambda x: 1 <= x <= MOST_PARTITIONS and x == int(x)))


def _serve_partitions(name: str, value: object) -> tuple[int, ...] | None:
    if value is None or value == "None":
        return None
    expected = 'a list of partitions and ranges of them, such as [0, 3, "8-11"], or None for all'
    served: set[int] = set()
    for each in listed(name, value, expected):
        found = re.fullmatch(r"(\d{1,5})(?:\s*-\s*(\d{1,5}))?", str(each).strip()) if isinstance(each, int | str) else None
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if isinstance(each, bool) or not first <= last < MOST_PARTITIONS:
            raise fail(name, value, expected)
        served.update(range(first, last + 1))
    if not served:
        raise fail(name, value, f"{expected}; an empty one would serve nobody")
    return tuple(sorted(served))


def _close_after(name: str, value: object) -> int | None:
    if value is None or value == "None":
        return None
    return int(number(name, value, "a whole number of fetches, 1 or more, or None", lambda x: 1 <= x < math.inf and x == int(x)))


def _redis_url(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        # Not quoted: even a value of the wrong type may hold a password.
        raise ConfigurationError(f"{name}: expected a non-empty string, not {'an empty one' if value == '' else type(value).__name__}")
    return value


def _namespace(name: str, value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[^\s{}*?\[\]\ud800-\udfff]{1,200}", value):
        raise fail(name, value, "1 to 200 characters without white space, braces, brackets, * and ? (it is the prefix of Redis keys)")
    return value


def _item_field(name: str, value: object) -> str | None:
    if value is None or value == "None":
        return None
    if not isinstance(value, str) or not value:
        raise fail(name, value, "the name of a field, or None")
    return value


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
        "where the state lives: embedded, embedded:///path, a redis-py URL, or redis+cluster://host:port,host:port",
    ),
    Setting("NAMESPACE", None, _namespace, "prefix of all keys, BOT_NAME:spider unless set; belongs to one spider"),
    Setting("PARTITIONS", 1, _partitions, "parts of a new namespace, each with its own hosts; a Redis Cluster spreads them over its nodes"),
    Setting("SERVE_PARTITIONS", None, _serve_partitions, "partitions of which this crawler fetches pages; None: all"),
    Setting("CRAWL_RATE", "auto", _crawl_rate, 'budget, fetches per second over all crawlers; "auto": as fast as the downloader goes'),
    Setting(
        "DISCOVERY_SHARE",
        0.2,
        _share,
        "share of the budget for first visits, once those that wait could not be finished within three plans; 1 with CLOSE_AFTER",
    ),
    Setting("DISCOVERY_VALUE", True, flag, "whether pages that yield new pages are visited for that too, beside their own changes"),
    Setting("OBJECTIVE", "freshness", choice("freshness", "changes"), "what is maximised: time current, or changes seen per second"),
    Setting(
        "POLICY",
        "periodic",
        choice("periodic", "poisson"),
        "how the visits of a page follow each other: evenly spaced, or memoryless at Azar's rates",
    ),
    Setting(
        "EXPLORATION",
        "median",
        choice("median", "epsilon", "explore-then-commit"),
        "which change rates deadlines are made from, and how pages that are not worth a visit go on being looked at",
    ),
    Setting(
        "NEIGHBOURHOODS",
        True,
        flag,
        "whether time since the last visit runs faster for pages whose siblings were just seen to change, and by the hour of the day",
    ),
    Setting("RESOLVE_INTERVAL", 60.0, _positive, "seconds between plans"),
    Setting("MIN_INTERVAL", 1.0, _positive, "least seconds between two visits of a page"),
    Setting("MAX_INTERVAL", 30 * DAY_S, _positive, "most seconds between two visits of a page"),
    Setting("RULES", [], parse_rules, "importance, interval bounds, update times and revisiting by URL pattern or host"),
    Setting("HOST_DELAY", None, _host_delay, "seconds between two requests to a host, over all crawlers; None: DOWNLOAD_DELAY"),
    Setting("HOST_MAX_RATE", None, _host_max_rate, "most fetches per second to a host, over all crawlers; None: no limit but HOST_DELAY"),
    Setting("LEASE_SECONDS", 15.0, _positive, "a lease that is not renewed for this long is handed out again; at most 15 count"),
    Setting("RESULT_TIMEOUT", 600.0, _positive, "plain Frontera: a request whose result has not come for this long is handed out again"),
    Setting("FINGERPRINT", "text", parse_kind, "what of a page counts as its content: text, body, near, or the dotted path of a callable"),
    Setting("FINGERPRINT_INCLUDE", [], parse_selectors, "CSS selectors and JSON paths of what counts as content; none: all of the page"),
    Setting("FINGERPRINT_EXCLUDE", [], parse_selectors, "CSS selectors and JSON paths of what does not"),
    Setting("FINGERPRINT_IGNORE", [], parse_patterns, "regular expressions; what they match in the text does not count"),
    Setting("FINGERPRINT_DISTANCE", NEAR_DISTANCE, parse_distance, "bits by which fingerprints of kind near may differ"),
    Setting(
        "TEMPLATE_CHANGES",
        "ignore",
        choice("ignore", "count"),
        "what becomes of a page that changed by the template alone that most pages of its host share: unchanged, or changed",
    ),
    Setting("CONDITIONAL_GET", True, flag, "ask whether a page has changed, by its ETag and Last-Modified; a 304 is an unchanged bit"),
    Setting("CALLBACK_ON", "fetch", choice("fetch", "change"), "which visits reach the callback: every one, or first visits and changes"),
    Setting("ITEM_FIELD", None, _item_field, "field of items that says whether their page is new, changed or unchanged; None: none"),
    Setting("IGNORED_PARAMETERS", list(IGNORED), parse_names, "names of parameters that do not count for the identity of a page"),
    Setting("FOLD_URLS", [], parse_folds, "other differences of URLs that do not count for it: scheme, www, case, slash, index"),
    Setting("CANONICAL_LINKS", False, flag, "whether a page that names another of its host as canonical becomes an alias of that"),
    Setting("MAX_DEPTH", None, page_limit, "links further than this many from a start request are not followed; None: no limit"),
    Setting("HOST_MAX_PAGES", None, page_limit, "most pages of a host that are taken from links; None: no limit"),
    Setting("PATTERN_MAX_PAGES", None, page_limit, "most pages of one URL pattern of a host that are taken from links; None: no limit"),
    Setting("URL_LIMITS", asdict(UrlLimits()), parse_limits, "shapes of URLs that are taken for traps; None: none"),
    Setting("SOURCES", [], parse_sources, "URLs of sitemaps, sitemap indexes, robots.txt files and feeds, whose entries are pages"),
    Setting("SOURCE_LIMITS", asdict(SourceLimits()), parse_source_limits, "how much of a source is read; what is beyond is left out"),
    Setting("SOURCE_HOSTS", [], parse_source_hosts, "hosts that any source may name, beside those that it speaks for; * for all"),
    Setting("SCHEMES", ["http", "https"], parse_schemes, "schemes of URLs that may be pages"),
    Setting("PRIVATE_LINKS", False, flag, "whether links, sources and redirects may lead to private hosts of another kind than the page"),
    Setting("CALLBACKS", None, parse_callbacks, "callbacks that stored requests may name; None: what the spider's own methods look like"),
    Setting("URL_KEYS", [], parse_url_keys, "Redis keys (list, set, zset) whose URLs or JSON objects are taken in while the crawl runs"),
    Setting("CLOSE_AFTER", None, _close_after, "close the spider when every page was fetched this many times; None: run on"),
)
