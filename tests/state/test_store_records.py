"""Records: plain data goes through unchanged, everything else is refused, and nothing is ever pickled."""

from __future__ import annotations

import ast
import collections
import datetime
import enum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optimal_frontier
from optimal_frontier.state.records import NewPage, Observation, decode_record, encode_record

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters()),
    st.binary(),
)
KEYS = st.recursive(SCALARS, lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=3)), max_leaves=4)
PLAIN = st.recursive(
    st.one_of(SCALARS, KEYS, st.sets(KEYS, max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(KEYS, inner, max_size=4),
    ),
    max_leaves=20,
)


def same(left: object, right: object) -> bool:
    """Equal, and of equal types all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(map(same, left, right)) and all(same(left[key], right[key]) for key in left)
    return left == right


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(PLAIN)
def test_plain_data_comes_back_as_it_was(value):
    """None, numbers, text (lone surrogates too), bytes, lists, tuples, sets and dicts of any such keys, however nested."""
    assert same(decode_record(encode_record(value)), value)


class Colour(enum.IntEnum):
    RED = 3


class Text(str):
    __slots__ = ("extra",)


class Blob(bytes):
    pass


Point = collections.namedtuple("Point", "x y")  # the untyped kind is what user code has


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Text("a"), "a"),
        (Blob(b"a"), b"a"),
        (Colour.RED, 3),
        (np.float64(0.5), 0.5),
        (np.str_("b"), "b"),
        (np.bytes_(b"b"), b"b"),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.defaultdict(list, a=[1]), {"a": [1]}),
        (Point(1, 2), (1, 2)),
        (bytearray(b"x"), b"x"),
        ({Text("k"): Text("v")}, {"k": "v"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_subclasses_of_plain_types_are_stored_as_what_they_are(value, plain):
    assert same(decode_record(encode_record(value)), plain)


def nested(depth: int, wrap) -> object:
    value: object = 0
    for _ in range(depth):
        value = wrap(value)
    return value


def contains_itself(kind: str) -> object:
    inner: list[object] = []
    inner.append({"list": inner, "tuple": (inner,), "dict": {"a": inner}}[kind])
    return inner


@pytest.mark.parametrize(
    "value",
    [
        object(),
        lambda: None,
        np.int64(1),
        np.bool_(True),
        np.array([1.0]),
        datetime.datetime(2020, 1, 1),
        2**64,
        -(2**63) - 1,
        1 + 2j,
        {"a": [object()]},
        ({1: {object()}},),
        contains_itself("list"),
        contains_itself("tuple"),
        contains_itself("dict"),
        nested(2000, lambda inner: [inner]),
        nested(2000, lambda inner: (inner,)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_plain_data_is_refused(value):
    """With one of three exceptions that the scheduler turns into "fetch once, from memory"; never by recursing without end."""
    with pytest.raises((TypeError, OverflowError, ValueError)):
        encode_record(value)


def test_nothing_in_the_package_unpickles():
    """Whoever can write to Redis must not be able to run code: no module that does, and no eval or exec."""
    forbidden_modules = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle", "joblib"}
    found = []
    root = Path(optimal_frontier.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec"):
                found.append(f"{path.relative_to(root)}:{node.lineno} {node.func.id}")
            elif isinstance(node, ast.keyword) and node.arg == "allow_pickle" and getattr(node.value, "value", True):
                found.append(f"{path.relative_to(root)}:{node.lineno} allow_pickle")
            bad = [name for name in names if name.split(".")[0] in forbidden_modules]
            found += [f"{path.relative_to(root)}:{node.lineno} {name}" for name in bad]
    assert found == []


def test_infinite_bounds_reach_the_scripts_as_their_stand_in():
    """Lua's tonumber reads no "inf"."""
    arguments = NewPage(b"f" * 20, "h", b"r", max_rate=np.inf).arguments()
    assert arguments[5] == "1e300"
    assert "inf" not in Observation(0, b"t", "ok", float("-inf")).arguments(0.0)


def test_the_age_of_a_response_is_never_below_zero():
    """Local clocks of threads may be read in either order."""
    assert float(Observation(0, b"t", "ok", responded=10.0).arguments(9.0)[6]) == 0.0
    assert float(Observation(0, b"t", "ok", responded=10.0).arguments(12.5)[6]) == 2.5
