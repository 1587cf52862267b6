"""Whatever is passed in: it works, or `InvalidProblemError` names the argument and the first offending index.

Never a warning (pytest makes them errors), an exception of numpy's or Python's own, a NaN, or a change to what the caller owns.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from each_value import each

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import (
    OptimalSolver,
    Solution,
    WCluster,
    changes_periodic,
    freshness_periodic,
    freshness_poisson,
    golden_section_search,
    periodic_rate_at,
    periodic_rates_at,
    solve_discrete,
    solve_periodic,
    solve_poisson,
    solve_posterior,
)

#: Three pages; whole numbers, so that they can be had in every dtype.
IMPORTANCE, CHANGE_RATE, RATES = (np.array(values) for values in ([1.0, 3.0, 2.0], [2.0, 1.0, 4.0], [1.0, 2.0, 3.0]))


@dataclass(frozen=True)
class Function:
    """A public function, good arguments for it, and what kinds of argument they are."""

    call: Callable[..., Any]
    arguments: dict[str, Any]
    #: Arguments with one number per page, 0 or more.
    pages: tuple[str, ...] = ()
    #: Of those: must be above 0; may be infinite; may be one number for all pages; may be left out.
    positive: tuple[str, ...] = ()
    infinite: tuple[str, ...] = ()
    scalar_too: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    #: Arguments with one number, 0 or more.
    numbers: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, **replaced: Any) -> Any:
        return self.call(**self.arguments | self.options | replaced)


def clustered(values: Any, rates: Any, frequency: Any, n_pages: Any) -> Any:
    clusters = WCluster()
    for value, rate in zip(IMPORTANCE / 4, CHANGE_RATE, strict=True):
        clusters.add(value, rate)
    return OptimalSolver(clusters=clusters).solve(values, rates, frequency, n_pages)


PAIR = {"importance": IMPORTANCE, "change_rate": CHANGE_RATE}
BUDGET = PAIR | {"bandwidth": 2.0}
#: Minima of 1 would fit, and the maxima use more than there is.
BOUNDS = {"min_rate": np.array([0.0, 0.25, 0.0]), "max_rate": np.array([1.0, 1.5, 2.0]), "bandwidth": 6.5}
POSTERIOR = {"importance": IMPORTANCE, "shape": CHANGE_RATE, "time": RATES, "bandwidth": 2.0}
BOUNDED = {"pages": ("importance", "change_rate", "min_rate", "max_rate", "cost"), "positive": ("cost",), "numbers": ("bandwidth",)} | {
    "infinite": ("max_rate",),
    "scalar_too": ("min_rate", "max_rate", "cost"),
    "optional": ("min_rate", "max_rate", "cost"),
}
FUNCTIONS = {
    "solve_discrete": Function(
        solve_discrete,
        {"importance": IMPORTANCE, "change_probability": np.array([1.0, 0.5, 0.25])},
        pages=("importance", "change_probability"),
    ),
    "solve_discrete by sorting": Function(
        solve_discrete,
        {"importance": IMPORTANCE, "change_probability": np.array([0.5, 0.5, 0.25])},
        pages=("importance", "change_probability"),
        options={"method": "sort"},
    ),
    "solve_poisson": Function(solve_poisson, BUDGET, pages=("importance", "change_rate"), numbers=("bandwidth",)),
    "solve_poisson by sorting": Function(
        solve_poisson, BUDGET, pages=("importance", "change_rate"), numbers=("bandwidth",), options={"method": "sort"}
    ),
    "solve_periodic": Function(solve_periodic, BUDGET, pages=("importance", "change_rate"), numbers=("bandwidth",)),
    "solve_periodic changes": Function(
        solve_periodic, BUDGET, pages=("importance", "change_rate"), numbers=("bandwidth",), options={"objective": "changes"}
    ),
    "solve_periodic bounds": Function(solve_periodic, BUDGET | BOUNDS | {"cost": RATES}, **BOUNDED),
    "solve_periodic hosts": Function(
        solve_periodic,
        BUDGET | BOUNDS | {"cost": RATES},
        **BOUNDED,
        options={"host": np.array([0, 1, 1]), "host_max_rate": np.array([1.0, 2.5])},
    ),
    "solve_posterior": Function(
        solve_posterior, POSTERIOR, pages=("importance", "shape", "time"), positive=("shape", "time"), numbers=("bandwidth",)
    ),
    "solve_posterior bounds": Function(
        solve_posterior, POSTERIOR | BOUNDS | {"cost": RATES}, **BOUNDED | {"pages": ("importance", "min_rate", "max_rate", "cost")}
    ),
    "OptimalSolver.solve": Function(
        OptimalSolver().solve,
        {"values": IMPORTANCE, "rates": CHANGE_RATE, "frequency": 0.5, "n_pages": 4},
        pages=("values", "rates"),
        numbers=("frequency",),
    ),
    "OptimalSolver.solve clustered": Function(
        clustered,
        {"values": IMPORTANCE / 4, "rates": CHANGE_RATE, "frequency": 0.5, "n_pages": 4},
        pages=("values", "rates"),
        numbers=("frequency",),
    ),
    "periodic_rates_at": Function(
        periodic_rates_at,
        PAIR | {"min_rate": BOUNDS["min_rate"], "max_rate": BOUNDS["max_rate"], "multiplier": 0.25},
        pages=("importance", "change_rate", "min_rate", "max_rate"),
        infinite=("max_rate", "multiplier"),
        scalar_too=("min_rate", "max_rate"),
        optional=("min_rate", "max_rate"),
        numbers=("multiplier",),
    ),
    "freshness_poisson": Function(freshness_poisson, PAIR | {"rates": RATES}, pages=("importance", "change_rate", "rates")),
    "freshness_periodic": Function(freshness_periodic, PAIR | {"rates": RATES}, pages=("importance", "change_rate", "rates")),
    "changes_periodic": Function(changes_periodic, PAIR | {"rates": RATES}, pages=("importance", "change_rate", "rates")),
    "periodic_rate_at": Function(
        periodic_rate_at,
        {"importance": 3.0, "change_rate": 1.0, "multiplier": 0.25, "min_rate": 0.0, "max_rate": 8.0},
        infinite=("max_rate",),
        numbers=("importance", "change_rate", "multiplier", "min_rate", "max_rate"),
        positive=("multiplier",),
    ),
}
PAGES = [(name, argument) for name, function in FUNCTIONS.items() for argument in function.pages]
NUMBERS = [(name, argument) for name, function in FUNCTIONS.items() for argument in function.numbers]

#: The same numbers, held in another way. None: this way cannot hold these numbers.
WAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda values: values.tolist(),
    "tuple": lambda values: tuple(values.tolist()),
    "numpy scalars": lambda values: list(values),
    "Fraction": lambda values: [Fraction(value) for value in values.tolist()],
    "Decimal": lambda values: [Decimal(value) for value in values.tolist()],
    "object array": lambda values: values.astype(object),
    "float32": lambda values: values.astype(np.float32),
    "float16": lambda values: values.astype(np.float16),
    "longdouble": lambda values: values.astype(np.longdouble),
    "int64": lambda values: whole(values, np.int64),
    "uint8": lambda values: whole(values, np.uint8),
    "big-endian floats": lambda values: values.astype(">f8"),
    "big-endian integers": lambda values: whole(values, ">i4"),
    "read-only": lambda values: frozen(values.copy()),
    "negative stride": lambda values: values[::-1].copy()[::-1],
    "every other": lambda values: np.repeat(values, 2)[::2],
    "column": lambda values: np.stack([values, values], axis=1)[:, 1],
    "unaligned": lambda values: np.frombuffer(b"\0" + values.tobytes(), np.float64, offset=1),
    "masked array without a mask": lambda values: np.ma.array(values),
    "subclass": lambda values: values.view(type("Sub", (np.ndarray,), {})),
}


def whole(values: np.ndarray, dtype: Any) -> np.ndarray | None:
    return values.astype(dtype) if (values == np.floor(values)).all() else None


def frozen(values: np.ndarray) -> np.ndarray:
    values.flags.writeable = False
    return values


def with_entry(values: np.ndarray, entry: Any) -> list[Any]:
    return [values[0], entry, *values[2:].tolist()]


#: One bad entry, at index 1.
ENTRIES: dict[str, Callable[[np.ndarray], Any]] = {
    "nan": lambda values: with_entry(values, np.nan),
    "nan in float32": lambda values: np.array(with_entry(values, np.nan), np.float32),
    "-inf": lambda values: with_entry(values, -np.inf),
    "inf": lambda values: with_entry(values, np.inf),
    "negative": lambda values: with_entry(values, -1.0),
    "barely negative": lambda values: with_entry(values, -5e-324),
    "two of them": lambda values: [values[0], -1.0, np.nan],
    "zero": lambda values: with_entry(values, 0.0),
    "None": lambda values: with_entry(values, None),
    "text in an object array": lambda values: np.array(with_entry(values, "x"), object),
    "a list in an object array": lambda values: object_array(with_entry(values, [1.0])),
    "complex in an object array": lambda values: np.array(with_entry(values, 1j), object),
    "an integer beyond floats": lambda values: with_entry(values, 10**400),
    "masked": lambda values: np.ma.array(values, mask=[False, True, False]),
}


def object_array(entries: list[Any]) -> np.ndarray:
    array = np.empty(len(entries), object)
    for at, entry in enumerate(entries):
        array[at] = entry
    return array


#: What is no sequence of three numbers.
WHOLES: dict[str, Any] = {
    "None": None,
    "text": "abc",
    "bytes": b"abc",
    "texts": ["1", "2", "3"],
    "complex": np.array([1j, 2.0, 3.0]),
    "one complex": 1j,
    "times": np.array(["2026-01-01", "2026-01-02", "2026-01-03"], "datetime64[s]"),
    "time spans": np.array([1, 2, 3], "timedelta64[s]"),
    "dict": {0: 1.0, 1: 1.0, 2: 1.0},
    "set": {1.0, 2.0, 3.0},
    "generator": (value for value in (1.0, 2.0, 3.0)),
    "an object": object(),
    "records": np.zeros(3, [("a", float)]),
    "void": np.zeros(3, "V8"),
    "one row": [[1.0, 1.0, 1.0]],
    "one column": [[1.0], [1.0], [1.0]],
    "ragged": [[1.0], [1.0, 2.0], []],
    "3-d": np.ones((3, 1, 1)),
    "one too few": np.ones(2),
    "one too many": np.ones(4),
    "none at all": np.zeros(0),
    "none at all, as a list": [],
    "one number": 1.0,
}

#: What is no number.
NO_NUMBERS: dict[str, Any] = {
    "None": None,
    "text": "x",
    "a number as text": "1.0",
    "bytes": b"1",
    "complex": 1j,
    "one in a list": [1.0],
    "array": np.ones(3),
    "empty": [],
    "dict": {},
    "an object": object(),
    "nan": float("nan"),
    "numpy nan": np.float32("nan"),
    "-inf": float("-inf"),
    "inf": float("inf"),
    "negative": -1.0,
    "negative integer": -1,
    "barely negative": -5e-324,
    "an integer beyond floats": 10**400,
    "zero": 0.0,
    "masked": np.ma.masked,
    "a time": np.datetime64("2026-01-01"),
}
#: The number 1, held in another way.
ONES: dict[str, Any] = {
    "int": 1,
    "bool": True,
    "numpy float": np.float64(1.0),
    "float32": np.float32(1.0),
    "int8": np.int8(1),
    "0-d array": np.array(1.0),
    "0-d big-endian": np.array(1.0, ">f8"),
    "Fraction": Fraction(1),
    "Decimal": Decimal(1),
}
#: Numbers at the ends of what floats hold.
EXTREMES: dict[str, np.ndarray] = {
    "huge": np.full(3, 1e308),
    "largest": np.full(3, np.finfo(float).max),
    "denormal": np.full(3, 5e-324),
    "smallest normal": np.full(3, np.finfo(float).tiny),
    "one huge": np.array([1.0, 1e308, 2.0]),
    "one denormal": np.array([1.0, 5e-324, 2.0]),
    "huge and denormal": np.array([1e308, 5e-324, 1.0]),
    "zeros": np.zeros(3),
    "minus zeros": np.full(3, -0.0),
    "one and zeros": np.array([0.0, 1.0, 0.0]),
    "bools": np.array([True, False, True]),
}


def numbers_of(answer: Any) -> np.ndarray:
    """All numbers of an answer, the rates first."""
    if isinstance(answer, Solution):
        others = [answer.objective, answer.multiplier, answer.unused, answer.kkt_residual]
        return np.concatenate([answer.rates, others])
    return np.atleast_1d(np.asarray(answer))


@functools.cache
def usual_numbers(name: str) -> np.ndarray:
    """All numbers of the answer to a function's good arguments."""
    return numbers_of(FUNCTIONS[name]())


