"""What Frontera's users rely on, with plain Frontera: identities, links, results, limits, and the judge that Scrapy has, too."""

from __future__ import annotations

import time
from typing import Any

import pytest
from frontera.core.components import Middleware, States
from frontera.core.models import Request, Response
from plain_frontera import FINGERPRINTS, PlainState, Start, crawled, next_requests, page, urls

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.integrations.frontera.bus_codec import Decoder, Encoder

A, B = "http://a.example/0", "http://a.example/1"
HTML = {b"Content-Type": [b"text/html"]}


class Passing(Middleware):
    """A middleware of the user's that does nothing."""

    def add_seeds(self, seeds: Any) -> Any:
        return seeds

    def links_extracted(self, request: Any, links: Any) -> Any:
        return request

    def page_crawled(self, response: Any) -> Any:
        return response

    def request_error(self, page: Any, error: Any) -> Any:
        return page


class Raising(Passing):
    """One that raises at some URLs."""

    def add_seeds(self, seeds: Any) -> Any:
        for seed in seeds:
            self._look(seed.url)
        return seeds

    def links_extracted(self, request: Any, links: Any) -> Any:
        self.add_seeds(links)
        return request

    def page_crawled(self, response: Any) -> Any:
        self._look(response.url)
        return None if "filtered" in response.url else response

    @staticmethod
    def _look(url: str) -> None:
        if "raise" in url:
            raise RuntimeError(f"not {url}")


class ByMethod(Passing):
    """One that tells requests apart by their method."""

    def add_seeds(self, seeds: Any) -> Any:
        for seed in seeds:
            seed.meta[b"fingerprint"] = seed.method + b" " + seed.url.encode()
        return seeds


class OwnRequest(Request):
    """A request model of the user's."""


def by_last_letter(url: str) -> str:
    """A fingerprint function of the user's: short, and text."""
    return url[-1]


# What pages are known by.


@pytest.mark.parametrize("name", ["sha1", "md5", "hostname_local_fingerprint"])
def test_pages_are_known_by_the_function_that_is_set(name: str, start: Start, plain_state: PlainState) -> None:
    """URL_FINGERPRINT_FUNCTION of the canonical URL, with the middleware or without it."""
    plain_state.function = f"frontera.utils.fingerprint.{name}"
    for middlewares in ([FINGERPRINTS], []):
        manager = start(URL_FINGERPRINT_FUNCTION=plain_state.function, MIDDLEWARES=middlewares)
        manager.add_seeds([Request("http://a.example/?b=1&a=2"), Request("http://a.example/?a=2&b=1#c"), Request("A1")])
        manager.stop()
    assert plain_state.counts["pages"] == 2
    assert plain_state.at("http://a.example/?a=2&b=1")
    assert plain_state.at("A1")


def test_a_function_of_the_users_own_counts(start: Start, plain_state: PlainState) -> None:
    """Whatever it returns; another function is refused in the same namespace, as every page would come in twice."""
    own = f"{__name__}.by_last_letter"
    manager = start(URL_FINGERPRINT_FUNCTION=own)
    manager.add_seeds([Request("http://a.example/x1"), Request("http://a.example/y1"), Request("http://a.example/2")])
    handed = manager.get_next_requests(10)
    assert [request.url[-1] for request in handed] == ["1", "2"]
    assert {request.meta[b"fingerprint"] for request in handed} == {"1", "2"}
    manager.stop()
    with pytest.raises(ConfigurationError, match=f"known by URL_FINGERPRINT_FUNCTION {own}, and now"):
        start()
    with pytest.raises(ConfigurationError, match="URL_FINGERPRINT_FUNCTION: 'nosuch' cannot be imported"):
        start(URL_FINGERPRINT_FUNCTION="nosuch", MIDDLEWARES=[])


