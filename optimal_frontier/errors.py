"""The one tree of exceptions that optimal_frontier raises on purpose.

Everything a caller may want to catch derives from `OptimalFrontierError`; nothing else escapes the public functions except
programming errors. Messages name the setting, argument, file and line or URL at fault, and what was expected; they never contain a
Redis password.
"""

from __future__ import annotations


class OptimalFrontierError(Exception):
    """Base class of every error of this package."""


class ConfigurationError(OptimalFrontierError):
    """A setting, a command-line argument or an input file is unusable; the message names it and says what was expected."""


class InvalidProblemError(OptimalFrontierError, ValueError):
    """An argument of a mathematical function is unusable; the message names the argument and the first offending index."""


class InfeasibleBudgetError(InvalidProblemError):
    """The budget cannot meet the minimum rates; the message says by how much."""


class ConvergenceError(OptimalFrontierError):
    """An iteration did not reach its tolerance; never expected on valid input."""


class LoggedOut(OptimalFrontierError):  # noqa: N818  # says what a callback has found, not what went wrong with us
    """For callbacks to raise: the response shows that the spider is logged out. It counts as no visit, and the spider logs in again."""


class StateError(OptimalFrontierError):
    """The state in Redis cannot be used."""


class StateUnavailableError(StateError):
    """Redis cannot be reached, or went away; what is stored there is untouched."""


class StateForbiddenError(StateError):
    """The user that Redis knows us by lacks a permission."""


class SchemaMismatchError(StateError):
    """Redis holds state of another schema, another spider, or another type under one of our keys; it is left untouched."""