def check(function: Function, answer: Any, replaced: dict[str, Any]) -> None:
    """No NaN; rates are finite, 0 or more, and with what is unused they make the budget."""
    numbers = numbers_of(answer)
    assert numbers.dtype == np.float64
    assert not np.isnan(numbers).any()
    assert (numbers >= 0).all()
    if isinstance(answer, Solution):
        assert np.isfinite(answer.rates).all()
        given = function.arguments | replaced
        budget = float(given.get("bandwidth", 1.0))
        spent = float(np.sum(answer.rates * np.asarray(given.get("cost", 1.0), float)))
        assert spent + answer.unused == pytest.approx(budget, rel=1e-9)


def refused(function: Function, argument: str, index: int | None, replaced: dict[str, Any], also: tuple[str, ...] = ()) -> None:
    """The call is refused, and the message names the argument (or one of the others that do not fit to it) and the index."""
    names = "|".join(map(re.escape, (argument, *also)))
    pattern = rf"\b(?:{names})\b" if index is None else rf"\b{re.escape(argument)}\[{index}\]"
    with pytest.raises(InvalidProblemError, match=pattern):
        function(**replaced)


def works_or_is_refused(function: Function, replaced: dict[str, Any]) -> None:
    """A refusal names an argument; minima that do not fit are an error of their own."""
    try:
        answer = function(**replaced)
    except InvalidProblemError as error:
        message = str(error)
    else:
        check(function, answer, replaced)
        return
    assert re.search(rf"\b({'|'.join(function.arguments)}|minimum rates)\b", message)


