"""``trace-git``: the history of any git repository as events of pages."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, NamedTuple

import click

from optimal_frontier.cli.output import number, show_facts, show_json
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.simulation import Event, write_trace
from optimal_frontier.simulation.traces import CHANGED, CREATED, GONE

#: Begins the record of a commit; a change begins with a letter, and paths come behind those. No path contains a NUL, which ends records.
_COMMIT: Final = b"/"
#: First letters of records -> events. All others, such as a change of kind, are changes.
_EVENTS: Final = {b"A": CREATED, b"D": GONE}
_RENAMED: Final = b"R"
#: A renamed file whose content is the same.
_SAME: Final = b"R100"
_DAY_S: Final = 86_400.0
#: Variables that would make git look at another repository than the one named, or ask for something.
_MISLEADING: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES")


@click.command("trace-git")
@click.argument("repository", type=click.Path(path_type=Path), metavar="REPO")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path), metavar="OUT.csv")
@click.option(
    "--path", "paths", multiple=True, metavar="PATTERN", help="Files that match only, such as '*.md' or 'docs/'; may be repeated."
)
@click.option("--renames", is_flag=True, help="A renamed file stays one page, under its last name.")
@click.option("--branch", default="HEAD", show_default=True, help="Commit whose history is read.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def trace_git(repository: Path, out: Path, paths: tuple[str, ...], renames: bool, branch: str, as_json: bool) -> None:
    """Turn a git history into events of pages.

    OUT.csv gets a line page,time,event (seconds since 1970; created, changed or gone), the oldest first, for each commit on the
    way from the branch to its roots that adds, changes or deletes a file. Times are those of the committer; what has one time is one event.
    A merge is no change of its own, as the commits that it brings in have theirs. A renamed file is two pages: the old one is gone
    and the new one created. With --renames it is one page, under its last name (another one that had this name before
    gets a number, as in a~2.md); where only the name changed that is no event.
    Binary files count like all others. Nothing in the repository is run or written.
    """
    if out.parent != Path() and not out.parent.is_dir():
        raise ConfigurationError(f"{out}: there is no directory {out.parent}")
    events = list(git_events(repository, branch, paths, renames=renames))[::-1]
    if not events:
        raise ConfigurationError(f"{repository}: no change of a file{' that matches' if paths else ''} in the history of {branch}")
    partial = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with partial.open("w", newline="", encoding="utf-8") as file:
            write_trace(events, file)
        partial.replace(out)
    except OSError as error:
        raise ConfigurationError(f"{out}: cannot be written ({error.strerror or error})") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    pages = len({event.page for event in events})
    first, last = min(event.time for event in events), max(event.time for event in events)
    counts = Counter(event.event for event in events)
    if as_json:
        show_json({"pages": pages, "events": len(events), **counts, "first": first, "last": last, "written": str(out)})
    else:
        show_facts(
            [
                ("pages", number(pages)),
                ("events", ", ".join(f"{number(counts[name])} {name}" for name in (CREATED, CHANGED, GONE))),
                ("time", f"{number(round((last - first) / _DAY_S))} days"),
                ("written", str(out)),
            ]
        )


def git_events(repository: Path, branch: str = "HEAD", paths: tuple[str, ...] = (), *, renames: bool = False) -> Iterator[Event]:
    """Yield what happened to files in a git history, as `git log` goes: the newest first. Times are in seconds since 1970.

    Parameters
    ----------
    repository : Path
        A working tree, or a bare repository.
    branch : str
        What to begin at.
    paths : tuple of str
        Git's patterns, from the root of the repository.
    renames : bool
        Whether a renamed file is one page.

    Raises
    ------
    ConfigurationError
        Git is not installed, the path is no repository, or there is no such branch or no commit.
    """
    if branch.startswith("-"):
        raise ConfigurationError(f"--branch: expected the name of a branch, got {branch!r}")
    if not repository.is_dir():
        raise ConfigurationError(f"{repository}: there is no such directory")
    command = ["git", "-C", str(repository), "-c", "core.quotePath=false", "-c", "log.showSignature=false"]
    log = ["log", "--no-merges", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--name-status", "-z"]
    log += ["--find-renames" if renames else "--no-renames"]
    log += [f"--format=tformat:{_COMMIT.decode()}%ct", branch, "--", *(f":(top){pattern}" for pattern in paths)]
    environment = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen([*command, *log], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, env=environment)
        except FileNotFoundError as error:
            raise ConfigurationError("git was not found; trace-git reads histories with it") from error
        except OSError as error:
            raise ConfigurationError(f"git cannot be run ({error.strerror or error})") from error
        with process:
            assert process.stdout is not None  # as it was asked for
            try:
                yield from (_followed_events if renames else _events)(_changes(_records(process.stdout)))
            except BaseException:  # whoever reads does not want the rest, a GeneratorExit among them
                process.kill()
                raise
        if process.returncode:
            said.seek(0)
            raise ConfigurationError(f"{repository}: {_reason(said.read().decode(errors='replace'), branch)}")


def _events(changes: Iterable[_Change]) -> Iterator[Event]:
    """Every path is a page."""
    for change in changes:
        yield Event(change.path, change.time, change.event)


@dataclass
class _Page:
    """A page that may have had several paths; its last one is its name."""

    name: str
    is_renamed: bool = False
    is_gone: bool = False
    #: What it turned out to be, if it is no page of its own.
    other: _Page | None = None
    is_left: bool = False


def _followed_events(changes: Iterable[_Change]) -> Iterator[Event]:
    """Renamed files are one page, under the last name; the number of an earlier page that had this name comes before its ending."""
    events: list[tuple[_Page, float, str]] = []
    at: dict[str, _Page] = {}  # pages by path at the time that is being read, from the end of the history to its beginning
    for change in changes:
        is_known = change.path in at
        page = at.setdefault(change.path, _Page(change.path))
        if change.before:
            del at[change.path]
            late = at.get(change.before)
            if late is not None and late.is_gone:
                late.is_left = True  # by a branch that did not know of the new name
            elif late is not None:
                late.other = page
            at[change.before], page.is_renamed = page, True
        if change.event == GONE:
            if is_known and page.is_renamed:
                continue  # on a branch that another one has left behind
            page.is_gone = True
        elif change.event == CREATED:
            del at[change.path]
        if change.event:
            events.append((page, change.time, change.event))
    yield from _named(events)


def _named(events: list[tuple[_Page, float, str]]) -> Iterator[Event]:
    renamed: dict[str, _Page] = {}
    for page, _, _ in events:
        if page.is_renamed and page.other is None:
            renamed.setdefault(page.name, page)
    names: dict[int, str] = {}
    counts: Counter[str] = Counter()
    for page, time, event in events:
        while page.other is not None:
            page = page.other
        if id(page) not in names:
            is_first = renamed.get(page.name, page) is page
            counts[page.name] += not is_first
            names[id(page)] = page.name if is_first else _numbered(page.name, 1 + counts[page.name])
        if not page.is_left:
            yield Event(names[id(page)], time, event)


def _numbered(path: str, number: int) -> str:
    directory, slash, last = path.rpartition("/")
    stem, dot, ending = last.rpartition(".")
    return f"{directory}{slash}" + (f"{stem}~{number}.{ending}" if dot else f"{last}~{number}")


class _Change(NamedTuple):
    """A line of git: what happened to a file, which path it had before if it was renamed; no event if that is all."""

    path: str
    time: float
    event: str
    before: str = ""


def _changes(records: Iterator[bytes]) -> Iterator[_Change]:
    time = 0.0
    for record in records:
        kind = record.removeprefix(b"\n")  # git sets the first change of a commit apart by a line feed
        if kind.startswith(_COMMIT):
            time = float(kind[len(_COMMIT) :])
        elif kind.startswith(_RENAMED):
            before = _text(next(records))
            yield _Change(_text(next(records)), time, "" if kind == _SAME else CHANGED, before)
        elif kind:
            yield _Change(_text(next(records)), time, _EVENTS.get(kind[:1], CHANGED))


def _text(path: bytes) -> str:
    return path.decode("utf-8", errors="backslashreplace")


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    """Pieces between NULs, read as they come."""
    rest = b""
    while piece := stream.read(1 << 16):
        *whole, rest = (rest + piece).split(b"\0")
        yield from whole
    if rest:
        yield rest


def _reason(said: str, branch: str) -> str:
    lines = [line.removeprefix("fatal: ").strip() for line in said.splitlines() if line.strip()]
    first = lines[0] if lines else "git log failed"
    if "not a git repository" in first:
        return "is no git repository"
    if "does not have any commits" in first or ("HEAD" in first and branch == "HEAD"):
        return "has no commits yet"
    if "bad revision" in first or "unknown revision" in first:
        return f"has no branch or commit {branch!r}"
    return first[:300]
