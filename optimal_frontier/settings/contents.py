"""What counts as the content of a page: the parsers of FINGERPRINT and its options, in the settings and in RULES."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import cssselect

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings.json_paths import is_json_path, parse_json_path
from optimal_frontier.settings.parsing import fail, number

#: Kinds of fingerprints that are no callable of the user's.
KINDS: Final = ("text", "body", "near")
#: Bits by which two fingerprints of kind "near" may differ and still mean the same content; chosen by ``benchmarks/near_duplicates.py``.
NEAR_DISTANCE: Final = 20
#: Keys of a rule that say what counts as content.
CONTENT_KEYS: Final = ("fingerprint", "include", "exclude", "ignore", "distance")

_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def is_dotted_path(kind: str) -> bool:
    """Tell whether a kind is the dotted path of a callable."""
    return _DOTTED.fullmatch(kind) is not None


def parse_kind(name: str, value: object) -> str:
    """Return a kind of fingerprint; a dotted path is imported later, when a crawl starts."""
    if not isinstance(value, str) or not (value in KINDS or is_dotted_path(value)):
        raise fail(name, value, '"text", "body", "near", or the dotted path of a callable(response)')
    return value


def parse_selectors(name: str, value: object) -> tuple[str, ...]:
    """Return CSS selectors and paths into JSON (those that start with ``$``)."""
    entries = _entries(name, value, "a CSS selector, or a JSON path that starts with $")
    for at, entry in enumerate(entries):
        try:
            check_selector(entry)
        except ValueError as error:
            expected = "a JSON path such as $.items[*].views" if is_json_path(entry) else "a CSS selector of elements"
            raise fail(f"{name}[{at}]", entry, f"{expected} ({error})") from error
    return entries


def parse_patterns(name: str, value: object) -> tuple[str, ...]:
    """Return regular expressions."""
    entries = _entries(name, value, "a regular expression")
    for at, entry in enumerate(entries):
        try:
            re.compile(entry)
        except (re.error, OverflowError, RecursionError) as error:
            raise fail(f"{name}[{at}]", entry, f"a regular expression ({error})") from error
    return entries


def parse_distance(name: str, value: object) -> int:
    """Return the bits by which near-duplicates may differ."""
    return int(number(name, value, "a whole number of bits from 0 to 64", lambda x: 0 <= x <= 64 and x == int(x)))


def check_selector(entry: str) -> None:
    """Refuse what is neither a path into JSON nor CSS that names elements.

    Raises
    ------
    ValueError
        What is wrong with it, in one line.
    """
    if is_json_path(entry):
        parse_json_path(entry)
        return
    try:
        parsed = cssselect.parse(entry)
        for selector in parsed:
            cssselect.HTMLTranslator().selector_to_xpath(selector)
    except (cssselect.SelectorError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    for selector in parsed:
        if selector.pseudo_element is not None:
            raise ValueError(f"it selects a part of an element, ::{_shown(selector.pseudo_element)}")


def parse_contents(where: str, entry: Mapping[Any, Any]) -> dict[str, Any]:
    """Return what a rule says of content, by key."""
    parsers = dict(zip(CONTENT_KEYS, (parse_kind, parse_selectors, parse_selectors, parse_patterns, parse_distance), strict=True))
    values = {key: parse(f"{where}[{key!r}]", entry[key]) for key, parse in parsers.items() if key in entry}
    check_options(values, lambda key: f"{where}[{key!r}]")
    return values


def check_options(values: Mapping[str, Any], called: Any) -> None:
    """Refuse options that the kind beside them does not look at.

    Parameters
    ----------
    values : mapping
        Options by key of a rule; what is missing or empty says nothing.
    called : callable
        Key -> what the user calls it.

    Raises
    ------
    ConfigurationError
        Naming the option and the kind.
    """
    kind = values.get("fingerprint", "text")
    unused = {"body": ("include", "exclude"), "text": (), "near": ()}.get(kind, ("include", "exclude", "ignore"))
    for key in unused:
        if values.get(key):
            raise ConfigurationError(
                f"{called(key)} = {list(values[key])!r}: expected none with {called('fingerprint')} = {kind!r}, which does not look at it"
            )


def _entries(name: str, value: object, what: str) -> tuple[str, ...]:
    expected = f"a list, each entry {what}"
    if isinstance(value, str):
        value = _list_of(value)
    if not isinstance(value, list | tuple):
        raise fail(name, value, expected)
    for at, entry in enumerate(value):
        if not isinstance(entry, str) or not entry.strip():
            raise fail(f"{name}[{at}]", entry, what)
    return tuple(value)


def _list_of(text: str) -> list[Any]:
    """Read a list as ``scrapy crawl -s`` gives it: JSON, one entry, or nothing; "[data-x]" is CSS, and "2024" a pattern."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, list) else [text] if text.strip() else []


def _shown(pseudo_element: Any) -> str:
    return str(getattr(pseudo_element, "name", pseudo_element))