@each("way", WAYS)
@pytest.mark.parametrize(("name", "argument"), PAGES)
def test_the_same_numbers_held_in_another_way_give_the_same_answer(name, argument, way):
    """And what the caller owns stays as it was."""
    function = FUNCTIONS[name]
    given = WAYS[way](function.arguments[argument])
    if given is None:
        return
    before = [np.array(value, copy=True) for value in [given, *function.arguments.values()]]
    answer = function(**{argument: given})
    np.testing.assert_allclose(numbers_of(answer), usual_numbers(name), rtol=1e-12, atol=1e-12)
    check(function, answer, {})
    after = [np.asarray(value) for value in [given, *function.arguments.values()]]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@each("entry", ENTRIES)
@pytest.mark.parametrize(("name", "argument"), PAGES)
def test_a_bad_entry_is_named_with_its_index(name, argument, entry):
    function = FUNCTIONS[name]
    good = (entry == "zero" and argument not in function.positive) or (entry == "inf" and argument in function.infinite)
    replaced = {argument: ENTRIES[entry](function.arguments[argument])}
    if entry == "zero" and argument == "max_rate":
        replaced["min_rate"] = np.zeros(3)
    if good:
        check(function, function(**replaced), replaced)
    else:
        refused(function, argument, 1, replaced)


