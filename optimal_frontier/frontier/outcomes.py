"""Fetches that show nothing of a page: how each is counted, and what it means for the page. None of them is a bit."""

from __future__ import annotations

from typing import Final

#: What happened, by names that no exception has.
TRUNCATED: Final = "truncated"
BLOCKED: Final = "blocked"
ROBOTS: Final = "RobotsDenied"
REDIRECTS: Final = "TooManyRedirects"
RELEASED: Final = "released"

#: Statuses that say "not there any more".
GONE: Final = frozenset({"404", "410"})
#: Endings that say "not allowed": asked again more than half an hour later.
_REFUSED: Final = frozenset({"IgnoreRequest", ROBOTS})

# Names of exceptions, those of Twisted and those that Scrapy has since 2.14.
_CAUSES: Final = {
    **dict.fromkeys(("TimeoutError", "TCPTimedOutError", "UserTimeoutError", "DownloadTimeoutError"), "timeout"),
    **dict.fromkeys(("DNSLookupError", "UnknownHostError", "CannotResolveHostError"), "dns"),
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
            "ConnectionError",
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
        An HTTP status, the name of an exception, or one of the names of this module.

    Examples
    --------
    >>> outcome_of("410"), outcome_of("503"), outcome_of("IgnoreRequest")
    ('gone', 'failed', 'refused')
    """
    if error in GONE:
        return "gone"
    if error in _REFUSED:
        return "refused"
    return RELEASED if error == RELEASED else "failed"


def counters_of(error: str) -> dict[str, int]:
    """Return the counters of a fetch that ended with ``error``, beside those of its outcome: one, of its cause.

    Examples
    --------
    >>> counters_of("DNSLookupError"), counters_of("500"), counters_of("no such name"), counters_of("404")
    ({'failures_dns': 1}, {'failures_server': 1}, {'failures_other': 1}, {})
    """
    if error in GONE or error == RELEASED or error == "IgnoreRequest":
        return {}  # the outcome says it all
    if error == BLOCKED:
        return {"blocked_pages": 1}
    if error == "429":
        return {"failures_throttled": 1}
    if len(error) == 3 and error.isdigit():
        return {"failures_server" if error >= "500" else "failures_client": 1}
    return {f"failures_{_CAUSES.get(error, 'other')}": 1}
