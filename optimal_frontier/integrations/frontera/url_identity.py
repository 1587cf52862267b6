"""What plain Frontera knows pages by: the fingerprint of its middleware, or of its function, not Scrapy's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from frontera.utils.misc import load_object
from w3lib.url import canonicalize_url
from w3lib.util import to_bytes

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.frontier.admitting.claimed_identity import FRONTERAS

#: Where Frontera's middleware puts the fingerprint of a URL, and what it knows of its domain.
URL_FINGERPRINT: Final = b"fingerprint"
DOMAIN: Final = b"domain"
#: Frontera's own functions: their digests are spread over all bytes, so the first 12 of them identify a page.
_FRONTERAS: Final = frozenset(f"frontera.utils.fingerprint.{name}" for name in ("sha1", "md5", "hostname_local_fingerprint"))


class UrlIdentity:
    """Identities of pages by Frontera's fingerprints.

    Parameters
    ----------
    path : str
        Dotted path of a function from URLs to fingerprints: the setting URL_FINGERPRINT_FUNCTION.

    Raises
    ------
    ConfigurationError
        It cannot be imported, or is no function.

    Examples
    --------
    >>> UrlIdentity("frontera.utils.fingerprint.sha1").of_url("A1").hex()
    '1ffd4ba3eb9ffadf4db3c3ff4c1bbcf94a64cc59'
    """

    def __init__(self, path: str) -> None:
        try:
            self._function: Callable[[str], Any] = load_object(path)
        except (ImportError, NameError, ValueError, AttributeError) as error:
            raise ConfigurationError(f"URL_FINGERPRINT_FUNCTION: {path!r} cannot be imported: {error}") from error
        if not callable(self._function):
            raise ConfigurationError(f"URL_FINGERPRINT_FUNCTION: {path!r} is no function")
        self._is_fronteras = path in _FRONTERAS
        #: What ``P.meta identity`` holds.
        self.noted = FRONTERAS + path

    def fingerprint(self, url: str) -> Any:
        """Return the fingerprint that Frontera's `UrlFingerprintMiddleware` gives a URL.

        Raises
        ------
        ValueError
            It is no URL.
        """
        return self._function(canonicalize_url(url))

    def of_fingerprint(self, fingerprint: Any) -> bytes:
        """Return the identity that belongs to a fingerprint: its bytes where it is a digest in hexadecimal, else a hash of it."""
        text = to_bytes(fingerprint)
        if self._is_fronteras and len(text) in (32, 40):
            try:
                return bytes.fromhex(text.decode("ascii"))
            except ValueError:
                pass
        return hashlib.sha1(text, usedforsecurity=False).digest()

    def of_url(self, url: str) -> bytes:
        """Return the identity of the page of a URL; raises ValueError where it is none."""
        return self.of_fingerprint(self.fingerprint(url))

    def of(self, request: Any) -> bytes:
        """Return the identity of a Frontera request: by the fingerprint in its meta, whoever put it there, or by that of its URL."""
        fingerprint = request.meta.get(URL_FINGERPRINT)
        return self.of_url(request.url) if fingerprint is None else self.of_fingerprint(fingerprint)


def fronteras_own(noted: str) -> UrlIdentity | None:
    """Return what a namespace says that its pages are known by, if that is one of Frontera's own functions; no other name is loaded."""
    path = noted.removeprefix(FRONTERAS)
    return UrlIdentity(path) if path in _FRONTERAS else None