@each("whole", WHOLES)
@pytest.mark.parametrize(("name", "argument"), PAGES)
def test_what_is_no_number_per_page_is_refused_by_name(name, argument, whole):
    """Where lengths differ, the message may name another argument that does not fit."""
    function = FUNCTIONS[name]
    replaced = {argument: WHOLES[whole]}
    if (WHOLES[whole] is None and argument in function.optional) or (whole == "one number" and argument in function.scalar_too):
        check(function, function(**replaced), replaced if WHOLES[whole] is not None else {argument: 1.0})
        return
    one_page = whole == "one number" and name == "periodic_rates_at"
    lengths = whole.startswith(("one too", "none at all")) or one_page
    refused(function, argument, None, replaced, tuple(function.arguments) if lengths else ())


@each("number", NO_NUMBERS)
@pytest.mark.parametrize(("name", "argument"), NUMBERS)
def test_what_is_no_number_is_refused_by_name(name, argument, number):
    function = FUNCTIONS[name]
    replaced = {argument: NO_NUMBERS[number]}
    if (number == "inf" and argument in function.infinite) or (number == "zero" and argument not in function.positive):
        replaced |= {"min_rate": 0.0} if "min_rate" in function.arguments else {}
        check(function, function(**replaced), replaced)
    else:
        refused(function, argument, None, replaced)


