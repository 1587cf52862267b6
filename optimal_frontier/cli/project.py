"""Where the command works: settings of the Scrapy project, and the namespace that they name."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optimal_frontier.cli.options import Options
from optimal_frontier.errors import ConfigurationError, StateError
from optimal_frontier.settings import NO_SPIDER, PREFIX, FrontierSettings, default_namespace
from optimal_frontier.state.connection import Connection, connect
from optimal_frontier.state.namespace import Namespace, namespaces_of
from optimal_frontier.state.reading import is_empty
from optimal_frontier.state.redis_url import ConnectionSpec, parse_redis_url


@dataclass
class Workplace:
    """Where a command works.

    Attributes
    ----------
    settings : FrontierSettings
        Their ``namespace`` is the right one once it is opened, or from the start where options or settings name it.
    spec : ConnectionSpec
        Where Redis is.
    project : Path or None
        The project that was named.
    fingerprinter : str, type or None
        REQUEST_FINGERPRINTER_CLASS; None without a project.
    spider : str or None
        The spider that was named.
    bot_name : str or None
        BOT_NAME, where the namespace is still to be found among those that begin with it.
    """

    settings: FrontierSettings
    spec: ConnectionSpec
    project: Path | None = None
    fingerprinter: Any = None
    spider: str | None = None
    bot_name: str | None = None


def find_workplace(options: Options) -> Workplace:
    """Read the settings of the project around the working directory (or ``--project``); the options go before them.

    Notes
    -----
    ``custom_settings`` of a spider and ``scrapy crawl -s`` are not seen: a spider is not imported.

    Raises
    ------
    ConfigurationError
        There is no project and no ``--redis-url``, or a setting or option is unusable.
    """
    if options.namespace is not None and options.spider is not None:
        raise ConfigurationError("--namespace and --spider exclude each other: a namespace belongs to one spider")
    if options.spider is not None and re.search(r"[\ud800-\udfff]", options.spider):
        raise ConfigurationError(f"--spider {options.spider!r}: expected the name of a spider, in UTF-8")
    values, project_dir = _project_settings(options.project)
    if values is None:
        values = {}
        data_dir = project_dir / ".scrapy" / "optimal_frontier"
        if options.redis_url is None and not data_dir.is_dir():
            raise ConfigurationError(
                f"no Scrapy project (scrapy.cfg) in {project_dir} or above it: change to one, or give --project DIR or --redis-url URL"
            )
    if options.redis_url is not None:
        values[PREFIX + "REDIS_URL"] = options.redis_url
    if options.namespace is not None:
        values[PREFIX + "NAMESPACE"] = options.namespace
    settings = FrontierSettings.parse(values, options.spider or NO_SPIDER)
    spec = parse_redis_url(settings.redis_url, project_dir)
    bot_name = settings.former_namespace if options.spider is None and settings.former_namespace else None
    return Workplace(settings, spec, options.project, values.get("REQUEST_FINGERPRINTER_CLASS"), options.spider, bot_name)


@contextlib.contextmanager
def opened_namespace(workplace: Workplace, *, create: bool = False, mends: bool = False) -> Iterator[Namespace]:
    """Connect and open the namespace; an embedded server runs as long as somebody uses it.

    Parameters
    ----------
    workplace : Workplace
        From `find_workplace`.
    create : bool
        Whether an empty namespace (and an embedded server without data) may be begun.
    mends : bool
        See `Namespace.open`.

    Raises
    ------
    StateError
        Nothing is stored there yet, and `create` is False; nothing was made then.
    ConfigurationError
        There are several namespaces, or none and several spiders, and nothing says which is meant.
    StateUnavailableError, SchemaMismatchError
        See `connect` and `Namespace.open`.
    """
    with connected_namespace(workplace, create=create) as namespace:
        name = namespace.name
        namespace.open(create=False, mends=mends)
        if is_empty(namespace):
            if not create:
                raise nothing_stored(workplace, namespace)
            settings = workplace.settings
            namespace.open(spider=workplace.spider, partitions=settings.partitions, former=settings.former_namespace)
        elif workplace.spider is not None:
            owner = namespace.hash("meta").get("spider", workplace.spider)
            if owner != workplace.spider:
                raise ConfigurationError(f"--spider {workplace.spider}: namespace {name!r} belongs to the spider {owner!r}")
        yield namespace


def nothing_stored(workplace: Workplace, namespace: Namespace) -> StateError:
    """Return the error of a command that finds nothing in its namespace; it names those that are there."""
    others: list[str] = []
    with contextlib.suppress(StateError):  # the user may lack the right to look for others
        others = namespaces_of(namespace.connection, workplace.settings.former_namespace or str(namespace.name).partition(":")[0])
    which = f"there are {', '.join(others)}" if others else "--namespace or --spider gives another one"
    return StateError(f"nothing is stored yet under namespace {namespace.name!r} at {workplace.spec.display}; {which}")


@contextlib.contextmanager
def connected_namespace(workplace: Workplace, *, create: bool = False, former: bool = False) -> Iterator[Namespace]:
    """Connect, and leave it to the block to look at what is there; for the parameters see `find_namespace`.

    Raises
    ------
    StateError
        An embedded server has no data yet, and `create` is False; nothing was made then.
    """
    spec = workplace.spec
    if spec.data_dir is not None and not create and not (spec.data_dir.is_dir() and any(spec.data_dir.iterdir())):
        raise StateError(f"nothing is stored yet in {spec.data_dir}: run a crawl or an import first")
    with connect(spec) as connection:
        yield Namespace(connection, find_namespace(workplace, connection, create=create, former=former))


def find_namespace(workplace: Workplace, connection: Connection, *, create: bool = False, former: bool = False) -> str:
    """Return the name of the namespace that is meant, and note it: the one of options or settings, else the only one of BOT_NAME.

    Parameters
    ----------
    create : bool
        Where there is none: the one that the project's only spider will have.
    former : bool
        Where there is none: the default of earlier versions.

    Raises
    ------
    ConfigurationError
        There are several, or none and not one spider.
    """
    bot_name = workplace.bot_name
    if bot_name is not None:
        found = namespaces_of(connection, bot_name)
        if not found and create:
            spiders = _project_spiders(workplace.project)
            if len(spiders) != 1:
                which = f"the project has {', '.join(spiders)}" if spiders else "no project with a spider was found"
                raise ConfigurationError(f"name the spider that is to crawl the pages with --spider ({which})")
            found, workplace.spider = [default_namespace(bot_name, spiders[0])], spiders[0]
        if len(found) > 1:
            where = workplace.spec.display
            raise ConfigurationError(
                f"several namespaces at {where}: {', '.join(found)}; choose one with --namespace or --spider, before the command"
            )
        workplace.settings = replace(workplace.settings, namespace=found[0] if found else bot_name if former else f"{bot_name}:*")
        workplace.bot_name = None
    return workplace.settings.namespace


def _project_spiders(given: Path | None) -> list[str]:
    """Return the names of the project's spiders; none without a project."""
    from scrapy.spiderloader import get_spider_loader
    from scrapy.utils.project import get_project_settings, inside_project

    def named() -> list[str]:
        return sorted(get_spider_loader(get_project_settings()).list()) if inside_project() else []

    with _undisturbed(given):
        return list(_explained(named, "the spiders of the project"))


