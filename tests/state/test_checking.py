"""Checks: a sound state passes in every stage of a page's life, each damage is found, and repairs make it whole."""

from __future__ import annotations

import pytest
from judged_crawl import JudgedCrawl

from optimal_frontier.frontier.judging.visits import Visit
from optimal_frontier.state.checking import check_state
from optimal_frontier.state.namespace import Call
from optimal_frontier.state.partition import hold_call, revise_calls
from optimal_frontier.state.rows import HEAD_BYTES, ONCE, RETIRED, TRANSIENT

SEEN, OTHER, WAITING, LATER = "http://a.example/seen", "http://b.example/other", "http://c.example/waiting", "http://c.example/later"


def found(crawl: JudgedCrawl, **values) -> set[tuple[str, str]]:
    """Invariant and subject of every violation."""
    report = check_state(crawl.namespace, sleep=lambda _: None, **values)
    return {(finding.invariant, finding.subject) for finding in report.violations}


def page(crawl: JudgedCrawl, url: str) -> str:
    return f"page {crawl.page(url).hex()}"


@pytest.fixture
def stored(judged):
    """Two pages that were seen, two of one host that wait for their first visit."""
    judged.add(SEEN, OTHER)
    assert judged.see_all() == 2
    judged.add(WAITING, LATER)
    assert not found(judged)
    return judged


def command(crawl: JudgedCrawl, name: str, key: str, *arguments) -> None:
    crawl.namespace.command(name, crawl.key(key), *arguments)


def host(crawl: JudgedCrawl, url: str) -> int:
    return crawl.row(url).host


# Sound states.


def test_every_stage_of_a_page_is_sound(stored):
    """Under way, failed, released, lost, retired, done, forgotten, forced, held hosts, moved."""
    for kind, url in ((ONCE, "http://a.example/once"), (TRANSIENT, "http://a.example/gone")):
        stored.add(url, state=kind)
    handouts = stored.dispatch()
    assert not found(stored)
    stored.fail(handouts[0])
    stored.end([stored.judged(handouts[1], Visit(handouts[1].received, "released"))])
    for handout in handouts[2:]:
        stored.see(handout)
    assert not found(stored)
    stored.advance(1e5)
    lost = stored.dispatch(2, lease=1.0)
    assert len(lost) == 2
    stored.advance(10.0)
    assert not found(stored)
    for handout in stored.dispatch():
        stored.fail(handout, "404")
    stored.advance(1e5)
    for handout in stored.dispatch():
        stored.fail(handout, "404")
    assert stored.row(SEEN).state == RETIRED
    assert not found(stored)
    row = stored.row(SEEN)
    (again,) = stored.namespace.run(revise_calls(0, [(stored.page(SEEN), row.b, row._replace(state=1, a=0.0, s=0.0, e=0.0, l=0.0), None)]))
    assert again == [1]
    assert not found(stored)
    stored.namespace.run([Call(0, "forget", [stored.page(SEEN), stored.page(LATER)])])
    assert not found(stored)
    stored.namespace.run([hold_call(0, "c.example", 100)])
    stored.dispatch(host_delay=5.0)
    assert not found(stored)


def test_paced_hosts_are_sound(judged):
    """Hosts that are shut wait in a list of their own until they open."""
    judged.add(*(f"http://{host}.example/{at}" for host in "ab" for at in range(3)))
    assert len(judged.dispatch(host_delay=5.0)) == 2
    assert not found(judged)
    judged.advance(6.0)
    assert len(judged.dispatch(1, host_delay=5.0)) == 1
    assert not found(judged)


@pytest.mark.parametrize("last", [0, 255, 256, 600])
def test_a_namespace_that_lost_its_number_of_partitions_is_counted(judged, last):
    """By the last one of which there is anything; that of the first two stands beside it."""
    namespace = judged.namespace
    for k in {0, min(1, last), last}:
        namespace.command("SET", namespace.key("d", k), b"any", partition=k)
    namespace.command("HSET", namespace.key("meta"), "partitions", "many")
    namespace.open()
    assert namespace.partitions == last + 1
    assert namespace.command("HGET", namespace.key("meta"), "partitions") == str(last + 1).encode()


