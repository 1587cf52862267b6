"""Which namespace a command means."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from click.testing import CliRunner
from redis.exceptions import ConnectionError as RedisConnectionError

from optimal_frontier.cli import main
from optimal_frontier.errors import ConfigurationError, StateUnavailableError
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.connection import connect
from optimal_frontier.state.namespace import Namespace, namespaces_of
from optimal_frontier.state.redis_url import parse_redis_url

SPIDER = "import scrapy\nclass S{0}(scrapy.Spider):\n    name = {0!r}\n"


class Project:
    """A Scrapy project on the tests' server, with a BOT_NAME of its own."""

    def __init__(self, path: Path, redis_socket: str, spiders: list[str], settings: str = "") -> None:
        self.bot = f"bot_{uuid.uuid4().hex[:10]}"
        self.path, self.url = path, f"unix://{redis_socket}"
        folder = path / self.bot / "spiders"
        folder.mkdir(parents=True)
        (path / self.bot / "__init__.py").touch()
        (folder / "__init__.py").touch()
        text = f"BOT_NAME = {self.bot!r}\nSPIDER_MODULES = ['{self.bot}.spiders']\nOPTIMAL_FRONTIER_REDIS_URL = {self.url!r}\n"
        (path / self.bot / "settings.py").write_text(text + settings)
        (path / "scrapy.cfg").write_text(f"[settings]\ndefault = {self.bot}.settings\n")
        for name in spiders:
            (folder / f"{name}.py").write_text(SPIDER.format(name))

    def run(self, *arguments: str, code: int = 0, given: str = "") -> str:
        """Run the command in it; return its one line of error, or its answer."""
        result = CliRunner().invoke(main, ["--project", str(self.path), *arguments], input=given)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == code, result.output
        return (result.stderr if code else result.stdout).strip()

    def begin(self, spider: str, name: str) -> None:
        """Store something, as a crawl of a spider does."""
        with connect(parse_redis_url(self.url, Path("/"))) as connection:
            Namespace(connection, name).open(spider=spider)

    def found(self) -> list[str]:
        """Return the namespaces of its BOT_NAME."""
        with connect(parse_redis_url(self.url, Path("/"))) as connection:
            return namespaces_of(connection, self.bot)


def test_the_only_namespace_is_found(tmp_path, nowhere, redis_socket):
    project = Project(tmp_path / "p", redis_socket, ["news", "shop"])
    project.begin("news", f"{project.bot}:news")
    project.begin("news", f"{project.bot}2:news")  # another project's
    assert json.loads(project.run("status", "--json"))["namespace"] == f"{project.bot}:news"
    assert project.run("import", "-", given="http://a.org/\n") == "1 new, 0 known, 0 rejected"
    assert project.found() == [f"{project.bot}:news"]


def test_several_are_listed_and_the_spider_chooses(tmp_path, nowhere, redis_socket):
    project = Project(tmp_path / "p", redis_socket, ["news", "shop"])
    for spider in ("shop", "news"):
        project.begin(spider, f"{project.bot}:{spider}")
    line = project.run("status", code=2)
    assert f"{project.bot}:news, {project.bot}:shop" in line
    assert "--spider" in line
    assert json.loads(project.run("--spider", "shop", "status", "--json"))["spider"] == "shop"
    assert f"there are {project.bot}:news, {project.bot}:shop" in project.run("--spider", "blog", "status", code=1)
    assert "exclude each other" in project.run("--spider", "shop", "--namespace", "x", "status", code=2)


def test_an_import_before_the_first_crawl_goes_where_the_only_spider_will_look(tmp_path, nowhere, redis_socket):
    project = Project(tmp_path / "p", redis_socket, ["news"])
    project.run("import", "-", given="http://a.org/\n")
    assert project.found() == [f"{project.bot}:news"]
    assert json.loads(project.run("status", "--json"))["spider"] == "news"
    both = Project(tmp_path / "q", redis_socket, ["news", "shop"])
    assert "the project has news, shop" in both.run("import", "-", code=2, given="http://a.org/\n")
    assert both.found() == []
    both.run("--spider", "shop", "import", "-", given="http://a.org/\n")
    assert both.found() == [f"{both.bot}:shop"]


