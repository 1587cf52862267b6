"""``metrics``: what ``status --json`` tells, for Prometheus."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import click

from optimal_frontier.cli.interruption import Interruption
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.project import Workplace, find_workplace, opened_namespace
from optimal_frontier.cli.status_command import describe
from optimal_frontier.errors import ConfigurationError, OptimalFrontierError
from optimal_frontier.state.reading import read_status

#: In front of all names.
PREFIX: Final = "optimal_frontier"
#: Fields of ``status --json`` that only grow; all others are gauges.
COUNTERS: Final = frozenset(
    {
        *("visits", "failures", "failures_by_cause", "observations", "changes", "discovered", "noise", "signals", "pings", "pushed"),
        *("trapped", "canonical", "not_modified", "bytes_saved", "validator_lies"),
        *("gone_held", "blocked_pages", "moved", "merged", "revived", "template_changes"),
    }
)
#: Format of the text, as Prometheus names it.
_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Seconds between two looks for a Ctrl-C.
_LOOK_S: Final = 1.0


def metrics_of(answer: dict[str, Any]) -> Iterator[tuple[str, bool, float]]:
    """Yield name, whether it only grows, and value of each number of ``status --json``.

    Names of nested fields are joined by ``_``. What is not known yet, lists and texts are left out.

    Examples
    --------
    >>> for metric in metrics_of({"visits": 3, "price": None, "lateness_seconds": {"p50": 0.5}, "policy": "periodic"}):
    ...     print(metric)
    ('optimal_frontier_visits_total', True, 3.0)
    ('optimal_frontier_lateness_seconds_p50', False, 0.5)
    """
    for top, given in answer.items():
        grows = top in COUNTERS
        for name, value in _flat(f"{PREFIX}_{top}", given):
            yield f"{name}_total" if grows else name, grows, value


def _flat(name: str, value: object) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}_{key}", inner)
    elif isinstance(value, int | float):
        yield name, float(value)


def exposition(answer: dict[str, Any] | None) -> str:
    """Return the text that Prometheus reads; of None, that the state could not be read."""
    lines = [f"# TYPE {PREFIX}_up gauge", f"{PREFIX}_up {int(answer is not None)}"]
    if answer is not None:
        labels = ",".join(f'{name}="{_escaped(str(answer[name] or ""))}"' for name in ("namespace", "spider"))
        lines += [f"# TYPE {PREFIX}_crawl_info gauge", f"{PREFIX}_crawl_info{{{labels}}} 1"]
        for name, grows, value in metrics_of(answer):
            lines += [f"# TYPE {name} {'counter' if grows else 'gauge'}", f"{name} {value!r}"]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Reader:
    """Reads the state at each call; of what goes wrong it says one line, and one when it is right again."""

    def __init__(self, workplace: Workplace) -> None:
        self._workplace = workplace
        self._mutex = threading.Lock()  # one at a time, however many ask
        self._fault = ""

    def __call__(self) -> str:
        """Return the text for Prometheus."""
        with self._mutex:
            try:
                # A copy, as opening notes which namespace was found: there may be none yet.
                workplace = replace(self._workplace)
                with opened_namespace(workplace) as namespace:
                    answer: dict[str, Any] | None = {
                        "namespace": namespace.name,
                        **describe(read_status(namespace), workplace.settings),
                    }
                fault = ""
            except OptimalFrontierError as error:
                answer, fault = None, " | ".join(str(error).split("\n"))
            if fault != self._fault:
                click.echo(f"optimal-frontier: {fault or 'the state can be read again'}", err=True)
                self._fault = fault
        return exposition(answer)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print what went wrong, but not that a scraper has hung up: in an outage the state is waited for longer than that waits."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _handler(read: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # seconds for a client to say what it wants

        def do_GET(self) -> None:
            found = self.path.partition("?")[0] == "/metrics"
            body = (read() if found else "see /metrics\n").encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", _CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing of each request."""

    return Handler


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=9108, show_default=True, help="TCP port; 0: any that is free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; 0.0.0.0: all.")
@click.pass_obj
def metrics(options: Options, port: int, host: str) -> None:
    """Serve the numbers of `status --json` for Prometheus, at /metrics, until Ctrl-C.

    The state is read at each request. While it cannot be read, optimal_frontier_up is 0.
    """
    workplace = find_workplace(options)
    try:
        server = _Server(host, port, _handler(Reader(workplace)))
    except OSError as error:
        raise ConfigurationError(f"--host {host} --port {port}: cannot listen there: {error.strerror}") from error
    with Interruption() as interruption, server:
        thread = threading.Thread(target=server.serve_forever, name="optimal_frontier-metrics", daemon=True)
        thread.start()
        click.echo(f"metrics at http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics")
        while not interruption.wait(_LOOK_S):
            pass
        server.shutdown()
        thread.join()
