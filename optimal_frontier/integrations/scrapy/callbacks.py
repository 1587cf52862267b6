"""Which methods of the spider a stored request may name as its callback or errback: whoever can write to Redis names them too."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator
from typing import Any, Final

from scrapy import Spider

#: Methods of Scrapy's own `Spider` that are callbacks.
_OF_SCRAPY: Final = frozenset({"parse", "_parse"})
#: Names that Scrapy calls on a spider for other reasons.
_HOOKS: Final = frozenset({"closed"})
#: Names that are remembered.
_MOST_NAMES: Final = 1000


class Callbacks:
    """The callbacks and errbacks of a spider.

    A name is one of them if the spider has used it in this run; or, with CALLBACKS, if it stands there; or else if it is ``parse`` or a
    method that a class below `scrapy.Spider` defines, and that can take a response. ``close``, ``start`` and what else every spider has is
    none, nor are properties, class methods, and what is no method.

    Parameters
    ----------
    spider : Spider
    listed : collection of str or None
        CALLBACKS.
    """

    def __init__(self, spider: Any, listed: Collection[str] | None = None) -> None:
        self._spider, self._listed = spider, listed
        self._used: set[str] = set()
        self._known: dict[str, bool] = {}

    def name_of(self, function: Any) -> str | None:
        """Return the name by which the spider has a method, and note that it was used; None: no name leads to it.

        Its ``__name__`` may lead to another method: one that overrides it, or has the name of the function that a decorator has made.
        """
        if getattr(function, "__self__", None) is not self._spider:
            return None
        name = next((name for name in self._names(function) if getattr(self._spider, name, None) == function), None)
        if name is not None:
            self._used.add(name)
        return name

    def _names(self, method: Any) -> Iterator[str]:
        yield getattr(method, "__name__", "")
        function = getattr(method, "__func__", None)
        for kind in type(self._spider).__mro__:
            yield from (name for name, value in vars(kind).items() if value is function)

    def has(self, name: str) -> bool:
        """Tell whether a stored request may name a method."""
        if name not in self._known:
            if len(self._known) >= _MOST_NAMES:
                self._known.clear()
            self._known[name] = self._is_method(name) and self._is_offered(name)
        return self._known[name] or (name in self._used and self._is_method(name))

    def missing(self) -> list[str]:
        """Return what CALLBACKS lists and the spider does not have."""
        return [name for name in self._listed or () if not self._is_method(name)]

    def _is_offered(self, name: str) -> bool:
        if self._listed is not None:
            return name in self._listed or name == "parse"
        if name in _OF_SCRAPY:
            return True
        return name not in _HOOKS and not hasattr(Spider, name) and _takes_response(getattr(self._spider, name))

    def _is_method(self, name: str) -> bool:
        """Tell whether it is a method of the spider itself, without running anything of it: a property would."""
        try:
            static = inspect.getattr_static(self._spider, name)
        except AttributeError:
            return False
        return callable(static) and getattr(getattr(self._spider, name, None), "__self__", None) is self._spider


def _takes_response(method: Any) -> bool:
    """Tell whether a method can be called with a response, whatever its request's cb_kwargs are."""
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.VAR_POSITIONAL) for one in parameters)
