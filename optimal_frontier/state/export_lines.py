"""The lines of an export: JSON objects that say everything that was learned, whatever the number of partitions and the version of a server.

The first line is the header, the last one says that nothing is missing. In between stand, in this order, partitions, aliases, hosts,
sources of signals, flagged contents and pages. A line is told by its first key.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Mapping
from typing import Any, Final

from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.records import pack_record, url_of_record
from optimal_frontier.state.rows import DONE, FIELDS, HEAD_BYTES, RANK_AT, RETIRED, TAIL_BYTES, Row, split_tail

#: What the header says that the file is, and of which form.
KIND: Final = "export"
FORMAT: Final = 1
#: Score of a page that is due now, in the queue.
DUE_NOW: Final = 2

_RANK: Final = struct.Struct("<d")
_FLOATS: Final = frozenset(name for name, code, _ in FIELDS if code == "f")
_NOT_IN_ROWS: Final = frozenset({"host"})

Line = dict[str, Any]


def waits(row: Row) -> bool:
    """Tell whether a page waits for its first visit, so that its rank stands where two of its numbers do."""
    return row.b == 0 and row.state < RETIRED


def page_line(page: bytes, value: bytes, host: str, memory: bytes | None, score: float | None) -> Line:
    """Return the line of a page.

    Parameters
    ----------
    page : bytes
        Its identity.
    value : bytes
        Head and tail, as stored.
    host : str
        Name of its host.
    memory : bytes or None
        As stored.
    score : float or None
        Where it stands in the queue ``q``; one that is leased is due.
    """
    row, (stated, record) = Row.unpack(value), split_tail(value)
    url = url_of_record(record, host)
    line: Line = {"page": page.hex(), "host": host, "url": url}
    if stated:
        line["stated"] = _short(stated)
    if not url or pack_record({"url": url}, host) != record:
        line["record"] = to_text(record)
    fields = {name: value for name, value in row._asdict().items() if value and name not in _NOT_IN_ROWS}
    if row.state >= DONE or waits(row):
        # Of a request that is fetched once, the rank stays where it was.
        fields.pop("a", None)
        fields.pop("s", None)
        line["rank"] = to_number(_RANK.unpack_from(value, RANK_AT)[0])
    fields["content"] = row.content.hex() if any(row.content) else ""
    if not fields["content"]:
        del fields["content"]
    line["row"] = {name: to_number(_short(value) if name in _FLOATS else value) for name, value in fields.items()}
    if row.state < RETIRED and not waits(row):
        line["due"] = DUE_NOW if score is None or not math.isfinite(score) or score % 2 == 1 else int(score)
    if memory:
        line["memory"] = to_text(memory)
    return line


def head_of_line(line: Mapping[str, Any], host: int) -> tuple[Row, bytes]:
    """Return the head that a page's line tells of, as a row and packed; ``host`` is the number of its host here."""
    told = {name: from_number(value) for name, value in line["row"].items() if name in Row._fields}
    if "content" in told:
        told["content"] = bytes.fromhex(told["content"])
    # What is not told is 0, whatever a new row has there.
    row = Row._make(told.get(name, bytes(16) if code == "16s" else 0) for name, code, _ in FIELDS)._replace(host=host)
    head = row.pack()
    if "rank" in line:
        head = head[:RANK_AT] + _RANK.pack(from_number(line["rank"])) + head[RANK_AT + _RANK.size :]
    return row, head


def record_of_line(line: Mapping[str, Any]) -> bytes:
    """Return the record that a page's line tells of."""
    return from_text(line["record"]) if "record" in line else pack_record({"url": line["url"]}, line["host"])


def page_of_text(text: str) -> bytes:
    """Return the identity that a line names.

    Raises
    ------
    ValueError
        It is none.
    """
    page = bytes.fromhex(text)
    if len(page) != PAGE_BYTES:
        raise ValueError(f"{text!r} is no page: expected {PAGE_BYTES} bytes in hexadecimal")
    return page


def to_text(raw: bytes) -> str:
    """Return bytes as text."""
    return base64.b64encode(raw).decode()


def from_text(text: str) -> bytes:
    """Read what `to_text` made."""
    return base64.b64decode(text, validate=True)


def escaped(raw: bytes) -> str:
    """Return a text as JSON can have it: lone surrogates stand for bytes that are no text."""
    return raw.decode("utf-8", "surrogateescape")


def unescaped(text: str) -> bytes:
    """Read what `escaped` made."""
    return text.encode("utf-8", "surrogateescape")


def to_number(value: Any) -> Any:
    """Return a number as JSON has it: what is not finite is a text."""
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def from_number(value: Any) -> Any:
    """Read what `to_number` made."""
    return float(value) if value in ("inf", "-inf", "nan") else value


def is_header(first_line: bytes) -> bool:
    """Tell whether a file that begins so is an export, and no list of pages.

    Examples
    --------
    >>> is_header(b'{"optimal_frontier": "export", "format": 1}'), is_header(b'{"url": "http://a.example/"}')
    (True, False)
    """
    if not first_line.lstrip(b" \t").startswith(b'{"optimal_frontier"'):
        return False
    try:
        return bool(json.loads(first_line).get("optimal_frontier") == KIND)
    except ValueError:
        return False


def is_whole(value: bytes) -> bool:
    """Tell whether a stored value is a row."""
    return len(value) >= HEAD_BYTES + TAIL_BYTES


def _short(value: float) -> float:
    """Return the shortest number that is the same in 32 bits."""
    return float(f"{value:.9g}")
