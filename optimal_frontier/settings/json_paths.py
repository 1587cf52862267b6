"""Paths into a JSON document (JSONPath, RFC 9535), such as ``$.items[*].views``, as the settings take them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonpath import JSONPath, JSONPathEnvironment


def is_json_path(entry: str) -> bool:
    """Tell whether an entry of a list of selectors is a path into JSON; all others are CSS."""
    return entry.startswith("$")


def parse_json_path(path: str) -> JSONPath:
    """Return a compiled path.

    Parameters
    ----------
    path : str
        A query of RFC 9535. The queries inside its filters lead to one value each, and the patterns of ``match`` and ``search`` are
        literals: the time that a filter takes must not depend on how a page nests its values, or on patterns that a page contains.

    Raises
    ------
    ValueError
        It is none, or says ``$`` alone, which is the whole document.

    Examples
    --------
    >>> str(parse_json_path("$.items[?@.kind == 'ad']..views"))
    "$['items'][?@['kind'] == 'ad']..['views']"
    """
    from jsonpath import CompoundJSONPath, JSONPathError

    try:
        query = _environment().compile(path)
    except JSONPathError as error:
        # a negative index is the end of the path
        where = "" if error.token is None else f" at position {error.token.index if error.token.index >= 0 else len(path)}"
        raise ValueError(f"{error.message}{where}") from error
    except RecursionError as error:
        raise ValueError("filters are nested too deep: maximum recursion depth exceeded") from error
    if isinstance(query, CompoundJSONPath):  # no query of RFC 9535 is one
        raise ValueError("it is more than one path")
    if query.empty():
        raise ValueError("it names the whole document")
    for expression in _filters(query):
        _check_filter(expression)
    return query


@cache
def _environment() -> JSONPathEnvironment:
    # Imported late: it takes 50 ms, and most crawls have no such path.
    from jsonpath import JSONPathEnvironment

    return JSONPathEnvironment(strict=True)


def _filters(query: JSONPath) -> Iterator[Any]:
    """Yield the expressions of a query's filters, and all that is in them."""
    waiting = [selector.expression for part in query.segments for selector in part.selectors if hasattr(selector, "expression")]
    while waiting:
        expression = waiting.pop()
        yield expression
        waiting.extend(expression.children())


def _check_filter(expression: Any) -> None:
    from jsonpath.filter import FilterQuery, FunctionExtension

    if isinstance(expression, FilterQuery) and not expression.path.singular_query():
        raise ValueError(f"the query {expression} in a filter does not lead to one value")
    if isinstance(expression, FunctionExtension) and expression.name in ("match", "search") and isinstance(expression.args[1], FilterQuery):
        raise ValueError(f"the pattern of {expression} is no literal")
