"""CLOSE_AFTER: when every page was fetched that often."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from clocked_namespace import ClockedNamespace, fingerprint, open_namespace, page_of

from optimal_frontier.frontier.dispatching import completion as module
from optimal_frontier.frontier.dispatching.completion import Completion
from optimal_frontier.frontier.judging.outcomes import CAUSES
from optimal_frontier.state.messages import REST
from optimal_frontier.state.rows import DONE


@pytest.fixture(params=[1, 3])
def pages(request, redis_socket, namespace):
    opened = open_namespace(redis_socket, namespace, request.param)
    yield opened
    opened.connection.close()


def visit_all(pages: ClockedNamespace, **values: object) -> None:
    for k in range(pages.partitions):
        for handout in pages.dispatch(1000, k):
            pages.end(handout, **values)


def test_a_crawl_of_one_visit_each_is_complete_when_none_waits(pages):
    pages.add(*(page_of(f"h{n}/1") for n in range(5)))
    complete = Completion(pages, 1)
    assert not complete.look()
    (handout, *_) = [one for k in range(pages.partitions) for one in pages.dispatch(1, k)][:1]
    pages.end(handout)
    assert not complete.look()
    visit_all(pages)
    pages.advance(1e7)
    visit_all(pages)
    assert complete.look()


def test_each_page_is_to_be_fetched_that_often(pages, monkeypatch):
    """Attempts count, good or bad; pages that are fetched once are not asked for more. Looks are bounded, and go on."""
    monkeypatch.setattr(module, "_COUNT", 3)
    monkeypatch.setattr(module, "_READS", 4)
    pages.add(*(page_of(f"h{n}/{m}") for n in range(4) for m in range(150)), page_of("h1/once", kind=2))
    complete = Completion(pages, 2)
    for k in range(pages.partitions):
        for handout in pages.dispatch(1000, k):
            if handout.row.state == 2:
                pages.end(handout, REST, state=DONE)
            else:
                pages.end(handout)
    assert not any(complete.look() for _ in range(5))
    pages.advance(2000.0)
    last = fingerprint("h3/149")[:12]
    for k in range(pages.partitions):
        for handout in pages.dispatch(1000, k):
            if handout.page == last:
                kept = handout
            else:
                pages.end(handout, wait=1e6)
    assert not any(complete.look() for _ in range(400))
    pages.end(kept, visits=1, failed=1, wait=1e6)
    assert any(complete.look() for _ in range(400))


@pytest.mark.parametrize(("cause", "is_complete"), [("robots", True), ("refused", True), ("server", False)])
def test_a_page_that_may_not_be_fetched_is_not_waited_for(pages, cause, is_complete):
    """It is asked again half an hour later or more, while all others would be fetched again and again."""
    pages.add(page_of("h1/1"), page_of("h2/denied"))
    denied = fingerprint("h2/denied")[:12]
    for _ in range(2):
        for k in range(pages.partitions):
            for handout in pages.dispatch(1000, k):
                if handout.page == denied:
                    pages.end(handout, visits=0, failed=1, failures=1, cause=CAUSES.index(cause), wait=1e6)
                else:
                    pages.end(handout)
        pages.advance(2000.0)
    complete = Completion(pages, 2)
    assert any(complete.look() for _ in range(9)) is is_complete


@pytest.mark.parametrize("wanted", [1, 2])
def test_a_page_that_nobody_has_seen_is_tried_three_times_where_its_host_asks_for_fewer_requests(pages, wanted):
    """Nobody sends it again at once then."""
    pages.add(page_of("h1/1"), page_of("h2/busy"))
    complete, busy = Completion(pages, wanted), fingerprint("h2/busy")[:12]
    answers = []
    for number in range(1, 4):
        for k in range(pages.partitions):
            for handout in pages.dispatch(1000, k):
                if handout.page == busy:
                    told = {"pending": -1 if number == 1 else 0, "failures_throttled": 1}
                    pages.end(handout, visits=0, failed=number, failures=number, cause=CAUSES.index("throttled"), counters=told)
                else:
                    pages.end(handout)
        answers.append(any(complete.look() for _ in range(9)))
        pages.advance(2000.0)
    assert answers == [False, False, True]


def test_a_page_that_arrives_meanwhile_is_waited_for(pages, monkeypatch):
    monkeypatch.setattr(module, "_COUNT", 1)
    monkeypatch.setattr(module, "_READS", 1)
    pages.add(*(page_of(f"h{n}/1") for n in range(3)))
    visit_all(pages)
    pages.advance(2000.0)
    visit_all(pages, wait=1e7)
    complete = Completion(pages, 2)
    complete.look()
    pages.add(page_of("h9/new"))
    assert not complete.look()
    visit_all(pages, wait=1e7)
    assert not any(complete.look() for _ in range(50))


def test_two_threads_that_look_at_once_pass_over_no_partition(redis_socket, namespace, monkeypatch):
    """The courier's, and that of whoever asks plain Frontera whether it has finished."""
    pages = open_namespace(redis_socket, namespace, 3)
    host = next(name for name in map("h{}".format, range(100)) if pages.partition_of(name) == 1)
    pages.add(page_of(f"{host}/1"))
    visit_all(pages)
    complete, command = Completion(pages, 2), pages.command
    both = threading.Barrier(2, timeout=0.1)

    def read_together(*words, **of):
        answer = command(*words, **of)
        if words[0] == "HSCAN":
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait()
        return answer

    monkeypatch.setattr(pages, "command", read_together)
    with ThreadPoolExecutor(2) as threads:
        looks = [threads.submit(complete.look) for _ in range(2)]
        assert not any(look.result() for look in looks)
    pages.connection.close()
