"""``trace-git``: events of a git history, and one clear line where there is none."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from optimal_frontier.cli import main
from optimal_frontier.cli.tracing import git_events
from optimal_frontier.simulation import read_trace

#: Commits of the sample: time, files written, files removed.
COMMITS = [
    (1_600_000_000, {"a.txt": "1", "docs/b ü.md": "1", "commit 12": "1", "line\nfeed": "1"}, []),
    (1_600_000_100, {"a.txt": "2"}, []),
    (1_600_000_300, {"c.txt": "2"}, ["a.txt"]),  # a.txt is renamed
    (1_600_000_300, {"docs/b ü.md": "2"}, []),
]


def git(where: Path, *arguments: str, time: int = 1_600_000_000) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        **{f"GIT_{who}_{what}": "nobody@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "GIT_COMMITTER_DATE": f"{time} +0200",
        "GIT_AUTHOR_DATE": "1000000000 +0000",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    subprocess.run(["git", "-C", str(where), *arguments], check=True, env=environment, capture_output=True, timeout=30)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A history with odd names, a renamed file, a deleted one, and a merge."""
    made = tmp_path / "repository"
    made.mkdir()
    git(made, "init", "--quiet", "--initial-branch=main")
    for time, written, removed in COMMITS:
        for name, text in written.items():
            (made / name).parent.mkdir(exist_ok=True)
            (made / name).write_text(text)
        for name in removed:
            (made / name).unlink()
        git(made, "add", "--all")
        git(made, "commit", "--quiet", "--message", "change", time=time)
    git(made, "checkout", "--quiet", "-b", "side", "HEAD~1")
    (made / "side.txt").write_text("1")
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message", "side", time=1_600_000_500)
    git(made, "checkout", "--quiet", "main")
    git(made, "merge", "--quiet", "--no-ff", "--message", "merge", "side", time=1_600_000_900)
    return made


