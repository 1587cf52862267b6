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
    """

    default: float = 0.0
    slots: tuple[SlotLimit, ...] = ()

    def pack(self, at: float) -> bytes:
        """Return what is stored of it, with the time (s) at which it was told."""
        return bytes(msgpack.packb([at, self.default, [[slot.rate, *slot.hosts] for slot in self.slots[:MOST_TOLD]]]))

    @classmethod
    def unpack(cls, raw: bytes) -> tuple[float, DownloaderLimits]:
        """Read what is stored: when it was told, and what.

        Raises
        ------
        ValueError
            It is not that.
        """
        try:
            at, default, slots = msgpack.unpackb(raw)
            told = tuple(SlotLimit(tuple(map(str, hosts)), float(rate)) for rate, *hosts in slots)
            rates = [float(default), *(slot.rate for slot in told)]
            if not math.isfinite(at) or not all(0 <= rate < math.inf for rate in rates) or any(slot.rate <= 0 for slot in told):
                raise ValueError("rates that are none")
        except (TypeError, ValueError, msgpack.UnpackException) as error:
            raise ValueError(f"no limits of a downloader: {error}") from error
        return float(at), cls(rates[0], told)


def tell_limits(namespace: Namespace, crawler: bytes, limits: DownloaderLimits) -> None:
    """Store what a crawler's downloader admits, in place of what it told before."""
    namespace.command("HSET", namespace.key("slots"), crawler, limits.pack(namespace.now()))


def read_limits(namespace: Namespace) -> list[DownloaderLimits]:
    """Return what the crawlers have told that run now, or ran last; forget the others."""
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
    silent = [crawler for crawler in silent if crawler not in told]
    if silent:
        namespace.command("HDEL", namespace.key("slots"), *silent)
    return [limits for _, limits in told.values()]
