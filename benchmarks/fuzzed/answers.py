"""Answers that no sane server gives: bodies, headers, statuses and links, made from a seed."""

from __future__ import annotations

import gzip
import random
import string
from typing import Any, Final
from urllib.parse import quote

from scrapy.http import Headers, Request, Response
from scrapy.responsetypes import responsetypes

_STATUSES: Final = [200] * 40 + [204, 206, 301, 302, 304, 307, 308, 400, 401, 403, 404, 410, 412, 416, 429, 500, 502, 503, 504, 520, 999]
_TYPES: Final = [
    "text/html", "text/html; charset=utf-8", "text/html; charset=no-such", "text/html; charset=utf-16", "text/html; charset=\xff", "",
    "text/plain; charset=iso-2022-jp", "application/json", "application/ld+json; charset=utf-7", "application/xml", "text/xml",
    "application/rss+xml", "application/atom+xml", "application/xhtml+xml", "image/png", "application/octet-stream", "text/html;;;=",
    "/", "html", "text/html, application/json", "multipart/mixed; boundary=", "application/x-gzip",
]  # fmt: skip
_TIMES: Final = [
    "", "0", "-1", "1", "120", "1e9", "99999999999999999999", "NaN", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2099 07:28:00 GMT",
    "Thu, 01 Jan 1970 00:00:00 GMT", "Wed, 32 Foo 99999 77:88:99 XYZ", "2015-10-21", "yesterday", "Sun, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994", "\xff\xfe", "1,2", "Mon, 01 Jan 0001 00:00:00 +9999", " ", "0x10", "1.5", "Infinity",
]  # fmt: skip
_ETAGS: Final = ['"1"', 'W/"1"', "1", "", '"', '"' + "x" * 9000 + '"', '"\xff"', '"a","b"', "*", "W/", '"a\tb"']
_PIECES: Final = [
    b"<html>", b"<body>", b"<p>", b"</p>", b"<div id=a class='b c'>", b"</div>", b"<script>", b"</script>", b"<!--", b"-->", b"<![CDATA[",
    b"]]>", b"<?xml version='1.0' encoding='no-such'?>", b"<?xml version='1.0'?>", b"<!DOCTYPE x [<!ENTITY a '&a;&a;'>]>", b"&a;", b"&#x0;",
    b"&#1114112;", b"&lt;", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"word ", b"12.50 ", b"<link rel=canonical href='/x'>",
    b"<link rel=canonical href='http://[::1'>", b"<meta charset=utf-16>", b"<meta http-equiv=refresh content='0;url=/y'>",
    b"<svg>", b"<math>",
    b"<template>", b"<table>", b"<a href='/z?a=1&a=2'>", b"<rss><channel><item><guid>", b"<feed xmlns='http://www.w3.org/2005/Atom'><entry>",
    b"<urlset><url><loc>", b"http://h1.test/1", b"</loc><lastmod>", b"2024-13-45", b"2024-01-01", b"</lastmod></url>", b'{"a": [1, 2, ',
    b'{"a": NaN}', b'"\\ud800"', b"[" * 300, b"1e999", b"9" * 400, b"}", b"]", b"null", b"Sitemap: http://h1.test/sitemap.xml\n", b"\r\n",
]  # fmt: skip
_PATHS: Final = [
    "",
    "a",
    "..",
    "%",
    "%ff",
    "%00",
    "a b",
    "\xe9",
    "\u202e",
    "index.php",
    "x" * 300,
    ";s=1",
    "a/b/a/b/a/b/a/b/a/b",
    "~",
    "//",
]
_QUERIES: Final = [
    "",
    "?",
    "?a",
    "?a=1&a=1",
    "?utm_source=x",
    "?%",
    "?=&=",
    "?" + "&".join(f"k{n}=v" for n in range(60)),
    "?a[]=1&b=%C3%28",
    "?sid=\x7f",
]


def make_url(rng: random.Random) -> str:
    """Return a URL that a spider may find, on one of 300 hosts."""
    path = "/".join(rng.choice(_PATHS) for _ in range(rng.randrange(1, 4)))
    return f"http://h{rng.randrange(300)}.test/{rng.randrange(10**6)}/{quote(path, safe='/%;~')}{rng.choice(_QUERIES)}"


def make_answer(request: Request, rng: random.Random) -> Response:
    """Return an answer to a request, of the class that Scrapy would make it."""
    headers = Headers({name: value for name, value in _headers(rng) if rng.random() < 0.5})
    body, status = _body(rng), rng.choice(_STATUSES)
    if status in (204, 304):
        body = b""
    if rng.random() < 0.03:
        headers["Content-Encoding"] = rng.choice(["gzip", "br", "deflate", "zstd", "no-such"])
        body = gzip.compress(body) if rng.random() < 0.5 else body
    flags = rng.choice([[], [], [], [], ["dataloss"], ["partial"], ["cached"]])
    cls = responsetypes.from_args(headers=headers, url=request.url, body=body)
    return cls(request.url, status=status, headers=headers, body=body, flags=flags, request=request)


def _headers(rng: random.Random) -> list[tuple[str, Any]]:
    junk = bytes(rng.randrange(1, 256) for _ in range(rng.randrange(20))).replace(b"\n", b"").replace(b"\r", b"")
    return [
        ("Content-Type", rng.choice(_TYPES)),
        ("ETag", rng.choice(_ETAGS)),
        ("Last-Modified", rng.choice(_TIMES)),
        ("Date", rng.choice(_TIMES)),
        ("Age", rng.choice(_TIMES)),
        ("Expires", rng.choice(_TIMES)),
        ("Retry-After", rng.choice(_TIMES) if rng.random() < 0.05 else "0"),
        ("Location", rng.choice(["/", "", "//", "http://", "http://[", "/a/b", "mailto:x", "\xff", "javascript:0", make_url(rng)])),
        ("Link", rng.choice(['</x>; rel="canonical"', "<", '<http://[>; rel=canonical', ";;;", "</y>; rel=next"])),
        ("Set-Cookie", rng.choice(["a=b", "=", ";", "a=b; Expires=x"])),
        ("Cache-Control", rng.choice(["no-store", "max-age=-1", "max-age=x", "immutable"])),
        ("X-Junk", junk),
    ]  # fmt: skip


def _body(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.1:
        return b""
    if kind < 0.2:
        return rng.randbytes(rng.randrange(2000))
    if kind < 0.21:
        return b"<b>" * rng.randrange(5000)
    if kind < 0.215:
        return rng.choice(_PIECES) * rng.randrange(20_000)
    pieces = [rng.choice(_PIECES) if rng.random() < 0.9 else rng.randbytes(rng.randrange(30)) for _ in range(rng.randrange(1, 60))]
    body = b"".join(pieces)
    if kind < 0.3:
        return "".join(rng.choice(string.printable) for _ in range(200)).encode(rng.choice(["utf-16", "utf-32", "utf-7", "latin-1"]))
    return body[: rng.randrange(len(body) + 1)] if kind < 0.4 else body
