"""Forgetting at a half-life."""

import numpy as np
import pytest

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation import forget
from optimal_frontier.estimation.forgetting import forget_one


def test_half_is_left_after_a_half_life_and_nothing_in_the_end():
    shape, time = forget([5.0, 5.0, 5.0], [21.0, 21.0, 21.0], [0.0, 7.0, 7e4], 7.0, 1.0, 2.0)
    assert shape.tolist() == [5.0, 2.75, 0.5]
    assert time.tolist() == [21.0, 11.0, 1.0]
    assert forget_one(5.0, 21.0, 7.0, 7.0, 1.0, 2.0) == (2.75, 11.0)


def test_twice_a_while_is_twice_as_long():
    once = forget([5.0], [21.0], [4.0], 7.0, 2.0, 3.0)
    assert np.concatenate(forget(*once, [5.0], 7.0, 2.0, 3.0)) == pytest.approx(np.concatenate(forget([5.0], [21.0], [9.0], 7.0, 2.0, 3.0)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shape": [0.0]}, "shape[0]"),
        ({"elapsed": [-1.0]}, "elapsed[0]"),
        ({"half_life": 0.0}, "half_life"),
        ({"prior_time": 0.0}, "prior_time"),
    ],
)
def test_bad_input_is_named(changed, message):
    arguments = {"shape": [1.0], "time": [1.0], "elapsed": [1.0], "half_life": 1.0, "prior_shape": 1.0, "prior_time": 1.0} | changed
    with pytest.raises(InvalidProblemError, match="expected a") as error:
        forget(**arguments)
    assert message in str(error.value)
