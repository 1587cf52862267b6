"""What slots of Scrapy's downloader admit: learned as requests come back, told now and then, planned with."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest
from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite
from scrapy import Request, Spider

from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.integrations.scrapy import slot_limits as module
from optimal_frontier.integrations.scrapy.converters import OptimalRequestConverter, forget_runtime
from optimal_frontier.integrations.scrapy.lease import LEASE, Lease
from optimal_frontier.integrations.scrapy.slot_limits import SlotLimits
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.downloader_limits import TELL_S, DownloaderLimits, read_limits


class Downloader(SimpleNamespace):
    """Slots as Scrapy's downloader shows them."""

    def __init__(self, **slots: tuple[int, float, float]) -> None:
        made = {key: SimpleNamespace(concurrency=n, delay=delay, jitter=jitter) for key, (n, delay, jitter) in slots.items()}
        super().__init__(slots=made, total_concurrency=16)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def limits_of(clock: list[float], **values: Any) -> SlotLimits:
    scrapys = {name: values.pop(name) for name in list(values) if name.startswith("DOWNLOAD")}
    limits = SlotLimits(FrontierSettings.parse({"OPTIMAL_FRONTIER_" + name: value for name, value in values.items()} | scrapys))
    clock[0] += TELL_S
    return limits


def came(url: str, slot: str) -> Request:
    return Request(url, meta={"download_slot": slot})


def note(limits: SlotLimits, request: Request, took_s: float, downloader: Downloader, is_answered: bool = True) -> None:
    handout: Any = SimpleNamespace(host=host_of(request.url))
    lease = Lease(handout, None, request, began=50.0 if took_s else 0.0, responded=50.0 + took_s if is_answered else 0.0)
    if not is_answered:
        lease.began = module.time.monotonic() - took_s
    limits.note(lease, downloader)


def rates(limits: SlotLimits, downloader: Downloader) -> dict[tuple[str, ...], float]:
    news = limits.news(downloader)
    assert news is not None
    assert DownloaderLimits.unpack(news.pack(5.0)) == (5.0, news)
    return {slot.hosts: pytest.approx(slot.rate, rel=1e-3) for slot in news.slots}


def test_only_slots_that_differ_are_told_and_only_now_and_then(clock: list[float]) -> None:
    downloader = Downloader(a=(8, 1.0, 0.5), b=(8, 4.0, 0.5), c=(8, 0.5, 0.0))
    limits = limits_of(clock, DOWNLOAD_DELAY=1)
    for name in "abc":
        note(limits, came(f"http://{name}/1", name), 0.0, downloader)
    assert rates(limits, downloader) == {("b",): 0.25 / 1.2183, ("c",): 2.0}
    assert limits.news(downloader) is None
    clock[0] += TELL_S
    downloader.slots["a"].delay = 10.0  # AutoThrottle
    assert rates(limits, downloader) == {("a",): 0.1 / 1.2183, ("b",): 0.25 / 1.2183, ("c",): 2.0}
    clock[0] += TELL_S
    downloader.slots.clear()  # idle for a minute, and forgotten by the downloader
    assert len(rates(limits, downloader)) == 3


def test_a_slot_admits_no_more_than_its_hosts_answer(clock: list[float]) -> None:
    downloader = Downloader(a=(2, 0.0, 0.5), b=(2, 0.0, 0.5), c=(2, 0.0, 0.5))
    limits = limits_of(clock, CRAWL_RATE=50)
    note(limits, came("http://a/1", "a"), 0.5, downloader)
    note(limits, came("http://b/1", "b"), 0.001, downloader)
    note(limits, came("http://c/1", "c"), 0.0, downloader)
    assert rates(limits, downloader) == {("a",): 4.0}  # the others admit more than the whole crawl has


