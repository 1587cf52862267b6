"""Conditional requests: which validators to send, and what the answers leave for the next fetch and for the trust in the host."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final, NamedTuple

from optimal_frontier.estimation.validator_trust import (
    EARLY_CHECKS,
    MOST_CHANCE,
    MOST_UNCHECKED,
    PROBE,
    TOLD,
    ValidatorTrust,
    change_chance,
    evidence_of,
    verdict_of,
)
from optimal_frontier.state.messages import Handout
from optimal_frontier.state.rows import ACTIVE, UNCONDITIONAL

#: Longest validators that are kept, bytes.
LONGEST_ETAG: Final = 256
LONGEST_DATE: Final = 64
#: An ETag is of no use after so many full answers in a row to requests with it, of content that had not changed.
USELESS: Final = 3
#: A page that lied so often, and told no change meanwhile, is not believed, whatever is thought of its host.
FOUND_OUT: Final = 2
#: Part of the time in a posterior that is left at least when that of 304s is taken from it.
_LEFT: Final = 0.1


class Validators(NamedTuple):
    """ETag and Last-Modified, as the server sent them; empty where there are none, or are not to be sent."""

    etag: bytes = b""
    last_modified: bytes = b""

    @classmethod
    def of(cls, etag: bytes | None, last_modified: bytes | None) -> Validators:
        """Keep what is short, and can be sent back in a header.

        Examples
        --------
        >>> Validators.of(b' W/"1" ', None), Validators.of(b"1" * 1000, b"bad\\x00date")
        (Validators(etag=b'W/"1"', last_modified=b''), Validators(etag=b'', last_modified=b''))
        """
        return cls(_sendable(etag, LONGEST_ETAG), _sendable(last_modified, LONGEST_DATE))


NO_VALIDATORS: Final = Validators()


class Left(NamedTuple):
    """What an answer leaves behind.

    Attributes
    ----------
    memory : dict
        Fields of `Memory` that it sets.
    check : tuple of (str, float) or None
        Where the answer says whether the host's 304s can be believed: verdict and evidence, for `ValidatorTrust.after`.
    again : bool
        The page has to be looked at again soon, to check a 304.
    """

    memory: dict[str, Any]
    check: tuple[str, float] | None = None
    again: bool = False


class Seen(NamedTuple):
    """What a visit showed.

    Attributes
    ----------
    bit : int
        1 changed, 0 unchanged, -1 nothing.
    interval : float
        Seconds since the last good response.
    shape, time : float
        Posterior after it; time in seconds.
    shortest : float
        Least interval of its revisits, seconds.
    """

    bit: int
    interval: float
    shape: float
    time: float
    shortest: float


def conditions_of(handout: Handout, tag: int) -> Validators | None:
    """Return what to send with a request, or None: a full answer is wanted, or nothing is known to ask with.

    Parameters
    ----------
    handout : Handout
        The lease.
    tag : int
        Of the fingerprint settings (`fingerprinting.Way`): a fingerprint under another tag has to be made anew.
    """
    row, memory = handout.row, handout.memory
    if row.state != ACTIVE or row.visits == 0 or row.tag != tag or memory.check or row.flags & UNCONDITIONAL:
        return None
    if not _is_believed(handout) and _draw(handout, "probe") >= PROBE:
        return None
    # If-None-Match goes before If-Modified-Since (RFC 9110, 13.1.3): a useless ETag has to stay away.
    is_useful = memory.misses < USELESS or _draw(handout, "etag") < PROBE
    conditions = Validators(memory.etag if is_useful else b"", memory.last_modified)
    return conditions if any(conditions) else None


def unseen_s(handout: Handout, bit: int, interval: float) -> float:
    """Return the seconds before the last visit of which 304s had said that nothing changed, if they are not believed now; else 0.

    Parameters
    ----------
    handout : Handout
        The lease.
    bit : int
        What a full answer showed.
    interval : float
        Seconds since the last visit.
    """
    memory = handout.memory
    if bit != 1 or memory.unseen <= 0 or interval <= 0:
        return 0.0
    is_lie = memory.check and handout.row.shape > 0 and verdict_of(*_chances(handout, interval), True) == "lies"
    return memory.unseen if is_lie or not _is_believed(handout) else 0.0


def after_full_answer(seen: Seen, handout: Handout, sent: Validators | None, found: Validators, size: int) -> Left:
    """Return what a full answer leaves behind.

    Parameters
    ----------
    seen : Seen
        What it showed.
    handout : Handout
        The lease.
    sent : Validators or None
        What was asked with.
    found : Validators
        Of the answer; none if they are not to be used.
    size : int
        Bytes of the body, as it came.
    """
    memory, bit = handout.memory, seen.bit
    misses, lies = memory.misses, memory.lies
    check: tuple[str, float] | None = None
    if bit == 1 and sent is not None:
        lies, check = 0, ("told", -TOLD)
    elif bit >= 0 and memory.check and handout.row.shape > 0 and seen.interval > 0:
        chances = _chances(handout, seen.interval)
        verdict = verdict_of(*chances, bool(bit))
        # One page, which may be no worse than noisy, is not to speak against all of its host again and again.
        check = verdict, 0.0 if verdict == "lies" and lies else evidence_of(*chances, bool(bit))
        lies += verdict == "lies"
    if sent is not None and sent.etag and bit >= 0:
        misses = 0 if bit else min(misses + 1, USELESS)
    left = {
        "etag": found.etag,
        "last_modified": found.last_modified,
        "size": size if any(found) else 0,
        "misses": misses if found.etag else 0,
        "lies": lies if any(found) else 0,
        "unchecked": 0,
        "unseen": 0.0,
        "check": False,
    }
    return Left(left, check)


def after_not_modified(seen: Seen, handout: Handout, sent: Validators, found: Validators) -> Left:
    """Return what a 304 to what was asked with ``sent`` leaves behind; parameters as in `after_full_answer`."""
    memory = handout.memory
    unseen = memory.unseen + max(seen.interval, 0.0)
    check = _wants_check(seen, handout, unseen)
    left = {
        "etag": found.etag or memory.etag,
        "last_modified": found.last_modified or memory.last_modified,
        "misses": 0 if sent.etag else memory.misses,
        "unchecked": memory.unchecked + 1,
        "unseen": unseen,
        "check": check,
    }
    return Left(left, again=check)


def _wants_check(seen: Seen, handout: Handout, unseen: float) -> bool:
    if seen.shape <= 0:
        return False
    # It comes back after its least interval; what changes within that cannot be held against the server.
    if change_chance(seen.shape, seen.time, seen.shortest) > MOST_CHANCE:
        return False
    if not _is_believed(handout) or handout.memory.unchecked + 1 >= MOST_UNCHECKED:
        return True
    if handout.memory.lies:
        return _draw(handout, "check") < EARLY_CHECKS
    hidden = _hidden_chance(seen.shape, seen.time, unseen, unseen)
    return _draw(handout, "check") < ValidatorTrust(*handout.words.validators).check_share(hidden)


def _is_believed(handout: Handout) -> bool:
    return handout.memory.lies < FOUND_OUT and ValidatorTrust(*handout.words.validators).is_believed


def _chances(handout: Handout, interval: float) -> tuple[float, float]:
    """The chances that the page changed since its last full answer, if its 304s are lies, and since the last 304, if they are not."""
    unseen, row = handout.memory.unseen, handout.row
    honest = change_chance(row.shape, row.time, interval)
    return max(_hidden_chance(row.shape, row.time, unseen, unseen + interval), honest), honest


def _hidden_chance(shape: float, time: float, unseen: float, interval: float) -> float:
    """The chance of a change within ``interval``, by a posterior from which ``unseen`` seconds of 304s are taken."""
    return change_chance(shape, max(time - unseen, _LEFT * time), interval)


def _draw(handout: Handout, purpose: str) -> float:
    """A number from 0 to below 1 that is the same for the same visit of a page."""
    digest = blake2b(purpose.encode() + handout.page + handout.row.attempts.to_bytes(8, "little"), digest_size=7).digest()
    return int.from_bytes(digest, "big") / 2.0**56


def _sendable(value: bytes | None, longest: int) -> bytes:
    stripped = (value or b"").strip()
    return stripped if len(stripped) <= longest and all(byte >= 32 and byte != 127 for byte in stripped) else b""
