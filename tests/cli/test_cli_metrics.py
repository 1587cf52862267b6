"""``metrics``: the numbers of ``status --json`` as Prometheus reads them, and the dashboard that shows them."""

from __future__ import annotations

import json
import re
import signal
import socket
import struct
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import optimal_frontier
from optimal_frontier.cli.metrics_command import COUNTERS, exposition, metrics_of

from .running_command import running

DASHBOARD = Path(optimal_frontier.__file__).parent.parent / "deploy" / "dashboard.json"
LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-z_]+="[^"]*"(?:,[a-z_]+="[^"]*")*\})? (\S+)')


def values_of(text: str) -> dict[str, float]:
    """Parse the text format: every sample has its type in the line before, and none comes twice."""
    values: dict[str, float] = {}
    lines = text.splitlines()
    for declared, sample in zip(lines[::2], lines[1::2], strict=True):
        match = LINE.fullmatch(sample)
        assert match, sample
        assert declared in (f"# TYPE {match[1]} gauge", f"# TYPE {match[1]} counter")
        assert declared.endswith("counter") == match[1].endswith("_total")
        assert match[1] not in values
        values[match[1]] = float(match[3])
    return values


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return str(answer.read().decode())


def test_serves_what_status_tells_until_it_is_stopped(ask, crawl, target):
    told = ask("status")
    with running(*target, "metrics", "--port", "0") as process:
        url = process.stdout.readline().split()[-1]
        values = values_of(fetch(url))
        for name in ("pages", "fetched", "due", "in_flight", "planned_rate", "price", "estimated_freshness"):
            assert values[f"optimal_frontier_{name}"] == told[name]
        assert values["optimal_frontier_visits_total"] == told["visits"] == 9
        assert values["optimal_frontier_lateness_seconds_p99"] == told["lateness_seconds"]["p99"]
        assert values["optimal_frontier_up"] == 1
        crawl.visit("http://a.example/hot", bit=1)
        assert values_of(fetch(url))["optimal_frontier_visits_total"] == 10
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            fetch(url.replace("/metrics", "/"))
        refused.value.close()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")


def test_a_scraper_that_hangs_up_is_no_error(ask, crawl, target):
    """Prometheus waits for ten seconds, and an outage lasts longer: that was a traceback for each scrape."""
    with running(*target, "metrics", "--port", "0") as process:
        url = process.stdout.readline().split()[-1]
        port = int(url.split(":")[-1].partition("/")[0])
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port)) as scraper:
                scraper.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
                scraper.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert values_of(fetch(url))["optimal_frontier_up"] == 1
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
def test_an_address_may_be_one_of_ipv6(ask, crawl, target):
    with running(*target, "metrics", "--host", "::1", "--port", "0") as process:
        url = process.stdout.readline().split()[-1]
        assert url.startswith("http://[::1]:")
        assert values_of(fetch(url))["optimal_frontier_up"] == 1


def test_a_state_that_cannot_be_read_is_down_and_told_once(tmp_path):
    with running("--redis-url", f"unix://{tmp_path}/none.sock", "--namespace", "n", "metrics", "--port", "0") as process:
        url = process.stdout.readline().split()[-1]
        assert values_of(fetch(url)) == values_of(fetch(url)) == {"optimal_frontier_up": 0}
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 0
    assert len(errors.splitlines()) == 1
    assert "there is no such socket" in errors


def test_a_port_that_is_taken_is_wrong_usage(run, crawl, target):
    with running(*target, "metrics", "--port", "0") as process:
        port = process.stdout.readline().split(":")[-1].partition("/")[0]
        refused = run("metrics", "--port", port)
    assert refused.exit_code == 2
    assert f"--host 127.0.0.1 --port {port}: cannot listen there" in refused.stderr


def test_every_counter_is_a_field_of_status(ask, crawl):
    assert set(ask("status")) >= COUNTERS >= {"visits", "gone_held", "blocked_pages", "moved", "revived"}


def test_labels_are_escaped():
    assert '{namespace="a\\"b\\\\",spider=""} 1' in exposition({"namespace": 'a"b\\', "spider": None})


def test_the_dashboard_shows_metrics_that_there_are(ask, crawl):
    """Every name in an expression of deploy/dashboard.json is one that is served."""
    served = {name for name, _, _ in metrics_of(ask("status"))} | {"optimal_frontier_up"}
    expressions = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]
    names = set(re.findall(r"optimal_frontier_\w+", " ".join(expressions)))
    assert len(names) >= 8
    assert names <= served