def test_partitions_are_checked(redis_socket, namespace):
    crawl = JudgedCrawl(redis_socket, namespace, partitions=3)
    urls = [f"http://h{at}.example/" for at in range(6)]
    crawl.add(*urls)
    crawl.see_all()
    assert not found(crawl)
    k = crawl.partition(urls[0])
    crawl.namespace.command("ZREM", crawl.key("q", k), crawl.page(urls[0]), partition=k)
    assert found(crawl) == {("places", page(crawl, urls[0]))}
    assert not found(crawl, repair=True)
    # An alias leads to the partition that it names.
    target = crawl.partition(urls[0]).to_bytes(4, "little") + crawl.page(urls[0]) + b"u"
    elsewhere = next(k for k in range(3) if k != crawl.partition(urls[0]))
    crawl.namespace.command("HSET", crawl.key("aliases", elsewhere), bytes(12), target, partition=elsewhere)
    assert not found(crawl)
    wrong = elsewhere.to_bytes(4, "little") + crawl.page(urls[0]) + b"u"
    crawl.namespace.command("HSET", crawl.key("aliases", elsewhere), bytes(12), wrong, partition=elsewhere)
    assert found(crawl) == {("aliases", f"alias {bytes(12).hex()}")}
    crawl.close()


# Damage that is found, and repaired.


def leave_queue(crawl):
    command(crawl, "ZREM", "q", crawl.page(SEEN))
    return {("places", page(crawl, SEEN))}


def queue_a_stranger(crawl):
    command(crawl, "ZADD", "q", 100, bytes([9] * 12))
    return {("queue", f"page {bytes([9] * 12).hex()}")}


def queue_a_retired_page(crawl):
    crawl.rewrite(SEEN, state=RETIRED)
    command(crawl, "HINCRBY", "stats", "retired", 1)
    return {("places", page(crawl, SEEN))}


def queue_a_first_visit_twice(crawl):
    command(crawl, "ZADD", "q", 101, crawl.page(LATER))
    return {("places", page(crawl, LATER))}


def stand_at_no_time(crawl):
    command(crawl, "ZADD", "q", 100.5, crawl.page(SEEN))
    return {("scores", page(crawl, SEEN))}


def lose_a_first_visit(crawl):
    command(crawl, "ZREM", f"f:{host(crawl, LATER)}", crawl.page(LATER))
    return {("places", page(crawl, LATER))}


def keep_a_first_visit_of_nobody(crawl):
    command(crawl, "HDEL", "pages", crawl.page(LATER))
    for field in ("pages", "pending"):
        command(crawl, "HINCRBY", "stats", field, -1)
    for field in (f"h{host(crawl, WAITING)}", f"p{crawl.row(WAITING).pattern}"):
        command(crawl, "HINCRBY", "kept", field, -1)
    return {("first visits", page(crawl, LATER))}


def lose_a_head(crawl):
    command(crawl, "ZREMRANGEBYRANK", "f", 0, -1)
    return {("heads", f"host {host(crawl, WAITING)}")}


def keep_a_head_too_many(crawl):
    command(crawl, "ZADD", "f", -3, host(crawl, SEEN))
    return {("heads", f"host {host(crawl, SEEN)}")}


def stand_by_another_rank(crawl):
    command(crawl, "ZADD", "f", -1e9, host(crawl, WAITING))
    return {("heads", f"host {host(crawl, WAITING)}")}


def miscount(crawl):
    command(crawl, "HINCRBY", "stats", "pages", 3)
    return {("counters", "pages")}


def miscount_hosts(crawl):
    command(crawl, "HSET", "kept", f"h{host(crawl, SEEN)}", 0, "p77", 2)
    return {("kept", f"h{host(crawl, SEEN)}"), ("kept", "p77")}


def lead_nowhere(crawl):
    command(crawl, "HSET", "aliases", bytes(12), bytes(4) + bytes([5] * 12) + b"http://a.example/")
    return {("aliases", f"alias {bytes(12).hex()}")}


def name_a_page(crawl):
    command(crawl, "HSET", "aliases", crawl.page(SEEN), bytes(4) + crawl.page(OTHER) + b"http://a.example/")
    return {("aliases", f"alias {crawl.page(SEEN).hex()}")}


def remember_a_stranger(crawl):
    command(crawl, "HSET", "memory", bytes([9] * 12), b"\x80")
    return {("memory", f"page {bytes([9] * 12).hex()}")}


def remember_what_cannot_be_read(crawl):
    command(crawl, "HSET", "memory", crawl.page(SEEN), b"\xc1")
    return {("memory", page(crawl, SEEN))}


REPAIRED = [
    leave_queue,
    queue_a_stranger,
    queue_a_retired_page,
    queue_a_first_visit_twice,
    stand_at_no_time,
    lose_a_first_visit,
    keep_a_first_visit_of_nobody,
    lose_a_head,
    keep_a_head_too_many,
    stand_by_another_rank,
    miscount,
    miscount_hosts,
    lead_nowhere,
    name_a_page,
    remember_a_stranger,
    remember_what_cannot_be_read,
]


