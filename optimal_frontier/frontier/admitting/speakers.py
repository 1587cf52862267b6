"""For which hosts a source may speak: those of its own registered domain, and of those that vouch for it.

A robots.txt that names a sitemap vouches for it: its entries may name the hosts of the robots.txt. An index vouches for its sitemaps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from optimal_frontier.frontier.admitting.addresses import PRIVATE, reach_of
from optimal_frontier.frontier.admitting.hosts import names_of
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.settings.parsing import ascii_host

if TYPE_CHECKING:
    from tldextract import TLDExtract

#: Reason of entries that a source does not speak for.
FOREIGN = "foreign"


@lru_cache(maxsize=8192)
def domain_of(name: str) -> str:
    """Return the registered domain of a host name, by the list of public suffixes that tldextract brings along; it is never fetched.

    An address, and a name that is no domain, is itself; of an ending that is not on the list two labels count, as the list has it.

    Examples
    --------
    >>> [domain_of(name) for name in ("www.shop.co.uk", "one.github.io", "www.a.example", "127.0.0.1", "localhost")]
    ['shop.co.uk', 'one.github.io', 'a.example', '127.0.0.1', 'localhost']
    """
    found = _extract()(name)
    if found.domain and found.suffix:
        return f"{found.domain}.{found.suffix}"
    is_listed = bool(found.suffix or found.ipv4 or found.ipv6)
    return name if is_listed else ".".join(name.split(".")[-2:])


@cache
def _extract() -> TLDExtract:
    from tldextract import TLDExtract  # only where there are sources: it reads its list

    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


class Speaker:
    """What one source may name.

    Parameters
    ----------
    urls : iterable of str
        Of the source: where it was asked for, and where the answer came from.
    vouched_for : collection of str
        Registered domains whose word it is.
    settings : FrontierSettings
        SOURCE_HOSTS, PRIVATE_LINKS.
    names_sources : bool
        It is a robots.txt: what it names may be anywhere.

    Examples
    --------
    >>> settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_SOURCE_HOSTS": ["*.bücher.example"]})
    >>> speaker = Speaker(["http://www.a.example/sitemap.xml"], ["b.example"], settings)
    >>> hosts = ("shop.a.example", "b.example", "x.bücher.example", "x.xn--bcher-kva.example", "c.example", "127.0.0.1")
    >>> [speaker.refusal(f"http://{host}/") for host in hosts]
    ['', '', '', '', 'foreign', 'private']
    """

    def __init__(
        self, urls: Iterable[str], vouched_for: Collection[str], settings: FrontierSettings, *, names_sources: bool = False
    ) -> None:
        names = [ascii_host(names_of(url)[0]) for url in urls]
        #: Registered domains that it speaks for.
        self.domains = frozenset([*map(domain_of, names), *vouched_for])
        self._hosts, self._is_any = settings.source_hosts, names_sources or "*" in settings.source_hosts
        self._reaches, self._is_open = {*map(reach_of, names)}, settings.private_links

    def refusal(self, url: str) -> str:
        """Return why an entry does not count, `FOREIGN` or `PRIVATE`; empty: it does."""
        name = ascii_host(names_of(url)[0])
        reach = reach_of(name)
        if reach and not self._is_open and self._reaches != {reach}:
            return PRIVATE
        if self._is_any or domain_of(name) in self.domains or any(fnmatchcase(name, host) for host in self._hosts):
            return ""
        return FOREIGN
