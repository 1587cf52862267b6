"""Words of sources on known pages are read together with these, judged, and stored.

Rows and memories are read without a lease, and written only where a page was neither visited nor handed out meanwhile: else the word is
said again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from optimal_frontier.frontier.judging.announcing import consequences, credit_source, hear
from optimal_frontier.frontier.judging.source_worths import Source, source_of
from optimal_frontier.frontier.judging.waits import Terms
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import NewPage
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.partition import count_calls, revise_calls
from optimal_frontier.state.rows import Row
from optimal_frontier.state.scanning import BATCH
from optimal_frontier.state.soundness import sound_rows
from optimal_frontier.state.source_lessons import NOTHING_KNOWN, Record
from optimal_frontier.state.source_records import read_sources

#: Partition -> what its deadlines go by.
TermsOf = Callable[[int], Terms]


class Told(NamedTuple):
    """What became of words.

    Attributes
    ----------
    again : list of NewPage
        Pages that are being fetched: it is to be said again when that is over.
    unknown : list of NewPage
        Pages that are not known there, or whose row is damaged.
    moved : int
        Deadlines that were moved.
    """

    again: list[NewPage]
    unknown: list[NewPage]
    moved: int


def take_in(namespace: Namespace, pages: Mapping[int, Sequence[NewPage]], terms_of: TermsOf) -> Told:
    """Take in what sources say of pages that were added, or known.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    pages : mapping of int to sequence of NewPage
        By partition; with ``lastmod``.
    terms_of : callable
        Partition -> what its deadlines go by.
    """
    sources = {new.announcement.source for some in pages.values() for new in some if new.announcement is not None}
    known = read_sources(namespace, sources) if sources else {}
    counted: Counter[str] = Counter()
    told = Told([], [], 0)
    for partition, some in pages.items():
        for at in range(0, len(some), BATCH):
            _take_in(namespace, partition, some[at : at + BATCH], terms_of(partition), known, (told, counted))
    namespace.run(count_calls(0, counted))
    return told._replace(moved=counted["signals_moved"])


def _take_in(
    namespace: Namespace,
    partition: int,
    pages: Sequence[NewPage],
    terms: Terms,
    known: Mapping[str, Record],
    into: tuple[Told, Counter[str]],
) -> None:
    told, counted = into
    key, ids = namespace.key, list(dict.fromkeys(new.page for new in pages))
    values, memories, scores, *clock = namespace.commands(
        [
            ["HMGET", key("pages", partition), *ids],
            ["HMGET", key("memory", partition), *ids],
            ["ZMSCORE", key("q", partition), *ids],
            *namespace.clock_commands(partition),
        ],
        partition=partition,
    )
    now = namespace.time_of(partition, *clock)
    stored = {
        page: (row, Memory.readable(raw), score) for page, row, raw, score in zip(ids, sound_rows(values), memories, scores, strict=True)
    }
    others = {one.source for _, memory, _ in stored.values() for one in memory.signals} - known.keys()
    records = {**known, **read_sources(namespace, others)} if others else known
    heard: dict[bytes, tuple[Row, Memory, Memory]] = {}
    said: dict[bytes, list[NewPage]] = {}
    signals: dict[bytes, list[NewPage]] = {}
    for new in pages:
        row, memory, score = stored[new.page]
        if row is None:
            told.unknown.append(new)
            continue
        _, before, memory = heard.get(new.page, (row, memory, memory))
        word = hear(row, memory, new, now)
        is_leased = score is not None and float(score) % 2 == 1
        if is_leased and word.memory != memory:
            # The judge writes what is remembered of it: it is said again after that, with the word that is stored now.
            told.again.append(new)
            continue
        heard[new.page] = row, before, word.memory
        if word.memory != memory:
            said.setdefault(new.page, []).append(new)
        if word.is_signal:
            signals.setdefault(new.page, []).append(new)

    def known_of(source: str) -> Source:
        return source_of(source, records.get(source, NOTHING_KNOWN))

    revisions = consequences(heard, signals, now, terms, known_of)
    calls = revise_calls(partition, revisions)
    for (page, _, row, _), done in zip(revisions, [one for reply in namespace.run(calls) for one in reply] if calls else [], strict=True):
        if done != 1:  # it was visited, or handed out, since it was read
            told.again.extend(said[page])
            signals.pop(page, None)
        elif row is not None:
            counted["signals_moved"] += 1
            credit_source(signals[page][-1], row, terms, known_of)
    counted["signals"] += sum(map(len, signals.values()))
