"""What parsers of single values share; errors name the setting, what was found and what was expected."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from optimal_frontier.errors import ConfigurationError


def fail(name: str, value: object, expected: str) -> ConfigurationError:
    """Return the error for a value that was not understood."""
    return ConfigurationError(f"{name} = {value!r}: expected {expected}")


def number(name: str, value: object, expected: str, valid: Callable[[float], bool]) -> float:
    """Return `value` as a float that satisfies `valid`."""
    try:
        number = float(value) if not isinstance(value, bool) else math.nan  # type: ignore[arg-type]  # whatever the user wrote
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number) or not valid(number):
        raise fail(name, value, expected)
    return number


def choice(*choices: str) -> Callable[[str, object], str]:
    """Return a parser that takes one of `choices`."""

    def parse(name: str, value: object) -> str:
        if value not in choices:
            raise fail(name, value, " or ".join(f'"{c}"' for c in choices))
        return str(value)

    return parse


def text(name: str, value: object) -> str:
    """Return `value`, a non-empty string."""
    if not isinstance(value, str) or not value:
        raise fail(name, value, "a non-empty string")
    return value


def flag(name: str, value: object) -> bool:
    """Return `value`, True or False; as text also 1 and 0, as Scrapy takes it."""
    told = {"true": True, "1": True, "false": False, "0": False}.get(str(value).lower())
    if told is None or isinstance(value, float):
        raise fail(name, value, "True or False")
    return told


def listed(name: str, value: object, expected: str, separator: str | None = ",") -> list[Any]:
    """Return a list; a string is JSON, or its parts between the separators (None: white space)."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = from_json(name, value, f"{expected}, or the same as JSON")
    elif isinstance(value, str):
        value = [each.strip() for each in value.split(separator) if each.strip()]
    if not isinstance(value, list | tuple):
        raise fail(name, value, expected)
    return list(value)


def from_json(name: str, value: str, expected: str) -> object:
    """Return what a text says as JSON."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise fail(name, value, f"{expected} ({error})") from error


def ascii_host(name: str) -> str:
    """Return the name of a host as it is in the URL of a request: in lower case, and other letters than those of ASCII as IDNA has them.

    Examples
    --------
    >>> ascii_host("Bücher.example:8080"), ascii_host("A.example")
    ('xn--bcher-kva.example:8080', 'a.example')
    """
    if name.isascii():
        return name.lower()
    try:
        return name.lower().encode("idna").decode("ascii")
    except UnicodeError:  # it is the name of no host
        return name.lower()
