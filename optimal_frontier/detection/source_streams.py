"""The text of a source in pieces, unzipped on the way, and cut off where it is more than anybody needs.

A source is the word of a stranger: a zip of 50 kB may hold 50 MB, and a document of 50 MB may hold no entry at all. Nothing here takes
memory that grows with what is unzipped.
"""

from __future__ import annotations

import codecs
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from optimal_frontier.settings import SourceLimits

_GZIP: Final = b"\x1f\x8b"
#: Bytes of one piece.
_PIECE: Final = 2**15
#: Bytes from which on the ratio of a zip counts.
_RATIO_FROM: Final = 2**20
#: Bytes without an entry after which nothing more is expected: a tree of 2 MiB of elements takes some 100 MB.
_BARREN: Final = 2**21
#: Characters of a longer line are no URL.
_LONGEST_LINE: Final = 65_536


def is_zipped(body: bytes) -> bool:
    """Tell whether a document is gzipped."""
    return body.startswith(_GZIP)


class SourceStream:
    """The text of a document, as a file that is read once.

    Parameters
    ----------
    body : bytes
        The document, gzipped or not.
    limits : SourceLimits
        What is beyond them is not there.
    pause : callable, optional
        Called after each piece: a thread lets others work.

    Attributes
    ----------
    is_whole : bool
        It was read to its end, and no limit or damage was met so far.
    limit : str
        The limit that was met, a name of `SourceLimits`; empty: none.
    last : bytes
        The last byte that is no blank.
    """

    def __init__(self, body: bytes, limits: SourceLimits, pause: Callable[[], None] | None = None) -> None:
        self.is_whole, self.limit, self.last = True, "", b""
        self._body, self._limits, self._pause = body, limits, pause
        self._taken = self._size = self._fruitful = 0
        self._until = time.monotonic() + limits.seconds
        self._front = b""
        self._pieces = self._unzipped() if is_zipped(body) else self._plain()

    def peek(self) -> bytes:
        """Return the beginning, 512 bytes where there are so many; it is read all the same later."""
        while len(self._front) < 512:
            piece = self._next()
            if not piece:
                break
            self._front += piece
        return self._front[:512]

    def read(self, size: int = -1) -> bytes:
        """Return the next piece, of any size; empty at the end."""
        piece, self._front = self._front, b""
        return piece or self._next()

    def rest(self, most: int) -> bytes:
        """Return all that is left; what is longer than ``most`` is cut off."""
        parts: list[bytes] = []
        size = 0
        while size <= most:
            piece = self.read()
            if not piece:
                return b"".join(parts)
            parts.append(piece)
            size += len(piece)
        self.stop("bytes")
        return b"".join(parts)[:most]

    def lines(self) -> Iterator[str]:
        """Yield the lines of a text in UTF-8; of one that was cut off nothing."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        left = ""
        while piece := self.read():
            *whole, left = (left + decoder.decode(piece)).splitlines(keepends=True) or [""]
            yield from whole
            # A line break at the end of a piece may have a second half.
            if left.endswith("\n") or len(left) > _LONGEST_LINE:
                yield left
                left = ""
        if self.is_whole and left:
            yield left

    def note_entry(self) -> None:
        """Note that an entry was read up to here."""
        self._fruitful = self._size

    def stop(self, limit: str) -> None:
        """End the document here."""
        self.is_whole, self.limit = False, self.limit or limit
        self._pieces = iter(())

    def _next(self) -> bytes:
        for piece in self._pieces:
            if not piece:
                continue
            self._size += len(piece)
            limit = self._limit_met()
            if limit:
                self.stop(limit)
                return b""
            self.last = piece.rstrip(b"\x00 \t\r\n")[-1:] or self.last
            if self._pause is not None:
                self._pause()
            return piece
        return b""

    def _limit_met(self) -> str:
        if self._size > self._limits.bytes or self._size - self._fruitful > _BARREN:
            return "bytes"
        if self._taken and self._size > _RATIO_FROM and self._size > self._limits.ratio * self._taken:
            return "ratio"
        return "seconds" if time.monotonic() > self._until else ""

    def _plain(self) -> Iterator[bytes]:
        for at in range(0, len(self._body), _PIECE):
            yield self._body[at : at + _PIECE]

    def _unzipped(self) -> Iterator[bytes]:
        body, at = self._body, 0
        while body.startswith(_GZIP, at):  # a zip file may have several members
            member = zlib.decompressobj(wbits=31)
            try:
                # In pieces, as what came before an error would be lost with it, and what comes after a member is copied.
                while at < len(body) and not member.eof:
                    piece = body[at : at + _PIECE]
                    out = member.decompress(piece, _PIECE)
                    at += len(piece) - len(member.unused_data) - len(member.unconsumed_tail)
                    self._taken = at
                    yield out
            except zlib.error:
                self.is_whole = False
                return
            if not member.eof:
                self.is_whole = False
                return
            if time.monotonic() > self._until:
                self.stop("seconds")
                return
