"""Fetches that show nothing of a page: how each is counted, and what it means for the page. None of them is a bit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

#: What happened, by names that no exception has.
TRUNCATED: Final = "truncated"
BLOCKED: Final = "blocked"
#: The page had answered for itself, and the site sends whoever asks for it to its home page now.
SENT_HOME: Final = "sent home"
ROBOTS: Final = "RobotsDenied"
#: Somebody in the way of the request does not want it: Scrapy's own exception for that.
REFUSED: Final = "IgnoreRequest"
REDIRECTS: Final = "TooManyRedirects"
RELEASED: Final = "released"
#: The request ended without a word of why.
DROPPED: Final = "dropped"

#: Why the last attempt of a page failed; a row holds the number. New ones go to the end.
CAUSES: Final = (
    "",
    "other",
    "gone",
    "refused",
    "robots",
    "blocked",
    "throttled",
    "server",
    "client",
    "timeout",
    "dns",
    "connection",
    "truncated",
    "redirects",
    "callback",
    "item",
)

#: The last two: the visit was good, and its callback or an item pipeline raised.
CALLBACK: Final = "callback"
ITEM: Final = "item"

#: Those in a row of a page that may not be fetched: it is asked again half an hour later, or hours.
REFUSED_CAUSES: Final = frozenset({CAUSES.index("refused"), CAUSES.index("robots")})

#: Statuses, and what else says "not there any more".
GONE: Final = frozenset({"404", "410", SENT_HOME})
#: Endings that say "not allowed": asked again more than half an hour later.
_REFUSED: Final = frozenset({REFUSED, ROBOTS})

# Names of exceptions: those of Twisted, those that Scrapy has since 2.14, and those of Python, requests, httpx and aiohttp, by which plain
# Frontera is told.
_NAMED: Final = {
    **dict.fromkeys(("TimeoutError", "TCPTimedOutError", "UserTimeoutError", "DownloadTimeoutError"), "timeout"),
    **dict.fromkeys(("ConnectTimeout", "ReadTimeout", "ServerTimeoutError", "ConnectionTimeoutError", "SocketTimeoutError"), "timeout"),
    **dict.fromkeys(("DNSLookupError", "UnknownHostError", "CannotResolveHostError", "gaierror", "ClientConnectorDNSError"), "dns"),
    **dict.fromkeys(
        (
            "ConnectError",
            "ConnectBindError",
            "ConnectingCancelledError",
            "ConnectionRefusedError",
            "ConnectionResetError",
            "ConnectionAborted",
            "ConnectionClosed",
            "ConnectionDone",
            "ConnectionLost",
            "ConnectionAbortedError",
            "ConnectionError",
            "BrokenPipeError",
            "URLError",
            "RemoteDisconnected",
            "ReadError",
            "RemoteProtocolError",
            "ClientConnectorError",
            "ServerDisconnectedError",
            "NoRouteError",
            "SSLError",
            "TunnelError",
            "ResponseFailed",
            "ResponseNeverReceived",
            "DownloadConnectionRefusedError",
            "DownloadFailedError",
        ),
        "connection",
    ),
    **dict.fromkeys((TRUNCATED, "ResponseDataLossError"), "truncated"),
    ROBOTS: "robots",
    REDIRECTS: "redirects",
}


def outcome_of(error: str) -> str:
    """Return the outcome of an `Observation` for a fetch that ended with ``error``.

    Parameters
    ----------
    error : str
        An HTTP status, the name of an exception, or one of the names of this module; empty: it ended well.

    Examples
    --------
    >>> outcome_of("410"), outcome_of("503"), outcome_of("IgnoreRequest")
    ('gone', 'failed', 'refused')
    """
    if not error:
        return "ok"
    if error in GONE:
        return "gone"
    if error in _REFUSED:
        return "refused"
    return RELEASED if error == RELEASED else "failed"


def cause_of(error: str) -> str:
    """Return why a fetch ended with ``error``: one of `CAUSES`.

    Examples
    --------
    >>> cause_of("DNSLookupError"), cause_of("500"), cause_of("no such name"), cause_of("404"), cause_of("released")
    ('dns', 'server', 'other', 'gone', '')
    """
    if error in GONE:
        return "gone"
    if error in ("", RELEASED):
        return ""
    if error in (REFUSED, BLOCKED):
        return "refused" if error == REFUSED else "blocked"
    if error == "429":
        return "throttled"
    if len(error) == 3 and error.isdigit():
        return "server" if error >= "500" else "client"
    return _NAMED.get(error, "other")


def counters_of(error: str) -> dict[str, int]:
    """Return the counters of a fetch that ended with ``error``, beside those of its outcome: one, of its cause.

    Examples
    --------
    >>> counters_of("DNSLookupError"), counters_of("500"), counters_of("blocked"), counters_of("404")
    ({'failures_dns': 1}, {'failures_server': 1}, {'blocked_pages': 1}, {})
    """
    cause = cause_of(error)
    if cause in ("", "gone", "refused"):
        return {}  # the outcome says it all
    return {"blocked_pages" if cause == "blocked" else f"failures_{cause}": 1}


def error_of_exception(exception: BaseException) -> str:
    """Return what a failed download is called: the name of its exception, or what that stands for.

    Examples
    --------
    >>> error_of_exception(TimeoutError())
    'TimeoutError'
    """
    if any(kind.__name__ == "IgnoreRequest" for kind in type(exception).__mro__):
        return ROBOTS if "robots.txt" in str(exception) else REFUSED
    # Up to Scrapy 2.13 a body that was cut off is a failed response like others.
    reasons = getattr(exception, "reasons", None) or ()
    if any(type(getattr(reason, "value", None)).__name__ == "_DataLoss" for reason in reasons):
        return TRUNCATED
    return type(exception).__name__


def error_of_response(status: int, flags: Collection[str] = ()) -> str:
    """Return what is wrong with a response by its status and Scrapy's flags; empty for a good one.

    Examples
    --------
    >>> error_of_response(200), error_of_response(404), error_of_response(200, ["dataloss"])
    ('', '404', 'truncated')
    """
    if not 200 <= status < 300:
        return str(status)
    return TRUNCATED if "dataloss" in flags else ""


def error_of_dropped(meta: Mapping[Any, Any], most_redirects: int) -> str:
    """Return what a request is called that ended without a word, by the meta of its last copy: too many redirects, or just dropped."""
    left = meta.get("redirect_ttl")
    is_spent = left is not None and (meta.get("redirect_times", 0) >= most_redirects or left <= 0)
    return REDIRECTS if is_spent else DROPPED
