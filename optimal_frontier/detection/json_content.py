"""JSON in one canonical form."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Final

from optimal_frontier.settings.json_paths import Step

#: Longer whole numbers stay text: Python takes quadratic time to read them, and refuses beyond 4,300 digits.
_MOST_DIGITS: Final = 300


class UnreadableJsonError(ValueError):
    """It is not JSON, or nested too deep to be read."""


def canonical_json(text: str, include: Sequence[tuple[Step, ...]] = (), exclude: Sequence[tuple[Step, ...]] = ()) -> tuple[str, bool]:
    """Write a JSON document such that documents of equal content are equal.

    Parameters
    ----------
    text : str
        The document; NaN and infinities, duplicate names (the last one counts) and numbers of any length are taken.
    include, exclude : sequence of paths
        What counts (nothing: all of it), and what is left out of that. Both are looked for in the document as it is.

    Returns
    -------
    canonical : str
        Names sorted, no white space, numbers by their value as a float (1, 1.0 and 1e0 are one) or whole number, Unicode normal form C.
    missed : bool
        There are paths to include, and none leads anywhere; then all of the document counts.

    Raises
    ------
    UnreadableJsonError
        It cannot be read.

    Examples
    --------
    >>> canonical_json('{"b": 1.0, "a": [true, "caf\\\\u00e9"]}')[0] == canonical_json('{"a":[true,"café"],"b":1}')[0]
    True
    """
    try:
        document = json.loads(text.lstrip("\ufeff"), parse_float=_number, parse_int=_whole)
        for path in exclude:
            # gathered first: a path may lead into what it takes away
            for holder, key in list(_places(document, path)):
                holder[key] = _LEFT_OUT
        missed = False
        if include:
            found = [holder[key] for path in include for holder, key in _places(document, path)]
            missed = not found
            document = document if missed else found
        if exclude:
            document = _without(document)
        written = _write(document)
        if not unicodedata.is_normalized("NFC", written):
            written = _write(json.loads(unicodedata.normalize("NFC", written)))  # names may sort otherwise now
    except (ValueError, RecursionError) as error:
        raise UnreadableJsonError(str(error)) from error
    return written, missed


class _LeftOut:
    """Stands where something was excluded, so that indices of what follows stay."""


_LEFT_OUT: Final = _LeftOut()


def _write(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


def _number(text: str) -> float | int | str:
    value = float(text)
    if math.isinf(value):
        return text  # beyond what a float holds
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _places(document: Any, path: Sequence[Step]) -> Iterator[tuple[Any, Any]]:
    """Yield holder and key of everything that `path` leads to."""
    *steps, last = path
    holders = [document]
    for step in steps:
        holders = [holder[key] for holder, key in _taken(holders, step)]
    yield from _taken(holders, last)


def _taken(starts: Sequence[Any], step: Step) -> Iterator[tuple[Any, Any]]:
    waiting, seen = list(reversed(starts)), set()
    while waiting:
        holder = waiting.pop()
        if step.is_deep and isinstance(holder, dict | list):
            # Starts that lie in each other have most places in common: gone through again and again these would take quadratic time.
            if id(holder) in seen:
                continue
            seen.add(id(holder))
        if isinstance(holder, dict):
            keys: Any = list(holder) if step.key is None else [step.key] if step.key in holder else []
        elif isinstance(holder, list):
            if step.key is None:
                keys = range(len(holder))
            else:
                keys = [step.key] if isinstance(step.key, int) and -len(holder) <= step.key < len(holder) else []
        else:
            continue
        yield from ((holder, key) for key in keys)
        if step.is_deep:
            inside = list(holder.values() if isinstance(holder, dict) else holder)
            waiting.extend(reversed(inside))


def _without(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: _without(value) for name, value in document.items() if value is not _LEFT_OUT}
    if isinstance(document, list):
        return [_without(value) for value in document if value is not _LEFT_OUT]
    return None if document is _LEFT_OUT else document
