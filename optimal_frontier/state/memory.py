"""What the last responses of a page left for its next fetch: one msgpack map per page, read at dispatch, replaced by an observation.

A field that has its default is not stored; one that an other version wrote is passed over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import compress
from operator import ne
from typing import Any, Final, NamedTuple

import msgpack


class Signals(NamedTuple):
    """What one source has said of a page. A page that a source has named once is watched by it, so its silence counts too.

    Attributes
    ----------
    source : str
        Name of the source: ``host kind``, or ``ping NAME``.
    since : float
        When it first named the page, seconds since the epoch by the server's clock.
    modified : float
        The last change that it told of, seconds since the epoch by its own clock: what is not later is no news.
    n : int
        Signals since the last good response.
    unsure : int
        Of these, changes that the last good response may have seen already: they do not speak against the source.
    """

    source: str
    since: float
    modified: float
    n: int = 0
    unsure: int = 0


class Lastmod(NamedTuple):
    """What a sitemap said of the page: when it last changed and when that was said (both s since the epoch), and the resolution (s)."""

    modified: float
    resolution: float
    told: float


class Lost(NamedTuple):
    """What a callback or an item pipeline that raised may have lost.

    Attributes
    ----------
    cause : str
        ``callback`` or ``item``, as in `judging.outcomes.CAUSES`.
    error : str
        The exception's type and first line.
    missed : int
        What the callback is to be told once more: `MISSED_FIRST` (the page is new), `MISSED_CHANGE`, or 0 for neither.
    """

    cause: str
    error: str
    missed: int


#: Sources whose signals are kept for one page.
MOST_SOURCES: Final = 8

#: Counts are below this.
_FULL: Final = 2**63
#: A named tuple of a list, in half of the time of its `_make`.
_new: Final = tuple.__new__

#: Of `Lost.missed`.
MISSED_CHANGE: Final = 1
MISSED_FIRST: Final = 2


class Yielded(NamedTuple):
    """What new pages came of a page: how many, the sum of their importance, and in how many seconds, all discounted by age.

    ``at`` is the visit up to which they are counted, seconds since the epoch. See `judging.hubs`.
    """

    pages: float
    importance: float
    seconds: float
    at: float


class Birth(NamedTuple):
    """When a page was first visited, and when it was first looked at again (0: not yet); seconds since the epoch."""

    at: float
    looked: float = 0.0


class Memory(NamedTuple):
    """What is remembered of a page between two fetches.

    Attributes
    ----------
    etag, last_modified : bytes
        Validators of the last response that was judged, as the server sent them; empty where it sent none.
    size : int
        Bytes of the last full body, as it came; 0 where there are no validators.
    misses : int
        Full answers in a row to requests with the ETag, of content that had not changed.
    unchecked : int
        304s since the last full answer.
    unseen : float
        Seconds from the last full answer to the last 304.
    check : bool
        The next fetch is to bring a full answer, to check the last 304.
    entries : bytes
        Of a page that is a source: what its entries were, 8 bytes each; see `detection.source_documents`.
    lies : int
        304s of the page that were found to be lies since it last told a change.
    noise : bytes
        Of a page that changed on each of its last visits: what is known of its sections; see `judging.noise`.
    lastmod : Lastmod or None
        What a sitemap said last.
    signals : tuple of Signals
        What each source has said of the page, for `MOST_SOURCES` of them; see `judging.heard`.
    betas : tuple of (float, float)
        Of a page with update times: the Beta posterior of the probability of a change at each; empty before the first bit.
    timetable : int
        Which update times these are of: a hash of them, see `judging.update_times`.
    aliases : tuple of bytes
        What the page was before it moved, oldest first: partition (u4) and page (12 bytes) of each, see `dispatching.moving`.
    lost : Lost or None
        There from the visit at which its callback or an item pipeline raised until one at which neither does.
    yielded : Yielded or None
        Of a hub: the new pages that were found on it.
    birth : Birth or None
        Of a page that appeared, see `judging.young`.
    """

    etag: bytes = b""
    last_modified: bytes = b""
    size: int = 0
    misses: int = 0
    unchecked: int = 0
    unseen: float = 0.0
    check: bool = False
    lies: int = 0
    entries: bytes = b""
    noise: bytes = b""
    lastmod: Lastmod | None = None
    signals: tuple[Signals, ...] = ()
    betas: tuple[tuple[float, float], ...] = ()
    timetable: int = 0
    aliases: tuple[bytes, ...] = ()
    lost: Lost | None = None
    yielded: Yielded | None = None
    birth: Birth | None = None

    @classmethod
    def unpack(cls, raw: bytes | None) -> Memory:
        """Read what is stored; None: nothing is.

        Raises
        ------
        ValueError
            It is something else.

        Examples
        --------
        >>> Memory.unpack(Memory(etag=b'"1"').pack()).etag
        b'"1"'
        """
        if not raw:
            return NOTHING_REMEMBERED
        try:
            known: dict[str, Any] = {}
            for name, value in msgpack.unpackb(raw, strict_map_key=False).items():
                if name == "signals":  # a page that is watched has them whenever it is handed out
                    known[name] = _read_signals(value)
                elif name in _RIGHT:
                    known[name] = found = _READ[name](value) if name in _READ else value
                    if not _RIGHT[name](found):
                        raise ValueError(f"{name} is {found!r}"[:200])
            return cls(**known)
        except (TypeError, KeyError, AttributeError, ValueError, OverflowError, msgpack.UnpackException) as error:
            raise ValueError(f"what is remembered of a page cannot be read: {error}") from error

    @classmethod
    def readable(cls, raw: bytes | None) -> Memory:
        """Read what is stored; of what cannot be read nothing is remembered."""
        try:
            return cls.unpack(raw)
        except ValueError:
            return NOTHING_REMEMBERED

    def pack(self) -> bytes:
        """Return what is stored; nothing where there is nothing to remember."""
        kept = dict(compress(zip(self._fields, self, strict=True), map(ne, self, NOTHING_REMEMBERED)))
        return bytes(msgpack.packb(kept)) if kept else b""


def _read_signals(told: Any) -> tuple[Signals, ...]:
    """Read and check what sources have said; what is of the right types is taken as it is, in half of the time."""
    read = []
    for one in told:
        source, since, modified, n, unsure = one
        if type(source) is not str or type(n) is not int or type(unsure) is not int:
            n, unsure = int(n), int(unsure)
            one = str(source), since, modified, n, unsure
        if not (math.isfinite(since + modified) and 0 <= n < _FULL and 0 <= unsure < _FULL):
            raise ValueError(f"signals are {told!r}"[:200])
        read.append(_new(Signals, one))
    return tuple(read)


#: Fields that msgpack gives back as lists.
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "lastmod": Lastmod._make,
    "betas": lambda pairs: tuple(map(tuple, pairs)),
    "aliases": tuple,
    "lost": Lost._make,
    "yielded": Yielded._make,
    "birth": Birth._make,
}
NOTHING_REMEMBERED: Final = Memory()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _FULL


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes)


#: Whether a field is what it should be.
_RIGHT: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("etag", "last_modified", "noise"), _is_bytes),
    **dict.fromkeys(("size", "misses", "unchecked", "lies", "timetable"), _is_count),
    "unseen": _is_number,
    "birth": lambda value: value is None or all(map(_is_number, value)),
    "check": lambda value: isinstance(value, bool),
    "entries": lambda value: isinstance(value, bytes) and len(value) % 8 == 0,
    # A resolution may be infinite: the word is noted, and no sample.
    "lastmod": lambda value: value is None or (_is_number(value[0]) and value[1] >= 0 and _is_number(value[2])),
    "betas": lambda pairs: all(len(pair) == 2 and all(_is_number(part) and part > 0 for part in pair) for pair in pairs),
    "aliases": lambda names: all(isinstance(name, bytes) and len(name) == 16 for name in names),
    "lost": lambda value: (
        value is None or (value[0] in ("callback", "item") and isinstance(value[1], str) and value[2] in (0, MISSED_CHANGE, MISSED_FIRST))
    ),
    "yielded": lambda value: value is None or all(map(_is_number, value)),
}
