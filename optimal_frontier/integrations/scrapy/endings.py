"""Names for the ways in which a fetch of Scrapy's can end, and verdicts on good responses that are not what they seem."""

from __future__ import annotations

from typing import Any

from scrapy.exceptions import IgnoreRequest

from optimal_frontier.frontier.block_pages import BlockPages, name_of
from optimal_frontier.frontier.courier import Courier
from optimal_frontier.frontier.dispatcher import host_of
from optimal_frontier.frontier.fingerprinting import Fingerprint
from optimal_frontier.frontier.moves import Moves
from optimal_frontier.frontier.outcomes import BLOCKED, REDIRECTS, ROBOTS, TRUNCATED
from optimal_frontier.integrations.scrapy.lease import Lease
from optimal_frontier.state.records import Handout


def error_of_exception(exception: BaseException) -> str:
    """Return what a failed download is called: the name of its exception, or what that stands for."""
    if isinstance(exception, IgnoreRequest):
        return ROBOTS if "robots.txt" in str(exception) else "IgnoreRequest"
    # Up to Scrapy 2.13 a body that was cut off is a failed response like others.
    reasons = getattr(exception, "reasons", None) or ()
    if any(type(getattr(reason, "value", None)).__name__ == "_DataLoss" for reason in reasons):
        return TRUNCATED
    return type(exception).__name__


def error_of_response(response: Any) -> str:
    """Return what is wrong with a response by its status and flags; empty for a good one."""
    if not 200 <= response.status < 300:
        return str(response.status)
    return TRUNCATED if "dataloss" in response.flags else ""


def error_of_dropped(request: Any, most_redirects: int) -> str:
    """Return what a request is called that ended without a word: too many redirects, or just dropped."""
    done = request.meta.get("redirect_times", 0)
    is_spent = "redirect_ttl" in request.meta and (done >= most_redirects or request.meta["redirect_ttl"] <= 0)
    return REDIRECTS if is_spent else "dropped"


class Verdicts:
    """What good responses say beyond their content: cut off, the same as many others, from elsewhere.

    Parameters
    ----------
    blocks : BlockPages
        The dispatcher's.
    courier : Courier
        Tells other crawlers.
    stats : Scrapy's stats collector
    """

    def __init__(self, blocks: BlockPages, courier: Courier, stats: Any) -> None:
        self._blocks = blocks
        self._courier = courier
        self._stats = stats
        self._moves = Moves()

    def has_own_content(self, handout: Handout) -> bool:
        """Tell whether what is stored as the content of a page is its own, as far as is known."""
        return not (handout.content_tag and self._blocks.is_flagged(host_of(handout.record["url"]), handout.content))

    def error_of(self, lease: Lease, response: Any, content: Fingerprint, *, is_changed: bool) -> str:
        """Return why a good response is none; empty if it is."""
        handout = lease.handout
        # Without a length nobody knows whether the end is missing: what differs is looked at again before it counts.
        if "partial" in response.flags and is_changed and handout.failures == 0:
            return TRUNCATED
        if content.digest is None:
            return ""
        host = host_of(handout.record["url"])
        is_flagged, is_news = self._blocks.judge(host, handout, content.digest, content.tag)
        if is_news:
            self._courier.flag(name_of(host, content.digest))
            self._stats.inc_value("optimal_frontier/contents_flagged")
        return BLOCKED if is_flagged else ""

    def moved(self, lease: Lease, request: Any) -> str:
        """Return where the page of a good response is from now on; empty if it stays."""
        stored = lease.frontier_request.meta.get(b"scrapy_meta") or {}
        # What the spider's own meta had of an earlier redirect is no news.
        reasons = request.meta.get("redirect_reasons", [])[len(stored.get("redirect_reasons", ())) :]
        url, is_held = self._moves.target(lease.handout.record["url"], request.url, reasons)
        if is_held:
            self._stats.inc_value("optimal_frontier/moves_held")
        return url