@each("way", ONES)
@pytest.mark.parametrize(("name", "argument"), [*NUMBERS, *((n, a) for n, a in PAGES if a in FUNCTIONS[n].scalar_too)])
def test_a_number_held_in_another_way_is_the_same_number(name, argument, way):
    function = FUNCTIONS[name]
    answers = [numbers_of(function(**{argument: value})) for value in (ONES[way], 1.0)]
    np.testing.assert_allclose(*answers, rtol=1e-6 if way == "float32" else 1e-12)


@each("extreme", EXTREMES)
@pytest.mark.parametrize(("name", "argument"), PAGES)
def test_extremes_work_or_are_refused(name, argument, extreme):
    """With everything else as it is: bounds that cross, and minima that do not fit, are errors that say so."""
    function = FUNCTIONS[name]
    replaced = {argument: EXTREMES[extreme]}
    works_or_is_refused(function, replaced)


@each("extreme", EXTREMES)
@each("other", EXTREMES)
@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if len(function.pages) > 1])
def test_extremes_of_two_arguments_work_or_are_refused(name, extreme, other):
    function = FUNCTIONS[name]
    replaced = dict(zip(function.pages, (EXTREMES[extreme], EXTREMES[other]), strict=False))
    works_or_is_refused(function, replaced)


@each("number", [1e308, np.finfo(float).max, 1e150, 1e-150, 1e-300, 5e-324])
@pytest.mark.parametrize(("name", "argument"), NUMBERS)
def test_extreme_numbers_work_or_are_refused(name, argument, number):
    function = FUNCTIONS[name]
    replaced = {argument: number}
    works_or_is_refused(function, replaced)


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.pages])
def test_no_pages_at_all_are_a_problem_like_any_other(name):
    function = FUNCTIONS[name]
    none: dict[str, Any] = {argument: [] for argument in function.pages}
    if "time" in function.arguments:
        none |= {"shape": [], "time": []}
    if "host" in function.options:
        none["host"] = []
    check(function, function(**none), {"cost": np.zeros(0)} if "cost" in function.arguments else {})


@each("choice", ["speed", "", None, 3, b"freshness", ["freshness"], np.array(["freshness", "changes"]), float("nan")])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_unknown_choices_are_refused_by_name(name, choice):
    """`objective` and `method`, where there is one."""
    function = FUNCTIONS[name]
    if function.call in (solve_periodic, periodic_rates_at, periodic_rate_at):
        refused(function, "objective", None, {"objective": choice})
    elif function.call in (solve_poisson, solve_discrete):
        refused(function, "method", None, {"method": choice})


HOSTED = FUNCTIONS["solve_periodic hosts"]
GOOD_HOSTS: dict[str, dict[str, Any]] = {
    "list": {"host": [0, 1, 1]},
    "whole floats": {"host": [0.0, 1.0, 1.0]},
    "big-endian": {"host": np.array([0, 1, 1], ">i8")},
    "uint64": {"host": np.array([0, 1, 1], np.uint64)},
    "read-only": {"host": frozen(np.array([0, 1, 1]))},
    "negative stride": {"host": np.array([1, 1, 0])[::-1]},
    "object": {"host": np.array([0, 1, 1], object)},
    "more hosts than pages": {"host_max_rate": [0.5, 1.0, 0.0, np.inf]},
    "one limit": {"host_max_rate": 1.0},
    "no limit": {"host_max_rate": np.inf},
    "hashes": {"host": [2**62, 7, 7], "host_max_rate": 1.0},
    "huge limits": {"host_max_rate": [1e308, 1e308]},
    "denormal limits": {"host_max_rate": [5e-324, 1.0], "min_rate": 0.0},
    "a host without bandwidth": {"host_max_rate": [0.0, 1.0]},
    "no hosts": {"host": None, "host_max_rate": None},
    "hosts without limits": {"host": [0, 1, 1], "host_max_rate": None},
}


@each("case", GOOD_HOSTS)
def test_hosts_in_every_form(case):
    check(HOSTED, HOSTED(**GOOD_HOSTS[case]), {})


