"""What a response holds: its bytes, its media type and its characters, whatever class it is of."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from w3lib.encoding import html_body_declared_encoding, html_to_unicode, http_content_type_encoding, read_bom

#: Of longer bodies only the beginning is decoded and parsed, bytes.
PARSED_BYTES: Final = 4 << 20


class Response(Protocol):
    """The least that a response must have; ``headers``, ``text`` and ``encoding``, where it has them, are used too."""

    @property
    def body(self) -> bytes:
        """The payload, content encodings such as gzip undone."""


def body_bytes(response: Response) -> bytes:
    """The payload; no payload is an empty one."""
    body: Any = response.body
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return bytes(body or b"")


def media_type(response: Response) -> str:
    """Lower-case ``type/subtype`` of the Content-Type header; empty if there is none, or none that means anything."""
    declared = _content_type(response).partition(";")[0].strip().lower()
    kind, slash, subtype = declared.partition("/")
    return declared if slash and kind and subtype else ""


def has_text(response: Response) -> bool:
    """Whether the class of the response says that it is text, as Scrapy's does after looking at headers, URL and body."""
    # a class that can name an encoding; its text is not asked for, as that would decode all of a large body
    return isinstance(getattr(type(response), "encoding", None), property) or isinstance(_own_text(response), str)


def decoded_text(response: Response, most: int | None = None) -> str:
    """The characters of the body; never raises: what the encoding cannot say becomes U+FFFD.

    The response's own ``text`` comes first, unless it `is_guessed`. Without one the encoding is looked for as browsers do: byte order mark,
    header, meta element, UTF-8. Of a body that is longer than `most` bytes only so many are decoded, in the latter way.
    """
    body = body_bytes(response)
    if is_guessed(response):
        return body[:most].decode("latin-1")
    if most is not None and len(body) > most:
        body = body[:most]
    else:
        text = _own_text(response)
        if isinstance(text, str):
            return text
    with suppress(LookupError, ValueError):
        return html_to_unicode(_content_type(response), body, default_encoding="utf-8")[1]
    return body.decode("utf-8", "replace")


def is_guessed(response: Response) -> bool:
    """Whether nobody says what the encoding is, and it is not UTF-8: then Scrapy guesses, by statistics of all of the body.

    Such a guess may be another one after the smallest change anywhere, and all letters beyond ASCII with it. A byte is one character then.
    """
    body = body_bytes(response)
    if body.isascii() or read_bom(body)[0] or http_content_type_encoding(_content_type(response)) or html_body_declared_encoding(body):
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return True
    return False


def _own_text(response: Response) -> object:
    # a Scrapy response that is not text raises AttributeError; one that names an unusable codec, or a foreign class, may raise these
    with suppress(LookupError, ValueError):
        return getattr(response, "text", None)
    return None


def _content_type(response: Response) -> str:
    headers: object = getattr(response, "headers", None)
    if not isinstance(headers, Mapping):
        return ""
    found = headers.get("Content-Type")  # as Scrapy's headers, whose names have no case, and most others have it
    if found is None:
        found = next((value for name, value in headers.items() if _latin(name).lower() == "content-type"), None)
    # Scrapy's headers give the last value here and lists above, plain dicts what they were given
    return _latin(found[-1] if isinstance(found, (list, tuple)) and found else found)


def _latin(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""
