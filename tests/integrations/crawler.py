"""What starts the real crawls of the tests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from crawls import Crawl, crawling
from misbehaving_site import MisbehavingSite

#: Starts a crawl: crawl(spider source, NAME=value ...) -> context manager of Crawl. Names without the prefix are ours.
Crawler = Callable[..., AbstractContextManager[Crawl]]


def crawler(folder: Path, site: MisbehavingSite, redis_socket: str, namespace: str) -> Crawler:
    """Return what starts crawls in ``folder`` with the state in ``namespace``."""

    def start(spider: str, arguments: list[str] | None = None, **settings: Any) -> AbstractContextManager[Crawl]:
        ours = {"REDIS_URL": f"unix://{redis_socket}", "NAMESPACE": namespace}
        given = {name.removeprefix("of_"): value for name, value in settings.items() if name.startswith("of_")}
        scrapys = {name: value for name, value in settings.items() if not name.startswith("of_")}
        merged = scrapys | {f"OPTIMAL_FRONTIER_{name}": value for name, value in (ours | given).items() if value is not ...}
        return partial(crawling, folder, site.url(""), spider, merged, arguments)()

    return start
