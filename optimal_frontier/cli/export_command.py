"""``export``, and what ``import`` makes of it: everything that was learned, as JSON lines."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import click

from optimal_frontier.cli.interruption import Interruption
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import duration, number, show_json, size
from optimal_frontier.cli.progress_bar import progress_bar
from optimal_frontier.cli.project import Workplace, connected_namespace, find_workplace, opened_namespace
from optimal_frontier.errors import ConfigurationError, StateError
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.state.export_lines import Line
from optimal_frontier.state.exporting import export_lines
from optimal_frontier.state.importing import Imported, Writer, begin, check_header, read_lines
from optimal_frontier.state.merging import Merger

#: Bytes that a file is looked at for a header.
MAX_HEADER: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b"
_LEVEL: Final = 6


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.pass_obj
def export(options: Options, file: Path) -> None:
    """Write everything that was learned to FILE, as JSON lines; packed by gzip if its name ends in .gz, - is standard output.

    Pages with their estimates, requests and validators, hosts, prices, the last plan, counters. `import` reads it, into any Redis or
    Valkey, into any number of PARTITIONS. What is in flight is told as due. A crawl may go on meanwhile: a page is told as it was when it
    was read. FILE is there when all of it is.
    """
    workplace = find_workplace(options)
    is_stdout = str(file) == "-"
    # A pipe or a device would be no more, if a file took its name.
    is_stream = is_stdout or (file.exists() and not file.is_file())
    # Nor is a link replaced: it goes on to lead to the file.
    target = file if is_stream else file.resolve()
    if not target.parent.is_dir():
        raise ConfigurationError(f"{file}: there is no directory {target.parent}")
    part = target.with_name(target.name + ".part")
    began = time.monotonic()
    with opened_namespace(workplace) as namespace, Interruption() as interruption:
        lines = export_lines(namespace)
        header = next(lines)
        try:
            with _opened(sys.stdout.buffer if is_stdout else file if is_stream else part, file.suffix == ".gz") as stream:
                written = _write(stream, header, lines, interruption)
            if not is_stream and written is not None:
                part.replace(target)
        except OSError as error:
            raise ConfigurationError(f"{file}: cannot be written ({error.strerror or error})") from error
        finally:
            if not is_stream:
                part.unlink(missing_ok=True)
    if written is None:
        raise StateError("stopped: nothing was written" if not is_stream else "stopped: what was written is a part")
    if not is_stream:
        took = duration(time.monotonic() - began)
        click.echo(f"{number(written['end'])} pages, {size(target.stat().st_size)} in {took}: {file}")
    if written["left_out"]:
        click.echo(f"{number(written['left_out'])} rows cannot be read, and were left out; see `optimal-frontier check`", err=True)
        click.get_current_context().exit(1)


def _write(stream: IO[bytes], header: Line, lines: Iterator[Line], interruption: Interruption) -> Line | None:
    """Write lines; return the last one, or None where somebody stopped it."""
    last: Line | None = None
    with progress_bar("exporting", header["pages"]) as advance:
        stream.write(_packed(header))
        for last in lines:
            if interruption.happened:
                return None
            stream.write(_packed(last))
            if "page" in last:
                advance(1)
    return last


def _packed(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":") if "optimal_frontier" not in line else None, allow_nan=False).encode() + b"\n"


@contextlib.contextmanager
def _opened(target: Any, is_packed: bool) -> Iterator[IO[bytes]]:
    with contextlib.ExitStack() as stack:
        raw: Any = stack.enter_context(target.open("wb")) if isinstance(target, Path) else target
        # No name and no time in the header: equal exports are equal files.
        if is_packed:
            raw = stack.enter_context(gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0))
        yield raw
        raw.flush()


@contextlib.contextmanager
def unpacked(file: IO[bytes]) -> Iterator[io.BufferedReader]:
    """Give a file that can be looked at before it is read, unpacked where gzip has packed it; ``file`` stays open."""
    raw: Any = file  # whatever reads bytes will do
    stream = io.BufferedReader(raw, MAX_HEADER)
    try:
        if stream.peek(2)[:2] == _GZIP:
            raw = gzip.GzipFile(fileobj=stream)
            with io.BufferedReader(raw, MAX_HEADER) as inner:
                yield inner
        else:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise StateError(f"{getattr(file, 'name', 'standard input')}: gzip cannot unpack it ({error})") from error
    finally:
        with contextlib.suppress(ValueError):  # the exit of a command closes files first
            stream.detach()


class ExportFile(NamedTuple):
    """An export that is read: its lines, and its name for messages."""

    stream: IO[bytes]
    name: str

    def lines(self) -> Iterator[Line]:
        """Yield its lines.

        Raises
        ------
        StateError
            One is none.
        """
        for at, raw in enumerate(self.stream, 1):
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError) as error:
                raise StateError(f"{self.name}:{at}: expected a line of an export ({error})") from error
            if not isinstance(line, dict):
                raise StateError(f"{self.name}:{at}: expected a line of an export")
            yield line


def import_export(ctx: click.Context, workplace: Workplace, file: ExportFile, merge: bool, as_json: bool) -> None:
    """Bring an export into a new namespace, or with ``merge`` what is new into one that is there."""
    lines = file.lines()
    header = next(lines)
    check_header(header, file.name)
    began = time.monotonic()
    if merge:
        with opened_namespace(workplace) as namespace:
            merger = Merger(namespace, header, host_of)
            is_whole = _fill(merger, header, lines, file.name)
        report = merger.report
    else:
        with connected_namespace(workplace, create=True) as namespace:
            if workplace.spider is not None:  # it may have had another name
                header["meta"]["spider"] = workplace.spider
            turn = begin(namespace, header, workplace.settings.partitions or header["partitions"])
            writer = Writer(turn, host_of)
            is_whole = _fill(writer, header, lines, file.name)
            if is_whole:
                turn.finish()
        report = writer.report
    _tell(report, duration(time.monotonic() - began), as_json)
    if not is_whole:
        rest = "known pages stay as they are when you run it again" if merge else "there is no namespace before all is in it: run it again"
        click.echo(f"stopped: {number(report.new)} of {number(header['pages'])} pages; {rest}", err=True)
    if report.left_out or not is_whole:
        ctx.exit(1)


def _fill(writer: Writer | Merger, header: Line, lines: Iterator[Line], name: str) -> bool:
    at = 1

    def counted() -> Iterator[Line]:
        nonlocal at
        for line in lines:
            at += 1
            yield line

    with Interruption() as interruption, progress_bar("importing", int(header["pages"])) as advance:
        try:
            is_whole = read_lines(counted(), writer.take, advance, lambda: interruption.happened, name)
            writer.end()
        except (KeyError, ValueError, TypeError, AttributeError, OverflowError, struct.error) as error:
            raise StateError(f"{name}:{at}: no line of an export, or one of the lines before it ({error!r})") from error
    return is_whole


def _tell(report: Imported, took: str, as_json: bool) -> None:
    if as_json:
        show_json(asdict(report))
        return
    left_out = f", {number(report.left_out)} that the export could not read" if report.left_out else ""
    click.echo(f"{number(report.new)} new, {number(report.known)} known{left_out}, in {took}")
