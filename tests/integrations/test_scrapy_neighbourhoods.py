"""A site whose sections change as a whole, in a real crawl: what a page shows is believed of its siblings."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from crawler import crawler
from crawls import State

from optimal_frontier.cli import main

SECTIONS, PAGES = 5, 16
#: Seconds between two changes of a section; another one changes in between, in turn.
EVERY_S = 10.0
SPIDER = f"""
class Tester(Base):
    paths = [f"/s{{section}}/page{{page}}.html" for page in range({PAGES}) for section in range({SECTIONS})]
"""


class SectionedSite:
    """Context manager; serves while it is open. Every page of a section shows the number of the section's edition."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        #: Path, section and edition of each fetch, in their order.
        self.fetches: list[tuple[str, int, int]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                section = int(self.path[2])
                edition = int((time.monotonic() - site.began) / EVERY_S + section / SECTIONS)
                site.fetches.append((self.path, section, edition))
                body = f"<html><body>{self.path} in its edition {edition}</body></html>".encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> SectionedSite:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def delays(self, since: int) -> tuple[list[int], list[int]]:
        """Fetches from the first one that saw a change to the next of each stale sibling, and of each page of the other sections."""
        siblings, others = [], []
        latest = [-1] * SECTIONS
        for at, (_, section, edition) in enumerate(self.fetches):
            if edition > latest[section] >= 0 and at >= since:
                following: dict[str, tuple[int, int]] = {}
                for later, (path, of, _) in enumerate(self.fetches[at + 1 :], 1):
                    following.setdefault(path, (later, of))
                siblings += [later for later, of in following.values() if of == section]
                others += [later for later, of in following.values() if of != section]
            latest[section] = max(latest[section], edition)
        return siblings, others


@pytest.fixture
def state(redis_socket: str, namespace: str) -> Iterator[State]:
    held = State(f"unix://{redis_socket}", namespace)
    yield held
    held.close()


def stored(state: State) -> list[int]:
    return [state.namespace.command("EXISTS", state.namespace.key(name)) for name in ("visited", "clocks")]


def test_siblings_of_a_page_that_changed_are_fetched_before_others(tmp_path, redis_socket, namespace, state):
    """The gate opens, `page` and `status` say so; without NEIGHBOURHOODS nothing of it is stored."""
    target = ["--redis-url", f"unix://{redis_socket}", "--namespace", namespace]
    with SectionedSite() as site:
        start = crawler(tmp_path, site, redis_socket, namespace)  # type: ignore[arg-type]  # all it needs is url
        with start(SPIDER, of_CRAWL_RATE=25) as running:
            running.until(lambda: int(state.plan.get("clocks_open", 0)) > 0, 60)
            opened = len(site.fetches)
            running.until(lambda: len(site.fetches) > opened + 6 * SECTIONS * PAGES, 60)

            def ask() -> dict[str, Any]:
                paths = [path for path, _, _ in site.fetches[-8:]]
                asked = {path: json.loads(CliRunner().invoke(main, [*target, "page", site.url(path), "--json"]).stdout) for path in paths}
                # A gate that has opened may close for some plans by chance.
                return asked if all(answer["clock"]["gate_open"] for answer in asked.values()) else {}

            asked = running.until(ask, 60)
            told = CliRunner().invoke(main, [*target, "status"]).stdout
            running.stop()
            assert "Traceback" not in running.log
        siblings, others = site.delays(opened)
        assert len(siblings) > 3 * PAGES
        assert np.mean(siblings) < 0.75 * np.mean(others)
        assert any(f"/s{path[2]}/" in answer["why"] and "saw a change" in answer["why"] for path, answer in asked.items())
        assert "1 host on their clocks" in told
        assert stored(state) == [1, 1]
        with start(SPIDER, of_CRAWL_RATE=25, of_NEIGHBOURHOODS=False) as running:
            before = len(site.fetches)
            running.until(lambda: len(site.fetches) > before + SECTIONS * PAGES and state.plan.get("neighbourhoods") == "0")
            running.stop()
        assert stored(state) == [0, 0]
