"""OptimalBackend from a plain FrontierManager, without Scrapy's engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from forked_programs import run_forked
from frontera.core.components import States
from frontera.core.manager import FrontierManager
from frontera.core.models import Request, Response
from misbehaving_site import MisbehavingSite
from plain_frontera import PlainState, Start, crawled, next_requests, page, urls

from optimal_frontier.errors import ConfigurationError, SchemaMismatchError, StateUnavailableError
from optimal_frontier.integrations.frontera import backend
from optimal_frontier.state.downloader_limits import unserved
from optimal_frontier.state.rows import DONE, HUB


def test_a_page_goes_round(start: Start, plain_state: PlainState) -> None:
    """Seeds, links, content hashes, change bits and revisits."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.1)
    manager.add_seeds([Request("http://a.example/0")])
    (seed,) = manager.get_next_requests(10)
    assert seed.url == "http://a.example/0"
    assert plain_state.in_flight == 1
    manager.links_extracted(seed, [Request("http://a.example/1"), Request("http://b.example/2"), Request("http://a.example/0")])
    texts = ["one", "one", "two", "two"]  # of the seed; of every other page its URL
    crawled(manager, seed, page(texts.pop(0)))
    assert plain_state.in_flight == 0
    links = manager.get_next_requests(10)
    assert {"http://a.example/1", "http://b.example/2"} <= urls(links)
    while texts:
        for request in links:
            crawled(manager, request, page(request.url if request.url != seed.url else texts.pop(0) if texts else "two"))
        links = next_requests(manager)
    row = plain_state.at("http://a.example/0")
    assert row["visits"] >= 4
    assert [row["bits"] >> (row["observations"] - 1 - n) & 1 for n in range(3)] == [0, 1, 0]
    assert plain_state.at("http://a.example/1")["changes"] == 0
    assert "leases_expired" not in plain_state.counts


@pytest.mark.parametrize("links_first", [True, False])
def test_new_links_count_for_theirpage(start: Start, plain_state: PlainState, links_first: bool) -> None:
    """Whether they are passed on before their page, or after it as Frontera's own users do; those of a first visit say nothing."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.1)
    manager.add_seeds([Request("http://a.example/list")])
    links = 2
    for visit in range(3):
        request = next_requests(manager)[0]
        while request.url != "http://a.example/list":
            crawled(manager, request, page(request.url))
            request = next_requests(manager)[0]
        found = [Request(f"http://b.example/{n}") for n in range(links)]
        if links_first:
            manager.links_extracted(request, found)
        crawled(manager, request, page(str(visit)))
        if not links_first:
            manager.links_extracted(request, found)
        links += 3
    yielded = plain_state.memory("http://a.example/list").yielded
    assert plain_state.at("http://a.example/list")["flags"] & HUB
    assert 5.0 < yielded.pages <= 6.0
    assert plain_state.counts["discovered"] == 6


def test_links_that_come_in_parts_are_counted_once(start: Start, plain_state: PlainState) -> None:
    """Before their page and after it, in several calls; what comes after a page that was not there counts for nothing."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.1)
    manager.add_seeds([Request("http://a.example/list")])
    for visit in range(2):
        request = next_requests(manager)[0]
        assert request.url == "http://a.example/list"
        if visit:
            manager.links_extracted(request, [Request("http://b.example/1")])
        crawled(manager, request, page(str(visit)))
        if visit:
            manager.links_extracted(request, [Request("http://b.example/2")])
            manager.links_extracted(request, [Request("http://b.example/1"), Request("http://b.example/3")])
            manager.links_extracted(request, [Request("http://b.example/1")])
    assert plain_state.counts["discovered"] == 3
    assert 2.9 < plain_state.memory("http://a.example/list").yielded.pages <= 3.0


@pytest.mark.parametrize("name", [b"revisit", "revisit"])
def test_what_is_to_be_fetched_once_is_done_after_it(start: Start, plain_state: PlainState, name: Any) -> None:
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.1)
    manager.add_seeds([Request("http://a.example/once", meta={name: False})])
    (request,) = manager.get_next_requests(1)
    crawled(manager, request, page("once"))
    assert plain_state.at("http://a.example/once")["state"] == DONE