@pytest.fixture
def trace_git(nowhere: Path) -> Callable[..., Result]:
    def invoke(*arguments: str | Path) -> Result:
        result = CliRunner().invoke(main, ["trace-git", *map(str, arguments)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


def one_line(result: Result) -> str:
    assert result.exit_code == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


def events_by_page(path: Path) -> dict[str, list[tuple[int, str]]]:
    """Seconds and event, in the order of the file."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["page", "time", "event"]
    found: dict[str, list[tuple[int, str]]] = {}
    for page, time, event in rows[1:]:
        found.setdefault(page, []).append((int(time) - 1_600_000_000, event))
    return found


def test_every_change_of_every_file_is_an_event(trace_git, repository, nowhere):
    """Commit times; the renamed file is two pages; the merge is no change of its own."""
    result = trace_git(repository, "out.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "pages    6" in result.stdout
    assert "events   6 created, 2 changed, 1 gone" in result.stdout
    assert events_by_page(nowhere / "out.csv") == {
        "a.txt": [(0, "created"), (100, "changed"), (300, "gone")],
        "docs/b ü.md": [(0, "created"), (300, "changed")],
        "commit 12": [(0, "created")],
        "line\nfeed": [(0, "created")],
        "c.txt": [(300, "created")],
        "side.txt": [(500, "created")],
    }
    assert [path.name for path in nowhere.iterdir()] == ["out.csv"]


@pytest.fixture
def renaming(tmp_path: Path) -> Path:
    """A history of one page under three names, and of others that had or got its names."""
    made = tmp_path / "renaming"
    made.mkdir()
    git(made, "init", "--quiet", "--initial-branch=main")
    text = "".join(f"line {number}\n" for number in range(40))
    steps: list[dict[str, str | None]] = [
        {"new.md": "another page, before\n", "old.md": text},
        {"new.md": None},
        {"old.md": None, "middle.md": text},  # only the name changes
        {"middle.md": None, "new.md": text + "more\n"},  # the text does, too
        {"old.md": "another page, after\n"},
        {"new.md": text + "more and more\n"},
    ]
    for number, files in enumerate(steps):
        for name, content in files.items():
            if content is None:
                (made / name).unlink()
            else:
                (made / name).write_text(content)
        git(made, "add", "--all")
        git(made, "commit", "--quiet", "--message", "step", time=1_600_000_000 + 100 * number)
    return made


def test_renamed_files_are_two_pages(trace_git, renaming, nowhere):
    trace_git(renaming, "out.csv")
    assert events_by_page(nowhere / "out.csv") == {
        "new.md": [(0, "created"), (100, "gone"), (300, "created"), (500, "changed")],
        "old.md": [(0, "created"), (200, "gone"), (400, "created")],
        "middle.md": [(200, "created"), (300, "gone")],
    }


def test_renamed_files_are_one_page_if_told(trace_git, renaming, nowhere):
    """Under the last name; what had that name before is another page, and so is what gets an earlier one."""
    trace_git(renaming, "out.csv", "--renames")
    assert events_by_page(nowhere / "out.csv") == {
        "new.md": [(0, "created"), (300, "changed"), (500, "changed")],
        "new~2.md": [(0, "created"), (100, "gone")],
        "old.md": [(400, "created")],
    }


def test_a_trace_can_be_read_and_simulated(trace_git, repository, nowhere):
    trace_git(repository, "out.csv")
    with (nowhere / "out.csv").open(newline="") as file:
        trace = read_trace(file)
    assert len(trace.names) == 6
    assert trace.length == 500
    result = CliRunner().invoke(main, ["simulate", "trace", "out.csv", "--every", "0.0001", "--no-picture", "--policy", "uniform"])
    assert result.exit_code == 0, result.output


def test_patterns_choose_files_and_a_branch_where_to_begin(trace_git, repository, nowhere):
    answer = json.loads(trace_git(repository, "out.csv", "--path", "*.md", "--path", "c.*", "--json").stdout)
    about = {"pages": 2, "events": 3, "created": 2, "changed": 1, "first": 1_600_000_000, "last": 1_600_000_300, "written": "out.csv"}
    assert answer == about
    answer = json.loads(trace_git(repository, "out.csv", "--branch", "main~2", "--json").stdout)
    assert answer["last"] == 1_600_000_300


def test_a_bare_repository_and_a_folder_inside_one_will_do(trace_git, repository, tmp_path, nowhere):
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare.git")
    whole = json.loads(trace_git(repository, "out.csv", "--json").stdout)
    assert json.loads(trace_git(tmp_path / "bare.git", "out.csv", "--json").stdout) == whole
    assert json.loads(trace_git(repository / "docs", "out.csv", "--json").stdout) == whole


def test_another_repository_in_the_environment_is_not_taken(trace_git, repository, nowhere, monkeypatch):
    monkeypatch.setenv("GIT_DIR", "/nonexistent/.git")
    assert trace_git(repository, "out.csv").exit_code == 0


def test_what_has_no_history_is_said_in_one_line(trace_git, repository, tmp_path, nowhere):
    (tmp_path / "plain").mkdir()
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    assert one_line(trace_git(tmp_path / "missing", "out.csv")).endswith("missing: there is no such directory")
    assert one_line(trace_git(tmp_path / "plain", "out.csv")).endswith("plain: is no git repository")
    assert one_line(trace_git(tmp_path / "empty", "out.csv")).endswith("empty: has no commits yet")
    assert one_line(trace_git(repository, "out.csv", "--branch", "gone")).endswith("repository: has no branch or commit 'gone'")
    assert "expected the name of a branch" in one_line(trace_git(repository, "out.csv", "--branch=--output=x"))
    assert "no change of a file that matches" in one_line(trace_git(repository, "out.csv", "--path", "*.rst"))
    assert list(nowhere.iterdir()) == []


def test_without_git_it_says_so(trace_git, repository, nowhere, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert one_line(trace_git(repository, "out.csv")) == "optimal-frontier: git was not found; trace-git reads histories with it"


def test_what_cannot_be_written_is_said(trace_git, repository, nowhere):
    assert "there is no directory missing" in one_line(trace_git(repository, "missing/out.csv"))


def test_a_failure_leaves_an_older_file_as_it_was(trace_git, repository, nowhere):
    (nowhere / "out.csv").write_text("old")
    one_line(trace_git(repository, "out.csv", "--path", "*.rst"))
    assert (nowhere / "out.csv").read_text() == "old"


def test_reading_may_stop_early(repository):
    """The process ends, and nothing is said of it."""
    events = git_events(repository)
    assert next(events).time > 1_600_000_000
    events.close()