BAD_HOSTS: list[tuple[dict[str, Any], str]] = [
    ({"host": [0, -1, 1]}, r"host\[1\]"),
    ({"host": [0, 0.5, 1]}, r"host\[1\]"),
    ({"host": [0, np.nan, 1]}, r"host\[1\]"),
    ({"host": [0, np.inf, 1]}, r"host\[1\]"),
    ({"host": [0, 1e300, 1]}, r"host\[1\]"),
    ({"host": [0, 1e300, 1], "host_max_rate": 1.0}, r"host\[1\]"),
    ({"host": np.array([0, 2**63, 1], np.uint64), "host_max_rate": 1.0}, r"host\[1\]"),
    ({"host": [0, None, 1]}, r"host\[1\]"),
    ({"host": [0, 2, 1]}, r"host\[1\]"),
    ({"host": [0, 2**64, 1], "host_max_rate": 1.0}, r"host\[1\]"),
    ({"host": np.ma.array([0, 1, 1], mask=[False, True, False])}, r"host\[1\]"),
    ({"host": ["a", "b", "b"]}, "host"),
    ({"host": [True, False, False]}, "host"),
    ({"host": [0j, 1, 1]}, "host"),
    ({"host": [0, 1]}, "host"),
    ({"host": [[0], [1], [1]]}, "host"),
    ({"host": []}, "host"),
    ({"host": 0}, "host"),
    ({"host": None}, "host"),
    ({"host_max_rate": [0.5, np.nan]}, r"host_max_rate\[1\]"),
    ({"host_max_rate": [0.5, -1.0]}, r"host_max_rate\[1\]"),
    ({"host_max_rate": [0.5, None]}, r"host_max_rate\[1\]"),
    ({"host_max_rate": [[0.5, 1.0]]}, "host_max_rate"),
    ({"host_max_rate": "fast"}, "host_max_rate"),
    ({"host_max_rate": np.nan}, "host_max_rate"),
    ({"host_max_rate": -1.0}, "host_max_rate"),
    ({"host_max_rate": 1j}, "host_max_rate"),
    ({"host_max_rate": []}, "host"),
    ({"host_max_rate": [0.5]}, r"host\[1\]"),
]


@each("case", BAD_HOSTS)
def test_bad_hosts_are_named(case):
    replaced, message = case
    with pytest.raises(InvalidProblemError, match=rf"\b{message}"):
        HOSTED(**replaced)


@each("bad", [0, -1, 1.5, float("nan"), float("inf"), None, "x", [3], 10**400, 1j])
def test_a_number_of_clusters_is_a_whole_number_above_zero(bad):
    with pytest.raises(InvalidProblemError, match="n_clusters"):
        WCluster(bad)


@each("bad", ["wide", None, 3, ["log"], np.array(["log", "equal"])])
def test_an_unknown_spacing_is_refused(bad):
    with pytest.raises(InvalidProblemError, match="spacing"):
        WCluster(10, bad)


#: As above, less what is fine for a page: 0, and for its clamped value a negative number or an infinite one.
NOT_A_VALUE = {name: value for name, value in NO_NUMBERS.items() if name != "zero"}


@each("number", NOT_A_VALUE)
@pytest.mark.parametrize("method", ["add", "delete"])
def test_a_page_of_a_cluster_has_two_numbers(method, number):
    clusters = WCluster()
    clusters.add(0.5, 1.0)
    for argument, values in (("page_value", (NOT_A_VALUE[number], 1.0)), ("page_rate", (0.5, NOT_A_VALUE[number]))):
        with pytest.raises(InvalidProblemError, match=argument):
            getattr(clusters, method)(*values)
    assert clusters.count.sum() == 1
    assert clusters.rate.sum() == 1.0


@each("number", [name for name in NOT_A_VALUE if "inf" not in name and "negative" not in name])
def test_what_is_no_number_has_no_cluster(number):
    for method in ("clamp", "cluster_index"):
        with pytest.raises(InvalidProblemError, match=r"\bw\b"):
            getattr(WCluster(), method)(NOT_A_VALUE[number])


def test_every_number_has_a_cluster():
    assert [WCluster(7).cluster_index(w) for w in (-np.inf, -1.0, 0.0, 5e-324, 1.0, 1e308, np.inf)] == [0, 0, 0, 0, 6, 6, 6]
    assert [WCluster(7, "log").cluster_index(w) for w in (-np.inf, 0.0, 5e-324, 1.0, np.inf)] == [0, 0, 0, 6, 6]


@each("bad", [2, -1, 0, float("nan"), float("inf"), None, "x", [4], 10**400, 1j])
def test_a_number_of_pages_is_at_least_that_of_the_values(bad):
    with pytest.raises(InvalidProblemError, match="n_pages"):
        OptimalSolver().solve(IMPORTANCE, CHANGE_RATE, 0.5, bad)


