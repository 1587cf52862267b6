"""The text of a page that a reader would see."""

from __future__ import annotations

import re
import unicodedata

from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

#: Elements whose content no reader sees. What else a head may hold, except its title, has no text.
_HIDDEN = ("script", "style", "noscript", "template")

#: Elements that do not part words: "foo<b>bar</b>" reads "foobar". All others do, so "<p>a</p><p>b</p>" reads "a b".
_INLINE_NAMES = """a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q rp rt ruby s samp small span
strike strong sub sup time tt u var wbr"""
_INLINE = tuple(_INLINE_NAMES.split())

_TAG = re.compile("<[^>]*>")


class UnreadableMarkupError(ValueError):
    """The parser gave up on a document, so its text is not known to the end."""


def fold(text: str) -> str:
    """Return `text` in Unicode normal form C, every run of white space one space, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


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

    Notes
    -----
    The tree is stripped and written out in C and only then cut into text here: per-element Python would cost more than the parse.
    """
    encoded = markup.replace("\x00", "").encode("utf-8", "replace")
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(encoded, parser)
        if any(entry.level == etree.ErrorLevels.FATAL for entry in parser.error_log):
            raise UnreadableMarkupError(str(parser.error_log.last_error))
        if root is None:
            return ""
        etree.strip_elements(root, *_HIDDEN, with_tail=False)
        etree.strip_tags(root, *_INLINE)
        # in XML, ">" is escaped in text and in attributes alike, so every tag ends at the first one
        flat = _TAG.sub(" ", etree.tostring(root, encoding="unicode", method="xml"))
    except etree.LxmlError as error:
        raise UnreadableMarkupError(str(error)) from error
    if "&" in flat:
        flat = flat.replace("&#13;", " ").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return fold(flat)
