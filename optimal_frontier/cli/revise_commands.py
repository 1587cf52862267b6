"""``forget`` and ``force``: what a person may do to one page."""

from __future__ import annotations

import click

from optimal_frontier.cli.page_identity import identified_in, identity
from optimal_frontier.cli.project import Options, find_workplace, opened_namespace
from optimal_frontier.errors import StateError
from optimal_frontier.frontier.dispatching import revising
from optimal_frontier.frontier.hosts import host_of
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.reading import read_page
from optimal_frontier.state.rows import DONE


@click.command()
@click.argument("url")
@click.pass_obj
def forget(options: Options, url: str) -> None:
    """Forget a page: its estimate, its history, its place in the queues. A crawl that finds it again adds it as new."""
    identity(url)  # what is no URL needs no server
    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        if not revising.forget(namespace, [identified_in(namespace, workplace)(url)]):
            raise StateError(f"{url} is not known in namespace {workplace.settings.namespace!r}")
    click.echo(f"forgotten: {url}")


@click.command()
@click.argument("url")
@click.pass_obj
def force(options: Options, url: str) -> None:
    """Make a page due now; a retired one comes back."""
    identity(url)  # what is no URL needs no server
    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        fingerprint = identified_in(namespace, workplace)(url)
        (done,) = revising.force(namespace, [fingerprint])
        reading = read_page(namespace, fingerprint[:PAGE_BYTES], host_of(url))
    if not done or reading is None:
        raise StateError(f"{url} is not known in namespace {workplace.settings.namespace!r}")
    if done == 1:
        click.echo(f"due now: {url}")
    elif reading.row.state == DONE:
        raise StateError(f"{url} was to be fetched once, and was; forget it to have it fetched again")
    else:
        click.echo(f"{'already in flight' if reading.is_leased else 'already waiting for its first visit'}: {url}")
