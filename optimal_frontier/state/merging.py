"""An export goes into a namespace that is in use: what it does not know comes in, what it knows stays as it is.

All goes by the scripts that crawlers use, so a crawl may run. A page that waits for its first visit here takes over what was learned
elsewhere. Plans, prices, counters of visits and holds of hosts stay those of the namespace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final

from optimal_frontier.errors import StateError
from optimal_frontier.state.export_lines import Line, from_text, head_of_line, page_of_text, record_of_line, unescaped, waits
from optimal_frontier.state.importing import Imported, Names, lost_in
from optimal_frontier.state.messages import NewPage
from optimal_frontier.state.namespace import Call, Namespace
from optimal_frontier.state.partition import NEW, add_calls, count_calls, priority_of
from optimal_frontier.state.rows import ACTIVE, TRANSIENT, pack_tail
from optimal_frontier.state.source_lessons import pack_record, record_of
from optimal_frontier.state.source_records import partition_of_source

#: Pages of one round trip.
_BATCH: Final = 250
_ADOPTED: Final = 1


class Merger:
    """Takes lines, as `importing.Writer` does.

    Parameters
    ----------
    namespace : Namespace
        Opened.
    header : dict
        Of the export.
    host_of : callable
        From a URL to the name of its host.

    Raises
    ------
    StateError
        The pages of the two are known by different identities.
    """

    def __init__(self, namespace: Namespace, header: Line, host_of: Callable[[str], str]) -> None:
        mine, theirs = namespace.hash("meta").get("identity"), header["meta"].get("identity")
        if mine != theirs and mine is not None and theirs is not None:
            raise StateError(f"the pages of namespace {namespace.name!r} are known by {mine}, those of the export by {theirs}")
        self.namespace = namespace
        self.report = Imported()
        self._host_of = host_of
        self._names = Names()
        self._words: list[Line] = []
        self._waiting: dict[int, list[tuple[bytes, Line]]] = defaultdict(list)
        if mine is None and theirs is not None:
            namespace.command("HSETNX", namespace.key("meta"), "identity", theirs)

    def take(self, line: Line) -> None:
        """Take a line, and send what there is when there is much."""
        key, partition_of = self.namespace.key, self.namespace.partition_of
        if "page" in line:
            page, k = page_of_text(line["page"]), partition_of(line["host"])
            if page in self._names.targets:
                self._names.partitions[page] = k
            self._waiting[k].append((page, line))
            if len(self._waiting[k]) >= _BATCH:
                self._send(k)
        elif "alias" in line:
            self._names.add(line)
        elif "host" in line and "words" in line:
            self._words.append(line)
        elif "source" in line:
            k = partition_of_source(self.namespace, line["source"])
            packed = pack_record(record_of(line["learned"]))
            self.namespace.command("HSETNX", key("sources", k), unescaped(line["source"]), packed, partition=k)
        elif "flagged" in line:
            k = partition_of(line["flagged"].rpartition(" ")[0])
            self.namespace.command("ZADD", key("flagged", k), "NX", repr(line["at"]), unescaped(line["flagged"]), partition=k)
        elif "end" in line:
            self.report.left_out = int(line["left_out"])

    def end(self) -> None:
        """Send what is left."""
        for k in list(self._waiting):
            self._send(k)
        for name, (url, target) in self._names.of.items():
            self._add_alias(name, url, target)
        for line in self._words:
            k = self.namespace.partition_of(line["host"])
            number = self.namespace.command("HGET", self.namespace.key("hosts", k), line["host"], partition=k)
            if number is not None:
                words = self.namespace.key("hosts:words", k)
                self.namespace.command("HSETNX", words, number, from_text(line["words"]), partition=k)

    def _send(self, k: int) -> None:
        some = self._waiting.pop(k)
        key = self.namespace.key
        aliases = self.namespace.command("HMGET", key("aliases", k), *(page for page, _ in some), partition=k)
        adopted: list[Call] = []
        added: list[NewPage] = []
        for (page, line), alias in zip(some, aliases, strict=True):
            row, head = head_of_line(line, 0)
            stated, record = line.get("stated", 0.0), record_of_line(line)
            if alias is not None or row.state == TRANSIENT:
                self.report.known += 1
            elif waits(row):
                told = row._replace(a=0.0, s=0.0)
                priority = priority_of(line["rank"]) if row.state != ACTIVE or "rank" in line else 0.0
                added.append(NewPage(page, line["host"], told, stated, record, priority))
            else:
                memory = self._names.rewritten(self.namespace, from_text(line["memory"]), self._host_of) if "memory" in line else b""
                adopted.append(Call(k, "adopt", [page, line["host"], head, pack_tail(stated, record), memory]))
        answers: list[Any] = self.namespace.run(adopted)
        came = sum(answer == _ADOPTED for answer in answers)
        lost = Counter(
            name for call, answer in zip(adopted, answers, strict=True) if answer == _ADOPTED for name in lost_in(call.arguments[-1])
        )
        self.namespace.run(count_calls(k, lost))
        came += sum(answer == NEW for reply in self.namespace.run(add_calls(k, added)) for answer in reply)
        self.report.new += came
        self.report.known += len(adopted) + len(added) - came

    def _add_alias(self, name: bytes, url: str, target: bytes) -> None:
        k = self.namespace.partition_of(self._host_of(url))
        at = self._names.partitions.get(target)
        if at is None or self.namespace.command("HEXISTS", self.namespace.key("pages", k), name, partition=k):
            return
        packed = at.to_bytes(4, "little") + target + unescaped(url)
        self.namespace.command("HSETNX", self.namespace.key("aliases", k), name, packed, partition=k)
