"""Which addresses may become pages: their scheme, no passwords in them, and no private hosts behind the word of others.

Nothing is looked up. A host is private by what its URL says: an IP address in any spelling that a resolver takes, or a name that no public
host has. A public name whose DNS entry is a private address is not found out here.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Collection
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

#: Names that are never public: RFC 6761, 6762, 8375, ICANN's reserved ``internal``, and what home routers and offices use.
_INTERNAL_ENDS: Final = (
    "local",
    "localdomain",
    "internal",
    "intranet",
    "private",
    "corp",
    "home",
    "lan",
    "home.arpa",
    "test",
    "invalid",
)
#: Where clouds keep credentials, beside link-local addresses: Google, Amazon by IPv6, Alibaba.
_CREDENTIAL_HOSTS: Final = frozenset({"metadata.google.internal", "fd00:ec2::254", "100.100.100.200"})
#: What `inet_aton` takes for an IPv4 address: one to four numbers, decimal, octal or hexadecimal.
_NUMERIC: Final = re.compile(r"(?:0[xX][0-9a-fA-F]+|[0-9]+)(?:\.(?:0[xX][0-9a-fA-F]*|[0-9]*)){0,3}\.?")
_LONGEST_SHOWN: Final = 300
#: Characters up to the path, with which an origin is remembered.
_LONGEST_ORIGIN: Final = 300
#: What stands in front of the host of a URL, whatever that is.
_IN_FRONT: Final = re.compile(r"\A((?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//)[^/?#]*@")
#: The same in any text: also in one that is no URL, or in JSON with escaped slashes.
_CREDENTIALS: Final = re.compile(r"((?:\\?/|\\){2})[^/\\?#\s]*@")

#: What is wrong with an address, as `refusal_of` says it, and as it is counted.
SCHEME, CREDENTIALS, PRIVATE, UNREADABLE = "scheme", "credentials", "private", "unreadable"
#: Private hosts by who reaches them: the machine itself, its cable (where clouds keep their secrets), the network that it is in.
LOOPBACK, LINK_LOCAL, INTERNAL = "loopback", "link-local", "internal"


@lru_cache(maxsize=4096)
def reach_of(name: str) -> str:
    """Return who reaches a host name, or the text of an IP address: `LOOPBACK`, `LINK_LOCAL`, `INTERNAL`; empty: the public.

    Examples
    --------
    >>> [reach_of(name) for name in ("example.org", "8.8.8.8", "2001:4860:4860::8888")]
    ['', '', '']
    >>> [reach_of(name) for name in ("localhost", "127.1", "2130706433", "0x7f.1", "::1", "0.0.0.0")] == 6 * ["loopback"]
    True
    >>> [reach_of(name) for name in ("metadata.google.internal", "fd00:ec2:0::254", "nas.localdomain", "localhost.localdomain")]
    ['link-local', 'link-local', 'internal', 'loopback']
    >>> [reach_of(name) for name in ("redis", "db.internal", "::ffff:10.0.0.1", "169.254.169.254", "fe80::1", "")]
    ['internal', 'internal', 'internal', 'link-local', 'link-local', 'internal']
    """
    name = name.lower().rstrip(".").partition("%")[0]
    if ":" in name or _NUMERIC.fullmatch(name):
        return _reach_of_address(name)
    if name in _CREDENTIAL_HOSTS:
        return LINK_LOCAL
    if name in ("localhost", "localhost.localdomain") or name.endswith(".localhost"):
        return LOOPBACK
    return INTERNAL if "." not in name or name.endswith(tuple(f".{end}" for end in _INTERNAL_ENDS)) else ""


def _reach_of_address(text: str) -> str:
    try:
        address: ipaddress.IPv4Address | ipaddress.IPv6Address
        address = ipaddress.IPv6Address(text) if ":" in text else ipaddress.IPv4Address(socket.inet_aton(text))
    except (ValueError, OSError):
        return INTERNAL  # it is none, and no name either
    if isinstance(address, ipaddress.IPv6Address):
        # Addresses that carry another one: mapped, 6to4, Teredo, NAT64.
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo and address.teredo[1])
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        address = inner or address
    if address.is_loopback or address.is_unspecified:  # Linux takes 0.0.0.0 for itself
        return LOOPBACK
    if address.is_link_local or str(address) in _CREDENTIAL_HOSTS:
        return LINK_LOCAL
    return "" if address.is_global and not address.is_multicast else INTERNAL


_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def shown(url: str) -> str:
    """Return a URL for people and logs: without user name and password, and cut off where it is long.

    Examples
    --------
    >>> shown("http://user:secret@a.example/x?y=@z")
    'http://a.example/x?y=@z'
    >>> shown("http://user:it's a \\\\ secret@a.example/")
    'http://a.example/'
    """
    return without_passwords(_IN_FRONT.sub(r"\1", url))[:_LONGEST_SHOWN]


def without_passwords(text: str) -> str:
    """Return a text for people and logs without the user names and passwords of URLs in it.

    Examples
    --------
    >>> without_passwords("got 'http//user:secret@a.example/', not http://b.example/@c")
    "got 'http//a.example/', not http://b.example/@c"
    """
    return _CREDENTIALS.sub(r"\1", text)


def refusal_of(url: str, schemes: Collection[str]) -> str:
    """Return why a URL cannot be that of a page: `SCHEME`, `CREDENTIALS`, `UNREADABLE`; empty: it can be.

    Parameters
    ----------
    url : str
    schemes : collection of str
        SCHEMES, lower-case.

    Examples
    --------
    >>> [refusal_of(url, ("http", "https")) for url in ("file:///etc/passwd", "http://a:b@c.example/", "http://[/")]
    ['scheme', 'credentials', 'unreadable']
    >>> [refusal_of(url, ("http", "https")) for url in ("http://a.example/", "A1")]
    ['', '']
    """
    # Few origins, many URLs: up to the path they are the same text, unless there is something in it that urlsplit takes out first.
    end = url.find("/", url.find("://") + 3)
    is_plain = 0 < end < _LONGEST_ORIGIN and url.isprintable()
    scheme, fault = _known_origin(url[:end]) if is_plain else _read_origin(url)
    return fault if scheme is None or scheme in schemes else SCHEME


def _read_origin(url: str) -> tuple[str | None, str]:
    """Return the scheme of a URL, and what is wrong beside it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return url.partition(":")[0].lower(), UNREADABLE
    if not parts.scheme and not parts.netloc:
        return None, ""  # a name, as graphs of plain Frontera have: no downloader takes it for anything but what its user does
    if "@" in parts.netloc:
        return parts.scheme, CREDENTIALS
    is_web = parts.scheme in ("http", "https")
    return parts.scheme, UNREADABLE if is_web and (not parts.hostname or port == 0) else ""


_known_origin: Final = lru_cache(maxsize=4096)(_read_origin)
