"""Readers: what they say is what is stored, and reading changes nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from judged_crawl import START, JudgedCrawl

from optimal_frontier.errors import StateError
from optimal_frontier.state import reading
from optimal_frontier.state.change_feed import changes_after, feed_ends, last_changes
from optimal_frontier.state.checking import check_state
from optimal_frontier.state.partition import count_calls
from optimal_frontier.state.rows import HEAD_BYTES, Row
from optimal_frontier.state.scanning import read_host_names, read_pages, read_scores, read_urls

URLS = [f"http://h{at % 3}.example/{at}" for at in range(9)]


def dump(crawl: JudgedCrawl) -> dict[bytes, bytes]:
    """Everything that is stored, as it is stored."""
    client = crawl.namespace.connection.client
    return {key: client.dump(key) for key in client.scan_iter(f"{crawl.namespace.name}:*", count=1000)}


@pytest.fixture
def filled(judged):
    for at, url in enumerate(URLS):
        judged.add(url, importance=at + 1.0)
    for handout in judged.dispatch(6):
        judged.see(handout, lateness=0.5)
    judged.dispatch(1)
    return judged


def test_reading_changes_nothing(filled):
    before = dump(filled)
    reading.read_status(filled.namespace)
    assert reading.read_page(filled.namespace, filled.page(URLS[8]), "h2.example") is not None
    table = read_pages(filled.namespace, 0)
    read_scores(filled.namespace, [page.tobytes() for page in table.pages], 0)
    read_urls(filled.namespace, [page.tobytes() for page in table.pages], ["h0.example"] * 9, 0)
    check_state(filled.namespace, sleep=lambda _: None)
    assert dump(filled) == before


def test_status(filled):
    status = reading.read_status(filled.namespace)
    (partition,) = status.partitions
    assert (status.now, partition.in_flight, partition.hosts) == (START, 1, 3)
    assert status.counts()["pages"] == 9
    assert status.counts()["pending"] == 3  # one of them is under way
    assert partition.lateness.tolist() == [0.5] * 6
    assert partition.due == 0
    filled.make_due(*URLS[6:])
    assert reading.read_status(filled.namespace).partitions[0].due == 3


def test_a_lease_that_ran_out_is_due_and_in_flight_no_more_once_it_is_handed_out_again(filled):
    filled.advance(61.0)
    (partition,) = reading.read_status(filled.namespace).partitions
    assert (partition.due, partition.in_flight) == (1, 1)
    (again,) = filled.dispatch(1)
    assert reading.read_status(filled.namespace).partitions[0].in_flight == 1
    filled.see(again)
    assert reading.read_status(filled.namespace).partitions[0].in_flight == 0


def test_a_page(filled):
    for url in (URLS[8], URLS[0]):
        page = reading.read_page(filled.namespace, filled.page(url), url[7:17])
        assert page.page == filled.page(url)
        assert (page.now, page.partition, page.host) == (START, 0, url[7:17])
        assert page.record == {"url": url}
        assert page.row == filled.row(url)
        assert page.stated == page.row.importance
    assert reading.read_page(filled.namespace, bytes(12), "h0.example") is None


def test_a_page_under_way(filled):
    # The heaviest six came first, then the seventh.
    page = reading.read_page(filled.namespace, filled.page(URLS[2]), "h2.example")
    assert page.is_leased
    assert page.score == (START + 60) * 1e6 + 1
    seen = reading.read_page(filled.namespace, filled.page(URLS[8]), "h2.example")
    assert not seen.is_leased
    waits = reading.read_page(filled.namespace, filled.page(URLS[0]), "h0.example")
    assert waits.score is None


def test_a_page_under_the_name_that_it_had(filled):
    """Aliases are followed from one to the next, and listed with the page, the newest first."""
    namespace, now = filled.namespace, filled.page(URLS[8])
    first, second = bytes([1] * 12), bytes([2] * 12)
    alias = (0).to_bytes(4, "little")
    namespace.command(
        "HSET", filled.key("aliases"), first, alias + second + b"http://a.example/1", second, alias + now + b"http://a.example/2"
    )
    page = reading.read_page(namespace, first, "a.example")
    assert page.page == now
    namespace.command("HSET", filled.key("aliases"), second, alias + first)
    assert reading.read_page(namespace, first, "a.example") is None  # a ring leads nowhere


def test_a_record_that_cannot_be_read_is_an_error(filled):
    value = filled.namespace.command("HGET", filled.key("pages"), filled.page(URLS[0]))
    filled.namespace.command("HSET", filled.key("pages"), filled.page(URLS[0]), value[: HEAD_BYTES + 4] + b"\xff")
    with pytest.raises(StateError, match="cannot be read"):
        reading.read_page(filled.namespace, filled.page(URLS[0]), "h0.example")
    filled.namespace.command("HSET", filled.key("pages"), filled.page(URLS[0]), b"short")
    with pytest.raises(StateError, match="cannot be read"):
        reading.read_page(filled.namespace, filled.page(URLS[0]), "h0.example")


def test_time_does_not_run_backwards_and_the_price_is_the_last_one(filled):
    assert reading.read_now(filled.namespace) == START
    assert reading.read_published(filled.namespace, 0)[1] == 0.0
    filled.publish(-2.5, priors={7: (1.5, 20.0, 3)}, prices={2: 0.5})
    published, log_price = reading.read_published(filled.namespace, 0)
    assert (log_price, published.log_price, published.number) == (-2.5, -2.5, 1)
    assert (published.prior_of(7), dict(published.host_prices)) == ((1.5, 20.0), {2: 0.5})
    assert reading.read_status(filled.namespace).partitions[0].published.log_price == -2.5


def test_all_pages_in_scans(filled):
    """Heads as one array, whatever the number of pages."""
    filled.add(*(f"http://many.example/{at}" for at in range(2500)))
    table = read_pages(filled.namespace, 0)
    assert len(table.pages) == len(table.heads) == len(table.stated) == 2509
    at = [page.tobytes() for page in table.pages].index(filled.page(URLS[8]))
    assert Row._make(table.heads[at].item()) == filled.row(URLS[8])
    assert table.stated[at] == 9.0
    hosts = read_host_names(filled.namespace, 0)
    assert set(hosts.values()) == {"h0.example", "h1.example", "h2.example", "many.example"}
    pages = [filled.page(URLS[8]), filled.page(URLS[1]), bytes(12)]
    assert read_urls(filled.namespace, pages, ["h2.example", "h1.example", "x"], 0) == [URLS[8], URLS[1], ""]
    scores = read_scores(filled.namespace, pages, 0)
    assert scores[0] is not None
    assert scores[1:] == [None, None]
    assert len(table.chosen(np.array([at])).pages) == 1


def test_partitions_are_read_together(redis_socket, namespace):
    crawl = JudgedCrawl(redis_socket, namespace, partitions=4)
    crawl.add(*(f"http://h{at}.example/" for at in range(20)))
    assert crawl.see_all() == 20
    status = reading.read_status(crawl.namespace)
    assert len(status.partitions) == 4
    assert (status.counts()["pages"], status.counts()["pending"]) == (20, 0)
    assert sum(partition.hosts for partition in status.partitions) == 20
    for at in range(20):
        url = f"http://h{at}.example/"
        page = reading.read_page(crawl.namespace, crawl.page(url), f"h{at}.example")
        assert (page.partition, page.record["url"]) == (crawl.partition(url), url)
    # An alias leads from partition to partition.
    target, former = "http://h0.example/", "http://h1.example/old"
    alias = crawl.partition(target).to_bytes(4, "little") + crawl.page(target) + former.encode()
    crawl.namespace.command(
        "HSET", crawl.key("aliases", crawl.partition(former)), crawl.page(former), alias, partition=crawl.partition(former)
    )
    assert reading.read_page(crawl.namespace, crawl.page(former), "h1.example").page == crawl.page(target)
    crawl.close()


def test_hosts_of_which_something_is_known(filled):
    from optimal_frontier.state.host_words import HostWords

    words = HostWords(good=1.0, missing=4.0)
    filled.namespace.command("HSET", filled.key("hosts:words"), 1, words.pack())
    (partition,) = reading.read_status(filled.namespace).partitions
    assert partition.words == {read_host_names(filled.namespace, 0)[1]: words}


def test_what_is_empty(judged):
    assert not reading.is_empty(judged.namespace)
    (partition,) = reading.read_status(judged.namespace).partitions
    assert (partition.due, partition.in_flight, partition.hosts, len(partition.lateness)) == (0, 0, 0, 0)
    assert partition.published.number == 0
    assert partition.published.log_price == -math.inf
    assert len(read_pages(judged.namespace, 0).pages) == 0


# The change feed.


def test_the_feed_tells_what_changed(judged):
    judged.add("http://a.example/1", "http://a.example/2")
    judged.see_all("one")
    ends = feed_ends(judged.namespace)
    assert last_changes(judged.namespace, 10) == []  # a first visit is no change
    judged.advance(100.0)
    judged.make_due("http://a.example/1")
    judged.see(judged.lease("http://a.example/1"), "two", took=0.5)
    (told,) = changes_after(judged.namespace, ends)
    assert (told.url, told.page, told.partition) == ("http://a.example/1", judged.page("http://a.example/1").hex(), 0)
    assert told.time == pytest.approx(judged.time + 0.5)
    assert told.previous != told.fingerprint
    assert len(told.previous) == len(told.fingerprint) == 32
    assert ends == [told.id]
    assert changes_after(judged.namespace, ends) == []
    assert last_changes(judged.namespace, 10) == [told]
    assert last_changes(judged.namespace, 0) == []


def test_the_feeds_of_partitions_are_one(redis_socket, namespace):
    crawl = JudgedCrawl(redis_socket, namespace, partitions=3)
    urls = [f"http://h{at}.example/" for at in range(6)]
    crawl.add(*urls)
    crawl.see_all("one")
    ends = feed_ends(crawl.namespace)
    for url in urls:
        crawl.advance(10.0)
        crawl.make_due(url)
        crawl.see(crawl.lease(url), "two")
    assert [told.url for told in last_changes(crawl.namespace, 4)] == urls[2:]
    assert {told.url for told in changes_after(crawl.namespace, ends)} == set(urls)
    assert changes_after(crawl.namespace, ends) == []
    crawl.namespace.run(count_calls(0, {"nothing": 1}))
    crawl.close()
