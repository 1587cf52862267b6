"""Which sections of a page are noise, by how often they differed, and the selectors that leave them out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from optimal_frontier.detection.section_history import Row, SectionHistory, key_of
from optimal_frontier.detection.section_names import MOST_PLACES
from optimal_frontier.detection.sections import OWN_TEXT, REST, WHOLE

#: Pairs of visits, seconds apart and any, before a section is called noise.
LEAST_QUICK_PAIRS: Final = 2
LEAST_PAIRS: Final = 3
#: Shares of the pairs in which a section must have differed. What a page rotates at random is the same again now and then.
_QUICK_SHARE: Final = 1 / 3
_SHARE: Final = 3 / 4

_PLACE: Final = re.compile(r"(?P<tag>[\w-]+):nth-of-type\((?P<place>\d+)\)")


class Noise(NamedTuple):
    """What is noise of a page.

    Attributes
    ----------
    within_seconds : tuple of str
        Selectors of sections that differed between fetches seconds apart: noise for sure, or nothing that revisits could keep up with.
    on_every_visit : tuple of str
        Of sections that differed on every visit or nearly so, but were not seen to within seconds: a clock of minutes, or content that
        changes faster than the page is visited.
    own_text : tuple of str
        Elements whose own text is noise but that hold too much else to be left out; a regular expression (``ignore``) is needed.
    """

    within_seconds: tuple[str, ...] = ()
    on_every_visit: tuple[str, ...] = ()
    own_text: tuple[str, ...] = ()

    @property
    def exclude(self) -> tuple[str, ...]:
        """What to leave out."""
        return tuple(dict.fromkeys(self.within_seconds + self.on_every_visit))


def differs_within_seconds(row: Row, history: SectionHistory) -> bool:
    """Tell whether a section differs between fetches seconds apart."""
    return history.quick_pairs >= LEAST_QUICK_PAIRS and row.quick >= _QUICK_SHARE * history.quick_pairs


def differs_on_every_visit(row: Row, history: SectionHistory) -> bool:
    """Tell whether a section differs whenever more than seconds have passed."""
    slow = history.pairs - history.quick_pairs
    return slow >= LEAST_PAIRS and row.differed - row.quick >= _SHARE * slow


def noise_of(history: SectionHistory) -> Noise:
    """Return what is noise of a page.

    Examples
    --------
    >>> from optimal_frontier.detection.sections import Section
    >>> history = SectionHistory()
    >>> for turn in range(5):
    ...     page = [Section(f"ul.related > li:nth-of-type({at})", bytes([turn] * 4)) for at in (1, 2, 3)]
    ...     history = history.follow([Section("h1", b"same"), *page])
    >>> noise_of(history).exclude
    ('ul.related > li',)
    """
    quick = [row.selector for row in history.rows if differs_within_seconds(row, history)]
    slow = [row.selector for row in history.rows if row.selector not in quick and differs_on_every_visit(row, history)]
    keys, all_of_it = history.keys(), {*quick, *slow}
    usable = {selector for selector in all_of_it if not selector.endswith(OWN_TEXT) and selector not in (REST, WHOLE)}
    joined = join_places(usable, keys)
    # what is left out with an ancestor needs no word of its own
    within = tuple(dict.fromkeys(joined[selector] for selector in quick if selector in usable))
    every = tuple(dict.fromkeys(joined[s] for s in slow if s in usable and joined[s] not in within))
    own = tuple(selector.removesuffix(OWN_TEXT) for selector in (*quick, *slow) if selector.endswith(OWN_TEXT))
    return Noise(_without_inner(within, (*within, *every)), _without_inner(every, (*within, *every)), own)


def join_places(selectors: Collection[str], keys: Collection[bytes]) -> dict[str, str]:
    """Return for each selector itself, or what names it and its neighbours at once if those of the page are all among `selectors`.

    Parameters
    ----------
    selectors : collection of str
        Of sections.
    keys : collection of bytes
        Of all sections of the page, see `key_of`.
    """
    joined = {selector: selector for selector in selectors}
    known = {key_of(selector) for selector in selectors}
    for selector in sorted(selectors):
        for found in _PLACE.finditer(selector):
            before, after = selector[: found.start()] + found["tag"], selector[found.end() :]
            places = [key_of(f"{before}:nth-of-type({place}){after}") for place in range(1, MOST_PLACES + 1)]
            present = [key for key in places if key in keys or key in known]
            if len(present) > 1 and all(key in known for key in present):
                joined[selector] = before + after
    return joined


def _without_inner(selectors: Iterable[str], all_of_it: Collection[str]) -> tuple[str, ...]:
    def is_inner(selector: str) -> bool:
        return any(selector != other and selector.startswith((f"{other} ", f"{other}.", f"{other}[")) for other in all_of_it)

    return tuple(selector for selector in selectors if not is_inner(selector))
