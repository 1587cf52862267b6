"""What of each page counts as its content: FINGERPRINT and its options, page by page as RULES have it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from optimal_frontier.detection.content import Response
from optimal_frontier.detection.fingerprint import take
from optimal_frontier.detection.recipe import Recipe, load_function, make_recipe
from optimal_frontier.errors import ConfigurationError, InvalidProblemError
from optimal_frontier.frontier.admitting.addresses import shown
from optimal_frontier.settings import PREFIX, FrontierSettings, PageRule
from optimal_frontier.settings.contents import KINDS

logger = logging.getLogger(__name__)

#: Counters: the user's callable failed; selectors of what to include matched nothing.
FAILED: Final = "fingerprints_failed"
MISSED: Final = "includes_missed"
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
#: Tags that rows have room for.
_TAGS: Final = 2**16 - 1


def stored_tag(tag: int) -> int:
    """Return the tag of a recipe as rows hold it, 1 to 65,535; 0 stands for no fingerprint."""
    return 1 + tag % _TAGS


class Way(NamedTuple):
    """How a page's fingerprints are made.

    Attributes
    ----------
    recipe : Recipe
        What counts.
    distance : int
        Bits by which fingerprints may differ while the page is unchanged.
    tag : int
        Of the recipe, as rows hold it: 1 to 65,535.
    """

    recipe: Recipe
    distance: int
    tag: int


class Fingerprint(NamedTuple):
    """What was taken of a response.

    Attributes
    ----------
    digest : bytes or None
        16 bytes; None where the user's callable failed, or the response shows no content.
    tag, distance : int
        Of the `Way`.
    counters : mapping
        What there is to count, by name.
    is_summed : bool
        It ends with the sum of the blocks of the page's text (`detection.block_sums`).
    """

    digest: bytes | None
    tag: int
    distance: int = 0
    counters: Mapping[str, int] = _NOTHING
    is_summed: bool = False


class Fingerprinting:
    """Makes fingerprints as the settings ask for.

    Parameters
    ----------
    settings : FrontierSettings
        With RULES.

    Raises
    ------
    ConfigurationError
        A callable cannot be imported; naming the setting.
    """

    def __init__(self, settings: FrontierSettings) -> None:
        self._settings = settings
        self._ways: dict[Any, Way] = {}
        self._told: set[Any] = set()
        self._default = self._way(PageRule())
        named = {f"{PREFIX}FINGERPRINT": settings.fingerprint}
        for at, rule in enumerate(settings.rules.entries):
            if "fingerprint" in rule.values:
                named[f"{PREFIX}RULES[{at}]['fingerprint']"] = rule.values["fingerprint"]
        for name, kind in named.items():
            if kind not in KINDS:
                _import(name, kind)
        # most crawls have one way for all pages, and need not go through the rules at each visit
        self._is_one = not any(rule.says_content for rule in settings.rules.entries)

    def way(self, url: str) -> Way:
        """Return how fingerprints of the page at ``url`` (as it was first yielded) are made."""
        return self._default if self._is_one else self._way(self._settings.rules.of(url))

    def take(self, response: Response, url: str, known: bytes = b"") -> Fingerprint:
        """Fingerprint a response; nothing that is in it raises, nor does the user's callable.

        ``known`` is the fingerprint that is stored of the page: one that equals it costs less.
        """
        way = self.way(url)
        try:
            digest, missed, is_summed = take(response, way.recipe, known)
        except Exception:
            if way.recipe.function is None:
                raise
            if way.recipe not in self._told:
                self._told.add(way.recipe)
                logger.exception(
                    "%s failed on %s; visits on which it fails say nothing about a change (logged once)", way.recipe.kind, shown(url)
                )
            return Fingerprint(None, way.tag, way.distance, {FAILED: 1})
        if missed and way.recipe not in self._told:
            self._told.add(way.recipe)
            logger.warning(
                "nothing on %s is what is to be included, %s: all of such pages counts (logged once)",
                shown(url),
                ", ".join(way.recipe.include),
            )
        return Fingerprint(digest, way.tag, way.distance, {MISSED: 1} if missed else _NOTHING, is_summed)

    def nothing(self, url: str) -> Fingerprint:
        """Return the fingerprint of a response that shows no content."""
        way = self.way(url)
        return Fingerprint(None, way.tag, way.distance)

    def _way(self, rule: PageRule) -> Way:
        key = (rule.fingerprint, rule.include, rule.exclude, rule.ignore, rule.distance)
        way = self._ways.get(key)
        if way is None:
            settings = self._settings
            kind = _first(rule.fingerprint, settings.fingerprint)
            include = _first(rule.include, settings.fingerprint_include)
            exclude = _first(rule.exclude, settings.fingerprint_exclude)
            ignore = _first(rule.ignore, settings.fingerprint_ignore)
            # options that a kind does not look at are no part of its tag
            if kind == "body":
                include = exclude = ()
            elif kind not in KINDS:
                _import(f"{PREFIX}FINGERPRINT", kind)
                include = exclude = ignore = ()
            distance = _first(rule.distance, settings.fingerprint_distance) if kind == "near" else 0
            recipe = make_recipe(kind, include, exclude, ignore)
            way = self._ways[key] = Way(recipe, distance, stored_tag(recipe.tag))
        return way


def _first(told: Any, otherwise: Any) -> Any:
    return otherwise if told is None else told


def _import(name: str, dotted: str) -> None:
    try:
        load_function(dotted)
    except InvalidProblemError as error:
        raise ConfigurationError(f"{name} = {dotted!r}: expected {str(error).removeprefix('kind must be ')}") from error