def test_overused_hosts_are_left_out(start: Start) -> None:
    """key_type and overused_keys, by host name, whatever the port."""
    manager = start()
    manager.add_seeds([Request(f"http://{host}/{n}") for host in ("a.example", "b.example:8080") for n in range(3)])
    got = manager.get_next_requests(10, key_type="domain", overused_keys=["b.example"])
    assert {request.url.split("/")[2] for request in got} == {"a.example"}
    assert len(got) == 3
    assert len(manager.get_next_requests(10, key_type="domain", overused_keys=[])) == 3
    assert manager.get_next_requests(10) == []


def test_max_next_requests_is_kept(start: Start) -> None:
    """No more than asked for is handed out, so nothing lies about under a lease."""
    manager = start()
    manager.add_seeds([Request(f"http://a.example/{n}") for n in range(5)])
    assert len(manager.get_next_requests(2)) == 2
    assert manager.backend.session.courier.live == 2
    assert len(manager.get_next_requests(0)) == 3


def test_errors_end_leases_and_say_why(start: Start, plain_state: PlainState) -> None:
    """request_error counts as a failure; a page that was gone twice is retired; what was released is handed out again."""
    manager = start()
    manager.add_seeds([Request("http://a.example/timeout"), Request("http://a.example/released")])
    for request in manager.get_next_requests(10):
        manager.request_error(request, "released" if "released" in request.url else "TimeoutError")
    assert plain_state.in_flight == 0
    assert plain_state.at("http://a.example/timeout")["failures"] == 1
    assert plain_state.at("http://a.example/released")["attempts"] == 0
    (again,) = manager.get_next_requests(10)
    assert "released" in again.url
    crawled(manager, again, b"", status=404)
    assert plain_state.at(again.url)["gone"] == 1
    assert manager.get_next_requests(10) == []


GIVEN = {
    "http://a.example/0": {},
    "http://a.example/1": {"method": "POST", "body": b"asked", "headers": {"X": "y"}},
    "http://a.example/2": {"headers": {b"X": [b"a", b"b"], b"Y": b"c"}, "cookies": {"c": "1"}, "body": "\xe9"},
    "http://a.example/3": {
        "headers": {"X": ("a", "b"), "n": 5},
        "cookies": {b"c": b"1"},
        "meta": {b"none": None, b"list": [], "text": "x"},
    },
    "http://a.example/4": {"cookies": {b"c": b"1"}, "meta": {b"nested": {b"t": (1, [2])}, b"importance": 3.0}},
}


def test_requests_come_back_as_they_were_given(start: Start) -> None:
    """Method, headers, cookies, body and meta, at every visit, each value of the type that it had."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.1, OPTIMAL_FRONTIER_CONDITIONAL_GET=False)
    manager.add_seeds([Request(url, **dict(given)) for url, given in GIVEN.items()])
    left = dict.fromkeys(GIVEN, 3)
    while any(visits > 0 for visits in left.values()):
        for request in next_requests(manager, 10):
            given = GIVEN[request.url]
            assert request.method == given.get("method", "GET").encode()
            for name in ("headers", "cookies"):
                assert repr(getattr(request, name)) == repr(given.get(name, {}))
            assert request.body == given.get("body", "")
            assert {name: request.meta[name] for name in given.get("meta", {})} == given.get("meta", {})
            left[request.url] -= 1
            crawled(manager, request, page("same"))


def test_what_is_to_be_fetched_once_is(start: Start) -> None:
    """``meta[b"revisit"]`` False; a page is a URL, so that another method makes neither another page nor a single fetch."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.05)
    manager.add_seeds([Request("http://a.example/once", meta={b"revisit": False}), Request("http://a.example/post", method="POST")])
    manager.add_seeds([Request("http://a.example/post")])
    fetched = []
    while len(fetched) < 5:
        for request in next_requests(manager, 10):
            fetched.append(request.url)
            crawled(manager, request, page("same"))
    assert fetched.count("http://a.example/once") == 1


