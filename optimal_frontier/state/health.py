"""How many of a host's pages were gone of late: what keeps a page from being retired while its host answers 404 for most of them."""

from __future__ import annotations

from typing import Final

#: A host is held from so many gone pages on (they fade, `lua/_gone.lua`), if they are at least this share of the pages that were looked at.
LEAST_GONE: Final = 3.0
GONE_PART: Final = 0.5


def is_held(good: float, gone: float) -> bool:
    """Tell whether a host with such counts is held: its pages are asked for now and then, but not retired.

    Parameters
    ----------
    good, gone : float
        Faded counts of its pages that were seen, and that were found gone.

    Examples
    --------
    >>> is_held(5.0, 1.0), is_held(3.3, 3.4)
    (False, True)
    """
    return gone >= LEAST_GONE and gone >= GONE_PART * (good + gone)


def parse_health(text: bytes) -> tuple[float, float]:
    """Read a field of the key ``health``."""
    good, gone = map(float, text.split(b" "))
    return good, gone
