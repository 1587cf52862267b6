"""What cannot be read is put aside, and the crawl goes on: single pages, shared values, and work that an exchange fails at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from optimal_frontier.frontier.admitting.addresses import UNREADABLE
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.admitting.pages import new_page
from optimal_frontier.frontier.admitting.stored_requests import fault_of_record
from optimal_frontier.frontier.dispatching.forgetting import forget_pages
from optimal_frontier.frontier.dispatching.work import Exchange
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.mending import host_damages, mend, tell
from optimal_frontier.state.messages import Handout, NewPage
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import add_calls, count_calls
from optimal_frontier.state.put_aside import COUNTER, PutAside, read_put_aside
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.rows import ACTIVE, HEAD_BYTES, ONCE, TAIL_BYTES, Row, split_tail
from optimal_frontier.state.scanning import read_host_names
from optimal_frontier.state.soundness import fault_of

#: How reasons end of pages whose host has no name.
_NO_HOST = (UNREADABLE, "the host ''")


def fault_of_handout(handout: Handout, settings: FrontierSettings) -> str:
    """Return why no request is to be made of a handout; empty: one can be."""
    try:
        return fault_of_record(handout.record, handout.host, settings.schemes)
    except Exception as error:  # whatever somebody wrote there
        return f"its record is damaged: {error!r}"


def _lack_names(namespace: Namespace, partition: int) -> bool:
    hosts, names = namespace.commands([["HLEN", namespace.key(key, partition)] for key in ("hosts", "hosts:names")], partition=partition)
    return bool(names < hosts)


def set_aside(namespace: Namespace, partition: int, reasons: Mapping[bytes, str]) -> None:
    """Put pages of a partition aside: their leases end, and they are known no more. A link to one of them makes it a page again.

    Where hosts have lost their names, which all of their pages need, they get them back; pages come again when their leases run out.
    """
    if not reasons:
        return
    if any(reason.endswith(_NO_HOST) for reason in reasons.values()) and _lack_names(namespace, partition):
        for line in (named := mend(namespace, range(partition, partition + 1), host_damages)):
            tell("put right: %s", line)
        if named:
            return
    for page, reason in reasons.items():
        tell("the page %s is put aside: %s", page.hex(), reason)
    forget_pages(namespace, partition, list(reasons), reasons)


def forget_memories(namespace: Namespace, partition: int, pages: list[bytes]) -> None:
    """Forget memories that cannot be read; their pages go on without them."""
    if pages:
        for page in pages:
            tell("what was remembered of the page %s cannot be read, and is forgotten", page.hex())
        namespace.command("HDEL", namespace.key("memory", partition), *pages, partition=partition)


def in_pieces(work: Exchange) -> Iterator[Exchange]:
    """Yield the parts of an exchange, each small enough to be lost where nothing can be made of it; renewals come first."""
    yield Exchange(renewals=work.renewals, again=work.again)
    for page in work.pages:
        yield Exchange(pages=[page])
    for ended in work.ended:
        yield Exchange(ended=[ended])
    while work.counted:  # those that an outage leaves are carried out when the exchange is repeated
        yield Exchange(counted=[work.counted[0]])
        del work.counted[0]
    for moving in work.moves:
        yield Exchange(moves=[moving], is_last=work.is_last)
    yield Exchange(starts=work.starts, turns=work.turns)
    yield Exchange(draws=work.draws, holds=work.holds, flags=work.flags, counters=work.counters, limits=work.limits)
    yield Exchange(want=work.want, slots=work.slots, per_host=work.per_host, has_room=work.has_room, looks_again=work.looks_again)


def mend_put_aside(namespace: Namespace, settings: FrontierSettings) -> list[tuple[PutAside, str]]:
    """Mend what was put aside: a page whose URL can be read is added anew, any other one is forgotten; return what became of each."""
    told: list[tuple[PutAside, str]] = []
    for k in range(namespace.partitions):
        hosts = read_host_names(namespace, k)
        for one in list(read_put_aside(namespace, k)):
            new = _mended(one, hosts, settings)
            if new is not None:
                namespace.run(add_calls(namespace.partition_of(new.host), [new]))
            namespace.command("HDEL", namespace.key("damaged", k), one.page, partition=k)
            namespace.run(count_calls(k, {COUNTER: -1}))
            told.append((one, "forgotten" if new is None else "added anew"))
    return told


def _mended(one: PutAside, hosts: Mapping[int, str], settings: FrontierSettings) -> NewPage | None:
    """Return the page to add in place of one that was put aside, with all of its request if that is sound, else its URL alone."""
    if len(one.value) < HEAD_BYTES + TAIL_BYTES:
        return None
    stated, raw = split_tail(one.value)
    host = hosts.get(int.from_bytes(one.value[:4], "little"), "")
    try:
        record = unpack_record(raw, host)
        if fault_of_record({"url": record["url"]}, host_of(record["url"]), settings.schemes):
            return None
        if fault_of_record(record, host_of(record["url"]), settings.schemes):
            record = {"url": record["url"]}
        row = Row.unpack(one.value)
        kind = row.state if row.state in (ACTIVE, ONCE) and not fault_of(one.value) else ACTIVE
        importance = stated if 0 < stated < float("inf") else None
        return new_page(settings, one.page, record["url"], record, kind=kind, importance=importance)
    except Exception:  # nothing can be made of it
        return None