def test_restart_goes_on(start: Start, plain_state: PlainState) -> None:
    """What one manager had under a lease at its stop, the next one hands out; what was crawled stays crawled."""
    manager = start()
    manager.add_seeds([Request("http://a.example/0"), Request("http://a.example/1")])
    done, _ = manager.get_next_requests(2)
    crawled(manager, done, page("one"))
    manager.stop()
    assert plain_state.in_flight == 0
    manager = start()
    manager.add_seeds([Request("http://a.example/0"), Request("http://a.example/1")])
    assert urls(manager.get_next_requests(10)) == {"http://a.example/0", "http://a.example/1"} - {done.url}


def test_partitions_that_nobody_serves_are_told(start: Start, plain_state: PlainState) -> None:
    """As Scrapy's crawlers tell them, for ``optimal-frontier status``; whoever asks for no requests serves nobody."""
    ours = {"OPTIMAL_FRONTIER_PARTITIONS": 4}
    start(**ours, OPTIMAL_FRONTIER_SERVE_PARTITIONS=[1])
    manager = start(**ours, OPTIMAL_FRONTIER_SERVE_PARTITIONS=[0, "2-3"])
    manager.get_next_requests(1)
    plain_state.namespace.open(create=False)
    assert unserved(plain_state.namespace) == [1]


def test_states_component_tells_what_became_of_pages(start: Start) -> None:
    """Not crawled, queued, crawled, error: read from the store, and cached until cleared."""
    manager = start()
    manager.add_seeds([Request(f"http://a.example/{n}") for n in range(3)])
    for request in manager.get_next_requests(2):
        if request.url.endswith("0"):
            crawled(manager, request, page("one"))
        else:
            manager.request_error(request, "TimeoutError")
    states = manager.backend.states
    pages = [Request(f"http://a.example/{n}", meta={b"scrapy_meta": {}}) for n in range(4)]
    states.set_states(pages)
    assert [page.meta[b"state"] for page in pages] == [States.CRAWLED, States.ERROR, States.QUEUED, States.NOT_CRAWLED]
    pages[3].meta[b"state"] = States.CRAWLED
    states.update_cache(pages[3])
    states.set_states(pages)
    assert pages[3].meta[b"state"] == States.CRAWLED
    states.flush(force_clear=True)
    states.set_states(pages[3])
    assert pages[3].meta[b"state"] == States.NOT_CRAWLED


def test_states_beyond_the_cache_are_right_too(start: Start) -> None:
    """A cache that is cleared for others costs nobody his state."""
    manager = start(STATE_CACHE_SIZE=1)
    manager.add_seeds([Request(f"http://a.example/{n}") for n in range(3)])
    pages = [Request(f"http://a.example/{n}", meta={b"scrapy_meta": {}}) for n in range(3)]
    manager.backend.states.set_states(pages[:2])
    manager.backend.states.set_states(pages)
    assert [page.meta[b"state"] for page in pages] == [States.QUEUED] * 3


def test_queue_component_schedules_and_counts(start: Start, plain_state: PlainState) -> None:
    """The score is the importance."""
    manager = start()
    queue = manager.backend.queue
    queue.schedule([(b"", 5.0, Request("http://a.example/0"), True), (b"", 1.0, Request("http://a.example/1"), False)])
    assert queue.count() == 1
    assert plain_state.at("http://a.example/0")["importance"] == 5
    assert urls(queue.get_next_requests(10, 0)) == {"http://a.example/0"}


def test_finished_with_close_after(start: Start) -> None:
    """False until every page was fetched that often; never True without CLOSE_AFTER."""
    manager = start(OPTIMAL_FRONTIER_CLOSE_AFTER=2, OPTIMAL_FRONTIER_MIN_INTERVAL=0.1)
    manager.add_seeds([Request("http://a.example/0")])
    fetches = 0
    while not manager.finished and fetches < 10:
        for request in next_requests(manager):
            fetches += 1
            crawled(manager, request, page(str(fetches)))
    assert 2 <= fetches <= 4
    assert manager.finished


