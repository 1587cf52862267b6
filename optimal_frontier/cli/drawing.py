"""Pictures: what every command that draws needs of Matplotlib, which is an optional extra.

Matplotlib is imported only when a picture is asked for. Figures are made without pyplot, so no display, no global state and no
window is involved.
"""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from optimal_frontier.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

#: Kinds of files, by how their names end.
_KINDS: Final = (".png", ".svg", ".pdf")
_DOTS_PER_INCH: Final = 150
#: An axis that spans so much is labelled by powers of ten.
_DECADES: Final = 100.0


def check_drawable(path: Path) -> None:
    """Say now, before the work is done, what would keep a picture from being written to ``path``.

    Raises
    ------
    ConfigurationError
        Matplotlib is not installed, the name ends in something else than a picture's, or the directory is missing.
    """
    if path.suffix.lower() not in _KINDS:
        raise ConfigurationError(f"{path}: expected a name that ends in {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")
    if not path.parent.is_dir():
        raise ConfigurationError(f"{path}: there is no directory {path.parent}")
    if path.is_dir():
        raise ConfigurationError(f"{path} is a directory; expected the name of a file")
    try:
        # Neither its font cache nor a home directory that cannot be written to is news for the user of a command.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        import matplotlib.figure  # noqa: F401, only whether it is there
    except ImportError as error:
        raise ConfigurationError(f"{path}: a picture needs Matplotlib ({error}): pip install 'optimal-frontier[plot]'") from error


def figure(width: float, height: float) -> Figure:
    """Return an empty figure, inches wide and high, whose parts make room for each other.

    Call `check_drawable` first: without Matplotlib this fails with an ImportError.
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=_DOTS_PER_INCH, layout="constrained")


def round_values(low: float, high: float, most: int = 6) -> list[float]:
    """Return some round numbers from ``low`` to ``high``, both above 0, for a logarithmic axis; at least two, and ``most`` or so.

    Examples
    --------
    >>> round_values(0.03, 2.5), round_values(1.1, 1.9)
    ([0.05, 0.1, 0.2, 0.5, 1.0, 2.0], [1.2, 1.4, 1.6, 1.8])
    """
    from matplotlib.ticker import MaxNLocator

    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in (("1", "1.5", "2", "3", "5", "7"), ("1", "2", "5"), ("1", "3"), ("1",)):
        values = [value for k in decades for step in steps if low <= (value := float(f"{step}e{k}")) <= high]
        if 3 <= len(values) <= most:
            return values
    found = MaxNLocator(nbins=most - 1, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(value) for value in np.round(found, 12) if low <= value <= high]


def label_log_axis(axis: Axis, low: float, high: float) -> None:
    """Label a logarithmic axis from ``low`` to ``high`` so that labels do not collide: plain numbers, few, where it spans little."""
    if high >= _DECADES * low:
        return  # powers of ten
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_locator(FixedLocator(round_values(low, high)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
    axis.set_minor_locator(NullLocator())


def save(drawn: Figure, path: Path) -> None:
    """Write a figure; the kind of file is told by its name.

    Raises
    ------
    ConfigurationError
        The file cannot be written.
    """
    check_drawable(path)
    try:
        drawn.savefig(path)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written ({error.strerror or error})") from error
