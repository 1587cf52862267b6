"""Parts of a page that count, and parts that do not, by CSS selectors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import cssselect
from cssselect.xpath import XPathExpr
from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

from optimal_frontier.detection.visible import DROPPED, DROPPED_INLINE, INLINE, KEPT
from optimal_frontier.settings.json_paths import is_json_path

_INLINE: Final = frozenset(INLINE.split("|"))
#: Stands in a translated selector where one element is anywhere below another; no selector can hold it.
_BELOW: Final = "\x00"
#: Elements of a page, and children of one element, beyond which selectors such as ``li + li``, ``:nth-child(2)`` and ``:has(a)`` are not
#: tried: libxml2 takes quadratic time, and more for ``li ~ li``.
MOST_ELEMENTS: Final = 20_000
MOST_ELEMENTS_FOR_TILDE: Final = 4_000
MOST_SIBLINGS: Final = 1_000

_elements: Final = etree.XPath("count(descendant-or-self::*)")
_has_many_siblings: Final = etree.XPath(f"boolean(descendant-or-self::*[count(*) > {MOST_SIBLINGS}])")


class TooManySiblingsError(ValueError):
    """A selector cannot be tried on a page in bounded time."""


@dataclass(frozen=True)
class Path:
    """A compiled selector: XPath; of ``a b`` one for ``a``, and one for ``b``, which is looked for below what the one before has found."""

    text: str
    steps: tuple[Any, ...]

    def find(self, root: Any) -> list[Any]:
        """Return what it selects of a tree."""
        first, *others = self.steps
        found: list[Any] = first(root)
        for step in others:
            found = [element for start in _outermost(found) for element in step(start)]
        return found


def _outermost(found: list[Any]) -> Iterator[Any]:
    """Yield those of some elements that lie in no other one; what lies below these lies below all of them, and is met once."""
    is_inside = dict.fromkeys(found, True)
    for element in found:
        passed, verdict = [], False
        for above in element.iterancestors():
            if above in is_inside:
                verdict = is_inside[above]
                break
            passed.append(above)
        is_inside.update(dict.fromkeys(passed, verdict))
        if not verdict:
            yield element


class _Expression(XPathExpr):
    """XPath that is not parted within a condition, as that of ``:has(> a b)``."""

    def add_condition(self, condition: str, *more: Any) -> Any:
        return super().add_condition(condition.replace(_BELOW, "/descendant::"), *more)


class _Below:
    """Parts translated selectors where they step down: libxml2 takes quadratic time where elements to start from hold each other."""

    xpathexpr_cls = _Expression

    def xpath_descendant_combinator(self, left: Any, right: Any) -> Any:
        return left.join(_BELOW, right)


class _HtmlTranslator(_Below, cssselect.HTMLTranslator):
    pass


class _XmlTranslator(_Below, cssselect.GenericTranslator):
    pass


@dataclass(frozen=True)
class Selection:
    """Compiled selectors, and the elements of a page beyond which one is not tried; infinite where all of them take linear time."""

    include: tuple[Path, ...]
    exclude: tuple[Path, ...]
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
        kept, dropped = ([element for path in paths for element in path.find(root)] for paths in (self.include, self.exclude))
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


def _most_elements(path: Path) -> float:
    if "sibling" not in path.text:
        # :has() looks through all that an element holds; a step down outside of conditions is written otherwise
        return MOST_ELEMENTS if "descendant::" in path.text or "./" in path.text else math.inf
    is_tilde = path.text.count("/following-sibling::") > path.text.count("position() = 1")
    return MOST_ELEMENTS_FOR_TILDE if is_tilde else MOST_ELEMENTS


def _compiled(selectors: Sequence[str], language: str) -> tuple[Path, ...]:
    translator = _HtmlTranslator() if language == "html" else _XmlTranslator()
    parsed = [part for selector in selectors if not is_json_path(selector) for part in cssselect.parse(selector)]
    return tuple(_path(translator.selector_to_xpath(part)) for part in parsed)


def _path(text: str) -> Path:
    first, *below = text.split(_BELOW)
    return Path(text, tuple(map(etree.XPath, (first, *("descendant::" + step for step in below)))))