def test_an_outage_is_not_the_end_of_a_loop_that_goes_on_until_it_has_finished(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = start(OPTIMAL_FRONTIER_CLOSE_AFTER=2)
    manager.add_seeds([Request("http://a.example/0")])

    def fail(*_: Any, **__: Any) -> Any:
        raise StateUnavailableError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(manager.backend.session.namespace, "command", fail)
        assert not manager.finished


def test_responses_without_content_warn_once(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """Without a body or a hash no change is ever seen, which the user is told."""
    manager = start(MIDDLEWARES=[])
    manager.add_seeds([Request(f"http://a.example/{n}") for n in range(2)])
    for request in manager.get_next_requests(10):
        crawled(manager, request, b"")
    assert sum("content hash" in record.getMessage() for record in caplog.records) == 1


def _visited(manager: FrontierManager, answers: list[dict[str, Any]]) -> list[Any]:
    """Fetch the only page once for each answer; return the requests."""
    requests = []
    for answer in answers:
        (request,) = next_requests(manager)
        requests.append(request)
        values = {"status_code": 200, "headers": {b"Content-Type": [b"text/html"]}, "body": b"", "url": request.url} | answer
        manager.page_crawled(Response(request=request, **values))
    return requests


def test_bodies_are_judged_without_a_middleware(start: Start, plain_state: PlainState) -> None:
    """Changes are seen where responses have bodies."""
    manager = start(MIDDLEWARES=[], OPTIMAL_FRONTIER_MIN_INTERVAL=0.05)
    manager.add_seeds([Request("http://a.example/0")])
    _visited(manager, [{"body": page(text)} for text in ("one", "one", "two")])
    seen = plain_state.at("http://a.example/0")
    assert (seen["observations"], seen["changes"], seen["bits"]) == (2, 1, 0b01)


def test_a_hash_of_the_users_own_is_the_content(start: Start, plain_state: PlainState) -> None:
    """``meta[b"content_hash"]`` goes before the body."""
    manager = start(MIDDLEWARES=[], OPTIMAL_FRONTIER_MIN_INTERVAL=0.05)
    manager.add_seeds([Request("http://a.example/0")])
    for at, digest in enumerate((b"a", b"a", b"b")):
        (request,) = next_requests(manager)
        request.meta[b"content_hash"] = digest * 16
        crawled(manager, request, page(str(at)))
    assert plain_state.at("http://a.example/0")["bits"] == 0b01
    assert plain_state.at("http://a.example/0")["content"] == b"b" * 16


def test_plain_frontera_asks_with_conditions(start: Start, plain_state: PlainState) -> None:
    """Validators of the last answer are in the headers of the next request; a 304 is a visit without a change; own conditions stay."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.05)
    manager.add_seeds([Request("http://a.example/0", headers={b"X": [b"a"]})])
    tagged = {b"ETag": [b'"1"'], b"Content-Type": [b"text/html"]}
    requests = _visited(manager, [{"body": page("one"), "headers": tagged}, {"status_code": 304, "headers": tagged}])
    assert [request.headers.get(b"If-None-Match") for request in requests] == [None, [b'"1"']]
    assert requests[1].headers[b"X"] == [b"a"]
    seen = plain_state.at("http://a.example/0")
    assert (seen["visits"], seen["observations"], seen["changes"]) == (2, 1, 0)
    assert plain_state.counts["not_modified"] == 1
    assert plain_state.counts["bytes_saved"] == len(page("one"))
    manager.add_seeds([Request("http://b.example/own", headers={b"If-None-Match": [b'"own"']})])
    for _ in range(2):
        request = next(request for _ in range(200) for request in next_requests(manager, 10) if _ended(manager, request, tagged))
    assert request.headers == {b"If-None-Match": [b'"own"']}


def _ended(manager: FrontierManager, request: Any, headers: dict[bytes, list[bytes]]) -> bool:
    manager.page_crawled(Response(request.url, headers=headers, body=page("one"), request=request))
    return bool(request.url.endswith("own"))


def test_plain_frontera_follows_moves(start: Start, plain_state: PlainState) -> None:
    """A page that was sent elsewhere for good is known by its new URL, as is one that names its canonical form where that is asked for."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=600, OPTIMAL_FRONTIER_CANONICAL_LINKS=True)
    manager.add_seeds([Request(f"http://a.example/{name}") for name in ("old", "once", "copy")])
    head = b'<html><head><link rel="canonical" href="/real"></head><body>one</body></html>'
    for request in manager.get_next_requests(10):
        found, body = request.url, page(request.url)
        if request.url.endswith("copy"):
            body = head
        else:
            found = request.url + "-target"
            request.meta[b"redirect_reasons"] = [301 if request.url.endswith("old") else 302]
        manager.page_crawled(Response(found, headers={b"Content-Type": [b"text/html"]}, body=body, request=request))
    for name, target in (("old", "old-target"), ("copy", "real")):
        places = [plain_state.place(f"http://a.example/{known_as}") for known_as in (name, target)]
        # Not the whole places: a plan may write the row between the two looks.
        assert len({(place.partition, place.page) for place in places if place}) == 1
        assert all(places)
    assert plain_state.place("http://a.example/once-target") is None
    assert plain_state.at("http://a.example/once")["visits"] == 1
    assert plain_state.counts["pages"] == 3


def test_bad_setting_raises_at_once(start: Start) -> None:
    """From a plain manager an error is an exception."""
    with pytest.raises(ConfigurationError, match="OPTIMAL_FRONTIER_CRAWL_RATE"):
        start(OPTIMAL_FRONTIER_CRAWL_RATE="fast")
    with pytest.raises(ConfigurationError, match="did you mean"):
        start(OPTIMAL_FRONTIER_NAMESPAC="x")


def test_namespace_of_a_spider_is_refused(start: Start, plain_state: PlainState, namespace: str) -> None:
    """A plain manager is not the spider that a namespace belongs to."""
    plain_state.namespace.open(spider="someone")
    with pytest.raises(SchemaMismatchError, match="belongs to the spider 'someone'"):
        start()


def test_the_example_of_the_documentation_runs(tmp_path: Path, redis_socket: str, namespace: str, site: MisbehavingSite) -> None:
    """docs/frontera.md: the program crawls a site by its links, asks again, and ends."""
    text = (Path(__file__).parents[2] / "docs" / "frontera.md").read_text()
    program = text.split("```python\n")[1].split("```")[0]
    assert 'NAMESPACE": "plain"' in program
    (tmp_path / "plain.py").write_text(program.replace('NAMESPACE": "plain"', f'NAMESPACE": "{namespace}"'))
    ended = run_forked(["plain.py", f"unix://{redis_socket}", site.url("/pages/2")], tmp_path, os.environ, 30)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "{200: 9}\n"
    assert set(site.paths()) == {"/pages/2", "/static/0", "/static/1"}


def test_seeds_are_sent_again_to_a_server_that_has_lost_everything(
    start: Start, plain_state: PlainState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they were fetched before; what is under way comes again by itself. One that was given often is kept once."""
    monkeypatch.setattr(backend, "_KEPT_SEEDS", 2)
    manager = start()
    for seed in "11112":
        manager.add_seeds([Request(f"http://a.example/{seed}")])
    (done,) = next_requests(manager)
    crawled(manager, done, page("one"))
    plain_state.namespace.command("DEL", *plain_state.namespace.command("KEYS", plain_state.key("")[: -len("{0}:")] + "*"))
    found: set[str] = set()
    for _ in range(50):
        found |= urls(manager.get_next_requests(10))
    assert found == {"http://a.example/1", "http://a.example/2"}
    assert plain_state.counts["pages"] == 2
