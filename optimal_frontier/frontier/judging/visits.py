"""A visit: what came of one fetch, as the judge takes it. Integrations build it of their responses and failures, and decide nothing."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from optimal_frontier.detection import Section, modified_age, sections
from optimal_frontier.detection.content import Response
from optimal_frontier.frontier.judging.fingerprinting import FAILED, Fingerprint, Fingerprinting
from optimal_frontier.frontier.judging.outcomes import error_of_response
from optimal_frontier.frontier.judging.validators import NO_VALIDATORS, Validators

#: Statuses of full answers whose validators are kept: those of a part, or of none, are not of what was judged.
FULL: Final = frozenset({200, 203})
NOT_MODIFIED: Final = 304

#: Of zlib: that it is gzip, with its header; and bytes that are unpacked at once, of which no more than a thousand times as many come.
_GZIP_ONLY: Final = 31
_AT_ONCE: Final = 2**12

#: How a response to a source was read; empty: it is none.
SourceState = Literal["", "whole", "damaged", "unreadable"]


@dataclass(slots=True)
class Visit:
    """What came of one fetch.

    Attributes
    ----------
    responded : float
        Local monotonic time of the response or the failure, seconds.
    error : str
        What is wrong with it: an HTTP status, the name of an exception, or a name of `outcomes`; empty for a good response.
    status : int
        Of the last response that was downloaded; 304 where the page answered so to a question, or the HTTP cache was told so.
    fingerprint : Fingerprint or None
        Of the content; None where none is made: then the visit shows that the page is there, and nothing else.
    sections : callable or None
        Gives the sections of the response; only called where they are needed. None: the page is not judged by its sections.
    age : float or None
        Seconds since the page last changed, by the header of the response.
    asked : Validators or None
        Conditions that the request had.
    validators : Validators
        Of the answer; none where they are not to be kept.
    size : int
        Bytes of the body, as it came (of an answer by the HTTP cache: as it would have come).
    lateness : float or None
        Seconds from the deadline to the start of the download; None: those to the dispatch count.
    is_cached, is_downloaded : bool
        The body comes from an HTTP cache; and something came over the network. A cached response that was never downloaded shows nothing.
    is_partial : bool
        The end may be missing, as the response said no length; or it is, as gzip says.
    found : str
        URL that answered, or did not; empty: the one of the page.
    hops : sequence
        Why each redirect was made: a status, or anything else.
    canonical : str
        URL of the other page that this one names as its canonical form; empty where it names none, or itself.
    source : str
        Of a source: how it was read.
    is_taken : bool
        The spider takes the response, whatever its status says.
    """

    responded: float
    error: str = ""
    status: int = 200
    fingerprint: Fingerprint | None = None
    sections: Callable[[], Sequence[Section]] | None = None
    age: float | None = None
    asked: Validators | None = None
    validators: Validators = NO_VALIDATORS
    size: int = 0
    lateness: float | None = None
    is_cached: bool = False
    is_downloaded: bool = True
    is_partial: bool = False
    found: str = ""
    hops: Sequence[object] = ()
    canonical: str = ""
    source: SourceState = ""
    is_taken: bool = False

    @property
    def is_not_modified(self) -> bool:
        """Whether the server said that nothing has changed, and sent no body."""
        return self.status == NOT_MODIFIED and not self.error and not self.is_cached

    @property
    def shows_nothing_new(self) -> bool:
        """Whether it is an earlier visit's response once more."""
        return self.is_cached and not self.is_downloaded


def failed_visit(error: str, responded: float, found: str = "") -> Visit:
    """Return the visit of a fetch that ended with ``error`` (see `outcomes`) at a local monotonic time (s), at the URL ``found``."""
    return Visit(responded, error, found=found)


def not_modified_visit(headers: Any, asked: Validators, responded: float, now: float) -> Visit:
    """Return the visit of a 304 to what was ``asked``.

    Parameters
    ----------
    headers : mapping
        Of the answer.
    asked : Validators
        The conditions.
    responded, now : float
        Local monotonic time of the response, and wall-clock time, seconds.
    """
    return Visit(responded, status=NOT_MODIFIED, age=modified_age(headers, now), asked=asked, validators=validators_of(headers))


