"""What the pages of a namespace are known by, so that nothing is stored or looked up under another identity."""

from __future__ import annotations

from typing import Final

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings import PREFIX
from optimal_frontier.state.namespace import Namespace

#: Scrapy's own fingerprinter, by which pages are known unless something else is set.
SCRAPYS: Final = "scrapy.utils.request.RequestFingerprinter"
#: What stands before the path of the function by which pages of Frontera without Scrapy are known.
FRONTERAS: Final = "URL_FINGERPRINT_FUNCTION "


def claim_identity(namespace: Namespace, identity: str) -> None:
    """Note by what pages are known, or check that it is what the stored ones are known by.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    identity : str
        Names the function from requests to fingerprints, with its options.

    Raises
    ------
    ConfigurationError
        Pages are stored by another one: under this one each of them would come in anew, and the old ones be fetched for ever besides.
    """
    place = namespace.key("meta")
    noted, stored = namespace.commands([["HSETNX", place, "identity", identity], ["HGET", place, "identity"]])
    if noted or stored == identity.encode():
        return
    if not any(namespace.command("EXISTS", namespace.key("pages", k), partition=k) for k in range(namespace.partitions)):
        namespace.command("HSET", place, "identity", identity)
        return
    raise ConfigurationError(
        f"the pages of namespace {namespace.name!r} are known by {stored.decode('utf-8', 'replace')}, and now pages are to be known by "
        f"{identity} (REQUEST_FINGERPRINTER_CLASS, {PREFIX}IGNORED_PARAMETERS, {PREFIX}FOLD_URLS; without Scrapy "
        "URL_FINGERPRINT_FUNCTION): every page would come in a second time. "
        f"Set these back, or choose another {PREFIX}NAMESPACE and import the pages there"
    )
