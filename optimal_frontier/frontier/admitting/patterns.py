"""From a URL to its pattern: what pages of one kind on one host have in common, so that they may learn from each other.

Directories are kept, up to a depth, and what looks like a number, a date, an identifier or a title in them is generalised; the last
segment names the page, so only its ending counts; of a query the keys count, not the values.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

#: Directories that count; what lies deeper is one kind of page.
DEPTH: Final = 3
#: Names longer than this, or with as many hyphens, are titles of single pages.
_LONGEST_NAME: Final = 24
_TITLE_HYPHENS: Final = 3
#: Keys of a query that count, in alphabetical order.
_MOST_KEYS: Final = 4
#: Parts of a query that are looked at.
_MOST_PARTS: Final = 32

_DIGITS: Final = re.compile(r"[0-9]+")
#: A number, a date or a version: digits with what stands between them.
_NUMERIC: Final = re.compile(r"v?[0-9]+(?:[-_.:][0-9]+)*")
#: Eight or more characters of a hash or UUID, a digit among them.
_HASH: Final = re.compile(r"(?=.*[0-9])[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*")
_ENDING: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")


def pattern_of(url: str) -> str:
    """Return the pattern of a URL within its host.

    Parameters
    ----------
    url : str
        With scheme and host; neither counts.

    Returns
    -------
    str
        At most about 250 characters. ``#`` stands for a number or date, ``*`` for a name.

    Notes
    -----
    2 to 6 us for a URL in a directory that was seen lately: those are remembered.

    Examples
    --------
    >>> for path in ("/", "/about", "/news/2024/05/17/some-title.html", "/news/2024/"):
    ...     pattern_of("http://a.example" + path)
    '/'
    '/*'
    '/news/#/*.html'
    '/news/*/'
    >>> pattern_of("http://a.example/view.php?id=17&page=2"), pattern_of("http://a.example/page12.php?id=18#top")
    ('/view.php?id&page', '/page#.php?id')
    >>> pattern_of("http://a.example/users/550e8400-e29b-41d4-a716-446655440000/posts/9"), pattern_of("http://a.example/a/b/c/d/e.html")
    ('/users/*/posts/*', '/a/b/c/**/*.html')
    """
    begin = url.find("/", url.find("://") + 3)
    if begin < 0:
        return "/"
    end = url.find("#", begin)
    path = url[begin:] if end < 0 else url[begin:end]
    path, _, query = path.partition("?")
    closing = "/" if path.endswith("/") and path != "/" else ""
    stem = path[:-1] if closing else path
    cut = stem.rfind("/") + 1
    name = stem[cut:]
    if query:
        keys = "&".join([part.partition("=")[0] for part in query.split("&", _MOST_PARTS)[:_MOST_PARTS]])
        return f"{_directory(stem[:cut])}{_general(name)}{closing}?{_keys(keys)}"
    if not name:
        return _directory(stem[:cut])
    ending = _ENDING.search(name)
    return f"{_directory(stem[:cut])}*{ending[0] if ending else ''}{closing}"


@lru_cache(maxsize=8192)
def _directory(path: str) -> str:
    """Return the pattern of what stands before the last segment, slashes at both ends included."""
    kept: list[str] = []
    for name in filter(None, path.split("/")):
        general = _general(name)
        if general == "#" and kept[-1:] == ["#"]:
            continue  # year, month and day are one date
        if len(kept) == DEPTH:
            kept.append("**")
            break
        kept.append(general)
    return "/" + "".join(f"{name}/" for name in kept)


def _general(name: str) -> str:
    """Return a segment without what tells single pages apart."""
    if _NUMERIC.fullmatch(name):
        return "#"
    if len(name) > _LONGEST_NAME or name.count("-") >= _TITLE_HYPHENS or _HASH.fullmatch(name):
        return "*"
    return _DIGITS.sub("#", name)


@lru_cache(maxsize=8192)
def _keys(joined: str) -> str:
    """Return the keys of a query in one order."""
    names = sorted(set(joined.split("&")) - {""})
    more = "&**" if len(names) > _MOST_KEYS else ""
    return "&".join(_general(name) for name in names[:_MOST_KEYS]) + more
