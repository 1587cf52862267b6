"""Files that commands read."""

from __future__ import annotations

import io
from typing import Any

import click

from optimal_frontier.errors import StateError


class GivenFile(click.File):
    """A file to read in binary, or standard input. An error of it names it: elsewhere errors of that kind are of what is written."""

    def __init__(self) -> None:
        super().__init__("rb")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Open it."""
        return io.BufferedReader(_NamedReads(super().convert(value, param, ctx)))


class _NamedReads(io.RawIOBase):
    """Reads a file, which stays open; `StateError` where that fails."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.name = getattr(file, "name", "-")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            read: bytes = self._file.read1(len(buffer))
        except OSError as error:
            name = "standard input" if self.name in ("-", "<stdin>") else self.name
            raise StateError(f"{name}: cannot be read ({error.strerror or error})") from error
        buffer[: len(read)] = read
        return len(read)
