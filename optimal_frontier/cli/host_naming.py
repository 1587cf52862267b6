"""How commands are told a host: one way for all of them, which is also that of RULES."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import click

from optimal_frontier.errors import ConfigurationError, StateError
from optimal_frontier.settings.parsing import ascii_host
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.scanning import read_host_names

_PORT: Final = re.compile(r":\d+\Z")
#: What help says of HOST.
HOST_HELP: Final = "as in RULES: a.example, of any port, or a.example:8080"


def check_host(name: str) -> str:
    """Return the name of a host as it is known.

    Raises
    ------
    ConfigurationError
        It is none: a URL, say.

    Examples
    --------
    >>> check_host("A.example:8080"), check_host("[::1]:8080"), check_host("bücher.example")
    ('a.example:8080', '::1:8080', 'xn--bcher-kva.example')
    """
    if not name or any(character in "/?#@ " for character in name):
        raise ConfigurationError(f"{name!r} is no host; expected its name, as a.example or a.example:8080, and no URL")
    return ascii_host(name).replace("[", "").replace("]", "")


def host_given(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Callback of options ``--host``."""
    return None if value is None else check_host(value)


def hosts_meant(names: Mapping[int, str], host: str) -> dict[int, str]:
    """Return those of a partition's hosts that ``host`` means, as `check_host` returns it; ``names`` are by number.

    Examples
    --------
    >>> names = {1: "a.example", 2: "a.example:8080", 3: "b.example", 4: "::1:8080"}
    >>> hosts_meant(names, "a.example"), hosts_meant(names, "::1"), hosts_meant(names, "::1:8080")
    ({1: 'a.example', 2: 'a.example:8080'}, {4: '::1:8080'}, {4: '::1:8080'})
    """
    return {number: name for number, name in names.items() if host in (name, _PORT.sub("", name))}


def unknown_host(host: str) -> StateError:
    """Return the error of every command that finds no page of a host."""
    return StateError(f"no page of host {host!r} is known")


def partitions_of_host(namespace: Namespace, host: str) -> dict[int, dict[int, str]]:
    """Return what `hosts_meant` does of each partition in which there are any: of a host without a port it may be several."""
    meant = {k: hosts_meant(read_host_names(namespace, k), host) for k in range(namespace.partitions)}
    return {k: hosts for k, hosts in meant.items() if hosts}
