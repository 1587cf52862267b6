"""DistributedOptimalBackend as Frontera's workers use it, in one process and without a bus."""

from __future__ import annotations

import math
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import twisted.internet
from frontera.contrib.backends.partitioners import FingerprintPartitioner
from frontera.core.components import DistributedBackend, States
from frontera.core.manager import FrontierManager
from frontera.core.models import Request, Response
from frontera.utils.fingerprint import sha1
from plain_frontera import FINGERPRINTS, PlainState, Start, page, urls

from optimal_frontier.errors import ConfigurationError, StateError, StateUnavailableError
from optimal_frontier.integrations.frontera import OptimalBackend, db_worker, distributed
from optimal_frontier.integrations.frontera.bus_codec import CODEC, Decoder, Encoder
from optimal_frontier.state.messages import PAGE_BYTES
from optimal_frontier.state.reading import read_page

BACKEND = "optimal_frontier.integrations.frontera.DistributedOptimalBackend"
DECODER = Decoder(Request, Response)
SEED, LINK = "http://a.example/", "http://a.example/1"
#: Settings of a DB worker with a bus that is silent.
SILENT = f"""
class Bus:
    def __init__(self, settings): pass
    def __getattr__(self, name): return lambda *_, **__: self
BACKEND, MESSAGE_BUS_CODEC, MESSAGE_BUS = {BACKEND!r}, {CODEC!r}, __name__ + ".Bus"
"""


def scheduled(*urls: str, of: str = "", score: float = 1.0) -> list[Any]:
    """What the DB worker reads of a strategy that schedules seeds, or links of a page, as they came by the bus."""
    encoder, requests = Encoder(Request), [Request(url, meta={b"jid": 0, b"fingerprint": b""}) for url in urls]
    for request in requests:
        del request.meta[b"fingerprint"]
    if of:
        requests = DECODER.decode(encoder.encode_links_extracted(Request(of), requests))[2]
    told = [DECODER.decode(encoder.encode_update_score(request, score, True)) for request in requests]
    return [(b"", score, request, schedule) for _, request, score, schedule in told]


def result(request: Any, body: bytes, status: int = 200) -> Any:
    """The response to a request, which has gone to a spider and come back by the bus."""
    encoder = Encoder(Request, send_body=True)
    got = DECODER.decode_request(encoder.encode_request(request))
    headers = {"Content-Type": "text/html", "ETag": '"1"'}
    return DECODER.decode(encoder.encode_page_crawled(Response(got.url, status, headers, body, got)))[1]


def stated(state: PlainState, url: str) -> float:
    """The importance that somebody states of a page; 0: nobody does."""
    found = read_page(state.namespace, state.identity(url)[:PAGE_BYTES], "a.example")
    assert found is not None
    return found.stated


@pytest.fixture
def worker(start: Start) -> Start:
    """Start the managers of workers: worker(db_worker=True), worker(strategy_worker=True)."""

    def build(**given: Any) -> FrontierManager:
        return start(**{"BACKEND": BACKEND, "MESSAGE_BUS_CODEC": CODEC, "MIDDLEWARES": [FINGERPRINTS], **given})

    return build


def test_the_strategy_says_which_pages_there_are(worker: Start, plain_state: PlainState) -> None:
    """Seeds and links that come by the spiders' messages wait for its word; its score is the importance."""
    backend = worker(db_worker=True).backend
    assert isinstance(backend, DistributedBackend)
    backend.add_seeds([Request(SEED)])
    assert backend.get_next_requests(10, partitions=[0]) == []
    backend.queue.schedule(scheduled(SEED))
    (request,) = backend.get_next_requests(10, partitions=[0])
    backend.links_extracted(request, [Request(LINK), Request("http://a.example/2")])
    backend.page_crawled(result(request, page("one")))
    assert backend.get_next_requests(10, partitions=[0]) == []
    backend.queue.schedule(scheduled(LINK, of=SEED, score=0.25))
    assert urls(backend.get_next_requests(10, partitions=[0])) == {LINK}
    assert plain_state.at(LINK)["importance"] == 0.25
    assert plain_state.counts["pages"] == 2


def test_a_page_that_came_back_takes_the_score_that_it_gets_then(worker: Start, plain_state: PlainState) -> None:
    """Its request still has the importance that the first score gave it."""
    backend = worker(db_worker=True).backend
    backend.queue.schedule(scheduled(SEED, score=0.5))
    (request,) = backend.get_next_requests(10, partitions=[0])
    response = result(request, page("one"))
    message = Encoder(Request).encode_update_score(response.request, 0.25, True)
    backend.page_crawled(response)
    _, again, score, schedule = DECODER.decode(message)
    backend.queue.schedule([(b"", score, again, schedule)])
    assert plain_state.at(SEED)["visits"] == 1
    assert stated(plain_state, SEED) == 0.25