def visit_of(
    response: Response,
    url: str,
    fingerprinting: Fingerprinting,
    responded: float,
    now: float,
    taken: Fingerprint | None = None,
    known: bytes = b"",
) -> Visit:
    """Return the visit of a response that is there: its fingerprint, sections, age and validators.

    Parameters
    ----------
    response : object
        With ``status``, ``headers``, ``body`` and, where it has them, ``flags``, as Scrapy's have.
    url : str
        Of the page, as it was first yielded.
    fingerprinting : Fingerprinting
        What counts as content.
    responded, now : float
        Local monotonic time of the response, and wall-clock time, seconds.
    taken : Fingerprint, optional
        Of the response, where it was taken already.
    known : bytes
        The stored fingerprint of the page, where there is one: what equals it costs less.

    Notes
    -----
    Of a response that is no good one nothing is read. What the response cannot say is left to the caller: ``asked``, ``lateness``,
    ``is_downloaded``, redirects, canonical links, sources.
    """
    of: Any = response
    flags, headers = getattr(response, "flags", ()), of.headers
    error = error_of_response(of.status, flags)
    if error:
        return Visit(responded, error, of.status)
    is_cached = "cached" in flags
    if taken is None:
        # Where the spider stopped a download (`StopDownload`) is chance, or before the body: it shows no content.
        taken = fingerprinting.nothing(url) if "download_stopped" in flags else fingerprinting.take(response, url, known)
    return Visit(
        responded,
        status=of.status,
        fingerprint=taken,
        sections=lambda: sections(response, fingerprinting.way(url).recipe),
        # What a cache answers has the headers of an earlier visit, also where it asked whether they still hold.
        age=None if is_cached else modified_age(headers, now),
        validators=validators_of(headers) if of.status in FULL and not is_cached else NO_VALIDATORS,
        size=len(of.body),
        is_cached=is_cached,
        is_partial="partial" in flags,
    )


def is_cut_off(packed: bytes, size: int) -> bool:
    """Tell whether the end is missing of what gzip has packed, of which ``size`` bytes came out.

    Those who unpack it say nothing of that. Its last four bytes tell how many came out of it, so most is not unpacked once more.

    Examples
    --------
    >>> import gzip
    >>> packed = gzip.compress(b"a page")
    >>> is_cut_off(packed, 6), is_cut_off(packed, 7), is_cut_off(packed[:-9], 5)
    (False, False, True)
    """
    if int.from_bytes(packed[-4:], "little") == size % 2**32:
        return False
    unpack = zlib.decompressobj(_GZIP_ONLY)
    try:
        for at in range(0, len(packed), _AT_ONCE):
            unpack.decompress(packed[at : at + _AT_ONCE])
            if unpack.eof:
                return False
    except zlib.error:
        return False  # it is no gzip, or damaged otherwise
    return True


def hashed_visit(status: int, headers: Any, fingerprint: Fingerprint | None, responded: float, now: float) -> Visit:
    """Return the visit of a response of which only a fingerprint is left, as in plain Frontera.

    Parameters
    ----------
    status : int
        Of the response; a 304 is an unchanged page.
    headers : mapping
        Its headers.
    fingerprint : Fingerprint or None
        See `hashed_content`; None: nothing made one.
    responded, now : float
        Local monotonic time of the response, and wall-clock time, seconds.
    """
    error = "" if status == NOT_MODIFIED else error_of_response(status)
    return Visit(responded, error, status, fingerprint, age=modified_age(headers, now))


def hashed_content(digest: bytes, url: str, fingerprinting: Fingerprinting) -> Fingerprint:
    """Return a fingerprint that was made elsewhere, by the same `Fingerprinting`; empty: none could be made."""
    way = fingerprinting.way(url)
    return Fingerprint(digest or None, way.tag, way.distance, {} if digest else {FAILED: 1})


def validators_of(headers: Any) -> Validators:
    """Return what a response can be asked for again with; ``headers``: a mapping with ``get`` of bytes names."""
    return Validators.of(headers.get(b"ETag"), headers.get(b"Last-Modified"))
