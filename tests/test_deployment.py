"""The files in deploy/ can be read by what reads them, and name what there is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]


def test_services_name_volumes_services_and_files_that_there_are() -> None:
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("${FRONTIER}/"):
                assert (ROOT / source.removeprefix("${FRONTIER}/")).is_file(), source
            else:
                assert source in COMPOSE["volumes"]
    file = SERVICES["crawler"]["build"]["dockerfile"]
    assert (ROOT / file.rpartition("}/")[2]).is_file()


def test_crawlers_can_be_scaled() -> None:
    """Nothing of the crawler exists once only: no name, no port, no volume."""
    assert not SERVICES["crawler"].keys() & {"container_name", "ports", "volumes", "hostname"}


def test_every_word_that_must_be_given_is_told_in_the_documentation() -> None:
    needed = set(re.findall(r"\$\{([A-Z_]+)", (DEPLOY / "compose.yaml").read_text()))
    documented = (ROOT / "docs" / "deployment.md").read_text()
    assert needed == {"PROJECT", "FRONTIER", "SPIDER", "CRAWLER_PASSWORD", "WATCHER_PASSWORD"}
    assert all(f"{name}=" in documented for name in needed)


def test_users_of_the_services_are_those_of_the_file() -> None:
    users = set(re.findall(r"^user (\w+) on ", (DEPLOY / "users.acl").read_text(), re.MULTILINE))
    urls = [service["environment"]["OPTIMAL_FRONTIER_REDIS_URL"] for service in (SERVICES["crawler"], SERVICES["metrics"])]
    assert {re.match(r"redis://(\w+):\$\{\w+[:?}]", url)[1] for url in urls} == users == {"crawler", "watcher"}  # type: ignore[index]


def test_prometheus_asks_the_service_at_its_port() -> None:
    from optimal_frontier.cli.metrics_command import metrics

    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    port = next(option.default for option in metrics.params if option.name == "port")
    assert job["static_configs"] == [{"targets": [f"metrics:{port}"]}]
    assert "metrics" in SERVICES


def test_commands_of_the_services_are_commands() -> None:
    from optimal_frontier.cli import main

    words = SERVICES["metrics"]["command"]
    assert words[0] == "optimal-frontier"
    with main.make_context("optimal-frontier", words[1:]) as context:
        name, command, rest = main.resolve_command(context, words[3:])
        assert command is not None
        assert command.make_context(str(name), rest, parent=context).params["host"] == "0.0.0.0"


def test_what_the_image_copies_from_the_source_exists() -> None:
    copied = re.findall(r"^COPY --from=frontier (.+) \S+$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert names
    assert all((ROOT / name).exists() for name in names)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """With a program that is there in place of the project's."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("not installed: systemd-analyze")
    text = (DEPLOY / "optimal-frontier@.service").read_text()
    program = "/srv/crawl/.venv/bin/scrapy"
    assert program in text
    unit = tmp_path / "optimal-frontier@.service"
    unit.write_text(text.replace(program, sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
