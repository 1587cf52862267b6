"""The text of a page that a reader would see."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

from optimal_frontier.detection.folding import BREAK, fold

_MARKS: Final = "urn:optimal-frontier:marks"
#: Names that elements are given to mark what counts of a page and what does not; no page can have them, as HTML knows no namespaces.
KEPT: Final = f"{{{_MARKS}}}kept"
DROPPED: Final = f"{{{_MARKS}}}dropped"
DROPPED_INLINE: Final = f"{{{_MARKS}}}dropped-inline"

#: Elements whose content no reader sees. What else a head may hold, except its title, has no text.
_HIDDEN: Final = "script|style|noscript|template"

#: Elements that do not part words: "foo<b>bar</b>" reads "foobar". All others do, so "<p>a</p><p>b</p>" reads "a b".
INLINE: Final = (
    "a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|label|mark|nobr|q|rp|rt|ruby|s|samp|small|span|strike|strong|"
    "sub|sup|time|tt|u|var|wbr"
)

#: libxml2 gives up on elements nested 2,048 deep, with what follows lost, and says so nowhere in the tree.
_TOO_DEEP: Final = 2000
#: A document of fewer bytes cannot be: an element takes three (``<b>``), and some are added around it.
DEEP_BYTES: Final = 3 * (_TOO_DEEP - 10)

_SHEET: Final = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:m="{marks}">
<xsl:output method="text" encoding="utf-8"/>
<xsl:template match="*"><xsl:text>{gap}</xsl:text><xsl:apply-templates/><xsl:text>{gap}</xsl:text></xsl:template>
<xsl:template match="{inline}"><xsl:apply-templates/></xsl:template>
<xsl:template match="{hidden}"/>
{more}</xsl:stylesheet>"""

_MARKED: Final = """<xsl:template match="/"><xsl:apply-templates mode="around"/></xsl:template>
<xsl:template match="*" mode="around"><xsl:apply-templates mode="around"/></xsl:template>
<xsl:template match="text()" mode="around"/>
<xsl:template match="m:kept" mode="around"><xsl:text>{gap}</xsl:text><xsl:apply-templates/><xsl:text>{gap}</xsl:text></xsl:template>
<xsl:template match="m:dropped|m:dropped-inline" mode="around"/>
<xsl:template match="m:dropped"><xsl:text>{gap}</xsl:text></xsl:template>
<xsl:template match="m:dropped-inline"/>
"""


def _stylesheet(more: str) -> Any:
    sheet = _SHEET.replace("{more}", more).format(marks=_MARKS, inline=INLINE, hidden=_HIDDEN, gap=BREAK)
    return etree.XSLT(etree.XML(sheet))


# Text by XSLT: the tree is walked in C and left as it is. Python per element, or XPath's strings, would cost more than the parse.
_text = _stylesheet("")
_marked_text = _stylesheet(_MARKED)


class UnreadableMarkupError(ValueError):
    """The parser gave up on a document, so its text is not known to the end."""


def parse_html(markup: str) -> Any:
    """Return the root element of an HTML document, parsed as Scrapy's selectors do: any characters, also NUL or unpaired surrogates.

    Raises
    ------
    UnreadableMarkupError
        If libxml2 gives up on the document.
    """
    encoded = markup.strip().replace("\x00", "").encode("utf-8", "replace") or b"<html/>"
    try:
        root = etree.fromstring(encoded, etree.HTMLParser(encoding="utf-8", huge_tree=True))
    except etree.LxmlError as error:
        raise UnreadableMarkupError(str(error)) from error
    return etree.fromstring(b"<html/>") if root is None else root


def text_of(root: Any, *, is_marked: bool = False, may_be_deep: bool = True) -> str:
    """The visible text of a parsed page, not folded; `BREAK` parts what is in different blocks.

    Parameters
    ----------
    root : lxml element
        As `parse_html` or a selector of Scrapy's has it; left as it is.
    is_marked : bool
        Only what is in elements of the name `KEPT` counts, also where those were scripts; nothing in elements that are `DROPPED`.
    may_be_deep : bool
        The document has `DEEP_BYTES` or more.

    Raises
    ------
    UnreadableMarkupError
        If elements are nested about 2,000 deep, where libxml2 loses what follows.
    """
    depth, last = 0, root
    # where the parser gives up it leaves the deepest element the last one
    with suppress(IndexError):
        while may_be_deep:
            last, depth = last[-1], depth + 1
    if depth >= _TOO_DEEP:
        raise UnreadableMarkupError(f"elements nested {depth} deep")
    try:
        return str((_marked_text if is_marked else _text)(root))
    except (etree.LxmlError, ValueError) as error:
        raise UnreadableMarkupError(str(error)) from error


def visible_text(markup: str) -> str:
    """The visible text of an HTML document, folded.

    Parameters
    ----------
    markup : str
        Any characters: malformed, empty, with NUL or unpaired surrogates.

    Returns
    -------
    str
        Text nodes in document order without those of script, style, noscript and template elements, comments and processing instructions;
        the title counts, attributes (``alt``, ``title`` and ``value`` too) do not, nor does which elements the text is in, as long as words
        stay apart. Style sheets are not read: what CSS hides counts as visible.

    Raises
    ------
    UnreadableMarkupError
        If libxml2 gives up on the document, as it does on elements nested about 2,000 deep.
    """
    return fold(text_of(parse_html(markup)))
