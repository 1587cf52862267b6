"""``rename-callback``: stored requests follow a method of the spider that got another name."""

from __future__ import annotations

import click

from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import number
from optimal_frontier.cli.project import find_workplace, opened_namespace
from optimal_frontier.errors import StateError
from optimal_frontier.frontier.dispatching import renaming


@click.command("rename-callback")
@click.argument("old")
@click.argument("new")
@click.pass_obj
def rename_callback(options: Options, old: str, new: str) -> None:
    """Give stored requests with the callback or errback OLD the one that is called NEW now.

    Pages that were held for it come back. Requests that name no callback have `parse`.
    """
    if not new.isidentifier():
        raise click.BadParameter(f"{new!r} is no name of a method", param_hint="NEW")
    if old == new:
        raise click.BadParameter(f"it is {old!r} as before", param_hint="NEW")
    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        renamed = renaming.rename_callback(namespace, old, new)
        if not renamed.pages:
            stored = renaming.stored_callbacks(namespace)
            known = ", ".join(f"{name} ({number(count)})" for name, count in sorted(stored.items(), key=_most_first)) or "none"
            raise StateError(f"no stored request has the callback {old!r} in namespace {workplace.settings.namespace!r}; stored: {known}")
    back = f"; {number(renamed.back)} of them were held, and are due now" if renamed.back else ""
    click.echo(f"renamed {old} to {new}: {number(renamed.pages)} {'page' if renamed.pages == 1 else 'pages'}{back}")


def _most_first(stored: tuple[str, int]) -> tuple[int, str]:
    return -stored[1], stored[0]
