"""What is known of a host's own word, and of its health: one small record a host, kept only where there is something to keep."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import msgpack

#: Faded counts of checks: at visits without a change, those of them that failed, with one, failed.
Counts = tuple[float, float, float, float]
NO_CHECKS: Final[Counts] = (0.0, 0.0, 0.0, 0.0)


class HostWords(NamedTuple):
    """Of one host.

    Attributes
    ----------
    header, sitemap : Counts
        What checks of its Last-Modified and of its sitemaps found, see `estimation.trust`.
    validators : Counts
        Of its 304s: score, told, checks, lies, see `estimation.validator_trust`.
    good, missing : float
        Faded counts of pages seen and of pages found gone, see `judging.gone`; 0, 0: no page was ever gone.
    """

    header: Counts = NO_CHECKS
    sitemap: Counts = NO_CHECKS
    validators: Counts = NO_CHECKS
    good: float = 0.0
    missing: float = 0.0

    @classmethod
    def unpack(cls, raw: bytes | None) -> HostWords:
        """Read what is stored; None, and what cannot be read: nothing is known."""
        if not raw:
            return NOTHING_SAID
        try:
            header, sitemap, validators, good, missing = msgpack.unpackb(raw)
            words = cls(_counts(header), _counts(sitemap), _counts(validators), float(good), float(missing))
            return words if math.isfinite(sum((*words.header, *words.sitemap, *words.validators, good, missing))) else NOTHING_SAID
        except (ValueError, TypeError, OverflowError, msgpack.UnpackException):
            return NOTHING_SAID

    def pack(self) -> bytes:
        """Return what is stored; empty where nothing is known."""
        return b"" if self == NOTHING_SAID else bytes(msgpack.packb(tuple(self), use_single_float=True))


def _counts(values: list[float]) -> Counts:
    a, b, c, d = map(float, values)
    return a, b, c, d


NOTHING_SAID: Final = HostWords()
