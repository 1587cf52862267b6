"""A number of a page's text that adds up over its blocks, so that what came and what went shows in the difference of two."""

from __future__ import annotations

from typing import Final

from optimal_frontier.detection.folding import BREAK
from optimal_frontier.detection.similarity import hash_of, hashes

#: Bytes at the end of a fingerprint of kind ``"text"`` of HTML that hold the sum; those before tell contents apart.
SUM_BYTES: Final = 4

MODULUS: Final = 1 << 8 * SUM_BYTES
_SPACES: Final = b" \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
#: Blocks that are added up one by one.
_FEW: Final = 12
#: Deletes white space, and makes a blank of what parts blocks.
_BREAKS: Final = bytes.maketrans(BREAK.encode(), b" ")


def block_sum(text: bytes, more: bytes = b"") -> int:
    """Add up hashes of the blocks of a text.

    Parameters
    ----------
    text : bytes
        `narrowed`, in UTF-8: blocks, parted by any number of `BREAK`; white space in them does not count.
    more : bytes
        One more block.

    Returns
    -------
    int
        Below 2^32. The order of blocks does not count; how often one is there does.

    Examples
    --------
    >>> from optimal_frontier.detection.folding import BREAK
    >>> old, new = (block_sum(BREAK.join(("one page", footer)).encode()) for footer in ("2025", "2026"))
    >>> other = [block_sum(BREAK.join(("other page", footer)).encode()) for footer in ("2025", "2026")]
    >>> difference(old, new) == difference(*other), old == new
    (True, False)
    """
    # split at white space: elements that hold nothing but others are no blocks
    blocks = text.translate(_BREAKS, _SPACES).split()
    if more:
        blocks.append(more)
    return (sum(map(hash_of, blocks)) if len(blocks) <= _FEW else int(hashes(blocks).sum())) % MODULUS


def difference(old: int, new: int) -> int:
    """Return what has to be added to one sum to get the other one, modulo 2^32."""
    return (new - old) % MODULUS


def sum_of(digest: bytes) -> int:
    """Return the sum that a fingerprint ends with."""
    return int.from_bytes(digest[-SUM_BYTES:], "big")


def with_sum(digest: bytes, total: int) -> bytes:
    """Return a fingerprint with its last bytes replaced by a sum."""
    return digest[:-SUM_BYTES] + total.to_bytes(SUM_BYTES, "big")


def is_same_text(digest: bytes, known: bytes) -> bool:
    """Tell whether two fingerprints are equal but for their sums, as those of equal texts are."""
    return digest[:-SUM_BYTES] == known[:-SUM_BYTES]
