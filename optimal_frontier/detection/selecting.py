"""Parts of a page that count, and parts that do not, by CSS selectors."""

from __future__ import annotations

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
#: Children of one element beyond which selectors such as ``li + li`` and ``:nth-child(2)`` are not tried: libxml2 takes quadratic time.
MOST_SIBLINGS: Final = 2_000

_has_many_siblings: Final = etree.XPath(f"boolean(descendant-or-self::*[count(*) > {MOST_SIBLINGS}])")


class TooManySiblingsError(ValueError):
    """A selector cannot be tried on a page in bounded time."""


@dataclass(frozen=True)
class Selection:
    """Compiled selectors; None where there are none. ``is_sibling``: one of them looks from element to element beside it."""

    include: Any
    exclude: Any
    is_sibling: bool = False

    def find(self, root: Any) -> tuple[list[Any], list[Any]]:
        """Return the elements to keep and those to drop, in document order; both are looked for in the page as it is.

        Raises
        ------
        TooManySiblingsError
            It would take too long.
        """
        if self.is_sibling and _has_many_siblings(root):
            raise TooManySiblingsError(f"an element has more than {MOST_SIBLINGS} children")
        kept = self.include(root) if self.include is not None else []
        return kept, self.exclude(root) if self.exclude is not None else []

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
        return root, self.include is not None and not kept


@lru_cache(maxsize=256)
def selection_of(include: Sequence[str], exclude: Sequence[str], language: Literal["html", "xml"]) -> Selection | None:
    """Compile the CSS among some selectors; None where there is none."""
    chosen, dropped = _union(include, language), _union(exclude, language)
    if chosen is None and dropped is None:
        return None
    return Selection(chosen, dropped, any("sibling" in path.path for path in (chosen, dropped) if path is not None))


def _union(selectors: Sequence[str], language: str) -> Any:
    translator = cssselect.HTMLTranslator() if language == "html" else cssselect.GenericTranslator()
    paths = [translator.css_to_xpath(selector) for selector in selectors if not is_json_path(selector)]
    return etree.XPath(" | ".join(paths)) if paths else None