def project_fingerprinter(given: Path | None) -> Any:
    """Return an instance of the REQUEST_FINGERPRINTER_CLASS that the project sets.

    Raises
    ------
    ConfigurationError
        It cannot be made outside of a crawl, or at all.
    """
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.utils.misc import build_from_crawler, load_object
    from scrapy.utils.project import get_project_settings

    def made() -> Any:
        settings = get_project_settings()
        return build_from_crawler(load_object(settings["REQUEST_FINGERPRINTER_CLASS"]), Crawler(Spider, settings))

    with _undisturbed(given):
        return _explained(made, "REQUEST_FINGERPRINTER_CLASS of the project")


def _project_settings(given: Path | None) -> tuple[dict[str, Any] | None, Path]:
    """Return the project's settings (None without a project) and the directory that holds its ``.scrapy``."""
    from scrapy.utils.conf import closest_scrapy_cfg, get_config

    with _undisturbed(given):
        here = Path.cwd()
        scrapy_cfg = closest_scrapy_cfg()
        if given is not None and not scrapy_cfg:
            raise ConfigurationError(f"--project {given}: expected a Scrapy project; there is no scrapy.cfg in it or above it")
        if not scrapy_cfg and "SCRAPY_SETTINGS_MODULE" not in os.environ:
            return None, here
        project_dir = Path(scrapy_cfg).parent if scrapy_cfg else here
        config = _explained(get_config, scrapy_cfg)
        # As `scrapy.utils.project.project_data_dir` does, but making no directory.
        if config.has_option("datadir", "default"):
            project_dir = Path(config.get("datadir", "default")).absolute().parent
        if "SCRAPY_SETTINGS_MODULE" in os.environ:
            origin = f"the settings module {os.environ['SCRAPY_SETTINGS_MODULE']} (SCRAPY_SETTINGS_MODULE)"
        else:
            origin = f"the settings module that {scrapy_cfg} names"
        return _explained(_load_settings, origin), project_dir


def _load_settings() -> dict[str, Any]:
    from scrapy.utils.project import get_project_settings

    settings = get_project_settings()
    return {str(name): settings.get(name) for name in settings}


def _explained(load: Any, what: str) -> Any:
    try:
        return load()
    except Exception as error:  # settings.py is the user's program and may raise anything
        raise ConfigurationError(f"cannot read {what}: {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def _undisturbed(directory: Path | None) -> Iterator[None]:
    """Work in ``directory`` as scrapy does, and leave directory, environment, import path and standard output as they were."""
    environment, path = dict(os.environ), list(sys.path)
    with contextlib.ExitStack() as stack:
        if directory is not None:
            stack.enter_context(contextlib.chdir(directory))
            os.environ.pop("SCRAPY_SETTINGS_MODULE", None)
        # What a settings module prints or warns of is not our answer.
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(environment)
            sys.path[:] = path
