"""Any renewal process, from the tail of the times between updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization.problem import Floats
from optimal_frontier.papers.wolf.update_models.evenly_spaced import EvenlySpaced, Kernel
from optimal_frontier.papers.wolf.update_models.model import page_parameters

Tail = Callable[[Floats], Floats]
#: The rule's variable runs over this range: what is left out at either end is below 1e-17 of a gap, and below 1e-56.
_LOWEST, _HIGHEST = -4.4, 3.3
#: Halvings of the step, 1/8 at first, at most.
_LEVELS: Final = 10
#: Change from one step to half of it, absolutely, at which the sum is taken; the next would be smaller by far.
_CHANGE: Final = 1e-10
#: Excess over 1 of lambda x the integral of the tail at which mean and tail contradict each other.
_EXCESS: Final = 1e-3
#: Distance from [0, 1] at which a probability is still one.
_ROUNDING: Final = 1e-9


class Renewal(EvenlySpaced):
    """Independent times between updates with any tail.

    Parameters
    ----------
    tail : callable
        ``tail(t)`` is the probability that a time between updates exceeds t >= 0: an array in, an array of its shape out. With one mean
        per page, t has shape (n,), and an entry may have a tail of its own.
    mean : float or array_like (n,)
        Mean time between updates, the integral of the tail, > 0.

    Raises
    ------
    InvalidProblemError
        A mean is not positive. On evaluation: the tail does not answer with one number in [0, 1] per time, or it integrates to more
        than the mean.

    Notes
    -----
    The integrals are summed by the tanh-sinh rule, with steps halved from 1/8 until A changes by less than 1e-10, 1/4096 at the last:
    500 evaluations of a smooth tail for each different number of crawls, 30,000 at most. A is within 1e-10 for tails that are smooth in
    log(t), infinite slopes at 0 included, and gaps from a millionth of the mean to a million times it. A tail with jumps (fixed times
    between updates) takes all evaluations, and leaves an error of up to 3e-4.

    References
    ----------
    Wolf et al. 2002, section 2.3.2; Takahasi and Mori 1974.

    Examples
    --------
    >>> Renewal(lambda t: np.exp(-t), mean=1.0).staleness([0, 1, 9], interval=1.0).round(6)
    array([0.367879, 0.213061, 0.048374])
    """

    _per_page = ("mean",)

    def __init__(self, tail: Tail, mean: ArrayLike) -> None:
        if not callable(tail):
            raise InvalidProblemError(f"tail is {tail!r}; expected a function of time")
        self.mean: Floats = page_parameters({"mean": mean})["mean"]
        self.tail = tail
        self._pages = self.mean.shape

    def part(self, pages: slice | NDArray[np.int64]) -> Self:
        """Return the model of some of the pages, in any order and as often as is liked. The tail is still evaluated for all."""
        few = super().part(pages)
        if few is not self:
            whole, n = self._probability, len(self)
            which = np.arange(n)[pages]
            order = np.argsort(which, kind="stable")
            turn = np.empty(which.size, np.int64)  # how often the page was there before
            turn[order] = np.arange(which.size) - np.searchsorted(which[order], which[order])
            turns = [np.flatnonzero(turn == again) for again in range(int(turn.max(initial=-1)) + 1)]

            def tail(times: Floats) -> Floats:
                answer = np.empty(times.shape)
                for some in turns:
                    everyone = np.zeros(n)
                    everyone[which[some]] = times[some]
                    answer[some] = whole(everyone)[which[some]]
                return answer

            few.tail = tail
        return few

    def _sweep_row(self, kernel: Kernel, row: Floats, answer: Floats, length: float) -> None:
        if self._pages:  # the tail belongs to the row as a whole
            answer[:] = kernel(self, row, length)
        else:  # one tail: once for each different number of crawls
            different, where = np.unique(row, return_inverse=True)
            answer[:] = kernel(self, different, length)[where]

    def _stale(self, gap: Floats) -> Floats:
        return np.minimum(self._integrals(gap)[0], 1.0)

    def _late(self, gap: Floats) -> Floats:
        return self._integrals(gap)[1]

    def _density(self, age: Floats) -> Floats:
        return self._probability(age) / self.mean

    def _integrals(self, gap: Floats) -> tuple[Floats, Floats]:
        """``lambda d int_0^1 (1 - v) G(d v) dv``, and the same with v in the place of 1 - v."""
        early, late = np.zeros(gap.shape), np.zeros(gap.shape)
        last = np.full(gap.shape, np.inf)
        updates = gap / self.mean
        step = 0.25
        for level in range(_LEVELS):
            step *= 0.5
            first = np.ceil(_LOWEST / step)
            steps = np.arange(first, np.floor(_HIGHEST / step) + 1)
            for at in steps * step if level == 0 else steps[steps % 2 == 1] * step:
                share, rest, weight = _node(at)
                term = weight * self._probability(gap * share)
                early += rest * term
                late += share * term
            now = early * step * updates
            if np.all(np.abs(now - last) <= _CHANGE):
                break
            last = now
        stale, falls = early * step * updates, late * step * updates
        if np.any(stale + falls > 1.0 + _EXCESS):
            at = int(np.argmax(stale + falls))
            where = f"mean[{at}]" if self._pages else "mean"
            raise InvalidProblemError(f"{where} is {np.broadcast_to(self.mean, gap.shape)[at]}, but the tail integrates to more than that")
        return stale, falls

    def _probability(self, times: Floats) -> Floats:
        answer = np.asarray(self.tail(times), dtype=np.float64)
        if answer.shape != times.shape:
            raise InvalidProblemError(f"tail answers with shape {answer.shape} for times of shape {times.shape}")
        good = (answer >= -_ROUNDING) & (answer <= 1 + _ROUNDING)
        if not good.all():
            at = int(np.argmin(good))
            raise InvalidProblemError(f"tail({times[at]}) is {answer[at]}; expected a probability")
        return np.clip(answer, 0.0, 1.0)


def _node(at: float) -> tuple[float, float, float]:
    """``v``, ``1 - v`` and ``dv / ds`` for ``v = 1 / (1 + exp(-pi sinh s))``."""
    bent = np.pi * np.sinh(at)
    share, rest = 1.0 / (1.0 + np.exp(-bent)), 1.0 / (1.0 + np.exp(bent))
    return float(share), float(rest), float(np.pi * np.cosh(at) * share * rest)
