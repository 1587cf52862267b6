"""What goes to the store and comes back: pages, handouts, observations, and the compact record of what a fetch needs.

No pickle: whoever can write to Redis must not be able to run code in a spider.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgpack
import numpy as np

from optimal_frontier.settings import Timetable
from optimal_frontier.state.columns import ACTIVE
from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory

#: msgpack extension types; msgpack itself knows no tuples and sets.
_TUPLE: Final = 1
_SET: Final = 2
_FROZENSET: Final = 3

#: Checks of what a host says about its pages' last changes: at visits without a change, those of them that it failed, with one, failed.
Counts = tuple[float, float, float, float]
NO_CHECKS: Final[Counts] = (0.0, 0.0, 0.0, 0.0)

_WATCH: Final = struct.Struct("<3fI")
_SURPRISES: Final = struct.Struct("<4f")
#: Below the largest 32-bit float.
_MOST_STORED: Final = 3e38


def _extend(value: Any) -> Any:
    if isinstance(value, tuple):
        return msgpack.ExtType(_TUPLE, encode_record(list(value)))
    if isinstance(value, set | frozenset):
        return msgpack.ExtType(_SET if isinstance(value, set) else _FROZENSET, encode_record(list(value)))
    # Subclasses of plain types (a parsel string, a defaultdict) are stored as what they are.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list):
        return list(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a value of type {type(value).__name__}")


def _unextend(code: int, data: bytes) -> Any:
    if code == _TUPLE:
        return tuple(decode_record(data))
    if code == _SET:
        return set(decode_record(data))
    if code == _FROZENSET:
        return frozenset(decode_record(data))
    return msgpack.ExtType(code, data)


def encode_record(value: Any) -> bytes:
    """Encode plain data (None, bool, numbers, str, bytes, list, tuple, set, dict).

    Raises
    ------
    TypeError, OverflowError, ValueError
        Something in it is not plain data.
    """
    try:
        packed: bytes = msgpack.packb(value, default=_extend, strict_types=True, unicode_errors="surrogatepass")
    except RecursionError:
        raise ValueError("tuples or sets are nested too deep, or contain themselves") from None
    return packed


def decode_record(raw: bytes) -> Any:
    """Decode what `encode_record` made."""
    return msgpack.unpackb(raw, ext_hook=_unextend, strict_map_key=False, unicode_errors="surrogatepass")


class Watched(NamedTuple):
    """The column group *watch* of a page: a recent posterior (shape 0: none yet; time in seconds), the evidence that the page's habits have
    changed, and how often it was learned anew."""

    shape: float = 0.0
    time: float = 0.0
    evidence: float = 0.0
    relearned: int = 0

    @classmethod
    def unpack(cls, raw: bytes) -> Watched:
        """Read what is stored."""
        return cls(*_WATCH.unpack(raw))

    def pack(self) -> bytes:
        """Return what is stored: 32-bit floats are exact enough for what forgets."""
        return _WATCH.pack(min(self.shape, _MOST_STORED), min(self.time, _MOST_STORED), self.evidence, self.relearned)


#: What is stored of a page without a bit.
NOT_WATCHED: Final = Watched()


class Surprises(NamedTuple):
    """The column group *bursts* of a page: what a test of its bits against the Poisson model keeps."""

    last: float = 0.0
    score: float = 0.0
    variance: float = 0.0
    spread: float = 0.0

    @classmethod
    def unpack(cls, raw: bytes) -> Surprises:
        """Read what is stored."""
        return cls(*_SURPRISES.unpack(raw))

    def pack(self) -> bytes:
        """Return what is stored, as 32-bit floats."""
        return _SURPRISES.pack(*self)


NOT_SURPRISED: Final = Surprises()


class UpdateTimes(NamedTuple):
    """What is stored of a page with update times: the number of its timetable, and per time the Beta posterior of its probability; no
    posteriors before the first bit."""

    number: int
    betas: tuple[tuple[float, float], ...] = ()

    @classmethod
    def unpack(cls, raw: bytes) -> UpdateTimes:
        """Read what is stored."""
        values = np.frombuffer(raw, "<f8", offset=4).reshape(-1, 2).tolist()
        return cls(int.from_bytes(raw[:4], "little"), tuple(map(tuple, values)))

    def pack(self) -> bytes:
        """Return what is stored."""
        return self.number.to_bytes(4, "little") + np.array(self.betas, "<f8").tobytes()


class Republished(NamedTuple):
    """What a handout tells of a page with update times: its timetable, what is stored of it, since when the page was not seen, and when it
    was handed out (both seconds since the epoch)."""

    timetable: Timetable
    learned: UpdateTimes
    since: float
    until: float


class Announcement(NamedTuple):
    """Where a ``lastmod`` comes from: the announcer (``host kind`` of a source), and how long ago that was read before (s; -1: never)."""

    announcer: str
    unread: float


@dataclass(frozen=True, slots=True)
class NewPage:
    """A page or request to add.

    Attributes
    ----------
    fingerprint : bytes
        Scrapy's request fingerprint, 20 bytes: the identity.
    host : str
        Lower-case host name, with the port where it is not the default.
    record : bytes
        Encoded record of what a fetch needs; a map with at least ``url``.
    kind : int
        ``ACTIVE`` (a page), ``ONCE`` (fetched once, then known) or ``TRANSIENT`` (fetched once, then forgotten).
    importance : float
        Of a new page; 0 stands for 1.
    min_rate, max_rate : float
        Bounds on the revisit rate, visits per second.
    gap : float
        Least seconds between two visits.
    priority : float
        Of the first visit; higher goes first.
    is_stated : bool
        The importance is the request's own word (not that of RULES, and never 0): a known page takes it over too, and RULES leave it alone.
    lastmod : tuple of float or None
        When a sitemap says that it last changed (seconds since the epoch), and the resolution of that (s). Stored apart, by `note_lastmod`.
    pattern : str
        Of the URL within its host: pages of one pattern learn from each other.
    update_times : Timetable or None
        When the page may be republished, if that is known.
    announcement : Announcement or None
        Which source says so. The page is put forward where the source is believed and it has not been seen since then.
    host_limit, pattern_limit : int
        It is only taken while fewer pages of its host, and of its pattern there, are known; 0: always.
    """

    fingerprint: bytes
    host: str
    record: bytes
    kind: int = ACTIVE
    importance: float = 0.0
    min_rate: float = 0.0
    max_rate: float = np.inf
    gap: float = 0.0
    priority: float = 0.0
    is_stated: bool = True
    lastmod: tuple[float, float] | None = None
    pattern: str = ""
    update_times: Timetable | None = None
    host_limit: int = 0
    pattern_limit: int = 0
    announcement: Announcement | None = None

    def arguments(self) -> tuple[Any, ...]:
        bounds = (_number(self.importance), _number(self.min_rate), _number(self.max_rate), _number(self.gap), _number(self.priority))
        times = self.update_times.text if self.update_times is not None else ""
        limits = (self.host_limit, self.pattern_limit)
        return (self.fingerprint, self.host, self.kind, *bounds, self.record, int(self.is_stated), self.pattern, times, *limits)


@dataclass(frozen=True, slots=True)
class Move:
    """A page that is found elsewhere from now on.

    Attributes
    ----------
    fingerprint : bytes
        Its identity so far, 20 bytes; an alias afterwards.
    url : str
        The URL that went with it, for people who look at the alias.
    target : NewPage
        What it is from now on. Its importance counts where the page's own was not stated; its kind must be ``ACTIVE``.
    is_canonical : bool
        The page itself says so (``rel=canonical``), which is refused where it goes back to a former name, or to a page with many aliases.
    """

    fingerprint: bytes
    url: str
    target: NewPage
    is_canonical: bool = False

    def arguments(self) -> tuple[Any, ...]:
        return (self.fingerprint, self.url, *self.target.arguments(), int(self.is_canonical))


@dataclass(slots=True)
class Handout:
    """A request handed out under a lease, with what is needed to judge what comes back.

    ``lateness`` (s) is None on a first visit; ``elapsed`` (s since the page was last seen) is -1 if it never was; ``received`` is the
    local monotonic time of the reply. ``header_trust`` and ``sitemap_trust`` are what checks of the host's Last-Modified and sitemaps
    found; ``lastmod`` is what a sitemap said of the page: how long ago, how long before that it had changed, and with what resolution (s).
    ``prior_shape`` and ``prior_time`` (s) are what siblings taught of pages without a bit; 0: nothing, the default prior holds.
    ``watch`` is what stands by in case that the page's habits change. ``republished`` is there for a page with update times that was
    fetched before. ``surprises`` is what the test for bursts keeps. ``memory`` is what the last responses left for this fetch. ``failures``
    are those in a row until now.
    ``was_announced``: a source put it forward, so this visit is no fair sample of time. ``validator_trust`` is what is known of the 304s of
    its host, the fields of `estimation.validators.ValidatorTrust`. ``bits`` are the last 32, newest lowest.
    """

    slot: int
    token: bytes
    lateness: float | None
    elapsed: float
    importance: float
    min_rate: float
    max_rate: float
    kind: int
    shape: float
    time: float
    visits: int
    attempts: int
    rate: float
    planned: bool
    content_tag: int
    content: bytes
    record: dict[Any, Any]
    received: float
    header_trust: Counts = NO_CHECKS
    sitemap_trust: Counts = NO_CHECKS
    lastmod: tuple[float, float, float] | None = None
    prior_shape: float = 0.0
    prior_time: float = 0.0
    watch: Watched = NOT_WATCHED
    republished: Republished | None = None
    surprises: Surprises = NOT_SURPRISED
    memory: Memory = NOTHING_REMEMBERED
    failures: int = 0
    validator_trust: Counts = NO_CHECKS
    was_announced: bool = False
    bits: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """How a leased request ended.

    Attributes
    ----------
    outcome : str
        ``ok``, ``failed``, ``refused`` (robots.txt, a middleware), ``gone`` (404, 410) or ``released`` (not attempted).
    bit : int
        1 changed, 0 unchanged, -1 nothing learned.
    shape, time : float
        Posterior after it.
    age : float
        Seconds since the response came, by the local monotonic clock, filled in when it is sent.
    content : bytes
        Tag and fingerprint, 20 bytes, or empty to leave them.
    rate : float
        Revisit rate to use for the next deadline if the page has no plan, visits per second.
    lateness : float or None
        Seconds from the deadline to the start of the download.
    words : str
        What became of what the page said about its last change: ``kind:verdict:use`` for each kind of it, separated by blanks; kind
        ``header`` or ``sitemap``, verdict ``agrees``, ``lies`` or ``none``, use ``used``, ``distrusted`` or ``none``. And what its
        validators were found to be worth, ``validators=verdict=evidence``, see `estimation.validators`.
    watch : Watched or None
        What stands by after it, in case that the page's habits change; None leaves what is stored.
    learned : UpdateTimes or None
        What is known of its update times after it; None leaves what is stored.
    surprises : Surprises or None
        What the test for bursts keeps after it; None leaves what is stored.
    memory : Memory or None
        What the response leaves for the next fetch; None leaves what is stored.
    counters : mapping of str to int
        Counters of ``P stats`` to add to, whatever the outcome (but not where the lease was over, or released).
    again : bool
        The page is due again as soon as its least interval is over: something about it has to be checked.
    """

    slot: int
    token: bytes
    outcome: str
    responded: float
    bit: int = -1
    shape: float = 0.0
    time: float = 0.0
    content: bytes = b""
    rate: float = 0.0
    lateness: float | None = None
    words: str = ""
    watch: Watched | None = None
    learned: UpdateTimes | None = None
    surprises: Surprises | None = None
    memory: Memory | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    again: bool = False

    def arguments(self, now: float) -> tuple[Any, ...]:
        late = "-" if self.lateness is None else f"{self.lateness:.6f}"
        age = _number(max(0.0, now - self.responded))
        posterior = (_number(self.shape), _number(self.time))
        watch = b"" if self.watch is None else self.watch.pack()
        rest = (self.content, _number(self.rate), late, self.words, watch)
        surprises = b"" if self.surprises is None else self.surprises.pack()
        learned = b"" if self.learned is None else self.learned.pack()
        memory = b"-" if self.memory is None else self.memory.pack()
        counters = " ".join(f"{name}:{by}" for name, by in self.counters.items())
        ended = (self.slot, self.token, self.outcome, self.bit, *posterior, age, *rest)
        return (*ended, learned, surprises, memory, counters, int(self.again))


@dataclass(frozen=True, slots=True)
class Published:
    """What the last plan published for use until the next one; zeros where there is none yet."""

    multiplier: float = 0.0
    prior_time: float = 0.0
    revisit_budget: float = 0.0
    time: float = 0.0


def parse_counts(text: bytes | None) -> Counts:
    """Read a field of the key ``trust``; None is a host that was never checked."""
    if not text:
        return NO_CHECKS
    unchanged, moved, changed, wrong = map(float, text.split(b" "))
    return unchanged, moved, changed, wrong


def _number(value: float) -> str:
    # Lua's tonumber takes no "inf"; 1e300 stands for it, as in the scripts.
    return repr(float(value)) if abs(value) < 1e300 else "1e300"