@pytest.mark.parametrize("damage", REPAIRED, ids=lambda damage: damage.__name__)
def test_damage_is_found_and_repaired(stored, damage):
    """Found as what it is and nothing else; a repair may need a second run, and every page can be handed out afterwards."""
    expected = damage(stored)
    assert found(stored) == expected
    check_state(stored.namespace, repair=True, sleep=lambda _: None)
    assert not found(stored, repair=True)
    known = {url for url in (SEEN, OTHER, WAITING, LATER) if stored.namespace.command("HEXISTS", stored.key("pages"), stored.page(url))}
    active = {url for url in known if stored.row(url).state != RETIRED}
    stored.advance(1e7)
    handed = {handout.record["url"] for handout in stored.dispatch()}
    assert active <= handed | {url for url in active if stored.row(url).b > 0}
    assert {WAITING, LATER} & active <= handed


# Damage that a person has to look at.

BROKEN_FIELDS = {
    "has an unknown state": {"state": 9},
    "has an importance that is not above 0": {"importance": 0.0},
    "has bounds that are no interval": {"min_interval": 5.0, "max_interval": 2.0},
    "was visited in the future, or never": {"b": 3e15},
    "has numbers that are no deadline": {"l": -1.0},
    "is planned later than its longest interval allows": {"l": 3e6, "max_interval": 2.9e6},
    "has half of a posterior": {"shape": 1.0, "time": 0.0},
    "has more changes than observations": {"changes": 5},
    "has evidence that is no number": {"evidence": float("nan")},
}


@pytest.mark.parametrize(("message", "fields"), BROKEN_FIELDS.items())
def test_rows_are_plausible(stored, message, fields):
    stored.rewrite(SEEN, **fields)
    subjects = {finding for finding in found(stored) if finding[1] == page(stored, SEEN)}
    assert (message, page(stored, SEEN)) in subjects


def test_hosts_have_names(stored):
    command(stored, "HDEL", "hosts:names", host(stored, SEEN))
    assert ("hosts", page(stored, SEEN)) in found(stored)
    assert ("values", "host a.example") in found(stored)
    check_state(stored.namespace, repair=True, sleep=lambda _: None)
    assert not found(stored)


def test_a_number_of_two_hosts_is_for_a_person_to_look_at(stored):
    """Nothing says which of the two it is of."""
    command(stored, "HSET", "hosts", "b.example", host(stored, SEEN))
    assert ("hosts", "host b.example") in found(stored)
    check_state(stored.namespace, repair=True, sleep=lambda _: None)
    assert ("hosts", "host b.example") in found(stored)


def test_records_and_rows_can_be_read(stored):
    value = stored.namespace.command("HGET", stored.key("pages"), stored.page(SEEN))
    command(stored, "HSET", "pages", stored.page(SEEN), value[: HEAD_BYTES + 4] + b"\x91")
    command(stored, "HSET", "pages", stored.page(OTHER), b"short")
    assert {("rows", page(stored, SEEN)), ("rows", page(stored, OTHER))} <= found(stored)


def test_first_visits_wait_under_their_own_rank(stored):
    command(stored, "ZADD", f"f:{host(stored, LATER)}", -5, stored.page(LATER))
    assert ("first visits", page(stored, LATER)) in found(stored)


# Under a running crawl.


def test_what_heals_between_two_looks_is_not_reported(stored):
    command(stored, "ZREM", "q", stored.page(SEEN))
    report = check_state(stored.namespace, sleep=lambda _: command(stored, "ZADD", "q", 100, stored.page(SEEN)))
    assert report.violations == []
    assert report.pages == 4


def test_requests_under_way_excuse_counters(stored):
    """Of each one the observation may be half counted."""
    handouts = stored.dispatch(1)
    command(stored, "HINCRBY", "stats", "pages", 1)
    assert not found(stored)
    stored.see(handouts[0])
    assert found(stored) == {("counters", "pages")}


def test_nothing_is_repaired_while_the_state_changes(stored, monkeypatch):
    """The transaction fails when anything was handed out, observed or added since the look that it goes by."""
    from optimal_frontier.state import checking

    command(stored, "ZREM", "q", stored.page(SEEN))
    looked = checking._look
    looks = []

    def disturbed(namespace):
        answer = looked(namespace)
        looks.append(answer)
        if len(looks) > 3:
            stored.add(f"http://z.example/{len(looks)}")
        return answer

    monkeypatch.setattr(checking, "_look", disturbed)
    report = check_state(stored.namespace, repair=True, sleep=lambda _: None)
    assert report.repaired == []
    assert [finding.invariant for finding in report.violations] == ["places"]
    assert stored.namespace.command("ZSCORE", stored.key("q"), stored.page(SEEN)) is None
