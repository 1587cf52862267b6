"""Where the command works, and what it says when it cannot."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import uuid
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from forked_programs import run_forked

from optimal_frontier.cli import main
from optimal_frontier.cli.experiments import simulate
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.project import find_workplace
from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings import TABLE
from optimal_frontier.state.connection import connect
from optimal_frontier.state.namespace import SCHEMA, Namespace
from optimal_frontier.state.redis_url import parse_redis_url

from .stored_crawl import HOT


def make_project(path: Path, text: str, config: str = "") -> Path:
    """A Scrapy project whose settings module has a name of its own, as modules are imported once."""
    package = f"project_{uuid.uuid4().hex[:10]}"
    (path / package).mkdir(parents=True)
    (path / package / "__init__.py").touch()
    (path / package / "settings.py").write_text(text)
    (path / "scrapy.cfg").write_text(f"[settings]\ndefault = {package}.settings\n{config}")
    return path


def invoke(*arguments):
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def only_line(result) -> str:
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize("option", ["--namespace", "--spider"])
def test_a_name_that_is_no_text_is_refused(nowhere, redis_socket, option):
    """As a terminal of another encoding gives it."""
    line = only_line(invoke("--redis-url", f"unix://{redis_socket}", option, "a\udcff", "status"))
    assert ("--spider" if option == "--spider" else "OPTIMAL_FRONTIER_NAMESPACE") in line
    assert "expected" in line


def test_an_answer_that_cannot_be_written_ends_in_one_line(nowhere, redis_socket, namespace, redis_client):
    """As on a full disk, here by a limit on the size of files."""
    Namespace(connect(parse_redis_url(f"unix://{redis_socket}", nowhere)), namespace).open(spider="x")
    redis_client.hset(f"{namespace}:{{0}}:stats", "pages", 1)
    command = [sys.executable, "-B", "-m", "optimal_frontier.cli", "--redis-url", f"unix://{redis_socket}", "--namespace", namespace]
    for arguments in (["status"], ["export", "-"], ["--help"]):
        with Path("full").open("wb") as full:
            limited = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (0, 0))
            done = subprocess.run([*command, *arguments], stdout=full, stderr=subprocess.PIPE, preexec_fn=limited, timeout=60, check=False)
        (line,) = done.stderr.decode().splitlines()
        assert line.startswith("optimal-frontier: ")
        assert "cannot be written" in line
        assert done.returncode in (1, 2)


@pytest.mark.parametrize(("arguments", "told"), [("import - <&-", "0 new"), ("status >&-", ""), ("forget --all <&- >&-", "")])
def test_streams_that_are_closed_end_no_command_with_a_traceback(nowhere, redis_socket, namespace, arguments, told):
    command = f"{sys.executable} -m optimal_frontier.cli --redis-url unix://{redis_socket} --namespace {namespace} {arguments}"
    done = subprocess.run(["sh", "-c", f"exec {command}"], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith(told)
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == (0 if told else 1)


def test_settings_come_from_the_project_around_the_working_directory(tmp_path, monkeypatch):
    project = make_project(tmp_path / "p", 'BOT_NAME = "mybot"\nOPTIMAL_FRONTIER_CRAWL_RATE = 7\nprint("noise")\n')
    (project / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(project / "deep" / "er")
    before = dict(os.environ), list(sys.path)
    place = find_workplace(Options())
    assert (place.bot_name, place.settings.crawl_rate) == ("mybot", 7.0)
    assert place.spec.data_dir == project / ".scrapy" / "optimal_frontier"
    assert not (project / ".scrapy").exists()
    assert (dict(os.environ), sys.path) == before


def test_options_go_before_the_project(tmp_path, nowhere, target, namespace):
    project = make_project(tmp_path / "p", 'OPTIMAL_FRONTIER_NAMESPACE = "theirs"\nOPTIMAL_FRONTIER_CRAWL_RATE = 7\n')
    place = find_workplace(Options(target[1], namespace, project))
    assert (place.settings.namespace, place.settings.crawl_rate) == (namespace, 7.0)
    assert place.spec.data_dir is None
    assert Path.cwd() == nowhere


def test_a_data_directory_of_its_own_is_where_the_scheduler_looks(tmp_path, nowhere):
    project = make_project(tmp_path / "p", "", f"[datadir]\ndefault = {tmp_path}/elsewhere/data\n")
    place = find_workplace(Options(project=project))
    assert place.spec.data_dir == tmp_path / "elsewhere" / ".scrapy" / "optimal_frontier"


def test_a_settings_module_in_the_environment_is_a_project(tmp_path, nowhere, monkeypatch):
    package = make_project(tmp_path / "p", "OPTIMAL_FRONTIER_CRAWL_RATE = 5\n")
    name = next(entry.name for entry in package.iterdir() if entry.is_dir())
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", f"{name}.settings")
    monkeypatch.syspath_prepend(str(package))
    assert find_workplace(Options()).settings.crawl_rate == 5.0
    other = make_project(tmp_path / "q", "OPTIMAL_FRONTIER_CRAWL_RATE = 6\n")
    assert find_workplace(Options(project=other)).settings.crawl_rate == 6.0


def test_without_a_project_the_url_must_be_given(nowhere):
    result = invoke("status")
    assert result.exit_code == 2
    assert "--redis-url" in only_line(result)
    assert list(nowhere.iterdir()) == []


def test_without_a_project_embedded_data_of_the_working_directory_are_found(nowhere):
    (nowhere / ".scrapy" / "optimal_frontier").mkdir(parents=True)
    assert find_workplace(Options()).spec.data_dir == nowhere / ".scrapy" / "optimal_frontier"
    assert find_workplace(Options()).bot_name == "scrapybot"


@pytest.mark.parametrize("text", ["import no_such_module_x", "1 +", "raise SystemError('boom')"])
def test_a_broken_settings_module_is_named(tmp_path, nowhere, text):
    result = invoke("--project", str(make_project(tmp_path / "p", text)), "status")
    assert result.exit_code == 2
    assert "scrapy.cfg names" in only_line(result)


def test_a_broken_scrapy_cfg_is_named(tmp_path, nowhere):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "scrapy.cfg").write_text("nonsense")
    result = invoke("--project", str(tmp_path / "p"), "status")
    assert result.exit_code == 2
    assert "scrapy.cfg" in only_line(result)


def test_a_directory_without_a_project_is_refused(nowhere):
    with pytest.raises(ConfigurationError, match=r"no scrapy\.cfg"):
        find_workplace(Options(project=nowhere))


@pytest.mark.parametrize("setting", ["OPTIMAL_FRONTIER_CRAWL_RAET = 1", "OPTIMAL_FRONTIER_CRAWL_RATE = 'fast'"])
def test_an_unusable_setting_is_named(tmp_path, nowhere, setting):
    result = invoke("--project", str(make_project(tmp_path / "p", setting)), "status")
    assert result.exit_code == 2
    assert setting.partition(" ")[0] in only_line(result)


@pytest.mark.parametrize(
    "command",
    ["status", "pages", f"page {HOT}", f"noise {HOT}", "noise a.example", "plan", "check", f"forget {HOT}", f"force {HOT}"],
)
def test_where_nothing_is_stored_nothing_is_made(tmp_path, nowhere, command):
    project = make_project(tmp_path / "p", "")
    result = invoke("--project", str(project), *command.split())
    assert result.exit_code == 1
    assert "nothing is stored yet" in only_line(result)
    assert not (project / ".scrapy").exists()


@pytest.mark.parametrize("url", ["redis://user:s3cr3t-Pa55@127.0.0.1:1/0", "unix:///nowhere/redis.sock?password=s3cr3t-Pa55"])
@pytest.mark.parametrize("command", ["status", "plan", "import -", "plan --every 1"])
def test_a_redis_that_cannot_be_reached(nowhere, url, command):
    result = invoke("--redis-url", url, *command.split())
    assert result.exit_code == 3
    assert "s3cr3t" not in only_line(result)


def test_a_url_that_is_none(nowhere):
    result = invoke("--redis-url", "redis://:s3cr3t-Pa55/@host", "status")
    assert result.exit_code == 2
    assert "s3cr3t" not in only_line(result)


def test_another_schema_and_another_type_are_refused(run, redis_client, namespace):
    redis_client.hset(f"{namespace}:{{0}}:meta", "schema", "99")
    for command in ("status", "check", "import -"):
        result = run(*command.split())
        assert result.exit_code == 1
        assert "schema '99'" in only_line(result)
    redis_client.hset(f"{namespace}:{{0}}:meta", "schema", SCHEMA)
    redis_client.set(f"{namespace}:{{0}}:stats", "mine")
    result = run("status")
    assert result.exit_code == 1
    assert "holds a string" in only_line(result)
    assert redis_client.get(f"{namespace}:{{0}}:stats") == b"mine"


@pytest.mark.parametrize("name", ["watch", "serve", "stat"])
def test_a_command_that_is_not_built_is_unknown(nowhere, name):
    result = invoke(name)
    assert result.exit_code == 2
    assert "No such command" in result.stderr


def test_help_waits_for_nothing_that_it_does_not_need(nowhere):
    """What takes longest to import: a user who asks for the names of commands needs none of it."""
    program = "import sys; from optimal_frontier.cli import main; main(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
    for words, unneeded in (["--help"], {"numpy", "scipy", "redis", "scrapy", "rich"}), (["simulate", "--help"], {"scipy", "scrapy"}):
        told = subprocess.run([sys.executable, "-c", program, *words], check=True, capture_output=True, text=True).stdout
        assert "Commands:" in told
        assert not unneeded & set(told.splitlines()[-1].split())


@pytest.mark.parametrize("group", [main, simulate], ids=["main", "simulate"])
def test_what_help_says_of_commands_is_whole(nowhere, group):
    told = invoke(*([] if group is main else ["simulate"]), "--help").stdout.partition("Commands:")[2]
    assert all(line.endswith(".") and not line.endswith("...") for line in told.strip().splitlines())
    assert len(told.strip().splitlines()) == len(group.commands)


def test_help_needs_no_project(nowhere):
    for command in main.commands:
        assert invoke(command, "--help").exit_code == 0
    reading = {"status", "pages", "page", "changes", "noise", "check", "whatif", "plot"}
    assert set(main.commands) == reading | {
        "plan",
        "import",
        "forget",
        "export",
        "importance",
        "migrate",
        "reparse",
        "force",
        "rename-callback",
        "server",
        "simulate",
        "trace-git",
        "ping",
        "sources",
        "metrics",
    }
    assert TABLE  # settings are not part of --help


def test_an_embedded_server_is_run_for_a_read_and_let_go(tmp_path, nowhere):
    """In processes of their own, as a person does; the last one leaves no server behind."""
    project = make_project(tmp_path / "p", 'BOT_NAME = "mybot"\n')

    def shell(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return run_forked(["-m", "optimal_frontier.cli", *arguments], project, os.environ, 30, given)

    done = shell("--spider", "pages", "import", "-", given=f"{HOT},2\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 new, 0 known, 0 rejected\n", "")
    done = shell("check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok, 1 pages\n", "")
    assert HOT in shell("pages").stdout
    assert not (project / ".scrapy" / "optimal_frontier" / "server.json").exists()
