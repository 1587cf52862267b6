"""Parts of a page that count, and parts that do not, by CSS selectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import cssselect
from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

from optimal_frontier.detection.visible import DROPPED, DROPPED_INLINE, INLINE, KEPT
from optimal_frontier.settings.json_paths import is_json_path

_INLINE: Final = frozenset(INLINE.split("|"))
#: Elements of a page, and children of one element, beyond which selectors such as ``li + li`` and ``:nth-child(2)`` are not tried: libxml2
#: takes quadratic time, and more for ``li ~ li``.
MOST_ELEMENTS: Final = 20_000
MOST_ELEMENTS_FOR_TILDE: Final = 4_000
MOST_SIBLINGS: Final = 1_000

_elements: Final = etree.XPath("count(descendant-or-self::*)")
_has_many_siblings: Final = etree.XPath(f"boolean(descendant-or-self::*[count(*) > {MOST_SIBLINGS}])")


class TooManySiblingsError(ValueError):
    """A selector cannot be tried on a page in bounded time."""


@dataclass(frozen=True)
class Selection:
    """Compiled selectors, and the elements of a page beyond which one of them is not tried; infinite where none looks at siblings."""

    include: tuple[Any, ...]
    exclude: tuple[Any, ...]
    most_elements: float = math.inf

    def find(self, root: Any) -> tuple[list[Any], list[Any]]:
        """Return the elements to keep and those to drop; both are looked for in the page as it is.

        Raises
        ------
        TooManySiblingsError
            It would take too long.
        """
        if self.most_elements < math.inf and (_elements(root) > self.most_elements or _has_many_siblings(root)):
            raise TooManySiblingsError(f"more than {self.most_elements} elements, or {MOST_SIBLINGS} in one")
        # one by one: libxml2 takes quadratic time for a union
        kept, dropped = ([element for path in paths for element in path(root)] for paths in (self.include, self.exclude))
        return kept, dropped

    def mark(self, root: Any) -> tuple[Any, bool]:
        """Mark a copy of a tree.

        What is both kept and dropped does not count. Where nothing is to be kept, because no selector asks for it or none matches,
        everything that is not dropped is.

        Returns
        -------
        root : lxml element
            Of the copy, in which elements are called `KEPT`, `DROPPED` and `DROPPED_INLINE`.
        missed : bool
            There are selectors of what to keep, and none matches.
        """
        root = deepcopy(root)
        kept, dropped = self.find(root)
        inline = [element.tag in _INLINE for element in dropped]
        for element in kept or [root]:
            element.tag = KEPT
        for element, is_inline in zip(dropped, inline, strict=True):
            element.tag = DROPPED_INLINE if is_inline else DROPPED
        return root, bool(self.include) and not kept


@lru_cache(maxsize=256)
def selection_of(include: Sequence[str], exclude: Sequence[str], language: Literal["html", "xml"]) -> Selection | None:
    """Compile the CSS among some selectors; None where there is none."""
    chosen, dropped = _compiled(include, language), _compiled(exclude, language)
    return Selection(chosen, dropped, min(map(_most_elements, chosen + dropped))) if chosen or dropped else None


def _most_elements(path: Any) -> float:
    if "sibling" not in path.path:
        return math.inf
    is_tilde = path.path.count("/following-sibling::") > path.path.count("position() = 1")
    return MOST_ELEMENTS_FOR_TILDE if is_tilde else MOST_ELEMENTS


def _compiled(selectors: Sequence[str], language: str) -> tuple[Any, ...]:
    translator = cssselect.HTMLTranslator() if language == "html" else cssselect.GenericTranslator()
    parsed = [part for selector in selectors if not is_json_path(selector) for part in cssselect.parse(selector)]
    return tuple(etree.XPath(translator.selector_to_xpath(part)) for part in parsed)
