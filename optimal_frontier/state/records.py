"""What goes to the store and comes back: pages, handouts, observations, and the compact record of what a fetch needs.

No pickle: whoever can write to Redis must not be able to run code in a spider.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgpack
import numpy as np

from optimal_frontier.state.columns import ACTIVE

#: msgpack extension types; msgpack itself knows no tuples and sets.
_TUPLE: Final = 1
_SET: Final = 2
_FROZENSET: Final = 3


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
        The importance is the request's own word, which a known page takes over too (not that of RULES, and never 0).
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

    def arguments(self) -> tuple[Any, ...]:
        bounds = (_number(self.importance), _number(self.min_rate), _number(self.max_rate), _number(self.gap), _number(self.priority))
        return (self.fingerprint, self.host, self.kind, *bounds, self.record, int(self.is_stated))


@dataclass(slots=True)
class Handout:
    """A request handed out under a lease, with what is needed to judge what comes back.

    ``lateness`` (s) is None on a first visit; ``elapsed`` (s since the page was last seen) is -1 if it never was; ``received`` is the
    local monotonic time of the reply.
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

    def arguments(self, now: float) -> tuple[Any, ...]:
        late = "-" if self.lateness is None else f"{self.lateness:.6f}"
        age = _number(max(0.0, now - self.responded))
        posterior = (_number(self.shape), _number(self.time))
        return (self.slot, self.token, self.outcome, self.bit, *posterior, age, self.content, _number(self.rate), late)


@dataclass(frozen=True, slots=True)
class Published:
    """What the last plan published for use until the next one; zeros where there is none yet."""

    multiplier: float = 0.0
    prior_time: float = 0.0
    revisit_budget: float = 0.0
    time: float = 0.0


def _number(value: float) -> str:
    # Lua's tonumber takes no "inf"; 1e300 stands for it, as in the scripts.
    return repr(float(value)) if abs(value) < 1e300 else "1e300"
