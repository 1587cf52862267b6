"""Names of the parts of a page: CSS selectors that a person would write, and that stay what they are from fetch to fetch."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

#: Named ancestors that stand before the last part of a selector.
_CONTEXT: Final = 2
#: Levels of elements without a name below one that has one; what lies deeper belongs to the deepest.
_LEVELS: Final = 3

#: Places that are counted one by one.
MOST_PLACES: Final = 32

_LANDMARKS: Final = frozenset("main article aside header footer nav form table".split())
#: Elements of which there is one where there is any, or that are all of one kind.
_UNCOUNTED: Final = frozenset("title h1 time caption legend".split())
#: Elements that belong to the words around them, unless they have a name.
_INLINE: Final = frozenset(
    """a abbr acronym b bdi bdo big br cite code data del dfn em font i ins kbd label mark nobr q rp rt ruby s samp small span strike
    strong sub sup tt u var wbr""".split()
)
_IDENTIFIER: Final = re.compile(r"-?[A-Za-z_][\w-]{0,39}", re.ASCII)
#: What was made up by a program: a long number, a hash, letters and digits mixed, capitals in the middle of small letters and the other way.
_MADE_UP: Final = re.compile(
    r"\d{3}|\d[A-Za-z]+\d|(?=\w*\d)[0-9a-f]{6}|[a-z][A-Z][a-z]?[A-Z]|(?<![A-Za-z])[A-Za-z]*\d[A-Za-z]{2}", re.ASCII
)
#: States, and the arms of experiments: they come and go while the text stays.
_PASSING: Final = re.compile(
    r"(?:is|has|js|no|ab|exp|experiment|test|variant|variation|bucket|cohort|theme)-|active$|open$|hidden$|selected$|col-|v\d", re.I
)


class Name(NamedTuple):
    """How the section of an element is called.

    ``selector`` is the CSS; ``context`` the named ancestors' parts of it that those below take over; ``levels`` how many parts without a
    name are at its end.
    """

    selector: str
    context: tuple[str, ...]
    levels: int


TOP: Final = Name("", (), 0)


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
        return Name("body", (), 0)
    identity = element.get("id", "")
    if _is_stable(identity):
        return Name(f"#{identity}", (f"#{identity}",), 0)
    own = next((f"{tag}.{name}" for name in (element.get("class") or "").split() if _is_stable(name) and not _PASSING.match(name)), None)
    if own is None and tag in _LANDMARKS:
        own = tag
    if own is not None:
        parts = ("main",) if own == "main" else (*parent.context[-_CONTEXT:], own)
        # what a word or two are marked with says nothing of what they hold
        return Name(" ".join(parts), parent.context if tag in _INLINE else parts, 0)
    if tag in _INLINE or tag == "html" or parent.levels == _LEVELS:
        return parent
    if not parent.selector:
        return Name("title" if tag == "title" else "", (), 0)
    part = tag if tag in _UNCOUNTED else f"{tag}:nth-of-type({place if place <= MOST_PLACES else f'n+{MOST_PLACES + 1}'})"
    return Name(f"{parent.selector} > {part}", parent.context, parent.levels + 1)


def _is_stable(name: str) -> bool:
    return _IDENTIFIER.fullmatch(name) is not None and _MADE_UP.search(name) is None
