"""The packed row of a page: a head that judges write, and a tail that belongs to whoever yields the page.

One value of the hash ``pages`` is ``head | tail``. Redis reads only the first `QUEUE` fields of the head: where the page is, and the five
numbers of its deadline. Everything after them is opaque there. An observation replaces the head and leaves the tail; a page that is yielded
again replaces the tail and leaves the head, so neither waits for the other.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np

#: States of a page. An ACTIVE page is revisited, a ONCE page fetched once, a TRANSIENT one forgotten after that; RETIRED and DONE pages are
#: known, and in no queue.
ACTIVE, ONCE, TRANSIENT, RETIRED, DONE = range(1, 6)
STATE_NAMES: Final = ("", "active", "once", "transient", "retired", "done")
#: States by which commands choose pages.
LISTED_STATES: Final = ("active", "retired")

#: Bits of `Row.flags`.
#: The next fetch has to bring a full answer and a callback, whatever was stored: somebody asked for it, or the last callback raised.
UNCONDITIONAL: Final = 1
#: Its numbers come with what sources of signals say of it, so plans leave them alone. `Memory.signals` has the rest.
SIGNALLED: Final = 2
#: The page is looked at again soon, to check what its last visit showed.
CHECKED: Final = 4
#: RULES have update times for it: a plan that gives it numbers needs its record and its memory.
TIMED: Final = 8
#: It has yielded new pages, so that a visit is worth more than its own changes: `Memory.yielded` has how many.
HUB: Final = 16
#: The spider has no method of the name of its callback: it is not handed out until one has. Its numbers say never.
HELD: Final = 32
#: Its last good answer came from its own address, not from one that it was sent to.
OWN: Final = 64
#: It was found on a page that had been visited before, so it has appeared since; until it is no longer young.
APPEARED: Final = 128

#: Longest bound on a time in a row, seconds; stands for "never".
FAR_S: Final = 3e38

#: Bounds on the importance of a page; plans and judges keep to them, whatever is stored.
LEAST_IMPORTANCE: Final = 1e-9
MOST_IMPORTANCE: Final = 1e9

#: What fields of a row can count to: ``failed``, and ``failures`` and ``gone``.
MOST_FAILED: Final = 65_535
MOST_IN_A_ROW: Final = 255
#: Bits that ``bits`` keeps.
KEPT_BITS: Final = 32

# Name, struct code and meaning of each field of the head; docs/redis.md is rendered from it.
FIELDS: Final = (
    ("host", "I", "number of its host, see `hosts`"),
    ("state", "B", "1 active, 2 once, 3 transient, 4 retired, 5 done"),
    (
        "flags",
        "B",
        "1 unconditional, 2 signalled, 4 checked, 8 update times, 16 yields new pages, 32 no callback, 64 answers itself, 128 is new",
    ),
    ("b", "d", "when the visit was that the numbers are about, microseconds since the epoch; 0: none yet"),
    ("a", "f", "wait at log price 0, to first order, seconds after b"),
    ("s", "f", "seconds by which the wait grows with the log price"),
    ("e", "f", "shortest wait, seconds"),
    ("l", "f", "longest wait, seconds"),
    ("importance", "f", "weight that plans use"),
    ("min_interval", "f", "least seconds between two visits"),
    ("max_interval", "f", "most seconds between two visits"),
    ("shape", "f", "of the Gamma posterior of the change rate; 0: no bit yet"),
    ("time", "f", "of the same, seconds"),
    ("unseen", "f", "seconds from the last good response to b; 0 after a good visit"),
    ("visits", "I", "good responses"),
    ("observations", "I", "bits"),
    ("changes", "I", "bits that were 1"),
    ("bits", "I", "the last 32, newest lowest"),
    ("failed", "H", "attempts that failed, in all; 65,535: or more"),
    ("failures", "B", "attempts that failed since the last good response"),
    ("gone", "B", "404s and 410s in a row"),
    ("cause", "B", "why the last attempt failed, a number of `judging.outcomes.CAUSES`"),
    ("relearned", "B", "how often its habits were learned anew"),
    ("watch_shape", "f", "recent posterior, in case its habits change; 0: none"),
    ("watch_time", "f", "of the same, seconds"),
    ("evidence", "f", "that they have changed"),
    ("surprise", "f", "of the last bit, for the test for bursts"),
    ("score", "f", "of that test"),
    ("variance", "f", "of that test"),
    ("spread", "f", "of that test"),
    ("pattern", "I", "hash of its host and the pattern of its URL"),
    ("directory", "I", "of its URL: hash of the first two path segments (low 16 bits), and of the directory; 0: none yet"),
    ("tag", "H", "of the settings that the fingerprint was made under; 0: none"),
    ("content", "16s", "fingerprint"),
)
#: Fields that scripts read; the others are opaque to them.
QUEUE: Final = 8

_HEAD: Final = struct.Struct("<" + "".join(code for _, code, _ in FIELDS))
_NUMBERS: Final = struct.Struct("<dffff")
_STATED: Final = struct.Struct("<f")
#: Bytes of the head, and of the importance in front of the record in the tail.
HEAD_BYTES: Final = _HEAD.size
TAIL_BYTES: Final = _STATED.size
#: Where the five numbers stand in the head.
NUMBERS_AT: Final = struct.calcsize("<IBB")
NUMBERS_BYTES: Final = _NUMBERS.size
#: Before the first attempt the rank of a page, a double, stands where a and s do.
RANK_AT: Final = NUMBERS_AT + 8
_NUMPY: Final = {"I": "<u4", "H": "<u2", "B": "u1", "d": "<f8", "f": "<f4", "16s": "V16"}
#: The head as a numpy record, for plans and readers.
LAYOUT: Final = np.dtype([(name, _NUMPY[code]) for name, code, _ in FIELDS])


class Row(NamedTuple):
    """The head of a page's row; what each field means is said in `FIELDS`."""

    host: int = 0
    state: int = ACTIVE
    flags: int = 0
    b: float = 0.0
    a: float = 0.0
    s: float = 0.0
    e: float = 0.0
    l: float = 0.0  # noqa: E741  # the name that docs/maths.md has
    importance: float = 1.0
    min_interval: float = 1.0
    max_interval: float = FAR_S
    shape: float = 0.0
    time: float = 0.0
    unseen: float = 0.0
    visits: int = 0
    observations: int = 0
    changes: int = 0
    bits: int = 0
    failed: int = 0
    failures: int = 0
    gone: int = 0
    cause: int = 0
    relearned: int = 0
    watch_shape: float = 0.0
    watch_time: float = 0.0
    evidence: float = 0.0
    surprise: float = 0.0
    score: float = 0.0
    variance: float = 0.0
    spread: float = 0.0
    pattern: int = 0
    directory: int = 0
    tag: int = 0
    content: bytes = bytes(16)

    @classmethod
    def unpack(cls, value: bytes) -> Row:
        """Read the head of a stored value (``head | tail``).

        Raises
        ------
        ValueError
            It is too short to be a row.
        """
        try:
            return cls._make(_HEAD.unpack_from(value))
        except struct.error:
            raise ValueError(f"a row has {HEAD_BYTES} bytes or more, this has {len(value)}") from None

    def pack(self) -> bytes:
        """Return the head as it is stored."""
        return _HEAD.pack(*self)

    @property
    def is_pinned(self) -> bool:
        """The page is visited at a fixed interval: its shortest and its longest one are the same."""
        return self.min_interval >= self.max_interval

    @property
    def attempts(self) -> int:
        """Attempts that ended, good or bad."""
        return self.visits + self.failed


def pack_tail(stated: float, record: bytes) -> bytes:
    """Return a tail: the importance that a request stated (0: none), and its record."""
    return _STATED.pack(stated) + record


def split_tail(value: bytes) -> tuple[float, bytes]:
    """Return the stated importance and the record of a stored value."""
    (stated,) = _STATED.unpack_from(value, HEAD_BYTES)
    return stated, value[HEAD_BYTES + TAIL_BYTES :]


def host_bytes(host: int) -> bytes:
    """Return the number of a host as rows begin with it, and as fields of ``opens`` are."""
    return host.to_bytes(4, "little")


def pack_numbers(b: float, numbers: tuple[float, float, float, float]) -> bytes:
    """Return b and (a, s, e, l) as `write_plan` takes them."""
    return _NUMBERS.pack(b, *numbers)
