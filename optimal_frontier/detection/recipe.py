"""How a fingerprint is made: its kind and options, checked and compiled once."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.settings.contents import KINDS, check_selector, is_dotted_path
from optimal_frontier.settings.json_paths import is_json_path, parse_json_path

if TYPE_CHECKING:
    from jsonpath import JSONPath

#: Goes up when the same response gets another fingerprint, so that an upgrade is not taken for a change of every page.
_REVISIONS: Final = {"body": 2, "text": 3, "near": 1}


@dataclass(frozen=True)
class Recipe:
    """Kind and options of a fingerprint.

    Attributes
    ----------
    kind : str
        ``text``, ``body``, ``near``, or the dotted path of a callable.
    include, exclude : tuple of str
        CSS selectors and paths into JSON.
    ignore : tuple of str
        Regular expressions.
    tag : int
        Number of this way of making fingerprints, between 1 and 2^32 - 1; the same in every process, on every machine. Two fingerprints
        under different tags say nothing about a change.
    """

    kind: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    ignore: tuple[str, ...]
    tag: int
    paths: tuple[JSONPath, ...]
    excluded_paths: tuple[JSONPath, ...]
    patterns: tuple[re.Pattern[str], ...]
    function: Callable[[Any], Any] | None

    @property
    def has_css(self) -> bool:
        """Whether there is a selector for HTML or XML."""
        return len(self.paths) + len(self.excluded_paths) < len(self.include) + len(self.exclude)

    def without_ignored(self, text: str) -> str:
        """Return a folded text without the matches of the patterns, folded again; each match leaves a space."""
        for pattern in self.patterns:
            text = pattern.sub(" ", text)
        return " ".join(text.split())


def make_recipe(kind: str, include: Sequence[str] = (), exclude: Sequence[str] = (), ignore: Sequence[str] = ()) -> Recipe:
    """Check and compile the options of `fingerprint`; the same options give the same object.

    Raises
    ------
    InvalidProblemError
        Naming the argument, the index, and what was expected.
    """
    _check_kind(kind)
    return _recipe(kind, *(_strings(name, entries) for name, entries in (("include", include), ("exclude", exclude), ("ignore", ignore))))


@lru_cache(maxsize=1024)
def _recipe(kind: str, include: tuple[str, ...], exclude: tuple[str, ...], ignore: tuple[str, ...]) -> Recipe:
    for name, entries in (("include", include), ("exclude", exclude)):
        for at, entry in enumerate(entries):
            try:
                check_selector(entry)
            except ValueError as error:
                raise InvalidProblemError(f"{name}[{at}] must be a CSS selector or a JSON path, got {entry!r}: {error}") from error
    patterns = []
    for at, entry in enumerate(ignore):
        try:
            patterns.append(re.compile(entry))
        except (re.error, OverflowError, RecursionError) as error:
            raise InvalidProblemError(f"ignore[{at}] must be a regular expression, got {entry!r}: {error}") from error
    paths, excluded_paths = (tuple(parse_json_path(entry) for entry in entries if is_json_path(entry)) for entries in (include, exclude))
    function = None if kind in KINDS else load_function(kind)
    return Recipe(kind, include, exclude, ignore, _tag(kind, include, exclude, ignore), paths, excluded_paths, tuple(patterns), function)


def settings_tag(kind: str, *, include: Sequence[str] = (), exclude: Sequence[str] = (), ignore: Sequence[str] = ()) -> int:
    """Number of the way in which fingerprints of these options are made.

    Two fingerprints under different tags say nothing about a change. The tag is stored beside each fingerprint.

    Parameters
    ----------
    kind, include, exclude, ignore
        As for `fingerprint`. A callable counts by its dotted path.

    Returns
    -------
    int
        Between 1 and 2^32 - 1; the same in every process, on every machine.

    Raises
    ------
    InvalidProblemError
        If an option is not one.
    """
    return make_recipe(kind, include, exclude, ignore).tag


def load_function(dotted: str) -> Callable[[Any], Any]:
    """Import what a dotted path names.

    Raises
    ------
    InvalidProblemError
        It cannot be imported, whatever its module raises, or cannot be called.
    """
    module, _, name = dotted.rpartition(".")
    try:
        function = getattr(_module_or_class(module), name)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise InvalidProblemError(f"kind must be one of {_kinds()}; {dotted!r} cannot be imported ({why})") from error
    if not callable(function):
        raise InvalidProblemError(f"kind must be one of {_kinds()}; {dotted!r} is a {type(function).__name__}")
    found: Callable[[Any], Any] = function
    return found


def _module_or_class(dotted: str) -> Any:
    try:
        return importlib.import_module(dotted)
    except ModuleNotFoundError as error:
        holder, _, name = dotted.rpartition(".")
        # a static method: the last name is that of a class; a module that is there but lacks something it imports is another matter
        if not holder or error.name != dotted:
            raise
        return getattr(importlib.import_module(holder), name)


def _tag(kind: str, include: tuple[str, ...], exclude: tuple[str, ...], ignore: tuple[str, ...]) -> int:
    way = f"{_REVISIONS.get(kind, 1)}\n{kind}"
    if include or exclude or ignore:
        way += "\n" + json.dumps([include, exclude, ignore])
    return int.from_bytes(blake2b(way.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "big") or 1


def _check_kind(kind: object) -> None:
    if not isinstance(kind, str) or not (kind in KINDS or is_dotted_path(kind)):
        raise InvalidProblemError(f"kind must be one of {_kinds()}, got {kind!r}")


def _kinds() -> str:
    return f"{', '.join(map(repr, KINDS))} or the dotted path of a callable(response)"


def _strings(name: str, entries: object) -> tuple[str, ...]:
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        raise InvalidProblemError(f"{name} must be a sequence of str, got {entries!r}")
    for at, entry in enumerate(entries):
        if not isinstance(entry, str) or not entry.strip():
            raise InvalidProblemError(f"{name}[{at}] must be a str that is not empty, got {entry!r}")
    return tuple(entries)