@pytest.mark.parametrize("score", ["high", math.nan, -1.0, math.inf, 10**400])
def test_a_score_that_is_none_costs_no_page(score: Any, worker: Start, plain_state: PlainState) -> None:
    """The others of its batch are stored, and it states no importance."""
    backend = worker(db_worker=True).backend
    backend.queue.schedule([*scheduled(LINK, score=score), *scheduled(SEED, score=0.5)])
    assert plain_state.at(LINK)["importance"] == 1
    assert stated(plain_state, LINK) == 0
    assert stated(plain_state, SEED) == 0.5


def test_results_end_leases_once(worker: Start, plain_state: PlainState) -> None:
    """Responses and errors; the second result of a request counts for nothing."""
    backend = worker(db_worker=True).backend
    backend.queue.schedule(scheduled(SEED, LINK))
    requests = {request.url: request for request in backend.get_next_requests(10, partitions=[0])}
    assert plain_state.in_flight == 2
    for _ in range(2):
        backend.page_crawled(result(requests[SEED], page("one")))
        backend.request_error(result(requests[LINK], b"").request, "TimeoutError")
    assert plain_state.in_flight == 0
    assert plain_state.at(SEED)["visits"] == 1
    assert plain_state.at(LINK)["failures"] == 1


def test_changes_are_seen_of_what_comes_by_the_bus(worker: Start, plain_state: PlainState) -> None:
    """And no answer is a 304, or links that the bus has lost never came again."""
    backend = worker(db_worker=True, OPTIMAL_FRONTIER_MIN_INTERVAL=0.05).backend
    backend.queue.schedule(scheduled(SEED))
    for text in ("one", "one", "two"):
        requests: list[Any] = []
        while not requests:
            requests = backend.get_next_requests(10, partitions=[0])
        assert "If-None-Match" not in {str(name) for name in requests[0].headers}
        backend.page_crawled(result(requests[0], page(text)))
    assert (plain_state.at(SEED)["observations"], plain_state.at(SEED)["bits"]) == (2, 0b01)


@pytest.mark.parametrize("path", [BACKEND, "optimal_frontier.integrations.frontera.OptimalBackend"])
def test_the_next_batch_gathers_while_the_worker_listens(worker: Start, plain_state: PlainState, path: str) -> None:
    """At the pace of the budget, and no more than one batch: a worker asks every second or two only."""
    backend = worker(db_worker=True, BACKEND=path, OPTIMAL_FRONTIER_CRAWL_RATE=20).backend
    backend.queue.schedule(scheduled(*(f"http://{n}.example/" for n in range(40))))
    sent: list[bytes] = []
    frontera = object.__new__(db_worker.OptimalDBWorker)  # no bus, and no reactor
    frontera._backend, frontera._encoder, frontera.max_next_requests, frontera.job_id = backend, Encoder(Request), 12, 0
    frontera.spider_feed = SimpleNamespace(available_partitions=lambda: {0})
    frontera.spider_feed_producer = SimpleNamespace(send=lambda key, message: sent.append(message))
    frontera.spider_feed_partitioning, frontera.stats = "fingerprint", {"pushed_since_start": 0}
    first = frontera.new_batch()
    give_up = time.monotonic() + 20
    while len(backend.session.courier.ready) < 12:
        assert time.monotonic() < give_up
        time.sleep(0.05)
    assert plain_state.in_flight == first + 12
    assert frontera.new_batch() == 12
    assert len({DECODER.decode_request(message).url for message in sent}) == first + 12


