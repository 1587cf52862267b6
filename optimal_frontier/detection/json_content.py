"""JSON in one canonical form."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jsonpath import JSONPath

#: Longer whole numbers stay text: Python takes quadratic time to read them, and refuses beyond 4,300 digits.
_MOST_DIGITS: Final = 300


class UnreadableJsonError(ValueError):
    """It is not JSON, or nested too deep to be read."""


def canonical_json(text: str, include: Sequence[JSONPath] = (), exclude: Sequence[JSONPath] = ()) -> tuple[str, bool]:
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
        # All are gathered first: a path may lead into what another one takes away.
        included = [place for path in include for place in _places(document, path)]
        excluded = [place for path in exclude for place in _places(document, path)]
        below = {id(node.obj) for node in _with_all_below(_node_class().of(h[k]) for h, k in excluded)} if included and excluded else set()
        for holder, key in excluded:
            holder[key] = _LEFT_OUT
        if included:
            document = [holder[key] for holder, key in included if id(holder) not in below]
        if excluded:
            document = _without(document)
        written = _write(document)
        if not unicodedata.is_normalized("NFC", written):
            written = _write(json.loads(unicodedata.normalize("NFC", written)))  # names may sort otherwise now
    except (ValueError, RecursionError) as error:
        raise UnreadableJsonError(str(error)) from error
    return written, bool(include) and not included


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


def _places(document: Any, path: JSONPath) -> Iterator[tuple[Any, Any]]:
    """Yield holder and key of everything that `path` leads to."""
    nodes: Iterable[Any] = (_node_class().of(document),)
    for segment in path.segments:
        nodes = _taken(nodes, segment)
    for node in nodes:
        yield node.parent.obj, node.parts[0]


def _taken(nodes: Iterable[Any], segment: Any) -> Iterator[Any]:
    """Yield the nodes that a segment of a path selects."""
    from jsonpath.segments import JSONPathRecursiveDescentSegment

    for node in _with_all_below(nodes) if isinstance(segment, JSONPathRecursiveDescentSegment) else nodes:
        if isinstance(node.obj, dict | list):
            for selector in segment.selectors:
                yield from selector.resolve(node)


def _with_all_below(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield objects and lists, and all that lie in them, outer ones first and each once."""
    # The library goes through nodes that lie in each other again and again, which takes quadratic time, and through 100 levels at most.
    seen = set()
    waiting = [iter(nodes)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
        elif isinstance(node.obj, dict | list) and id(node.obj) not in seen:
            seen.add(id(node.obj))
            yield node
            waiting.append(_below(node))


def _below(node: Any) -> Iterator[Any]:
    inside: Iterable[tuple[Any, Any]] = node.obj.items() if isinstance(node.obj, dict) else enumerate(node.obj)
    return (node.new_child(value, key) for key, value in inside if isinstance(value, dict | list))


@cache
def _node_class() -> Any:
    from jsonpath import JSONPathMatch

    class Node(JSONPathMatch):
        """A node that knows its parent and its key there.

        The library's own also has its path as text and a list of its children: gigabytes for a page of long names and many values.
        """

        @classmethod
        def of(cls, document: Any) -> Node:
            return cls(filter_context={}, obj=document, parent=None, path="", parts=(), root=document)

        def new_child(self, obj: object, key: int | str) -> Node:
            return Node(filter_context={}, obj=obj, parent=self, path="", parts=(key,), root=self.root)

        def add_child(self, *children: JSONPathMatch) -> None:
            pass

    return Node


def _without(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: _without(value) for name, value in document.items() if value is not _LEFT_OUT}
    if isinstance(document, list):
        return [_without(value) for value in document if value is not _LEFT_OUT]
    return None if document is _LEFT_OUT else document
