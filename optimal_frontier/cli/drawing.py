"""Pictures: what every command that draws needs of Matplotlib, which is an optional extra.

Matplotlib is imported only when a picture is asked for. Figures are made without pyplot, so no display, no global state and no
window is involved.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from optimal_frontier.errors import ConfigurationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Kinds of files, by how their names end.
_KINDS: Final = (".png", ".svg", ".pdf")
_DOTS_PER_INCH: Final = 150


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