def test_a_worker_that_cannot_go_on_ends(worker: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a spider of Scrapy's does: not for an outage, but where Redis refuses for good."""
    stops: list[int] = []
    monkeypatch.setattr(twisted.internet, "reactor", SimpleNamespace(stop=lambda: stops.append(1)), raising=False)
    frontera = object.__new__(db_worker.OptimalDBWorker)
    frontera._backend = worker(db_worker=True).backend
    monkeypatch.setattr(frontera._backend.session.courier, "failure", StateError("the user lacks a permission"))
    assert frontera.new_batch() == 0
    assert stops == [1]
    assert frontera.has_failed


def test_conditions_are_a_matter_of_the_setting(worker: Start) -> None:
    for given, is_on in (({}, False), ({"OPTIMAL_FRONTIER_CONDITIONAL_GET": True}, True)):
        assert worker(db_worker=True, **given).backend.settings.conditional_get is is_on


def test_limits_hold_for_links_that_a_strategy_schedules(worker: Start) -> None:
    """Not for seeds, which the user has chosen."""
    backend = worker(db_worker=True, OPTIMAL_FRONTIER_HOST_MAX_PAGES=1).backend
    backend.queue.schedule(scheduled(SEED, "http://a.example/seed"))
    backend.queue.schedule(scheduled(LINK, of=SEED))
    assert urls(backend.get_next_requests(10, partitions=[0])) == {SEED, "http://a.example/seed"}


def test_each_partition_of_spiders_gets_its_share(worker: Start) -> None:
    backend = worker(db_worker=True).backend
    backend.queue.schedule(scheduled(*(f"http://a.example/{n}" for n in range(9))))
    assert len(backend.get_next_requests(2, partitions={0, 1, 2})) == 6
    assert len(backend.get_next_requests(2)) == 2


def test_seeds_are_sent_again_to_a_server_that_has_lost_everything(worker: Start, plain_state: PlainState) -> None:
    """Not links, which their pages bring again."""
    backend = worker(db_worker=True).backend
    backend.queue.schedule(scheduled(SEED) + scheduled(LINK, of=SEED))
    for request in backend.get_next_requests(10, partitions=[0]):
        backend.page_crawled(result(request, page("one")))
    plain_state.namespace.command("DEL", *plain_state.namespace.command("KEYS", plain_state.key("")[: -len("{0}:")] + "*"))
    found: set[str] = set()
    for _ in range(50):
        found |= urls(backend.get_next_requests(10, partitions=[0]))
    assert found == {SEED}


def test_states_are_those_of_redis(worker: Start) -> None:
    """What the strategy worker has sent counts when the DB worker has stored it: a message that was lost is sent again."""
    stored, asked = worker(db_worker=True).backend, worker(strategy_worker=True).backend
    link = Request(LINK, meta={b"scrapy_meta": {}})
    for _ in range(2):
        asked.states.fetch([b"0f"])
        asked.states.set_states([link])
        assert link.meta[b"state"] is States.NOT_CRAWLED
        link.meta[b"state"] = States.QUEUED
        asked.states.update_cache([link])
        asked.states.flush(force_clear=False)
    stored.queue.schedule(scheduled(LINK))
    asked.states.set_states(link)
    assert link.meta[b"state"] == States.QUEUED
    (request,) = stored.get_next_requests(1, partitions=[0])
    stored.page_crawled(result(request, page("one")))
    asked.states.set_states([link, Request(SEED)])
    assert link.meta[b"state"] == States.CRAWLED


def test_a_strategy_worker_waits_for_states_in_an_outage(worker: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message whose states cannot be read is lost to Frontera; a long outage is told for each message, at once."""
    worker(db_worker=True).backend.queue.schedule(scheduled(LINK))
    backend = worker(strategy_worker=True).backend
    namespace, link, now, away = backend.session.namespace, Request(LINK, meta={b"scrapy_meta": {}}), [100.0], [3]
    commands = namespace.commands

    def fail(*given: Any, **named: Any) -> Any:
        if away[0] > 0:
            away[0] -= 1
            raise StateUnavailableError("gone")
        return commands(*given, **named)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(namespace, "commands", fail)
    monkeypatch.setattr(distributed, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    backend.states.set_states([link])
    assert link.meta[b"state"] == States.QUEUED
    for waited_s in (30.0, 0.0):  # for a message that comes, and for the next one
        began, away[0] = now[0], 10_000
        with pytest.raises(StateUnavailableError):
            backend.states.set_states([link])
        assert now[0] - began == pytest.approx(waited_s, abs=1.0)
    for failures in (0, 3):  # it is over, and there is another one
        away[0] = failures
        backend.states.set_states([link])


@pytest.mark.parametrize("role", ["db_worker", "strategy_worker"])
@pytest.mark.parametrize("codec", ["msgpack", "json"])
def test_codecs_that_do_not_run_are_refused(worker: Start, role: str, codec: str) -> None:
    with pytest.raises(ConfigurationError, match="MESSAGE_BUS_CODEC: expected optimal_frontier"):
        worker(**{role: True, "MESSAGE_BUS_CODEC": f"frontera.contrib.backends.remote.codecs.{codec}"})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "--config: expected a module that can be imported: No module named 'of_no_config'"),
        ("", "MESSAGE_BUS_CODEC: expected optimal_frontier.integrations.frontera.bus_codec, as frontera."),
        (f"MESSAGE_BUS_CODEC = {CODEC!r}; MESSAGE_BUS = 'nowhere.Bus'", "MESSAGE_BUS: Error loading object 'nowhere.Bus'"),
        (SILENT + "MIDDLEWARES = ['nowhere.Middleware']", "another setting names: Error loading object 'nowhere.Middleware'"),
        (SILENT + "MIDDLEWARES = ['nowhere']", "MIDDLEWARES or another setting names: Error loading object 'nowhere'"),
        (SILENT + "MAX_NEXT_REQUESTS = 0", "MAX_NEXT_REQUESTS: expected 1 or more with Frontera's workers"),
        (SILENT + "OPTIMAL_FRONTIER_REDIS_URL = 'redis://127.0.0.1:1/0'", "cannot reach Redis at redis://127.0.0.1:1/0"),
    ],
)
def test_the_db_worker_says_what_is_missing(
    config: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line."""
    name = "of_no_config" if config is None else f"of_config_{tmp_path.name.replace('-', '_')}"
    if config is not None:
        (tmp_path / f"{name}.py").write_text(config)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit, match="2"):
        db_worker.main(["--config", name])
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_an_unknown_log_level_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        db_worker.main(["--config", "workers", "--log-level", "loud"])
    assert "--log-level/-L: invalid choice: 'LOUD'" in capsys.readouterr().err


def test_requests_go_to_spiders_that_have_room() -> None:
    """By their fingerprint among those; while all have room, as Frontera has it."""
    ready = {0, 1, 2}
    feed = SimpleNamespace(partitions=[0, 1, 2], available_partitions=lambda: ready)
    partitioner, keys = db_worker.ReadyPartitioner(feed), [sha1(str(n)) for n in range(100)]
    assert [partitioner.partition(key) for key in keys] == [FingerprintPartitioner([0, 1, 2]).partition(key) for key in keys]
    ready.remove(1)
    assert {partitioner.partition(key) for key in keys} == {0, 2}


def test_requests_wait_for_spiders_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bus drops what nobody listens to: a spider gets requests once it was heard, and for some time after that."""
    clock = [1000.0]
    monkeypatch.setattr(db_worker.time, "monotonic", lambda: clock[0])
    offsets = {0: 7}
    producer = SimpleNamespace(get_offset=offsets.__getitem__)
    feed = db_worker.HeardFeed(SimpleNamespace(available_partitions=lambda: {0, 1}, partitions=[0, 1]), producer)
    assert feed.partitions == [0, 1]
    assert feed.available_partitions() == set()
    assert producer.get_offset(0) == 7
    clock[0] += db_worker.SILENT_S / 2
    assert producer.get_offset(1) == 0, "nothing was sent there yet"
    assert feed.available_partitions() == {0, 1}
    clock[0] += db_worker.SILENT_S / 2
    assert feed.available_partitions() == {1}


def test_without_workers_it_is_the_other_backend(start: Start, plain_state: PlainState) -> None:
    """Frontera 0.7 refuses to make one; whoever asks for it gets one that admits seeds and links itself."""
    from optimal_frontier.integrations.frontera import DistributedOptimalBackend

    manager = start(BACKEND="optimal_frontier.integrations.frontera.OptimalBackend")
    assert issubclass(DistributedOptimalBackend, OptimalBackend)
    backend = DistributedOptimalBackend.local(manager)
    backend.frontier_start()
    try:
        backend.add_seeds([Request(SEED)])
        (request,) = backend.get_next_requests(10)
        backend.links_extracted(request, [Request(LINK)])
        assert plain_state.counts["pages"] == 2
    finally:
        backend.frontier_stop()
    with pytest.raises(RuntimeError, match="meant to be used in workers"):
        start(BACKEND=BACKEND)


def test_why_fronteras_own_parts_are_left_out() -> None:
    """The errors that docs/frontera.md tells of; one that is gone makes a part of ours needless."""
    from frontera.contrib.backends.remote.codecs import json
    from frontera.contrib.backends.remote.codecs import msgpack as packed
    from frontera.settings import Settings
    from frontera.worker.server import WorkerJsonRpcService

    with pytest.raises(TypeError, match="Path segment must be bytes"):
        WorkerJsonRpcService(None, Settings())
    with pytest.raises(TypeError, match="unexpected keyword argument 'encoding'"):
        packed.Decoder(Request, Response).decode(packed.Encoder(Request).encode_offset(0, 0))
    assert not isinstance(json.Encoder(Request).encode_offset(0, 0), bytes)


def test_seeds_may_come_by_another_manager(start: Start, worker: Start) -> None:
    """One with OptimalBackend in the same namespace, which no bus can lose."""
    start().add_seeds([Request(SEED)])
    assert urls(worker(db_worker=True).backend.get_next_requests(10, partitions=[0])) == {SEED}