@pytest.mark.parametrize("bad", ["clusters", 3, object()], ids=["text", "number", "object"])
def test_clusters_are_a_cluster_object(bad):
    with pytest.raises(InvalidProblemError, match="clusters"):
        OptimalSolver(clusters=bad).solve(IMPORTANCE / 4, CHANGE_RATE, 0.5, 3)


def valley(x: float) -> float:
    return (x - 0.3) ** 2


@each("number", [name for name in NO_NUMBERS if name not in ("zero", "negative", "negative integer", "barely negative")])
@pytest.mark.parametrize("argument", ["xmin", "xmax"])
def test_ends_of_a_search_are_finite_numbers(argument, number):
    with pytest.raises(InvalidProblemError, match=argument):
        golden_section_search(**{"f": valley, "xmin": 0.0, "xmax": 1.0, "eps": 1e-3} | {argument: NO_NUMBERS[number]})


@each("number", [name for name in NO_NUMBERS if name != "inf"])
def test_the_accuracy_of_a_search_is_a_number_above_zero(number):
    with pytest.raises(InvalidProblemError, match="eps"):
        golden_section_search(valley, 0.0, 1.0, NO_NUMBERS[number])


@pytest.mark.parametrize("f", [None, 3, "f"], ids=repr)
def test_what_is_searched_is_a_function(f):
    with pytest.raises(InvalidProblemError, match=r"\bf\b"):
        golden_section_search(f, 0.0, 1.0, 1e-3)


@pytest.mark.parametrize("value", [float("nan"), None, "x", 1j, np.ones(2)], ids=repr)
def test_what_a_searched_function_returns_is_a_number(value):
    """The message names f and where it gave something else; everywhere, or at some place only."""
    with pytest.raises(InvalidProblemError, match=r"\bf\("):
        golden_section_search(lambda x: value, 0.0, 1.0, 1e-3)
    with pytest.raises(InvalidProblemError, match=r"\bf\("):
        golden_section_search(lambda x: value if 0.29 < x < 0.31 else abs(x - 0.3), 0.0, 1.0, 1e-3)


@pytest.mark.parametrize("ends", [(1.0, 0.0), (1.0, 1.0), (-1e308, 1e308), (0.0, 5e-324), (0.0, np.finfo(float).max)], ids=str)
def test_a_search_between_odd_ends_ends(ends):
    """None where nothing lies between them; never a NaN or an infinite place."""
    found = golden_section_search(lambda x: abs(x - 0.3), *ends, 1e-3)
    if not ends[0] < ends[1]:
        assert found is None
    elif found is not None:
        places, values = found
        assert np.isfinite(places).all()
        assert places[0] < places[1] < places[2]
        assert values[0] > values[1] < values[2]


def test_a_searched_function_may_return_infinity():
    found = golden_section_search(lambda x: abs(x - 0.3) if 0.2 < x < 0.4 else np.inf, 0.0, 1.0, 1e-3)
    assert found is not None
    assert found[0][1] == pytest.approx(0.3, abs=1e-3)


def test_a_probability_above_one_is_named():
    with pytest.raises(InvalidProblemError, match=r"change_probability\[1\]"):
        solve_discrete(IMPORTANCE, [0.5, 1.0000001, 0.5])


@pytest.mark.parametrize("solve", [solve_periodic, solve_posterior])
def test_bounds_that_cross_are_named(solve):
    arguments = [IMPORTANCE, CHANGE_RATE, *([RATES] if solve is solve_posterior else []), 5.0]
    with pytest.raises(InvalidProblemError, match=r"min_rate\[1\]"):
        solve(*arguments, min_rate=[0.0, 0.5, 0.0], max_rate=[1.0, 0.4, 0.0])
    with pytest.raises(InvalidProblemError, match=r"min_rate\[0\]"):
        solve(*arguments, min_rate=2.0, max_rate=1.0)


@pytest.mark.parametrize("minimum", [1e308, [1e308, 1e308, 1e308], [1e200, 1.0, 1e308]], ids=["one", "all", "some"])
@pytest.mark.parametrize("name", ["solve_periodic bounds", "solve_periodic hosts", "solve_posterior bounds"])
def test_minima_beyond_all_floats_do_not_fit(name, minimum):
    """Without maxima, so that nothing else is wrong."""
    with pytest.raises(InvalidProblemError, match=r"min_rate|minimum rates"):
        FUNCTIONS[name](min_rate=minimum, max_rate=None)