def test_slots_are_slow_by_what_others_take(clock: list[float]) -> None:
    """Where all take as long, none is; a fetch that has not ended counts by what it took so far."""
    downloader = Downloader()
    limits = limits_of(clock)

    def slow(*under_way: tuple[str, float]) -> set[str]:
        clock[0] += 1.0
        return set(limits.slow(under_way))

    assert slow() == slow(("a", 30.0)) == set()
    for name in "ab":
        note(limits, came(f"http://{name}/1", name), 8.0, downloader)
    assert slow() == set()
    note(limits, came("http://c/1", "c"), 0.05, downloader)
    note(limits, came("http://d/1", "d"), 0.9, downloader)
    assert slow() == {"a", "b"}
    assert slow(("c", 0.5), ("new", 5.0)) == {"a", "b", "new"}
    assert limits.slow([("c", 60.0)]) == {"a", "b", "new"}  # looked at once a second
    assert slow(("c", 60.0), ("d", 0.9)) == {"a", "b", "c"}


def test_fetches_without_an_answer_make_a_slot_slow_and_say_nothing_of_answers(clock: list[float]) -> None:
    """A host that refuses connections at once is not the quickest of all, and one that was silent once admits as much as before."""
    downloader = Downloader(a=(8, 0.0, 0.0), b=(8, 0.0, 0.0), refused=(8, 0.0, 0.0))
    limits = limits_of(clock, CRAWL_RATE=50)
    note(limits, came("http://refused/", "refused"), 0.001, downloader, is_answered=False)
    note(limits, came("http://a/", "a"), 1.0, downloader)
    note(limits, came("http://b/", "b"), 2.0, downloader)
    clock[0] += 1.0
    assert not limits.slow([])
    note(limits, came("http://b/", "b"), 100.0, downloader, is_answered=False)
    clock[0] += 1.0
    assert set(limits.slow([])) == {"b"}
    assert rates(limits, downloader) == {("a",): 8.0, ("b",): 4.0}


def test_hosts_that_share_a_slot_are_told_together(clock: list[float]) -> None:
    """Ports of one name, one address, one name of the spider's: also where the slot is as slow as any other."""
    downloader = Downloader(one=(8, 1.0, 0.0), two=(8, 1.0, 0.0))
    limits = limits_of(clock, DOWNLOAD_DELAY=1, DOWNLOAD_DELAY_JITTER=0)
    for url, slot in (("http://a/1", "one"), ("http://a:81/1", "one"), ("http://b/", "one"), ("http://c/", "two"), ("http://a/2", "one")):
        note(limits, came(url, slot), 0.0, downloader)
    assert rates(limits, downloader) == {("a", "a:81", "b"): 1.0}
    assert limits.hosts_of("one") == ["a", "a:81", "b"]
    assert limits.hosts_of("none") == []


