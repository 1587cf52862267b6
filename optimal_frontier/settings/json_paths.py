"""Paths into a JSON document, such as ``$.items[*].views``."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_NAME: Final = r"""\.(?P<name>[^\s.\[\]'"*$]+)"""
_QUOTED: Final = r"""\[\s*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)")\s*\]"""
_INDEX: Final = r"\[\s*(?P<index>-?\d{1,9})\s*\]"
_ANY: Final = r"(?P<any>\.\*|\[\s*\*\s*\])"
_STEP: Final = re.compile(rf"(?P<deep>\.(?=[.\[]))?(?:{_NAME}|{_QUOTED}|{_INDEX}|{_ANY})")


class Step(NamedTuple):
    """One step of a path.

    ``key`` is the name of a member, the index of an element (negative: from the end), or None for all members or elements. A step that
    ``is_deep`` (``..``) is taken from everything below as well.
    """

    key: str | int | None
    is_deep: bool = False


def is_json_path(entry: str) -> bool:
    """Tell whether an entry of a list of selectors is a path into JSON; all others are CSS."""
    return entry.startswith("$")


def parse_json_path(path: str) -> tuple[Step, ...]:
    """Return the steps of `path`.

    Parameters
    ----------
    path : str
        ``$``, then any of ``.name``, ``['any name']``, ``[0]``, ``[-1]``, ``[*]`` or ``.*``; with one more dot before it (``$..views``,
        ``$..[0]``) a step is taken at every depth.

    Raises
    ------
    ValueError
        It is none, or says ``$`` alone, which is the whole document.

    Examples
    --------
    >>> parse_json_path("$.items[*]..views")
    (Step(key='items', is_deep=False), Step(key=None, is_deep=False), Step(key='views', is_deep=True))
    """
    if not is_json_path(path):
        raise ValueError("it does not start with $")
    steps, at = [], 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise ValueError(f"not understood from position {at}: {path[at : at + 20]!r}")
        at = found.end()
        # exactly one group matched, and an empty quoted name is a name
        name = next((found[group] for group in ("name", "single", "double") if found[group] is not None), None)
        key = int(found["index"]) if found["index"] is not None else name
        steps.append(Step(key, found["deep"] is not None))
    if not steps:
        raise ValueError("it names the whole document")
    return tuple(steps)
