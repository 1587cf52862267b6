"""Which URLs are one page: what of a URL does not count for its identity.

Scrapy's fingerprint (sorted query, no fragment, lower-case host) is taken of what is left. Opt-in: a site may tell pages apart by anything.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property
from typing import Final
from urllib.parse import unquote_plus, urlsplit, urlunsplit

_INDEX: Final = re.compile(r"/(?:index|default)\.(?:html?|php[0-9]?|aspx?|jsp|cfm|xhtml)\Z", re.IGNORECASE)
_WWW: Final = re.compile(r"\A((?:[^@]*@)?)www\.(?=[^.]+\.)", re.IGNORECASE)
_DEFAULT_PORT: Final = re.compile(r":(?:80|443)?\Z")
#: Parameters within the path: ``/shop;jsessionid=5``.
_PATH_PARAMETER: Final = re.compile(r";([^=/;]+)=[^/;]*")


@dataclass(frozen=True)
class UrlFolding:
    """What does not count.

    Attributes
    ----------
    ignored : tuple of str
        Names of parameters, of the query or within the path (``;name=value``), with the wildcards ``*``, ``?`` and ``[]``; upper and lower
        case are one.
    folds : tuple of str
        Of `settings.urls.FOLDS`: ``scheme`` (http or https, at their default ports), ``www`` (a leading ``www.``), ``case`` (of the
        path), ``slash`` (at the end of the path), ``index`` (a last segment like ``index.html``).

    Examples
    --------
    >>> folding = UrlFolding(("utm_*", "sid"), ("scheme", "www", "slash", "index"))
    >>> folding.apply("https://www.a.example/news/index.html?b=2&utm_source=x&sid=5")
    'http://a.example/news?b=2'
    >>> UrlFolding().apply("https://a.example/?b=2")
    'https://a.example/?b=2'
    """

    ignored: tuple[str, ...] = ()
    folds: tuple[str, ...] = ()

    @cached_property
    def _names(self) -> re.Pattern[str] | None:
        return re.compile("|".join(map(translate, self.ignored)), re.IGNORECASE) if self.ignored else None

    @property
    def text(self) -> str:
        """What it is, in one line; the same for two that fold alike."""
        return json.dumps([sorted(set(self.ignored)), sorted(set(self.folds))], separators=(",", ":"))

    @classmethod
    def of(cls, text: str) -> UrlFolding:
        """Return the one that `text` was made from, or one that folds alike."""
        ignored, folds = json.loads(text)
        return cls(tuple(ignored), tuple(folds))

    def apply(self, url: str) -> str:
        """Return ``url`` without what does not count; the same text where all of it does. 5 to 10 us."""
        if not self.ignored and not self.folds:
            return url
        scheme, netloc, path, query, fragment = urlsplit(url)
        if scheme not in ("http", "https"):
            return url
        if "scheme" in self.folds:
            scheme, netloc = "http", _DEFAULT_PORT.sub("", netloc)
        if "www" in self.folds:
            netloc = _WWW.sub(r"\1", netloc)
        if self._names is not None:
            if ";" in path:
                path = _PATH_PARAMETER.sub(lambda found: "" if self._is_ignored(found[1]) else found[0], path)
            if query:
                query = "&".join([part for part in query.split("&") if not self._is_ignored(part.partition("=")[0])])
        if "index" in self.folds:
            path = _INDEX.sub("/", path)
        if "slash" in self.folds and len(path) > 1:
            path = path.rstrip("/") or "/"
        if "case" in self.folds:
            path = path.lower()
        return urlunsplit((scheme, netloc, path, query, fragment))

    def _is_ignored(self, name: str) -> bool:
        assert self._names is not None  # apply looked
        return self._names.match(unquote_plus(name)) is not None
