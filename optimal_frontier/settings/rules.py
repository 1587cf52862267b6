"""RULES: what is said of pages by URL pattern or host."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings.contents import CONTENT_KEYS, parse_contents
from optimal_frontier.settings.parsing import ascii_host, fail, number, text
from optimal_frontier.settings.timetable import Timetable, parse_timetable


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
    fingerprint, include, exclude, ignore, distance
        What counts as its content, in place of FINGERPRINT, FINGERPRINT_INCLUDE, _EXCLUDE, _IGNORE and _DISTANCE.
    """

    importance: float | None = None
    min_interval: float | None = None
    max_interval: float | None = None
    revisit: bool = True
    update_times: Timetable | None = None
    fingerprint: str | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    distance: int | None = None


#: Of a page of which RULES say nothing.
NO_RULE: Final = PageRule()


@dataclass(frozen=True)
class Rule:
    """One entry of RULES."""

    pattern: re.Pattern[str] | None
    host: str | None
    values: Mapping[str, Any]

    @property
    def says_content(self) -> bool:
        """Whether it says what counts as content."""
        return any(key in self.values for key in CONTENT_KEYS)

    def matches(self, url: str) -> bool:
        """Tell whether the rule speaks of ``url`` (pattern: searched in the URL; host: with its port where it is not the default)."""
        if self.pattern is not None:
            return self.pattern.search(url) is not None
        parts = urlsplit(url)
        names = parts.hostname or "", parts.netloc.rpartition("@")[2].lower()
        return self.host in (names if url.isascii() else map(ascii_host, names))


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
        return PageRule(**merged) if merged else NO_RULE

    def digest(self) -> str:
        """Return a text that changes when the rules do; stored beside the columns that were made from them."""
        # What counts as content is no column: it is looked up at each visit.
        values = [sorted((key, value) for key, value in rule.values.items() if key not in CONTENT_KEYS) for rule in self.entries]
        rows = [[r.pattern.pattern if r.pattern else None, r.host, told] for r, told in zip(self.entries, values, strict=True)]
        return json.dumps(rows, separators=(",", ":"), default=lambda timetable: timetable.text)


def parse_rules(name: str, value: object) -> Rules:
    """Return RULES parsed; a string is JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise fail(name, value, f"a list of dicts, or the same as JSON ({error})") from error
    if not isinstance(value, list | tuple):
        raise fail(name, value, "a list of dicts")
    return Rules(tuple(parse_rule(name, at, entry) for at, entry in enumerate(value)))


def parse_rule(name: str, at: int, entry: object) -> Rule:
    where = f"{name}[{at}]"
    if not isinstance(entry, Mapping):
        raise fail(where, entry, 'a dict with "pattern" or "host" and values for the pages it matches')
    known = {
        "pattern",
        "host",
        "importance",
        "min_interval",
        "max_interval",
        "interval",
        "revisit",
        "update_times",
        "period",
        *CONTENT_KEYS,
    }
    for key in entry:
        if key not in known:
            raise ConfigurationError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(known))}")
    if ("pattern" in entry) == ("host" in entry):
        raise fail(where, dict(entry), 'exactly one of "pattern" and "host"')
    pattern = None
    if "pattern" in entry:
        try:
            pattern = re.compile(entry["pattern"])
        except (re.error, TypeError) as error:
            raise fail(f"{where}['pattern']", entry["pattern"], f"a regular expression ({error})") from error
        if not isinstance(pattern.pattern, str):
            raise fail(f"{where}['pattern']", entry["pattern"], "a regular expression of text, not bytes")
    host = ascii_host(text(f"{where}['host']", entry["host"])) if "host" in entry else None
    values: dict[str, Any] = {}
    for key in ("importance", "min_interval", "max_interval", "interval"):
        if key in entry:
            expected = "a number above 0" if key == "importance" else "a number of seconds above 0"
            values[key] = number(f"{where}[{key!r}]", entry[key], expected, lambda x: 0 < x < math.inf)
    if "interval" in values and ("min_interval" in values or "max_interval" in values):
        raise ConfigurationError(f"{where}: interval pins the page; it excludes min_interval and max_interval")
    if values.get("min_interval", 0.0) > values.get("max_interval", math.inf):
        raise ConfigurationError(f"{where}: min_interval {values['min_interval']} is above max_interval {values['max_interval']}")
    if "revisit" in entry:
        if not isinstance(entry["revisit"], bool):
            raise fail(f"{where}['revisit']", entry["revisit"], "True or False")
        values["revisit"] = entry["revisit"]
    if "update_times" in entry:
        values["update_times"] = parse_timetable(where, entry)
        if "interval" in values:
            raise ConfigurationError(f"{where}: interval pins the page; it excludes update_times {entry['update_times']!r}")
    elif "period" in entry:
        raise ConfigurationError(f"{where}: period {entry['period']!r} is that of update_times, which are missing")
    values.update(parse_contents(where, entry))
    return Rule(pattern, host, values)
