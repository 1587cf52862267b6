"""A test of many values as one test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(argument: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each of some values of an argument, as one test: there are thousands of cases, and each is shorter than a test is."""

    def of(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def all_of_them(**given: Any) -> None:
            for value in values:
                try:
                    test(**given, **{argument: value})
                except BaseException as error:
                    error.add_note(f"{argument}: {value!r}")
                    raise

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name != argument]
        # By it pytest finds fixtures; mypy knows no such attribute of functions.
        all_of_them.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return all_of_them

    return of
