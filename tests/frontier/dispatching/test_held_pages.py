"""Pages whose callback the spider does not have: held, counted, back when it has; and callbacks that got another name."""

from __future__ import annotations

import logging

import pytest
from clocked_namespace import force
from judged_crawl import JudgedCrawl

from optimal_frontier.frontier.dispatching.completion import Completion
from optimal_frontier.frontier.dispatching.exchange import Dispatcher
from optimal_frontier.frontier.dispatching.forgetting import forget
from optimal_frontier.frontier.dispatching.held_pages import AGAIN_S, Returning, bring_back, bring_back_replaced
from optimal_frontier.frontier.dispatching.renaming import Renamed, rename_callback, stored_callbacks
from optimal_frontier.frontier.dispatching.work import Exchange
from optimal_frontier.frontier.judging.callback_errors import after_callback_error
from optimal_frontier.frontier.judging.holding import hold
from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.state.checking import check_state
from optimal_frontier.state.messages import RELEASE, Observation
from optimal_frontier.state.namespace import Call
from optimal_frontier.state.partition import add_calls, revise_calls
from optimal_frontier.state.records import callbacks_of, unpack_record
from optimal_frontier.state.rows import ACTIVE, DONE, HELD, ONCE, OWN, TRANSIENT, pack_numbers, split_tail

SEEN, NEW, PAGE = "http://a.example/seen", "http://b.example/new", "http://a.example/page"
ITEM = {"meta": {b"scrapy_callback": b"item"}}


@pytest.fixture(params=[1, 3])
def crawl(request, redis_socket, namespace):
    opened = JudgedCrawl(redis_socket, namespace, partitions=request.param)
    yield opened
    opened.close()


@pytest.fixture
def held(crawl):
    """A page that was seen and one that was not, both held, beside one that has a callback."""
    crawl.add(SEEN, **ITEM)
    crawl.see_all()
    crawl.add(NEW, **ITEM)
    crawl.add(PAGE)
    crawl.advance(1.0)
    crawl.make_due(SEEN)
    hold_all(crawl)
    return crawl


def handouts(crawl: JudgedCrawl):
    return [handout for k in range(crawl.namespace.partitions) for handout in crawl.dispatch(partition=k)]


def hold_all(crawl: JudgedCrawl) -> int:
    """Hand out what is due to a spider without `item`; return how many pages it holds."""
    n = 0
    for handout in handouts(crawl):
        if "item" in callbacks_of(handout.record):
            assert crawl.end([hold(handout)]) == [1]
            n += 1
        else:
            crawl.see(handout)
    return n


def counts(crawl: JudgedCrawl) -> dict[str, int]:
    sums: dict[str, int] = {}
    for k in range(crawl.namespace.partitions):
        for name, n in crawl.namespace.counts(k).items():
            sums[name] = sums.get(name, 0) + n
    return sums


def violations(crawl: JudgedCrawl):
    return check_state(crawl.namespace, sleep=lambda _: None).violations


def test_what_was_worked_out_before_a_page_was_held_does_not_free_it(crawl):
    """By a plan that was under way, or for a person."""
    crawl.add(SEEN, **ITEM)
    crawl.see_all()
    crawl.advance(1.0)
    crawl.make_due(SEEN)
    before, k = crawl.row(SEEN), crawl.partition(SEEN)
    assert hold_all(crawl) == 1
    held = crawl.row(SEEN)
    crawl.namespace.command("SET", crawl.key("fence", k), "7", partition=k)
    numbers = crawl.page(SEEN) + pack_numbers(before.b, (1.0, 0.0, 1.0, 1.0))
    assert crawl.namespace.run([Call(k, "write_plan", ["7", numbers])]) == [0]
    assert crawl.namespace.run(revise_calls(k, [(crawl.page(SEEN), before.b, before, None)])) == [[0]]
    assert crawl.row(SEEN) == held
    assert held.flags & HELD
    assert violations(crawl) == []


def test_held_pages_are_not_handed_out_and_do_not_fail(held):
    """Not in a year, nor with a budget to spare; neither is a first visit waited for."""
    assert (counts(held)["held"], counts(held).get("failures", 0), counts(held)["pending"]) == (2, 0, 0)
    for url, visits in ((SEEN, 1), (NEW, 0)):
        row = held.row(url)
        assert (row.flags & ~OWN, row.state, row.visits, row.failures) == (HELD, ACTIVE, visits, 0)
    held.advance(365 * 86_400.0)
    assert [handout.record["url"] for handout in handouts(held)] == [PAGE]
    assert not violations(held)


