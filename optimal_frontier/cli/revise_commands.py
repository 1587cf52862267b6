"""``forget`` and ``force``: what a person may do to one page."""

from __future__ import annotations

import click

from optimal_frontier.cli.identity import identified_in, identity
from optimal_frontier.cli.project import Options, find_workplace, opened_store
from optimal_frontier.errors import StateError
from optimal_frontier.state.columns import DONE
from optimal_frontier.state.reading import read_page


@click.command()
@click.argument("url")
@click.pass_obj
def forget(options: Options, url: str) -> None:
    """Forget a page: its estimate, its history, its place in the queues. A crawl that finds it again adds it as new."""
    identity(url)  # what is no URL needs no server
    workplace = find_workplace(options)
    with opened_store(workplace) as store:
        fingerprint = identified_in(store, workplace)(url)
        if not store.run([("forget_page", [fingerprint])])[0]:
            raise StateError(f"{url} is not known in namespace {workplace.settings.namespace!r}")
    click.echo(f"forgotten: {url}")


@click.command()
@click.argument("url")
@click.pass_obj
def force(options: Options, url: str) -> None:
    """Make a page due now; a retired one comes back."""
    identity(url)  # what is no URL needs no server
    workplace = find_workplace(options)
    with opened_store(workplace) as store:
        fingerprint = identified_in(store, workplace)(url)
        done = store.run([("force_page", [fingerprint])])[0]
        reading = read_page(store, fingerprint)
    if not done or reading is None:
        raise StateError(f"{url} is not known in namespace {workplace.settings.namespace!r}")
    if done == 1:
        click.echo(f"due now: {url}")
    elif reading.page["state"] == DONE:
        raise StateError(f"{url} was to be fetched once, and was; forget it to have it fetched again")
    else:
        click.echo(f"{'already in flight' if reading.lease else 'already waiting for its first visit'}: {url}")
