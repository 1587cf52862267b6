"""Where the command works: settings of the Scrapy project, and the namespace that they name."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimal_frontier.errors import ConfigurationError, StateError
from optimal_frontier.settings import PREFIX, FrontierSettings
from optimal_frontier.state.connection import ConnectionSpec, connect, parse_redis_url
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.reading import is_empty


@dataclass(frozen=True)
class Options:
    """What was given before the command; None where nothing was."""

    redis_url: str | None = None
    namespace: str | None = None
    project: Path | None = None


@dataclass(frozen=True)
class Workplace:
    """Settings, where Redis is, the project that was named, and REQUEST_FINGERPRINTER_CLASS (None: without a project)."""

    settings: FrontierSettings
    spec: ConnectionSpec
    project: Path | None = None
    fingerprinter: Any = None


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
    settings = FrontierSettings.parse(values)
    spec = parse_redis_url(settings.redis_url, project_dir)
    return Workplace(settings, spec, options.project, values.get("REQUEST_FINGERPRINTER_CLASS"))


@contextlib.contextmanager
def opened_namespace(workplace: Workplace, *, create: bool = False) -> Iterator[Namespace]:
    """Connect and open the namespace; an embedded server runs as long as somebody uses it.

    Parameters
    ----------
    workplace : Workplace
        From `find_workplace`.
    create : bool
        Whether an empty namespace (and an embedded server without data) may be begun.

    Raises
    ------
    StateError
        Nothing is stored there yet, and `create` is False; nothing was made then.
    StateUnavailableError, SchemaMismatchError
        See `connect` and `Namespace.open`.
    """
    spec, name = workplace.spec, workplace.settings.namespace
    if spec.data_dir is not None and not create and not (spec.data_dir.is_dir() and any(spec.data_dir.iterdir())):
        raise StateError(f"nothing is stored yet in {spec.data_dir}: run a crawl or an import first")
    with connected_namespace(workplace) as namespace:
        namespace.open(create=False)
        if is_empty(namespace):
            if not create:
                raise StateError(f"nothing is stored yet under namespace {name!r} at {spec.display}; --namespace gives another one")
            namespace.open(partitions=workplace.settings.partitions)
        yield namespace


@contextlib.contextmanager
def connected_namespace(workplace: Workplace) -> Iterator[Namespace]:
    """Connect, and leave it to the block to look at what is there."""
    with connect(workplace.spec) as connection:
        yield Namespace(connection, workplace.settings.namespace)


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