def test_callbacks_that_are_not_listed_are_no_missing_methods(held, caplog):
    """One that was renamed in the spider and in CALLBACKS is not listed either."""
    bring_back(held.namespace, {"parse"}.__contains__, listed=("parse_itm",))
    bring_back(held.namespace, lambda name: False, listed=("item",))
    assert caplog.messages == [
        "2 pages are held, as OPTIMAL_FRONTIER_CALLBACKS does not list 'item': fetched again once it does, and the spider has that "
        "method, or after `optimal-frontier rename-callback item NEW`",
        "2 pages are held, as the spider has no method 'item': fetched again as soon as it has, "
        "or after `optimal-frontier rename-callback item NEW`",
    ]


def test_they_come_back_when_the_spider_has_the_method(held, caplog):
    with caplog.at_level(logging.INFO):
        assert bring_back(held.namespace, {"parse"}.__contains__) == 0
        assert bring_back(held.namespace, {"parse", "item"}.__contains__) == 2
    assert "2 pages are held, as the spider has no method 'item'" in caplog.messages[0]
    assert caplog.messages[1:] == ["2 held pages come back: the spider has their callbacks"]
    assert counts(held)["held"] == 0
    assert {handout.record["url"] for handout in handouts(held)} == {SEEN, NEW}
    assert not violations(held)


def test_they_come_back_to_a_crawler_that_had_the_method_all_along(held, caplog):
    """A crawler with other code held them beside it. Looks are as far apart as they take long, and tell once what stays held."""
    times = iter([0.0, 0.0, AGAIN_S - 1.0, AGAIN_S, AGAIN_S + 10.0, AGAIN_S + 499.0, AGAIN_S + 500.0, AGAIN_S + 500.0])
    names = {"parse"}
    returning = Returning(held.namespace, names.__contains__, lambda: next(times))
    assert returning.look() == 0
    names.add("item")
    assert (returning.look(), returning.look()) == (0, 2)
    held.advance(1.0)
    hold_all(held)
    assert (returning.look(), returning.look()) == (0, 2)
    assert len([line for line in caplog.messages if " held, as" in line]) == 1
    assert not violations(held)


def test_crawlers_that_start_together_count_each_page_once(held, monkeypatch):
    """Both read a page as held, and both bring it back."""
    from optimal_frontier.frontier.dispatching import held_pages

    there = held_pages._return

    def twice(*arguments):
        return max(there(*arguments), there(*arguments))

    monkeypatch.setattr(held_pages, "_return", twice)
    assert bring_back(held.namespace, {"parse", "item"}.__contains__) == 2
    assert counts(held)["held"] == 0
    assert not violations(held)


def test_a_page_that_was_held_for_longer_than_its_longest_interval_is_due_and_sound(held):
    held.rewrite(SEEN, max_interval=100.0)
    held.advance(1000.0)
    bring_back(held.namespace, lambda name: True)
    assert not violations(held)


def test_a_request_that_is_fetched_once_and_fails_is_counted_once(crawl):
    """It was held, and its callback had raised before."""
    crawl.add(SEEN, state=ONCE, method="POST", **ITEM)
    (handout,) = handouts(crawl)
    crawl.end([after_callback_error(crawl.judged(handout, Visit(handout.received)), "callback", "KeyError")])
    crawl.advance(100.0)
    assert hold_all(crawl) == 1
    for _ in range(2):
        crawl.make_due(SEEN)
        (handout,) = handouts(crawl)
        crawl.fail(handout)
        assert (counts(crawl)["held"], crawl.row(SEEN).flags & HELD) == (0, 0)
        crawl.advance(100.0)
    assert not violations(crawl)


def test_what_is_back_goes_on_as_before(held):
    """The interval of the next bit is all of the time; the first visit is a first visit."""
    bring_back(held.namespace, lambda name: True)
    held.advance(100.0)
    for handout in handouts(held):
        assert held.see(handout).row.flags & ~OWN == 0
    assert held.row(SEEN).time > 50.0
    assert (held.row(NEW).visits, counts(held)["fetched"], counts(held)["pending"]) == (1, 3, 0)
    assert not violations(held)


def test_a_page_that_is_yielded_with_another_callback_comes_back(held):
    new = held.new_page(SEEN, meta={b"scrapy_callback": b"renamed"})
    k = held.partition(SEEN)
    held.namespace.run(add_calls(k, [new]))
    assert bring_back_replaced(held.namespace, k, [new.page]) == 1
    assert bring_back_replaced(held.namespace, k, [new.page]) == 0
    assert counts(held)["held"] == 1
    (handout,) = handouts(held)
    assert callbacks_of(handout.record) == ("renamed",)


