"""What the last plan published for crawlers and readers: the hash ``plan``, and the tables of priors and of hosts' prices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimal_frontier.estimation.like_pages import LikePatterns, priors_within, with_siblings
from optimal_frontier.estimation.sibling_priors import MOST_SHAPE
from optimal_frontier.scheduling.exploration import Exploring
from optimal_frontier.scheduling.young_pages import Youth

#: Priors by pattern: hash of the pattern, shape and time (s) of the Gamma prior, pages that taught it. A shape above `MOST_SHAPE`: pages of
#: the pattern are alike, and this is the distribution of their change rates, see `estimation.like_pages`.
PRIORS: Final = np.dtype([("pattern", "<u4"), ("shape", "<f4"), ("time", "<f4"), ("siblings", "<u4")])
#: What a host at its limit adds to the log price.
PRICES: Final = np.dtype([("host", "<u4"), ("extra", "<f4")])
#: Ages by which first looks are counted, see `estimation.first_looks.age_bins`: the last one has all above 97 days.
AGES: Final = 24
#: Youth by pattern, and by host: which (`pattern_key`, `host_key`); change rate while pages are young (1/s; 0: no other than later), until
#: which age (s); first looks by age, and those that saw a change; pages that changed in the first of two equal times alone, in the second.
YOUTH: Final = np.dtype(
    [
        ("key", "<u8"),
        ("rate", "<f4"),
        ("until", "<f4"),
        ("looks", "<u2", AGES),
        ("changed", "<u2", AGES),
        ("ceased", "<u2"),
        ("begun", "<u2"),
    ]
)
#: From so many first looks on it is known whether pages of a pattern, or of a host, change more often while they are young.
ENOUGH_LOOKS: Final = 128
_PATTERN: Final = 1 << 32
#: Keys of the tables that are published beside the fields, in the order of the arguments of `Published.parse`.
TABLES: Final = ("priors", "prices", "youth")
#: Fields of the last plan that are texts.
_TEXTS: Final = frozenset({"policy", "objective", "exploration", "discovery", "bounds", "explores", "planner"})
#: Those that are whole numbers; the number of the plan and times. All others are numbers, and infinite where there is no limit.
_COUNTS: Final = frozenset(
    {
        "pages",
        "fetched",
        "read",
        "queued",
        "extra_fetches",
        "measured_fetches",
        "measured_calls",
        "measured_partitions",
        "exploration_bits",
        "exploration_number",
        "exploration_held",
        "hosts_at_limit",
        "hubs",
        "given_up",
        "groups",
        "clocks_open",
        "rhythms_open",
        "young_patterns",
    }
)
_TIMES: Final = frozenset({"number", "time", "first_time", "measured_at", "prior_time"})
#: The largest count, and the largest time in seconds: beyond it doubles do not tell neighbours apart, and no calendar has the time.
_LARGEST: Final = 2.0**53


@dataclass(frozen=True)
class Published:
    """The last plan of a partition, as judges and readers use it; defaults before the first one.

    Attributes
    ----------
    number : int
        Of the plan, rising; 0: there was none.
    time : float
        When it was made, seconds since the epoch.
    log_price : float
        Logarithm of its multiplier; -inf where the budget serves all.
    prior_time : float
        Time of the default prior, seconds: that in which all pages can be visited once; 0: not known.
    priors : mapping of int to (float, float)
        Shape and time (s) by pattern.
    host_prices : mapping of int to float
        What hosts at their limits add to the log price of the plan, by number.
    stretch : float
        Factor on longest intervals while the budget cannot hold them, >= 1.
    budget, revisit_budget : float
        Fetches per second of the partition: all, and what is left for revisits.
    share : float
        Of the whole budget that the partition gets, 0 to 1.
    first_visit_rate : float
        Fetches per second that hosts bear whose pages wait for their first visit; inf without limits.
    exploration : mapping of str to str
        How far EXPLORATION is, see `frontier.planning.exploring`.
    fields : mapping of str to str
        Everything else, as text; for readers.
    lasting : float
        Log price by which pages are given up while that of now is not lower, see `price_law.lasting_log_price`; inf where it is not known.
    left : float
        Log price that the plan left the partition to dispatch by; -inf where it is not known.
    youth : mapping of int to (Youth or None)
        By `pattern_key` and `host_key`, as far as it is known whether pages change more often while they are young; None where not.
    """

    number: int = 0
    time: float = 0.0
    log_price: float = -math.inf
    prior_time: float = 0.0
    priors: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    host_prices: Mapping[int, float] = field(default_factory=dict)
    stretch: float = 1.0
    budget: float = 0.0
    revisit_budget: float = 0.0
    share: float = 1.0
    first_visit_rate: float = math.inf
    exploration: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    lasting: float = math.inf
    left: float = -math.inf
    youth: Mapping[int, Youth | None] = field(default_factory=dict)

    @classmethod
    def parse(cls, fields: Mapping[str, str], priors: bytes | None, prices: bytes | None, youth: bytes | None = None) -> Published:
        """Read what is stored; what cannot be read counts as not there."""
        fields = sound_fields(fields)
        taught, extra = stored_table(priors, PRIORS), stored_table(prices, PRICES)
        taught = taught[np.isfinite(taught["shape"]) & (taught["shape"] >= 0) & np.isfinite(taught["time"]) & (taught["time"] >= 0)]
        extra = extra[np.isfinite(extra["extra"])]
        return cls(
            int(_float(fields, "number")),
            _float(fields, "time"),
            _float(fields, "log_price", -math.inf),
            max(0.0, _float(fields, "prior_time")),
            {p: (a, t) for p, a, t in zip(taught["pattern"].tolist(), taught["shape"].tolist(), taught["time"].tolist(), strict=True)},
            dict(zip(extra["host"].tolist(), extra["extra"].tolist(), strict=True)),
            max(1.0, _float(fields, "stretch", 1.0)),
            max(0.0, _float(fields, "budget")),
            max(0.0, _float(fields, "revisit_budget")),
            min(max(0.0, _float(fields, "share", 1.0)), 1.0),
            max(0.0, _float(fields, "first_visit_rate", math.inf)),
            {name: value for name, value in fields.items() if name.startswith("exploration")},
            dict(fields),
            # Where it was damaged: no wait can be made of a price of nothing.
            max(-1000.0, _float(fields, "lasting_log_price", math.inf)),
            _float(fields, "left_log_price", -math.inf),
            _known_youth(sound_youth(youth)),
        )

    @cached_property
    def exploring(self) -> Exploring:
        """How far exploration is, and what that makes of waits."""
        return Exploring.of(self.exploration, self.prior_time)

    def log_price_at(self, host: int, log_price: float) -> float:
        """Return the log price of a visit to a host, by its number, when that of the crawl is ``log_price``.

        What a host at its limit asks is the plan's, wherever the price of the crawl goes: it says how its own turns are shared out.
        """
        extra = self.host_prices.get(host, 0.0)
        return max(log_price, self.log_price + extra) if extra > 0.0 else log_price

    def lasting_price_at(self, host: int, log_price: float) -> float:
        """Return the log price by which a page of a host is found to be worth a visit at all, when that of the crawl is ``log_price``.

        Behind a backlog the price is high for a moment, and a page that is given up waits for the next plan.
        """
        return self.log_price_at(host, min(log_price, self.lasting))

    def prior_of(self, pattern: int) -> tuple[float, float] | None:
        """Return shape and time (s) of what is believed of a page without a bit; None before the first plan."""
        taught = self.priors.get(pattern)
        if taught is not None and taught[0] > MOST_SHAPE:
            shape, time = priors_within(*taught, self.prior_time)
            return float(shape), float(time)
        if taught is not None:
            return taught
        return (1.0, self.prior_time) if self.prior_time > 0 else None

    def believed(self, pattern: int, shape: float, time: float) -> tuple[float, float]:
        """Return the posterior of a page of a pattern, with what its siblings have shown where they are alike."""
        like = self.priors.get(pattern)
        if like is None or like[0] <= MOST_SHAPE or like[1] <= 0.0:
            return shape, time
        return _with_siblings(shape, time, *like)

    @cached_property
    def alike(self) -> LikePatterns:
        """The patterns whose pages are alike."""
        like = sorted((pattern, shape, time) for pattern, (shape, time) in self.priors.items() if shape > MOST_SHAPE)
        pattern, shape, time = (np.array(values) for values in zip(*like, strict=True)) if like else np.zeros((3, 0))
        return LikePatterns.of(pattern.astype(np.uint32), shape, time)

    def youth_of(self, host: int, pattern: int) -> Youth | None:
        """Return how often pages of a pattern of a host change while they are young; None where that is not more often than later."""
        key = pattern_key(pattern)
        return self.youth[key] if key in self.youth else self.youth.get(host_key(host))

    def is_youth_known(self, host: int, pattern: int) -> bool:
        """Tell whether enough was seen of the pattern, or else of the host, to know whether there is such a youth."""
        return pattern_key(pattern) in self.youth or host_key(host) in self.youth


@lru_cache(maxsize=64)
def _with_siblings(shape: float, time: float, like_shape: float, like_time: float) -> tuple[float, float]:
    """The same few are asked for several times while a visit is judged."""
    shapes, times = with_siblings(shape, time, like_shape, like_time)
    return float(shapes), float(times)


def stored_table(stored: bytes | None, layout: np.dtype[Any]) -> NDArray[Any]:
    """Return a table as it is stored; an empty one for what has another length."""
    return np.frombuffer(stored if stored and len(stored) % layout.itemsize == 0 else b"", layout)


def pattern_key(pattern: int) -> int:
    """Return how the table of youth knows a pattern, by its hash."""
    return _PATTERN | pattern


def pattern_of_key(key: int) -> int:
    """Return the hash of the pattern that a key stands for; 0 for that of a host."""
    return key - _PATTERN if key >= _PATTERN else 0


def host_key(host: int) -> int:
    """Return how it knows a host, by its number."""
    return host


def _known_youth(table: NDArray[Any]) -> dict[int, Youth | None]:
    looks = table["looks"].sum(axis=1, dtype=np.int64).tolist()
    told = zip(table["key"].tolist(), table["rate"].tolist(), table["until"].tolist(), looks, strict=True)
    return {key: Youth(rate, until) if rate > 0.0 else None for key, rate, until, n in told if rate > 0.0 or n >= ENOUGH_LOOKS}


def sound_youth(stored: bytes | None) -> NDArray[Any]:
    """Return the table of youth that is stored, an array of `YOUTH` in the order of its keys, without what cannot be read."""
    told = stored_table(stored, YOUTH)
    numbers = [np.isfinite(told[name]) & (told[name] >= 0.0) for name in ("rate", "until")]
    told = told[numbers[0] & numbers[1] & (told["changed"] <= told["looks"]).all(axis=1)]
    return np.asarray(told[np.unique(told["key"], return_index=True)[1]])


def sound_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a plan that can be read; `mending` removes the others."""
    return {name: value for name, value in fields.items() if is_sound_field(name, value)}


def is_sound_field(name: str, value: str | bytes) -> bool:
    """Tell whether a field of a plan is what plans publish under its name.

    Examples
    --------
    >>> is_sound_field("share", "inf"), is_sound_field("time", "inf"), is_sound_field("pages", "1.5"), is_sound_field("policy", "x")
    (True, False, False, True)
    """
    if name in _TEXTS:
        return True
    try:
        number = float(int(value) if name in _COUNTS else value)
    except (ValueError, OverflowError):
        return False
    return abs(number) <= _LARGEST if name in _COUNTS | _TIMES else not math.isnan(number)


def _float(fields: Mapping[str, str], name: str, default: float = 0.0) -> float:
    try:
        value = float(fields[name])
    except (KeyError, ValueError):
        return default
    # Where it stands for "no limit" a number may be infinite.
    return value if math.isfinite(value) or (math.isinf(default) and not math.isnan(value)) else default
