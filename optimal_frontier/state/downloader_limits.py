"""What the downloaders of crawlers admit, told by them for planners: the hash ``slots`` of the first partition.

A crawler tells what any slot admits, and those that differ. A planner, which may run in another process, adds up over the crawlers.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgpack

from optimal_frontier.state.namespace import Namespace

#: Seconds between two times that a crawler tells. One that is silent for longer than `SILENT_S`, while another is not, does not count.
TELL_S: Final = 10.0
SILENT_S: Final = 35.0
#: Slots that a crawler tells of, at most.
MOST_TOLD: Final = 1000


class SlotLimit(NamedTuple):
    """A slot of a downloader: the hosts that share it, and the fetches per second that it admits."""

    hosts: tuple[str, ...]
    rate: float


@dataclass(frozen=True)
class DownloaderLimits:
    """What one crawler's downloader admits.

    Attributes
    ----------
    default : float
        Fetches per second of any slot that is not listed; 0: no limit.
    slots : tuple of SlotLimit
        Those that differ, or that several hosts share.
    served : tuple of int or None
        Partitions of which the crawler fetches pages; None: all.
    """

    default: float = 0.0
    slots: tuple[SlotLimit, ...] = ()
    served: tuple[int, ...] | None = None

    def pack(self, at: float) -> bytes:
        """Return what is stored of it, with the time (s) at which it was told."""
        told: list[Any] = [at, self.default, [[slot.rate, *slot.hosts] for slot in self.slots[:MOST_TOLD]]]
        return bytes(msgpack.packb(told if self.served is None else [*told, self.served]))

    @classmethod
    def unpack(cls, raw: bytes) -> tuple[float, DownloaderLimits]:
        """Read what is stored: when it was told, and what.

        Raises
        ------
        ValueError
            It is not that.
        """
        try:
            at, default, slots, *rest = msgpack.unpackb(raw)
            told = tuple(SlotLimit(tuple(map(str, hosts)), float(rate)) for rate, *hosts in slots)
            served = tuple(map(int, rest[0])) if rest else None
            rates = [float(default), *(slot.rate for slot in told)]
            if not math.isfinite(at) or not all(0 <= rate < math.inf for rate in rates) or any(slot.rate <= 0 for slot in told):
                raise ValueError("rates that are none")
        except (TypeError, ValueError, msgpack.UnpackException) as error:
            raise ValueError(f"no limits of a downloader: {error}") from error
        return float(at), cls(rates[0], told, served)


def tell_limits(namespace: Namespace, crawler: bytes, limits: DownloaderLimits) -> None:
    """Store what a crawler's downloader admits, in place of what it told before."""
    namespace.command("HSET", namespace.key("slots"), crawler, limits.pack(namespace.now()))


def read_limits(namespace: Namespace) -> list[DownloaderLimits]:
    """Return what the crawlers have told that run now, or ran last; forget the others."""
    told, silent = _told(namespace)
    if silent:
        namespace.command("HDEL", namespace.key("slots"), *silent)
    return [limits for _, limits in told]


def unserved(namespace: Namespace) -> list[int]:
    """Return the partitions of which no crawler that runs now fetches pages; none where no crawler has told of itself."""
    told, _ = _told(namespace)
    now = namespace.now()
    live = [limits.served for at, limits in told if at >= now - SILENT_S]
    if not live or None in live:
        return []
    served = {partition for one in live for partition in one or ()}
    return [k for k in range(namespace.partitions) if k not in served]


def _told(namespace: Namespace) -> tuple[list[tuple[float, DownloaderLimits]], list[bytes]]:
    """Return when what was told by the crawlers that told last, and the names of the others."""
    flat: Any = namespace.command("HGETALL", namespace.key("slots"))
    pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
    told: dict[bytes, tuple[float, DownloaderLimits]] = {}
    silent: list[bytes] = []
    for crawler, raw in pairs:
        silent.append(crawler)
        with contextlib.suppress(ValueError):
            told[crawler] = DownloaderLimits.unpack(raw)
    newest = max((at for at, _ in told.values()), default=0.0)
    told = {crawler: one for crawler, one in told.items() if one[0] >= newest - SILENT_S}
    return list(told.values()), [crawler for crawler in silent if crawler not in told]
