"""What goes to a partition and comes back: new pages, handouts, observations, moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any, Final, NamedTuple

from optimal_frontier.state.host_words import NOTHING_SAID, HostWords
from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory
from optimal_frontier.state.rows import Row

#: Bytes by which a page is known.
PAGE_BYTES: Final = 12
#: Lengths of what hash functions return, from MD5 to SHA-512: any 12 bytes of a digest identify a page.
_DIGESTS: Final = frozenset({16, 20, 28, 32, 48, 64})


def page_of(fingerprint: bytes) -> bytes:
    """Return the 12 bytes by which the page of a request fingerprint is known.

    Those of a digest are its first ones. A fingerprinter of the user's may return anything else: a number, a URL, a digest in hexadecimal.
    Their first bytes may be the same for many pages, so that is hashed first.

    Examples
    --------
    >>> page_of(bytes(range(20))) == bytes(range(12)), len(page_of(b"4711"))
    (True, 12)
    >>> page_of(b"http://a.example/1") == page_of(b"http://a.example/2")
    False
    """
    is_digest = len(fingerprint) in _DIGESTS and not _is_text(fingerprint)
    if not is_digest and len(fingerprint) != PAGE_BYTES:
        fingerprint = sha1(fingerprint, usedforsecurity=False).digest()
    return fingerprint[:PAGE_BYTES]


def _is_text(fingerprint: bytes) -> bool:
    # Printable, too: of a million digests of 20 bytes one is ASCII.
    return fingerprint.isascii() and fingerprint.decode("ascii").isprintable()


class Announcement(NamedTuple):
    """Where a ``lastmod`` comes from: the name of the source (`memory.Signals`), and how long ago that was read before (s; -1: never)."""

    source: str
    unread: float


@dataclass(slots=True)
class NewPage:
    """A page or request to add.

    Attributes
    ----------
    page : bytes
        Its identity, `page_of` its request fingerprint. Of a transient request any 12 bytes that no other has.
    host : str
        Lower-case host name, with the port where it is not the default.
    row : Row
        Its head: state, importance, bounds, pattern; the host's number is filled in by the server, b and the numbers are not used.
    stated : float
        Importance that the request itself states; 0: none. A known page takes it over.
    record : bytes
        What a fetch needs, see `records`.
    priority : float
        Of the first visit; higher goes first.
    host_limit, pattern_limit : int
        It is only taken while fewer pages of its host, and of its pattern, are known; 0: always.
    lastmod : tuple of float or None
        When a sitemap says that it last changed (seconds since the epoch), and the resolution of that (s).
    announcement : Announcement or None
        Which source says so.
    is_wanted : bool
        It is to be fetched now, also where it is known.
    found_on : Handout or None
        The visit to the page that links to it, if it counts whether the link is new.
    """

    page: bytes
    host: str
    row: Row
    stated: float
    record: bytes
    priority: float = 0.0
    host_limit: int = 0
    pattern_limit: int = 0
    lastmod: tuple[float, float] | None = None
    announcement: Announcement | None = None
    is_wanted: bool = False
    found_on: Handout | None = None


@dataclass(slots=True)
class Handout:
    """A request handed out under a lease, with what is needed to judge what comes back.

    Attributes
    ----------
    partition : int
    page : bytes
        12 bytes.
    token : float
        Of the lease: an odd number, the time until which it holds (microseconds). Renewal changes it; the courier knows the present one.
    at : float
        Server's time of the dispatch, seconds since the epoch.
    received : float
        Local monotonic time of the reply, seconds. ``at + (x - received)`` is the server's time at the local time x.
    lateness : float or None
        Seconds from the deadline to the dispatch; None on a first visit.
    log_price : float
        Of a visit, at the dispatch.
    row : Row
        As stored.
    stated : float
        Importance that a request stated; 0: none.
    record : dict
        What the fetch needs; at least ``url``.
    host : str
        Name of its host.
    words : HostWords
        What is known of the host's own word.
    memory : Memory
        What the last responses left for this fetch.
    value : bytes
        As stored: head and tail.
    new_links, new_importance : int, float
        Links found on it that were new so far, and the sum of their importance; counted while the lease lives.
    told, told_importance : float
        Pages whose deadline its word has moved so far, and the sum of their importance; each counts with the chance that the word is true.
    is_followed : bool
        What follows from its visit was done: of an exchange that an outage has repeated it is not done again.
    """

    partition: int
    page: bytes
    token: float
    at: float
    received: float
    lateness: float | None
    log_price: float
    row: Row
    stated: float
    record: dict[Any, Any]
    host: str
    words: HostWords = NOTHING_SAID
    memory: Memory = NOTHING_REMEMBERED
    value: bytes = b""
    new_links: int = 0
    new_importance: float = 0.0
    told: float = 0.0
    told_importance: float = 0.0
    is_followed: bool = False

    @property
    def elapsed(self) -> float:
        """Seconds from the last good response to the dispatch; -1 if there was none."""
        return self.at - self.row.b / 1e6 + self.row.unseen if self.row.visits else -1.0

    def server_time(self, local: float) -> float:
        """Return the server's time (s) at a local monotonic time."""
        return self.at + (local - self.received)