def test_a_fingerprint_by_a_middleware_of_the_users_counts(start: Start, plain_state: PlainState) -> None:
    """It comes back with the request, and results are known by it; a page of such a kind does not move."""
    manager = start(MIDDLEWARES=[f"{__name__}.ByMethod"])
    manager.add_seeds([Request(A), Request(A, method="POST"), Request(A)])
    handed = manager.get_next_requests(10)
    assert {request.meta[b"fingerprint"] for request in handed} == {b"GET " + A.encode(), b"POST " + A.encode()}
    for request in handed:
        request.meta[b"redirect_reasons"] = [301]
        manager.page_crawled(Response(B, headers=HTML, body=page("x"), request=request))
    assert (plain_state.counts["pages"], plain_state.counts["visits"], plain_state.in_flight) == (2, 2, 0)


def test_states_are_read_by_fingerprints(start: Start) -> None:
    """What Frontera's workers ask for: ``fetch`` takes Frontera's fingerprints; no more states are kept than STATE_CACHE_SIZE."""
    manager = start(STATE_CACHE_SIZE=3)
    manager.add_seeds([Request(f"http://a.example/{n}") for n in range(20)])
    states = manager.backend.states
    requests = manager.get_next_requests(20)
    states.fetch([request.meta[b"fingerprint"] for request in requests])
    for request in requests:
        states.set_states(request)
        assert request.meta[b"state"] == states.QUEUED
    for n in range(50):
        states.set_states(Request(f"http://a.example/{n}"))
    assert len(states._cache) <= 4


def test_states_of_damaged_pages_are_unknown(start: Start, plain_state: PlainState) -> None:
    """One of them costs no other its state."""
    manager = start()
    manager.add_seeds([Request("http://a.example/0"), Request("http://a.example/1")])
    damaged = plain_state.identity("http://a.example/0")[:12]
    plain_state.namespace.command("HSET", plain_state.key("pages"), damaged, b"short")
    pages = [Request(f"http://a.example/{n}") for n in range(2)]
    manager.backend.states.set_states(pages)
    assert [page.meta[b"state"] for page in pages] == [States.NOT_CRAWLED, States.QUEUED]


# Links that cannot be stored.

UNSTORABLE = [
    lambda: Request("http://[bad/x"),
    lambda: Request("http://a.example:port/"),
    lambda: Request("http://a.example/\ud800"),
    lambda: Request("http://a.example/object", meta={b"held": object()}),
    lambda: Request("http://a.example/header", headers={b"X": [object()]}),
    lambda: Request("http://a.example/raise"),
    lambda: Request(""),
    lambda: Request("http://a.example/method", method="NO METHOD"),
]


