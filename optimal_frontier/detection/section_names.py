"""Names of the parts of a page: CSS selectors that a person would write, and that stay what they are from fetch to fetch."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, NamedTuple

from optimal_frontier.detection.visible import INLINE

#: Named ancestors that stand before the last part of a selector.
_CONTEXT: Final = 2
#: Levels of elements without a name below one that has one; what lies deeper belongs to the deepest.
_LEVELS: Final = 3

#: Places that are counted one by one.
MOST_PLACES: Final = 32

_LANDMARKS: Final = frozenset(("main", "article", "aside", "header", "footer", "nav", "form", "table"))
#: Elements of which there is one where there is any, or that are all of one kind.
_UNCOUNTED: Final = frozenset(("title", "h1", "time", "caption", "legend"))
#: Elements that belong to the words around them, unless they have a name.
_WORDS: Final = frozenset(("br", *INLINE.split("|"))) - {"time"}
_IDENTIFIER: Final = re.compile(r"-?[A-Za-z_][\w-]{0,39}", re.ASCII)
#: What was made up by a program: a long number, a hash, letters and digits mixed, capitals between small letters.
_MADE_UP: Final = re.compile(
    r"^_[^_]|\d{3}|\d[A-Za-z]+\d|(?=\w*\d)[0-9a-f]{6}|[a-z][A-Z][a-z]?[A-Z]|(?<![A-Za-z])[A-Za-z]*\d[A-Za-z]{2}", re.ASCII
)
#: States, and the arms of experiments: they come and go while the text stays.
_PASSING: Final = re.compile(
    r"(?:is|has|js|no|ab|exp|experiment|test|variant|variation|bucket|cohort|theme)-|active$|open$|hidden$|selected$|col-|v\d", re.I
)


#: Characters of a selector beyond which nothing is added to it.
LONGEST: Final = 1000


class Name(NamedTuple):
    """How the section of an element is called.

    ``selector`` is the CSS; ``context`` the named ancestors' parts of it that those below take over; ``levels`` how many parts without a
    name are at its end; ``path`` the CSS of the element itself, where it belongs to the section of another one.
    """

    selector: str
    context: tuple[str, ...]
    levels: int
    path: str


TOP: Final = Name("", (), 0, "")


def name_of(element: Any, tag: str, parent: Name, place: int) -> Name:
    """Return the name of an element's section.

    Parameters
    ----------
    element : lxml element
        Of HTML.
    tag : str
        Its tag.
    parent : Name
        Of the section that its parent is in.
    place : int
        Which child of its kind it is, from 1.

    Examples
    --------
    >>> from lxml.html import fragment_fromstring
    >>> page = name_of(fragment_fromstring('<div id="news"></div>'), "div", TOP, 1)
    >>> card = name_of(fragment_fromstring('<div class="is-new card"></div>'), "div", page, 3)
    >>> card.selector, name_of(fragment_fromstring("<p></p>"), "p", card, 2).selector
    ('#news div.card', '#news div.card > p:nth-of-type(2)')
    """
    if tag == "body":
        return Name("body", (), 0, "body")
    identity = element.get("id", "")
    if identity and _is_stable(identity[:LONGEST]):
        selector = f"#{identity}"
        return Name(selector, (selector,), 0, selector)
    if len(parent.path) + len(tag) > LONGEST:
        return parent
    own = _named(tag, element.get("class", "")[:LONGEST])
    if own is not None:
        parts = ("main",) if own == "main" else (*parent.context[-_CONTEXT:], own)
        selector = " ".join(parts)
        # what a word or two are marked with says nothing of what they hold
        return Name(selector, parent.context if tag in _WORDS else parts, 0, selector)
    if not parent.selector:
        return Name("title", (), 0, "title") if tag == "title" else TOP
    if parent.levels == _LEVELS:
        return parent
    part = tag if tag in _UNCOUNTED else f"{tag}:nth-of-type({place if place <= MOST_PLACES else f'n+{MOST_PLACES + 1}'})"
    path = f"{parent.path} > {part}"
    if tag in _WORDS:
        return parent._replace(path=path)
    return Name(path, parent.context, parent.levels + 1, path)


@lru_cache(maxsize=4096)
def _named(tag: str, classes: str) -> str | None:
    """Return what names an element by its first class that says what it is, or as a landmark; None: nothing does."""
    own = next((f"{tag}.{name}" for name in classes.split() if _is_stable(name) and not _PASSING.match(name)), None)
    return tag if own is None and tag in _LANDMARKS else own


@lru_cache(maxsize=4096)
def _is_stable(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None and _MADE_UP.search(name) is None
