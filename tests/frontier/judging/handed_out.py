"""Handouts and visits as the tests of the judge need them: a page, what came of its fetch, and what it is judged by."""

from __future__ import annotations

from typing import Any

from optimal_frontier.frontier.judging.fingerprinting import Fingerprint
from optimal_frontier.frontier.judging.judge import Context, judge
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.host_words import NOTHING_SAID, HostWords
from optimal_frontier.state.memory import NOTHING_REMEMBERED, Memory
from optimal_frontier.state.messages import Handout, Observation
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import ONCE, Row

#: When pages are handed out: seconds since the epoch, and by the local monotonic clock.
AT, RECEIVED = 1_700_000_000.0, 1000.0
TAG, OLD, NEW = 77, b"o" * 16, b"n" * 16
HOST, URL = "h", "http://h/a"
PAGE = b"page at an h"


def parse(**values: object) -> FrontierSettings:
    """Settings given without their prefix."""
    return FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()})


#: Settings that leave everything as it is.
USUAL = parse()


def planned(log_price: float = 0.0, prior_time: float = 50.0, **values: Any) -> Published:
    """What a plan published."""
    return Published(**({"number": 1, "time": AT, "log_price": log_price, "prior_time": prior_time} | values))


def handed(
    elapsed: float = 40.0, memory: Memory = NOTHING_REMEMBERED, words: HostWords = NOTHING_SAID, url: str = URL, **values: Any
) -> Handout:
    """A page that was last seen so many seconds ago: four visits, about a change in 33 s. ``values`` are of the handout or its row."""
    known: dict[str, Any] = {"partition": 0, "page": PAGE, "token": 1.0, "at": AT, "received": RECEIVED, "lateness": 0.5, "log_price": 0.0}
    known |= {"stated": 0.0, "record": {"url": url} | ({"method": "POST"} if values.get("state") == ONCE else {}), "host": HOST}
    known |= {name: values.pop(name) for name in list(values) if name in known}
    row = {"host": 1, "b": (AT - elapsed) * 1e6, "shape": 3.0, "time": 100.0, "visits": 4, "tag": TAG, "content": OLD} | values
    if row["visits"] == 0:
        row |= {"b": 0.0, "shape": 0.0, "time": 0.0, "tag": 0, "content": bytes(16)} | values
    return Handout(row=Row(**row), words=words, memory=memory, **known)


def visit(content: bytes | None = OLD, responded: float = RECEIVED, distance: int = 0, **values: Any) -> Visit:
    """A good response with this fingerprint."""
    return Visit(responded, fingerprint=Fingerprint(content, values.pop("tag", TAG), distance), **values)


def context(published: Published | None = None, recent: Recent | None = None, **settings: object) -> Context:
    return Context(parse(**settings) if settings else USUAL, planned() if published is None else published, recent or Recent())


def judged(handout: Handout, came: Visit | bytes | str, within: Context | None = None) -> Observation:
    """Judge a visit, a content, or an error."""
    if isinstance(came, str):
        came = Visit(RECEIVED, came)
    return judge(handout, visit(came) if isinstance(came, bytes) else came, within or context())


def wait_of(observation: Observation, log_price: float = 0.0) -> float:
    """Seconds from the visit to the deadline."""
    row = observation.row
    return min(max(row.a + row.s * log_price, row.e), row.l)


def again(observation: Observation, wait: float | None = None, **values: Any) -> Handout:
    """Hand the page out once more, so many seconds after the visit (at its deadline unless told), as it was stored."""
    before = observation.handout
    wait = wait_of(observation) if wait is None else wait
    known = {
        name: getattr(before, name)
        for name in ("partition", "page", "token", "received", "lateness", "log_price", "stated", "record", "host")
    }
    known |= {"at": observation.row.b / 1e6 + wait, "row": Row.unpack(observation.row.pack())}
    known |= {"memory": before.memory if observation.memory is None else Memory.unpack(observation.memory.pack())}
    known |= {"words": before.words if observation.words is None else HostWords.unpack(observation.words.pack())}
    return Handout(**(known | values))