#: Entries that the change feed keeps, about.
KEPT_CHANGES: Final = 10_000
#: What becomes of the page of an observation.
KEEP, RELEASE, DROP, REST = range(4)


class Change(NamedTuple):
    """An entry of the change feed."""

    url: str
    previous: bytes
    fingerprint: bytes


@dataclass(slots=True)
class Observation:
    """How a leased request ended, and what is stored of it.

    Attributes
    ----------
    handout : Handout
        The lease that it ends.
    op : int
        `KEEP`: the row is stored and the page queued by its numbers. `RELEASE`: the lease ends without an attempt; nothing is stored, the
        page is due at once. `DROP`: the page is forgotten (transient requests). `REST`: the row is stored and the page leaves the queue
        (retired, done).
    row : Row
        The head after it.
    memory : Memory or None
        What the response leaves for the next fetch; None leaves what is stored.
    words : HostWords or None
        What is known of the host's word after it; None leaves what is stored.
    change : Change or None
        For the change feed.
    lateness : float or None
        Seconds from the deadline to the start of the download.
    counters : mapping of str to int
        To add to ``stats`` if the lease is still valid. Every op but RELEASE has the judge's; e.g. visits, observations, changes.
    bit : int
        1 changed, 0 unchanged, -1 nothing learned. For callers; in the row already.
    outcome : str
        ``ok``, ``failed``, ``refused``, ``gone`` or ``released``. For callers.
    moved : str
        URL at which the page is from now on; empty where it stays. The integration makes the new identity of it.
    is_canonical : bool
        The page itself says so (rel=canonical).
    brings_back : bool
        Its host is held for mass deletion since this visit: pages of it that were retired just before come back.
    flag : bytes
        Name of a content that is no page's own, to be told to all crawlers; empty: none.
    lessons : sequence of (str, tuple)
        Sources of signals, and what this visit shows of each: the fields of `estimation.signal_sources.SignalVisit`.
    hold : float
        Seconds for which its host is left alone, by every crawler.
    aside : str
        Why the page is put aside, as what is stored of it is damaged; empty: it is not. Nothing else of the observation counts then.
    """

    handout: Handout
    op: int
    row: Row
    memory: Memory | None = None
    words: HostWords | None = None
    change: Change | None = None
    lateness: float | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    bit: int = -1
    outcome: str = "ok"
    moved: str = ""
    is_canonical: bool = False
    brings_back: bool = False
    flag: bytes = b""
    lessons: Sequence[tuple[str, tuple[float, float, bool, float, float]]] = ()
    hold: float = 0.0
    aside: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """A page that is found elsewhere from now on; it takes the place of the observation of the visit that showed it.

    Attributes
    ----------
    observation : Observation
        Of that visit, as judged.
    target : NewPage
        What the page is from now on; its head, record and stated importance go with it.
    url : str
        The URL that it had, for people who look at the alias.
    """

    observation: Observation
    target: NewPage
    url: str
