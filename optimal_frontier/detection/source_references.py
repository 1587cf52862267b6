"""References of XML, ``&amp;`` and its like, as numbers, and a bare ``&`` as one, too.

A parser that recovers (libxml2) leaves out every named reference after the first fault of a document, such as a ``&nbsp;`` in a title:
``?a=1&amp;b=2`` becomes the wrong URL ``?a=1b=2``. References by number stay. A bare ``&``, the usual fault of sitemaps that are written by
hand, would be left out with the name that follows it.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

_NUMBERS: Final = ((b"&amp;", b"&#38;"), (b"&lt;", b"&#60;"), (b"&gt;", b"&#62;"), (b"&quot;", b"&#34;"), (b"&apos;", b"&#39;"))
#: An ``&`` that begins no reference (HTML has names of 31 letters). A section in which it stands for itself, to its end or the text's.
_BARE: Final = re.compile(rb"&(?!#?\w{1,31};)")
_SECTION: Final = re.compile(rb"(<!\[CDATA\[.*?(?:\]\]>|\Z))", re.DOTALL)
_BEGINS, _ENDS = b"<![CDATA[", b"]]>"
#: What is looked for may begin in one piece and end in the next: so many bytes are looked at again with that.
_LONGEST: Final = 40


class _Pieces(Protocol):
    def peek(self) -> bytes: ...

    def read(self, size: int = -1) -> bytes: ...


class NumberedReferences:
    """A document as a file that is read once, whose references are numbers. One in UTF-16 or UTF-32 is left as it is.

    Parameters
    ----------
    pieces : SourceStream
        The document.

    Examples
    --------
    >>> from io import BufferedReader, BytesIO
    >>> text = b"<loc>http://a.org/?a=1&b=2&amp;c=3</loc><title><![CDATA[AT&T]]></title>"
    >>> b"".join(iter(NumberedReferences(BufferedReader(BytesIO(text))).read, b""))
    b'<loc>http://a.org/?a=1&#38;b=2&#38;c=3</loc><title><![CDATA[AT&T]]></title>'
    """

    def __init__(self, pieces: _Pieces) -> None:
        self._pieces = pieces
        self._is_plain = b"\x00" in pieces.peek()
        self._left = b""
        self._is_inside = False

    def read(self, size: int = -1) -> bytes:
        """Return the next piece, of any size; empty at the end."""
        while True:
            piece = self._pieces.read(size)
            if self._is_plain:
                return piece
            text, self._left = self._left + piece, b""
            if piece:
                text, self._left = _cut(text)
            if text or not piece:
                return self._numbered(text)

    def _numbered(self, text: bytes) -> bytes:
        before = b""
        if self._is_inside:
            end = text.find(_ENDS)
            if end < 0:
                return text
            before, text = text[: end + len(_ENDS)], text[end + len(_ENDS) :]
        self._is_inside = text.rfind(_BEGINS) > text.rfind(_ENDS)
        if b"&" not in text:
            return before + text
        parts = _SECTION.split(text)
        parts[::2] = map(_as_numbers, parts[::2])
        return before + b"".join(parts)


def _cut(text: bytes) -> tuple[bytes, bytes]:
    """Return a text up to what may go on in the next piece, and the rest."""
    at = max(len(text) - _LONGEST, 0)
    places = [place for mark in (b"&", b"<!", b"]") if (place := text.find(mark, at)) >= 0]
    if text.endswith(b"<"):
        places.append(len(text) - 1)
    cut = min(places, default=len(text))
    # Not between two brackets of one end.
    cut = len(text[:cut].rstrip(b"]")) if text[cut : cut + 1] == b"]" else cut
    return text[:cut], text[cut:]


def _as_numbers(text: bytes) -> bytes:
    for reference, number in _NUMBERS:
        text = text.replace(reference, number)
    return _BARE.sub(b"&#38;", text)