@pytest.mark.parametrize("made", UNSTORABLE)
@pytest.mark.parametrize("is_seed", [True, False], ids=["seeds", "links"])
def test_a_link_that_cannot_be_stored_costs_no_other(
    made: Any, is_seed: bool, start: Start, plain_state: PlainState, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does it raise, whoever found it unusable; one warning, and a count."""
    manager = start(MIDDLEWARES=[FINGERPRINTS, f"{__name__}.Raising"])
    requests = [Request(A), made(), Request(B), made()]
    if is_seed:
        manager.add_seeds(requests)
    else:
        manager.links_extracted(Request("http://a.example/parent"), requests)
    assert urls(manager.get_next_requests(10)) == {A, B}
    assert manager.backend.unstored == 2
    assert sum("cannot be stored, and is left out" in record.getMessage() for record in caplog.records) == 1
    manager.stop()
    assert "2 requests could not be stored and were left out" in caplog.text


def test_wrong_calls_are_still_refused(start: Start) -> None:
    """Frontera's own checks of its arguments."""
    manager = start()
    with pytest.raises(AssertionError, match="Empty seeds list"):
        manager.add_seeds([])
    with pytest.raises(AssertionError, match="must subclass"):
        manager.links_extracted(Request(A), ["http://a.example/text"])
    with pytest.raises(AssertionError, match="Empty response request"):
        manager.page_crawled(Response(A))


# Results, and leases that end.


def test_a_result_need_not_be_of_the_object_that_was_handed_out(start: Start, plain_state: PlainState) -> None:
    """A request with the same URL is the same page; what it was asked with is remembered."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.05)
    manager.add_seeds([Request(A), Request(B)])
    for request in manager.get_next_requests(10):
        manager.page_crawled(Response(request.url, headers=HTML | {b"ETag": [b'"1"']}, body=page("one"), request=Request(request.url)))
    for request in [*next_requests(manager), *next_requests(manager)]:
        assert request.headers[b"If-None-Match"] == b'"1"'
        if request.url == A:
            manager.page_crawled(Response(A, status_code=304, request=Request(A)))
        else:
            manager.request_error(Request(B), "TimeoutError")
    assert plain_state.counts["not_modified"] == 1
    assert plain_state.at(B)["failures"] == 1
    assert plain_state.in_flight == 0


@pytest.mark.parametrize("name", ["raise", "filtered"])
def test_what_a_middleware_keeps_from_the_backend_is_over(name: str, start: Start, plain_state: PlainState) -> None:
    """Its exception is the caller's; the lease ends, as a failure."""
    manager = start(MIDDLEWARES=[FINGERPRINTS, f"{__name__}.Raising"])
    manager.add_seeds([Request(A)])
    (request,) = manager.get_next_requests(10)
    response = Response(f"http://a.example/{name}", headers=HTML, body=page("x"), request=request)
    if name == "raise":
        with pytest.raises(RuntimeError, match="not http"):
            manager.page_crawled(response)
    else:
        manager.page_crawled(response)
    assert plain_state.in_flight == 0
    assert plain_state.at(A)["failures"] == 1


def test_a_result_that_cannot_be_judged_ends_its_lease(start: Start, plain_state: PlainState, caplog: pytest.LogCaptureFixture) -> None:
    """As a failure, which is logged once."""
    manager = start(MIDDLEWARES=[])
    manager.add_seeds([Request(A), Request(B)])
    for request in manager.get_next_requests(10):
        manager.page_crawled(Response(request.url, headers=5, body=page("x"), request=request))
    assert plain_state.in_flight == 0
    assert plain_state.at(A)["failures"] == plain_state.at(B)["failures"] == 1
    assert sum("could not be judged" in record.getMessage() for record in caplog.records) == 1


def test_a_result_that_never_comes_does_not_hold_its_page(start: Start, plain_state: PlainState) -> None:
    """After RESULT_TIMEOUT the lease runs out, and the page is handed out again; what comes too late is nothing."""
    manager = start(OPTIMAL_FRONTIER_RESULT_TIMEOUT=0.3, OPTIMAL_FRONTIER_LEASE_SECONDS=0.3)
    manager.add_seeds([Request(A)])
    (lost,) = manager.get_next_requests(10)
    began = time.monotonic()
    assert manager.get_next_requests(10) == []
    again: list[Any] = []
    while not again:
        assert time.monotonic() < began + 10
        again = manager.get_next_requests(10)
    assert time.monotonic() - began > 0.3
    assert again[0].url == A
    assert not manager.backend.session.courier.lost
    crawled(manager, again[0], page("x"))
    crawled(manager, lost, page("late"))
    assert plain_state.counts["visits"] == plain_state.counts["leases_expired"] == 1
    assert plain_state.in_flight == 0


def test_a_lease_lives_until_then(start: Start, plain_state: PlainState) -> None:
    """It is renewed although nobody calls."""
    manager = start(OPTIMAL_FRONTIER_LEASE_SECONDS=0.3)
    manager.add_seeds([Request(A)])
    (request,) = manager.get_next_requests(10)
    time.sleep(0.8)
    assert manager.get_next_requests(10) == []
    crawled(manager, request, page("x"))
    assert plain_state.counts["visits"] == 1
    assert "leases_expired" not in plain_state.counts


# One judge for Scrapy and Frontera.

SHAPES: list[tuple[dict[Any, Any], Any, Any]] = [
    ({}, b"If-None-Match", b'"1"'),
    ({b"X": b"y"}, b"If-None-Match", b'"1"'),
    ({b"X": [b"y"]}, b"If-None-Match", [b'"1"']),
    ({"X": "y"}, "If-None-Match", '"1"'),
    ({"X": ["y"]}, "If-None-Match", ['"1"']),
]


@pytest.mark.parametrize(("headers", "name", "value"), SHAPES)
def test_conditions_look_like_the_other_headers(headers: dict[Any, Any], name: Any, value: Any, start: Start) -> None:
    """So that whatever sends these sends ours."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.05)
    manager.add_seeds([Request(A, headers=dict(headers))])
    (request,) = next_requests(manager)
    crawled(manager, request, page("x"), ETag='"1"')
    (request,) = next_requests(manager)
    assert request.headers == {**headers, name: value}


@pytest.mark.parametrize("is_by_bus", [False, True])
def test_our_conditions_are_those_of_one_fetch(is_by_bus: bool, start: Start) -> None:
    """A request that was handed out and is asked for again has none of its own, so that later ones are asked with, too."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.05)
    manager.add_seeds([Request(A, headers={"X": "y"})])
    crawled(manager, *next_requests(manager), page("one"), ETag='"1"')
    (request,) = next_requests(manager)
    if is_by_bus:
        request = Decoder(Request, Response).decode_request(Encoder(Request).encode_request(request))
    crawled(manager, request, page("two"), ETag='"2"')
    manager.add_seeds([request])
    (request,) = next_requests(manager)
    assert request.headers == {"X": "y", "If-None-Match": '"2"'}
    manager.links_extracted(request, [Request(B, headers=request.headers)])
    assert [link.headers for link in next_requests(manager) if link.url == B] == [{"X": "y"}]


def test_sections_are_kept_of_a_page_that_keeps_changing(start: Start, plain_state: PlainState) -> None:
    """So that what of it is noise can be told (see test_plain_visits)."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.05, MIDDLEWARES=[])
    manager.add_seeds([Request(A)])
    for visit in range(8):
        (request,) = next_requests(manager)
        crawled(manager, request, page(f"<p>As it always was.</p><p>{visit * 7919} readers today</p>"))
    assert plain_state.memory(A).noise


def test_a_host_that_asks_for_less_is_left_alone(start: Start) -> None:
    """A 429 with Retry-After holds all pages of the host."""
    manager = start()
    manager.add_seeds([Request(f"http://{host}.example/{n}") for n in range(2) for host in "ab"])
    first = next(request for request in next_requests(manager) if request)
    crawled(manager, first, b"", status=429, Retry_After="600")
    rest = manager.get_next_requests(10)
    assert {request.url.split("/")[2] for request in rest} == {"a.example", "b.example"} - {first.url.split("/")[2]}


def test_a_host_that_does_not_answer_is_left_alone(start: Start) -> None:
    """While another one does; the pages that were not asked for stay as they are."""
    manager = start()
    manager.add_seeds([Request(f"http://{host}.example/{n}") for n in range(30) for host in "ab"])
    failed = 0
    while failed < 10:
        given = manager.get_next_requests(4)
        if given and all("b.example" in url for url in urls(given)):
            break  # a is left alone
        for request in given:
            if "a.example" in request.url:
                time.sleep(0.02)  # a host that is silent for no time is left alone for none
                manager.request_error(request, "TimeoutError")
                failed += 1
            else:
                crawled(manager, request, page("b"))
    assert 4 <= failed < 10


@pytest.mark.parametrize("solver", ["Basic", "CorporateWebsiteFriendly"])
def test_a_host_that_redirects_to_one_that_is_away_is_not_left_alone(solver: str, start: Start) -> None:
    """Whichever URL of the redirect the canonical solver takes for the page."""
    manager = start(CANONICAL_SOLVER=f"frontera.contrib.canonicalsolvers.{solver}")
    manager.add_seeds([Request(f"http://{host}.example/{n}") for n in range(8) for host in "ab"])
    for request in [request for _ in range(8) for request in manager.get_next_requests(2)]:
        if "b.example" in request.url:
            crawled(manager, request, page("b"))
            continue
        time.sleep(0.02)
        request.meta[b"redirect_urls"], request.meta[b"redirect_fingerprints"] = [request.url], [request.meta[b"fingerprint"]]
        request._url = "http://dead.example/"
        manager.request_error(request, "TimeoutError")
    silent = manager.backend.session.courier.dispatcher.recent.silent_hosts
    assert silent.hosts() == []


def test_credentials_do_not_move_to_another_host(start: Start, plain_state: PlainState) -> None:
    """However the name of the header was given."""
    manager = start(OPTIMAL_FRONTIER_MIN_INTERVAL=0.05)
    manager.add_seeds([Request(A, headers={"Authorization": "secret", b"Cookie": b"secret", "X": "y"})])
    (request,) = next_requests(manager)
    request.meta[b"redirect_reasons"] = [301]
    manager.page_crawled(Response("http://b.example/0", headers=HTML, body=page("x"), request=request))
    (request,) = next_requests(manager)
    assert (request.url, request.headers) == ("http://b.example/0", {"X": "y"})


BASIC, FRIENDLY = (f"frontera.contrib.canonicalsolvers.{name}" for name in ("Basic", "CorporateWebsiteFriendly"))


@pytest.mark.parametrize(("solver", "moves"), [(BASIC, False), (FRIENDLY, True)])
def test_the_canonical_solver_says_which_url_of_a_redirect_is_the_page(
    solver: str, moves: bool, start: Start, plain_state: PlainState
) -> None:
    """Basic: the first one, whose validators are not kept; the other one: the last, within a host."""
    manager = start(CANONICAL_SOLVER=solver, OPTIMAL_FRONTIER_MIN_INTERVAL=0.05)
    manager.add_seeds([Request("http://a.example/old")])
    (request,) = next_requests(manager)
    request.meta[b"redirect_reasons"], request.meta[b"redirect_urls"] = [301], ["http://a.example/old"]
    manager.page_crawled(Response("http://a.example/new", headers=HTML | {b"ETag": [b'"1"']}, body=page("x"), request=request))
    (request,) = next_requests(manager)
    assert request.url == ("http://a.example/new" if moves else "http://a.example/old")
    assert b"If-None-Match" not in request.headers
    assert not [name for name in request.meta if name.startswith(b"redirect")]
    assert plain_state.counts["pages"] == 1


# Limits.


def test_limits_of_frontera_hold(start: Start) -> None:
    """MAX_NEXT_REQUESTS where a call states no number, MAX_REQUESTS over all calls."""
    manager = start(MAX_NEXT_REQUESTS=2, MAX_REQUESTS=3)
    manager.add_seeds([Request(f"http://a.example/{n}") for n in range(9)])
    assert len(manager.get_next_requests()) == 2
    assert not manager.finished
    assert len(manager.get_next_requests()) == 1
    assert manager.get_next_requests() == []
    assert manager.finished


@pytest.mark.parametrize("name", ["MAX_REQUESTS", "MAX_NEXT_REQUESTS"])
@pytest.mark.parametrize("value", [-1, "5", 1.5, None, True])
def test_limits_that_are_none_are_refused(name: str, value: Any, start: Start) -> None:
    """By name, before anything is asked of Redis."""
    with pytest.raises((ConfigurationError, KeyError), match=name):
        start(**{name: value})


def test_requests_are_of_the_model_that_is_set(start: Start, plain_state: PlainState) -> None:
    """REQUEST_MODEL."""
    manager = start(REQUEST_MODEL=f"{__name__}.OwnRequest")
    manager.add_seeds([OwnRequest(A)])
    (request,) = manager.get_next_requests(10)
    assert type(request) is OwnRequest
    crawled(manager, request, page("x"))
    assert plain_state.counts["visits"] == 1
