"""How commands are told a host: one way for all of them, which is also that of RULES."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.settings.rules import Rule
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.scanning import read_host_names

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
    >>> check_host("A.example:8080")
    'a.example:8080'
    """
    if not name or any(character in "/?#@ " for character in name):
        raise ConfigurationError(f"{name!r} is no host; expected its name, as a.example or a.example:8080, and no URL")
    return name.lower()


def host_given(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Callback of options ``--host``."""
    return None if value is None else check_host(value)


def numbers_of_host(names: Mapping[int, str], host: str) -> list[int]:
    """Return the numbers of those of a partition's hosts that ``host`` means; ``names`` by number.

    Examples
    --------
    >>> numbers_of_host({1: "a.example", 2: "a.example:8080", 3: "b.example"}, "a.example")
    [1, 2]
    """
    rule = Rule(None, host, {})
    return [number for number, name in names.items() if rule.matches(f"http://{name}/")]


def partitions_of_host(namespace: Namespace, host: str) -> list[int]:
    """Return the partitions in which pages of a host are: of one without a port it may be several."""
    return [k for k in range(namespace.partitions) if numbers_of_host(read_host_names(namespace, k), host)]