def test_what_is_remembered_has_a_bound(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SLOTS", 10)
    downloader = Downloader()
    limits = limits_of(clock)
    for n in range(30):
        note(limits, came(f"http://h{n}/", f"h{n}"), 0.0, downloader)
        note(limits, came("http://used/", "used"), 0.0, downloader)
    note(limits, Request("http://none/"), 0.0, downloader)
    assert [n for n in range(30) if limits.hosts_of(f"h{n}")] == list(range(21, 30))
    assert limits.hosts_of("used") == ["used"]


def test_large_bodies_on_a_slow_line_leave_room_for_other_hosts(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Their headers come at once, their bodies take two seconds: as many pages as there are requests at a time would fill it."""
    spider = """
        class Tester(Base):
            def first(self):
                for at in range(60):
                    yield Request(SITE + f"/drip/2/{at}")
                    yield Request(SITE.replace("127.0.0.1", "localhost") + f"/static/{at}")
    """
    limits = {"CONCURRENT_REQUESTS": 4, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}
    with crawl(spider, **limits, of_CRAWL_RATE=20) as running:
        running.until(lambda: sum(path.startswith("/static/") for path in site.paths()) >= 60)
        assert sum(path.startswith("/drip/") for path in site.paths()) < 17


def test_a_host_whose_robots_txt_does_not_come_leaves_room_to_others(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """Its pages have no slot while they wait for that, and would fill the downloader."""
    spider = """
        class Tester(Base):
            def first(self):
                for at in range(60):
                    yield Request(f"http://SILENT/{at}")
                    yield Request(SITE + f"/static/{at}")
    """
    with socket.socket() as silent:
        silent.bind(("127.0.0.9", 0))
        silent.listen(100)
        spider = spider.replace("SILENT", f"127.0.0.9:{silent.getsockname()[1]}")
        with crawl(spider, ROBOTSTXT_OBEY=True, CONCURRENT_REQUESTS=16, CONCURRENT_REQUESTS_PER_DOMAIN=8) as running:
            running.until(lambda: sum(path.startswith("/static/") for path in site.paths()) >= 60)


def test_a_host_that_redirects_lead_to_keeps_its_own_slot(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """What is redirected stays in the slot of its page. Were the other host taken for one of it, that would wait where it is full."""
    spider = """
        class Tester(Base):
            def first(self):
                yield Request(SITE.replace("127.0.0.1", "localhost") + "/away")
                yield Request(SITE + "/static/0")

            def closed(self, reason):
                slots = self.crawler.engine._slot.scheduler._slots
                note(slots={key: slots.hosts_of(key) for key in ("localhost", "127.0.0.1")})
    """
    site.answers["/away"] = (302, "", {"Location": site.url("/static/1")})
    with crawl(spider) as running:
        running.until(lambda: site.count("/static/0") > 2 and site.count("/static/1") > 2)
        running.stop()
        hosts = {name: site.url("/", name).split("/")[2] for name in ("localhost", "127.0.0.1")}
        assert running.record[-1]["slots"] == {name: [host] for name, host in hosts.items()}


def test_the_plan_of_a_crawl_keeps_to_its_download_slots(crawl: Crawler, site: MisbehavingSite, state: State) -> None:
    """One host has a slow slot of DOWNLOAD_SLOTS, and the pages of another share it. HOST_DELAY says nothing of either."""
    spider = """
        class Tester(Base):
            def first(self):
                for at in range(6):
                    yield Request(SITE + f"/static/{at}")
                    yield Request(SITE.replace("127.0.0.1", "localhost") + f"/static/{at}", meta={"download_slot": "127.0.0.1"})
    """
    slots = {"127.0.0.1": {"delay": 0.1, "randomize_delay": False, "concurrency": 4}}

    def is_planned() -> bool:
        told = read_limits(state.namespace)
        return bool(told and told[0].slots and len(told[0].slots[0].hosts) == 2 and float(state.plan["planned_rate"]) < 11.0)

    with crawl(spider, DOWNLOAD_SLOTS=slots, of_RESOLVE_INTERVAL=0.5) as running:
        running.until(lambda: len(site.fetches) > 30)
        state.namespace.open(create=False)
        running.until(is_planned)
        ((slot,),) = [limits.slots for limits in read_limits(state.namespace)]
        plan = state.plan
        running.stop()
    assert sorted(host.partition(":")[0] for host in slot.hosts) == ["127.0.0.1", "localhost"]
    assert slot.rate == pytest.approx(10.0)
    assert float(plan["planned_rate"]) <= 10.0 + 1e-6
    assert float(plan["unused"]) > 50


def test_a_slot_that_the_spider_asks_for_is_stored_and_one_of_the_fetch_before_is_not() -> None:
    parent = Request("http://a/1", meta={"download_slot": "a"})
    meta = {LEASE: SimpleNamespace(request=parent, added=frozenset())}
    for given, kept in (("a", None), ("mine", "mine")):
        copied = {**meta, "download_slot": given}
        forget_runtime(copied)
        assert copied.get("download_slot") == kept
    converter = OptimalRequestConverter(Spider("s"), lambda request: b"f" * 20)
    for given, kept in (("b", None), ("mine", "mine")):
        stored = converter.to_frontier(Request("http://b/1", meta={"download_slot": given}))
        assert converter.from_frontier(stored).meta.get("download_slot") == kept
