"""A response in 16 bytes that change when its content does."""

from __future__ import annotations

from hashlib import blake2b

from optimal_frontier.detection.content import Response, body_bytes, decoded_text, has_text, media_type
from optimal_frontier.detection.visible import UnreadableMarkupError, fold, visible_text
from optimal_frontier.errors import InvalidProblemError

_KINDS = ("body", "text")
_HTML = frozenset({"text/html", "application/xhtml+xml"})
#: Goes up when the same response gets another fingerprint, so that an upgrade is not taken for a change of every page.
_REVISION = 1


def fingerprint(response: Response, *, kind: str = "text") -> bytes:
    """Fingerprint of the content of a response.

    Parameters
    ----------
    response : object
        Anything with ``body`` (bytes); ``headers`` (a mapping) and ``text`` are used where there are any, as on Scrapy's responses. Nothing
        is read of the URL or the status, and a cached selector, which a callback may have edited, is left alone.
    kind : {"text", "body"}
        ``"body"``: every byte of the body. ``"text"``: the text that a reader sees, see `optimal_frontier.detection.visible.visible_text`,
        for HTML; the text with white space folded for ``text/plain``; every byte for other content (JSON, XML, images), for what
        the parser cannot read to the end, and for a response that has no ``text`` and names no media type.

    Returns
    -------
    bytes, 16
        BLAKE2b of 128 bits. No content, however broken, raises.

    Raises
    ------
    InvalidProblemError
        If `kind` is neither of the two.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> html = {"Content-Type": "text/html"}
    >>> a = SimpleNamespace(headers=html, body=b"<p class=x>Hello,  world<script>t=1</script>")
    >>> b = SimpleNamespace(headers=html, body=b"<p class=y>Hello, <b>world</b><script>t=2</script>")
    >>> fingerprint(a) == fingerprint(b), fingerprint(a, kind="body") == fingerprint(b, kind="body")
    (True, False)
    """
    _check(kind)
    content = _text(response) if kind == "text" else None
    # a lone surrogate is a character here like any other
    hashed = body_bytes(response) if content is None else content.encode("utf-8", "surrogatepass")
    return blake2b(hashed, digest_size=16).digest()


def settings_tag(kind: str) -> int:
    """Number of the way in which fingerprints of `kind` are made.

    Two fingerprints under different tags say nothing about a change. The tag is stored beside each fingerprint.

    Parameters
    ----------
    kind : {"text", "body"}
        As for `fingerprint`.

    Returns
    -------
    int
        Between 1 and 2^32 - 1; the same in every process, on every machine.

    Raises
    ------
    InvalidProblemError
        If `kind` is neither of the two.
    """
    _check(kind)
    digest = blake2b(f"{_REVISION}\n{kind}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") or 1


def _check(kind: object) -> None:
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidProblemError(f"kind must be one of {', '.join(map(repr, _KINDS))}, got {kind!r}")


def _text(response: Response) -> str | None:
    """The text that counts, or None where the bytes do."""
    media = media_type(response)
    if media == "text/plain":
        return fold(decoded_text(response))
    if media in _HTML:
        return _html_text(decoded_text(response))
    if media or not has_text(response):
        return None
    text = decoded_text(response)
    # no word on what it is: only what starts like XML or JSON is not read as a page
    start = text[:1024].lstrip("\ufeff \t\r\n").lower()
    if start.startswith(("{", "[")) or (start.startswith("<?xml") and "<html" not in start):
        return None
    return _html_text(text)


def _html_text(markup: str) -> str | None:
    try:
        return visible_text(markup)
    except UnreadableMarkupError:
        return None
