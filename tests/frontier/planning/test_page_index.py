"""Where pages stand in a table."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.frontier.planning.page_columns import PAGE, Pages
from optimal_frontier.frontier.planning.page_index import PageIndex, keys_of

PROFILE = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def ids_of(numbers: list[int]) -> np.ndarray:
    """Identities that agree in most bytes, as no hash would."""
    return np.frombuffer(b"".join(number.to_bytes(12, "little") for number in numbers), "V12")


@PROFILE
@given(
    joins=st.lists(st.sets(st.integers(0, 400), min_size=1, max_size=60), min_size=1, max_size=8),
    leaves=st.lists(st.booleans(), min_size=8, max_size=8),
    asked=st.lists(st.integers(0, 800), max_size=50),
)
def test_pages_are_found_where_they_stand(joins, leaves, asked):
    """However they joined and left; those that are not there are nowhere."""
    pages, index, model = Pages.none(), PageIndex(), list[int]()
    for some, leave in zip(joins, leaves, strict=False):
        new = sorted(some - set(model))
        pages.append(len(new), id=ids_of(new), median=np.nan)
        index.add(keys_of(ids_of(new)), pages)
        model += new
        if leave:
            kept = np.arange(len(model)) % 3 > 0
            pages.keep(kept)
            index.rebuild(pages)
            model = [number for number, stays in zip(model, kept, strict=True) if stays]
    found = index.find(ids_of(asked), keys_of(ids_of(asked)), pages)
    assert found.tolist() == [model.index(number) if number in model else -1 for number in asked]
    assert [int.from_bytes(page, "little") for page in pages["id"].tolist()] == model


@PROFILE
@given(
    count=st.integers(0, 200),
    asked=st.lists(st.tuples(st.integers(0, 250), st.integers(1, 60)), max_size=8),
)
def test_pages_that_stand_in_order_are_found_alike(count, asked):
    """Runs that begin anywhere, end behind the table, or are broken by others."""
    pages, index = Pages.none(), PageIndex()
    ids = ids_of(list(range(count)))
    pages.append(count, id=ids)
    index.add(keys_of(ids), pages)
    some = ids_of([number for first, many in asked for number in range(first, first + many)])
    assert (index.find_in_order(some, keys_of(some), pages) == index.find(some, keys_of(some), pages)).all()


def test_many_pages_are_found_again():
    """More than the first slots hold, by far."""
    pages, index = Pages.none(), PageIndex()
    ids = np.frombuffer(np.random.default_rng(0).bytes(12 * 100_000), "V12")
    for start in range(0, 100_000, 9999):
        some = ids[start : start + 9999]
        pages.append(len(some), id=some)
        index.add(keys_of(some), pages)
    assert (index.find(ids, keys_of(ids), pages) == np.arange(100_000)).all()
    others = np.frombuffer(np.random.default_rng(1).bytes(12 * 1000), "V12")
    assert (index.find(others, keys_of(others), pages) == -1).all()


def test_a_page_takes_little_room():
    """What ten million of them take is most of the memory of a planner."""
    assert PAGE.itemsize <= 100
