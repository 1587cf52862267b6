"""Whose word is enough for which address: what the spider itself yields first is trusted further than links, sources and redirects."""

from __future__ import annotations

from typing import Final

from optimal_frontier.frontier.admitting.addresses import PRIVATE, reach_of, refusal_of
from optimal_frontier.frontier.admitting.hosts import names_of
from optimal_frontier.settings import FrontierSettings

#: Private hosts of start requests that are remembered.
_MOST_NAMED: Final = 10_000


class AllowedLinks:
    """Tells which URLs may become pages, by SCHEMES, PRIVATE_LINKS, and the hosts of start requests.

    Parameters
    ----------
    settings : FrontierSettings
        Parsed settings.

    Examples
    --------
    >>> allowed = AllowedLinks(FrontierSettings.parse({}))
    >>> [allowed.refusal("http://127.0.0.1:6379/", f"http://{host}/") for host in ("a.example", "10.0.0.1", "127.0.0.2")]
    ['private', 'private', '']
    >>> allowed.refusal("http://127.0.0.1/", ""), allowed.refusal("http://127.0.0.1:6379/", "http://a.example/")
    ('', '')
    """

    def __init__(self, settings: FrontierSettings) -> None:
        self.schemes = frozenset(settings.schemes)
        self._is_open = settings.private_links
        self._named: set[str] = set()

    def refusal(self, url: str, found_on: str) -> str:
        """Return why a URL may be no page, a name of `traps.REASONS`; empty: it may be one.

        Parameters
        ----------
        url : str
        found_on : str
            URL of the page, of the source, or of the request that was redirected; empty: the spider begins with it, which opens its host.
        """
        refused = refusal_of(url, self.schemes)
        if refused:
            return refused
        name = names_of(url)[0]
        reach = reach_of(name)
        if not reach:
            return ""
        if not found_on:
            if len(self._named) < _MOST_NAMED:
                self._named.add(name)
            return ""
        return "" if self._is_open or name in self._named or reach_of(names_of(found_on)[0]) == reach else PRIVATE
