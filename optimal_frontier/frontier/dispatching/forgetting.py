"""Pages are forgotten: estimate, history, place in the queues, lease and names."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from optimal_frontier.state.aliases import drop_calls, locate, split_alias
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import HEAVY_BATCH, count_calls
from optimal_frontier.state.put_aside import keep_aside


def forget(namespace: Namespace, fingerprints: Iterable[bytes]) -> int:
    """Forget pages by fingerprints of any of their names; return how many were known."""
    pages: dict[int, list[bytes]] = {}
    for place in locate(namespace, fingerprints):
        if place is not None:
            pages.setdefault(place.partition, []).append(place.page)
    return sum(forget_pages(namespace, partition, some) for partition, some in pages.items())


def forget_pages(namespace: Namespace, partition: int, pages: Sequence[bytes], reasons: Mapping[bytes, str] | None = None) -> int:
    """Forget pages of a partition: estimate, history, place in the queues, lease, and all of their names; return how many were known.

    What cannot be read is forgotten all the same; names that a page had are left then, where its memory is what cannot be read. Pages that
    have a reason are put aside: see `state.put_aside`.
    """
    if not pages:
        return 0
    memories: list[Memory] = []
    counters: Counter[str] = Counter()
    values, raws = namespace.commands(
        [["HMGET", namespace.key(name, partition), *pages] for name in ("pages", "memory")], partition=partition
    )
    for value, raw in zip(values, raws, strict=True):
        with contextlib.suppress(ValueError):
            memories.append(Memory.unpack(raw))
            lost = memories[-1].lost
            if value is not None and lost is not None:
                counters[f"lost_{lost.cause}"] -= 1
    namespace.run(drop_calls(name for memory in memories for name in memory.aliases if split_alias(name)[0] < namespace.partitions))
    why = reasons or {}
    aside = {page: (why[page], value) for page, value in zip(pages, values, strict=True) if page in why and value is not None}
    keep_aside(namespace, partition, aside)
    calls = [Call(partition, "forget", pages[at : at + HEAVY_BATCH]) for at in range(0, len(pages), HEAVY_BATCH)]
    calls += count_calls(partition, counters)
    return sum(map(sum, namespace.run(calls)[: -(-len(pages) // HEAVY_BATCH)]))