def test_a_spider_that_was_renamed_takes_its_pages_along(tmp_path, nowhere, redis_socket):
    project = Project(tmp_path / "p", redis_socket, ["headlines"])
    project.begin("news", f"{project.bot}:news")
    project.run("import", "-", given="http://a.org/\n")
    project.run("export", str(tmp_path / "news.jsonl"))
    assert project.run("--spider", "headlines", "import", str(tmp_path / "news.jsonl")).startswith("1 new")
    told = json.loads(project.run("--spider", "headlines", "status", "--json"))
    assert (told["namespace"], told["spider"], told["pages"]) == (f"{project.bot}:headlines", "headlines", 1)
    project.begin("headlines", f"{project.bot}:headlines")  # it is not refused


def test_a_namespace_that_is_set_is_meant_and_belongs_to_one_spider(tmp_path, nowhere, redis_socket, namespace):
    project = Project(tmp_path / "p", redis_socket, ["news", "shop"], f"OPTIMAL_FRONTIER_NAMESPACE = {namespace!r}\n")
    project.begin("news", namespace)
    assert json.loads(project.run("status", "--json"))["namespace"] == namespace
    assert json.loads(project.run("--spider", "news", "status", "--json"))["namespace"] == namespace
    assert "belongs to the spider 'news'" in project.run("--spider", "shop", "status", code=2)


def test_pages_under_the_former_default_are_not_left_behind(tmp_path, nowhere, redis_socket):
    """Commands find them; a crawl says how to go on with them, and starts afresh only if it is told so."""
    project = Project(tmp_path / "p", redis_socket, ["news"])
    project.begin("news", project.bot)
    assert json.loads(project.run("status", "--json"))["namespace"] == project.bot
    settings = FrontierSettings.parse({"BOT_NAME": project.bot}, "news")
    with connect(parse_redis_url(project.url, Path("/"))) as connection:

        def open_default(spider: str, former: str) -> None:
            Namespace(connection, f"{project.bot}:{spider}").open(spider=spider, former=former)

        with pytest.raises(ConfigurationError, match=f"OPTIMAL_FRONTIER_NAMESPACE = '{project.bot}' to go on") as caught:
            open_default("news", settings.former_namespace)
        assert "\n" not in str(caught.value)
        assert project.found() == [project.bot]
        open_default("shop", settings.former_namespace)  # those are another spider's
        told = FrontierSettings.parse({"OPTIMAL_FRONTIER_NAMESPACE": f"{project.bot}:news"}, "news")
        open_default("news", told.former_namespace)
    assert project.found() == [project.bot, f"{project.bot}:news", f"{project.bot}:shop"]


def test_what_a_migration_writes_beside_a_namespace_is_none(tmp_path, nowhere, redis_socket):
    """After Ctrl-C the same command has to find its way."""
    project = Project(tmp_path / "p", redis_socket, ["news"])
    project.begin("news", f"{project.bot}:news")
    project.begin("news", f"{project.bot}:news~migration")
    assert project.found() == [f"{project.bot}:news"]


def test_a_bot_name_with_white_space_is_found(tmp_path, nowhere, redis_socket):
    project = Project(tmp_path / "p", redis_socket, ["news"])
    settings = tmp_path / "p" / project.bot / "settings.py"
    settings.write_text(settings.read_text() + f"BOT_NAME = 'my {project.bot}'\n")
    project.begin("news", FrontierSettings.parse({"BOT_NAME": f"my {project.bot}"}, "news").namespace)
    assert json.loads(project.run("status", "--json"))["namespace"] == f"my%20{project.bot}:news"


def test_a_cluster_of_which_no_node_has_the_first_partition_is_an_outage(redis_socket, monkeypatch):
    """And no traceback."""

    def nobody(*_: object) -> None:
        raise RedisConnectionError("CLUSTERDOWN no node serves our keys")

    with connect(parse_redis_url(f"unix://{redis_socket}", Path("/"))) as connection:
        monkeypatch.setattr(connection, "client_of", nobody)
        with pytest.raises(StateUnavailableError, match="no node serves our keys"):
            namespaces_of(connection, "bot")
