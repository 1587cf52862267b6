"""From a URL to the identity that its page has in a namespace: by what the crawl noted there, else by what the project sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optimal_frontier.cli.project import Workplace, opened_namespace, project_fingerprinter
from optimal_frontier.errors import ConfigurationError, StateError, StateUnavailableError
from optimal_frontier.frontier.admitting.claimed_identity import FRONTERAS, SCRAPYS, claim_identity
from optimal_frontier.state.namespace import Namespace

#: URL -> identity of its page, 20 bytes.
Identify = Callable[[str], bytes]


def identity(url: str, fingerprinter: Any = None) -> bytes:
    """Return the identity of a page: the fingerprint of a GET request, 20 bytes; Scrapy's own without a `fingerprinter`.

    Raises
    ------
    ConfigurationError
        `url` is not one that could have been crawled.
    """
    from scrapy import Request
    from scrapy.utils.request import fingerprint

    try:
        request = Request(url)
    except ValueError as error:
        raise ConfigurationError(f"{url!r} is no URL ({error}); expected http://host/path or https://host/path") from error
    return bytes(fingerprint(request) if fingerprinter is None else fingerprinter.fingerprint(request))


def check_url(name: str) -> None:
    """Refuse a URL that is none before a server is needed. Names without ``://`` may be pages of plain Frontera's: the namespace says it.

    Raises
    ------
    ConfigurationError
        It could not have been crawled.
    """
    if "://" in name:
        identity(name)


def identified_in(namespace: Namespace, workplace: Workplace) -> Identify:
    """Return the identity that URLs have in an open namespace.

    Raises
    ------
    ConfigurationError
        Its pages are known by a fingerprinter of the user's that is not the one that the project sets.
    """
    return _identify(namespace.hash("meta").get("identity"), workplace)


def claimed_in(namespace: Namespace, workplace: Workplace) -> Identify:
    """Return the same, and note it where nothing is stored yet, so that a crawl with another one is told."""
    noted = namespace.hash("meta").get("identity")
    if noted is None:
        claim_identity(namespace, _projects(workplace))
    return _identify(noted, workplace)


def identified_at(workplace: Workplace) -> Identify:
    """Return the same of a namespace that need not be there yet, and is not begun."""
    try:
        with opened_namespace(workplace) as namespace:
            return identified_in(namespace, workplace)
    except StateUnavailableError:
        raise
    except StateError:
        return _identify(None, workplace)


def _identify(noted: str | None, workplace: Workplace) -> Identify:
    known_by = noted or _projects(workplace)
    if known_by == SCRAPYS:
        return identity
    if known_by.startswith(FRONTERAS):
        return _fronteras(known_by, workplace)
    from optimal_frontier.integrations.scrapy.fingerprinter import describe, described

    fingerprinter: Any = described(known_by)
    if fingerprinter is None:
        fingerprinter = project_fingerprinter(workplace.project)
        if describe(fingerprinter) != known_by:
            raise ConfigurationError(
                f"the pages of namespace {workplace.settings.namespace!r} are known by {known_by}, and the settings here set "
                f"REQUEST_FINGERPRINTER_CLASS to {describe(fingerprinter)}: run this in the project that crawls them"
            )
    return lambda url: identity(url, fingerprinter)


def _fronteras(known_by: str, workplace: Workplace) -> Identify:
    from optimal_frontier.integrations.frontera.url_identity import fronteras_own

    urls = fronteras_own(known_by)
    if urls is None:  # what Redis holds is never a name to load
        raise ConfigurationError(
            f"the pages of namespace {workplace.settings.namespace!r} are known by {known_by}, a function of the crawl's own: "
            "commands that name a URL cannot be used on it"
        )

    def identify(url: str) -> bytes:
        try:
            return urls.of_url(url)
        except ValueError as error:
            raise ConfigurationError(f"{url!r} is no URL ({error})") from error

    return identify


def _projects(workplace: Workplace) -> str:
    # Scrapy's crawler takes long to import, and most projects leave its fingerprinter as it is.
    if workplace.fingerprinter in (None, SCRAPYS):
        return SCRAPYS
    from optimal_frontier.integrations.scrapy.fingerprinter import describe

    return describe(project_fingerprinter(workplace.project))