def test_a_held_page_that_comes_back_is_more_to_do(held):
    """So that a crawl that was complete is so no more."""
    dispatcher = Dispatcher(held.namespace, held.settings)
    work = [held.new_page(SEEN, meta={b"scrapy_callback": b"renamed"})]
    assert [dispatcher.exchange(Exchange(pages=work)).new for _ in range(2)] == [1, 0]


def test_a_page_that_is_held_again_counts_once(held):
    assert force(held.namespace, [held.page(SEEN)]) == [1]
    assert hold_all(held) == 1
    assert counts(held)["held"] == 2
    assert force(held.namespace, [held.page(SEEN)]) == [1]
    (handout,) = handouts(held)
    held.see(handout)
    assert (counts(held)["held"], held.row(SEEN).flags & ~OWN) == (1, 0)
    assert not violations(held)


def test_a_forgotten_page_is_held_no_more(held):
    assert forget(held.namespace, [held.page(SEEN)]) == 1
    assert counts(held)["held"] == 1
    assert not violations(held)


def test_a_request_that_is_fetched_once_is_held_too(crawl):
    crawl.add(SEEN, state=ONCE, method=b"POST", **ITEM)
    assert hold_all(crawl) == 1
    assert crawl.row(SEEN).state == ONCE
    assert not violations(crawl)
    assert bring_back(crawl.namespace, lambda name: True) == 1
    (handout,) = handouts(crawl)
    crawl.see(handout)
    assert (crawl.row(SEEN).state, crawl.row(SEEN).flags, counts(crawl)["held"]) == (DONE, 0, 0)
    assert not violations(crawl)


def test_a_request_that_is_forgotten_afterwards_is_not_held(crawl):
    crawl.add(SEEN, state=TRANSIENT, **ITEM)
    (handout,) = handouts(crawl)
    assert hold(handout) is None


def test_the_lease_of_a_held_page_can_be_lost(held):
    bring_back(held.namespace, lambda name: True)
    handout = handouts(held)[0]
    assert held.end([Observation(handout, RELEASE, handout.row)]) == [1]
    assert not violations(held)


def test_plans_leave_held_pages_alone(held):
    before = {url: held.row(url) for url in (SEEN, NEW)}
    held.advance(100.0)
    Planner(held.namespace, held.settings).plan()
    assert {url: held.row(url) for url in (SEEN, NEW)} == before
    assert not violations(held)


def test_a_crawl_is_complete_without_them(held):
    held.advance(1e4)
    for handout in handouts(held):
        held.see(handout)
    complete = Completion(held.namespace, 2)
    assert any(complete.look() for _ in range(20))


def test_stored_callbacks_are_counted(held):
    held.add("http://c.example/", meta={b"scrapy_callback": b"item", b"scrapy_errback": b"failed"})
    assert stored_callbacks(held.namespace) == {"item": 3, "parse": 1, "failed": 1}


def test_a_renamed_callback_is_rewritten_and_brings_pages_back(held):
    stated = held.new_page(SEEN, importance=5.0, **ITEM)
    held.namespace.run(add_calls(held.partition(SEEN), [stated]))
    assert rename_callback(held.namespace, "item", "product") == Renamed(2, 2)
    assert rename_callback(held.namespace, "item", "product") == Renamed(0, 0)
    assert stored_callbacks(held.namespace) == {"product": 2, "parse": 1}
    k = held.partition(SEEN)
    importance, record = split_tail(held.namespace.command("HGET", held.key("pages", k), held.page(SEEN), partition=k))
    assert (importance, unpack_record(record, "a.example")["url"]) == (5.0, SEEN)
    assert {callbacks_of(handout.record) for handout in handouts(held)} == {("product",)}
    assert not violations(held)


def test_requests_without_a_callback_have_parse(held):
    assert rename_callback(held.namespace, "parse", "page").pages == 1
    assert stored_callbacks(held.namespace) == {"item": 2, "page": 1}


def test_a_page_that_is_being_fetched_is_rewritten_as_well(crawl):
    crawl.add(SEEN, **ITEM)
    (handout,) = handouts(crawl)
    assert rename_callback(crawl.namespace, "item", "product").pages == 1
    crawl.see(handout)
    assert stored_callbacks(crawl.namespace) == {"product": 1}
    assert not violations(crawl)
