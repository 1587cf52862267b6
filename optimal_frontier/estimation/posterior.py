"""The belief about one page's change rate, in two numbers."""

from __future__ import annotations

from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.estimation.filtering import update_one
from optimal_frontier.estimation.quantile import median_one, posterior_quantile
from optimal_frontier.validation import probability_array, scalar


class RatePosterior:
    """Gamma posterior of the change rate of one page, in constant memory.

    Parameters
    ----------
    shape : float
        Gamma shape of the prior, > 0: how many changes it is worth.
    time : float
        Gamma inverse scale of the prior, > 0: over how much time. Its unit is that of all intervals, and rates are per that unit;
        shape / time is the prior guess of the rate.

    Raises
    ------
    InvalidProblemError
        If an argument is not a positive finite number.

    Notes
    -----
    Assumed-density filtering, see `optimal_frontier.estimation.filtering`. `update_posterior` does the same for many pages at once.

    Examples
    --------
    >>> posterior = RatePosterior(shape=1.0, time=10.0)
    >>> posterior.update(20.0, changed=False)
    >>> posterior.shape, posterior.time
    (1.0, 30.0)
    >>> posterior.update(5.0, changed=True)
    >>> low, high = posterior.interval(0.95)
    >>> low < posterior.median < posterior.mean < high
    True
    """

    __slots__ = ("_shape", "_time")

    def __init__(self, shape: float = 1.0, time: float = 1.0) -> None:
        self._shape = scalar("shape", shape, positive=True)
        self._time = scalar("time", time, positive=True)

    def update(self, interval: float, changed: bool) -> None:
        """Take in one visit.

        Parameters
        ----------
        interval : float
            Time since the last successful visit, > 0.
        changed : bool
            Whether the page had changed. For a visit that gave no bit, do not call this.

        Raises
        ------
        InvalidProblemError
            If `interval` is not a positive finite number or `changed` not a boolean; the posterior stays as it was.
        """
        interval = scalar("interval", interval, positive=True)
        # True, 1 and numpy's True are equal; None and "no" are equal to neither
        if changed != True and changed != False:  # noqa: E712
            raise InvalidProblemError(f"changed is {changed!r}; expected a boolean")
        self._shape, self._time = update_one(self._shape, self._time, interval, bool(changed))

    @property
    def shape(self) -> float:
        """Gamma shape, > 0; never falls."""
        return self._shape

    @property
    def time(self) -> float:
        """Gamma inverse scale, > 0; never falls."""
        return self._time

    @property
    def mean(self) -> float:
        """Posterior mean of the change rate, shape / time."""
        return self._shape / self._time

    @property
    def median(self) -> float:
        """Posterior median of the change rate, about (shape - 1/3) / time; relative error below 1e-9."""
        return median_one(self._shape, self._time)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Central credible interval of the change rate.

        Parameters
        ----------
        level : float
            Posterior probability inside it, strictly between 0 and 1.

        Returns
        -------
        low, high : float
            The quantiles at (1 - level) / 2 and (1 + level) / 2, relative error below 1e-10.

        Raises
        ------
        InvalidProblemError
            If `level` is not strictly between 0 and 1.
        """
        inside = float(probability_array("level", level))
        tail = max((1.0 - inside) / 2.0, 1e-300)
        low, high = posterior_quantile(self._shape, self._time, [tail, min(1.0 - tail, 1.0 - 2.0**-53)]).tolist()
        return low, high

    def __repr__(self) -> str:
        return f"RatePosterior(shape={self._shape!r}, time={self._time!r})"
