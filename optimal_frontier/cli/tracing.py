"""``trace-git``: the history of any git repository as change events."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import click

from optimal_frontier.cli.output import number, show_facts, show_json
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.simulation import write_trace

#: Begins the record of a commit; git's paths are relative, so that of a file never does. No path contains a NUL, which ends records.
_COMMIT: Final = b"/"
_DAY_S: Final = 86_400.0
#: Variables that would make git look at another repository than the one named, or ask for something.
_MISLEADING: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES")


@click.command("trace-git")
@click.argument("repository", type=click.Path(path_type=Path), metavar="REPO")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path), metavar="OUT.csv")
@click.option(
    "--path", "paths", multiple=True, metavar="PATTERN", help="Files that match only, such as '*.md' or 'docs/'; may be repeated."
)
@click.option("--branch", default="HEAD", show_default=True, help="Commit whose history is read.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def trace_git(repository: Path, out: Path, paths: tuple[str, ...], branch: str, as_json: bool) -> None:
    """Turn a git history into change events.

    OUT.csv gets a line page,time (seconds since 1970) for every change of every file that was ever there: each commit on the way from the
    branch to its roots that adds, changes or deletes it. Times are those of the committer. A merge is no change of its own, as the
    commits that it brings in have theirs. A renamed file is two pages: the old one changes (it is gone) and the new one begins. Binary
    files count like all others. Nothing in the repository is run or written.
    """
    if out.parent != Path() and not out.parent.is_dir():
        raise ConfigurationError(f"{out}: there is no directory {out.parent}")
    pages: set[str] = set()
    first = last = 0.0

    def counted() -> Iterator[tuple[str, float]]:
        nonlocal first, last
        for page, time in git_changes(repository, branch, paths):
            first, last = (min(first, time), max(last, time)) if pages else (time, time)
            pages.add(page)
            yield page, time

    partial = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with partial.open("w", newline="", encoding="utf-8") as file:
            events = write_trace(counted(), file)
        if not events:
            raise ConfigurationError(f"{repository}: no change of a file{' that matches' if paths else ''} in the history of {branch}")
        partial.replace(out)
    except OSError as error:
        raise ConfigurationError(f"{out}: cannot be written ({error.strerror or error})") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    if as_json:
        show_json({"pages": len(pages), "events": events, "first": first, "last": last, "written": str(out)})
    else:
        show_facts(
            [
                ("pages", number(len(pages))),
                ("changes", f"{number(events)} in {number(round((last - first) / _DAY_S))} days"),
                ("written", str(out)),
            ]
        )


def git_changes(repository: Path, branch: str = "HEAD", paths: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """Yield path and time (seconds since 1970) of every change in a git history, as `git log` goes.

    Parameters
    ----------
    repository : Path
        A working tree, or a bare repository.
    branch : str
        What to begin at.
    paths : tuple of str
        Git's patterns, from the root of the repository.

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
    log = ["log", "--no-renames", "--no-merges", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--name-only", "-z"]
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
                yield from _changes(process.stdout)
            except BaseException:  # whoever reads does not want the rest, a GeneratorExit among them
                process.kill()
                raise
        if process.returncode:
            said.seek(0)
            raise ConfigurationError(f"{repository}: {_reason(said.read().decode(errors='replace'), branch)}")


def _changes(stream: IO[bytes]) -> Iterator[tuple[str, float]]:
    time, is_first = 0.0, False
    for record in _records(stream):
        if record.startswith(_COMMIT):
            time, is_first = float(record[len(_COMMIT) :]), True
        elif record:
            path = record.removeprefix(b"\n") if is_first else record  # git sets the first one apart by a line feed
            is_first = False
            yield path.decode("utf-8", errors="backslashreplace"), time


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
