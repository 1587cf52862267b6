"""A namespace of a previous schema becomes one of the present schema, in place.

What was learned is written beside the old keys first, under another name; then the old keys go, and the new ones take their name. Each step
may be repeated: who was interrupted runs it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from optimal_frontier.errors import SchemaMismatchError
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.migrating.schema_3 import export_schema_3
from optimal_frontier.state.export_lines import Line
from optimal_frontier.state.importing import Writer, begin, erase, read_lines, rename
from optimal_frontier.state.namespace import BESIDE, SCHEMA, Namespace, partitions_of

#: Schema -> what was learned, as lines.
READERS: Final[dict[str, Callable[[Namespace], Iterator[Line]]]] = {"3": export_schema_3}
#: Stand in place of the schema while the old keys are removed, and while the new ones get their names; then the partitions.
_EMPTYING, _RENAMING = "migration, removing", "migration, renaming"


class Migration:
    """Of one namespace.

    Parameters
    ----------
    namespace : Namespace
        Connected, not opened.
    partitions : int
        Of the new one.

    Attributes
    ----------
    schema : str
        What is stored now.
    pages : int
        Pages that were taken over.
    left_out : int
        Those that cannot be read.
    """

    def __init__(self, namespace: Namespace, partitions: int) -> None:
        self.namespace = namespace
        self.pages = self.left_out = 0
        self._partitions = partitions
        self._beside = Namespace(namespace.connection, namespace.name + BESIDE)
        stored = namespace.command("HGET", namespace.key("meta"), "schema")
        self.schema = "" if stored is None else stored.decode("utf-8", "backslashreplace")

    @property
    def is_done(self) -> bool:
        """Whether the namespace has the present schema."""
        return self.schema == SCHEMA

    def header(self) -> tuple[Line | None, Iterator[Line]]:
        """Return the first line of what is to be taken over, and the others; None where that was done.

        Raises
        ------
        SchemaMismatchError
            There is no way from the schema that is stored.
        """
        if self._stage[1]:
            return None, iter(())
        if self.schema not in READERS:
            known = ", ".join(READERS)
            raise SchemaMismatchError(
                f"namespace {self.namespace.name!r} holds schema {self.schema or 'of no version'!r}; there is a way to schema {SCHEMA!r} "
                f"from {known}. Nothing was changed"
            )
        lines = READERS[self.schema](self.namespace)
        return next(lines), lines

    def take_over(self, header: Line, lines: Iterator[Line], advance: Callable[[int], None], stopped: Callable[[], bool]) -> bool:
        """Write beside the old keys; return False where it was stopped, with the old ones as they were."""
        if self._beside.command("HGET", self._beside.key("meta"), "schema") is not None:
            before = partitions_of(self._beside.command("HGET", self._beside.key("meta"), "partitions"))
            erase(self._beside, before or self._beside.count_partitions())
        turn = begin(self._beside, header, self._partitions)
        writer = Writer(turn, host_of)
        if not read_lines(lines, writer.take, advance, stopped, self.namespace.name):
            return False
        writer.end()
        turn.finish()
        self.pages, self.left_out = writer.report.new, writer.report.left_out
        self._note(f"{_EMPTYING} {self._partitions}")
        return True

    def settle(self) -> None:
        """Remove the old keys, and give their names to the new ones; from here on there is no way back."""
        stage, partitions = self._stage
        if stage == _EMPTYING:
            erase(self.namespace, 1, frozenset({"meta"}))
            self._note(f"{_RENAMING} {partitions}")
        for k in reversed(range(partitions)):
            rename(self._beside, self.namespace, k)
        self.schema = SCHEMA

    @property
    def _stage(self) -> tuple[str, int]:
        """What settling is at, and the number of partitions of the new namespace; 0: it has not begun."""
        stage, _, count = self.schema.rpartition(" ")
        return stage, partitions_of(count.encode()) if stage in (_EMPTYING, _RENAMING) else 0

    def _note(self, stage: str) -> None:
        self.namespace.command("HSET", self.namespace.key("meta"), "schema", stage)
        self.schema = stage
