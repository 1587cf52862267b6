"""What a page that has ended leaves in memory, and how often Python looks for it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import pairwise

import pytest

from optimal_frontier.integrations.scrapy.garbage import BODIES, YOUNG, Collections

#: Its callbacks have the tree of each response, to which the response leads, and the tree to it. Only a collection would find the two.
SPIDER = """
    import gc, weakref

    class Tester(Base):
        paths = [f"/static/{number}" for number in range(40)]
        seen = []

        def parse(self, response):
            gc.disable()
            assert response.selector is response.selector
            self.seen.append(weakref.ref(response))

        def closed(self, reason):
            note(seen=len(self.seen), kept=sum(one() is not None for one in self.seen))
"""


@pytest.fixture
def thresholds() -> Iterator[None]:
    """Python's thresholds are put back after the test."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_the_memory_of_a_page_is_free_without_a_collection(crawl):
    with crawl(SPIDER, of_CLOSE_AFTER=1) as running:
        assert running.wait() == 0, running.log
    (found,) = running.record
    assert found["seen"] >= 40
    assert found["kept"] <= 1  # the loop holds the last one


def test_so_is_that_of_a_page_that_was_fetched_from_memory(crawl):
    spider = (
        SPIDER.replace("def parse(", "def look(")
        + """
        async def start(self):
            for path in self.paths:
                yield Request(SITE + path, callback=lambda response: self.look(response))
    """
    )
    with crawl(spider, of_CLOSE_AFTER=1) as running:
        assert running.wait() == 0, running.log
    (found,) = running.record
    assert found["seen"] >= 40
    assert found["kept"] <= 1


def test_what_a_spider_downloads_beside_its_pages_does_not_pile_up(crawl, site):
    """Few objects and many bytes: each response leads to its tree, and the tree to the response."""
    site.answers["/static/large"] = (200, f"<html><body>{'<p>some text of a paragraph</p>' * (BODIES // 8 // 31)}</body></html>", {})
    spider = """
        import weakref

        class Tester(Base):
            paths = ["/static/first"]
            seen, most = [], 0

            async def parse(self, response):
                engine = self.crawler.engine
                for number in range(64):
                    request = Request(SITE + "/static/large", dont_filter=True)
                    if hasattr(engine, "download_async"):
                        beside = await engine.download_async(request)
                    else:
                        from scrapy.utils.defer import maybe_deferred_to_future
                        beside = await maybe_deferred_to_future(engine.download(request))
                    assert beside.selector is beside.selector
                    self.seen.append(weakref.ref(beside))
                    self.most = max(self.most, sum(one() is not None for one in self.seen))

            def closed(self, reason):
                note(seen=len(self.seen), most=self.most)
    """
    with crawl(spider, of_CLOSE_AFTER=1) as running:
        assert running.wait() == 0, running.log
    (found,) = running.record
    assert found["seen"] >= 64
    assert found["most"] <= 24  # eight make BODIES, and of each eight one is in use


def test_the_tree_of_a_page_is_there_until_its_items_are_stored(crawl):
    """Also where a pipeline takes its time, or the callback goes on after it has yielded."""
    spider = """
        import asyncio

        class Slow:
            async def process_item(self, item, spider=None):
                await asyncio.sleep(0.2)
                note(stage="pipeline", is_same=item["response"].selector is item["tree"])
                return {}

        class Tester(Base):
            paths = ["/static/a", "/static/b"]
            custom_settings = {"ITEM_PIPELINES": {Slow: 1}}

            async def parse(self, response):
                yield {"response": response, "tree": (tree := response.selector)}
                await asyncio.sleep(0.1)
                note(stage="callback", is_same=response.selector is tree)
    """
    with crawl(spider, of_CLOSE_AFTER=1) as running:
        assert running.wait() == 0, running.log
    assert {(one["stage"], one["is_same"]) for one in running.record} == {("pipeline", True), ("callback", True)}


def test_collections_are_as_before_when_the_last_crawl_of_the_process_has_ended(thresholds):
    gc.set_threshold(700, 10, 10)
    one, other = Collections(), Collections()
    one.begin()
    other.begin()
    one.end()
    one.end()  # once is all
    assert gc.get_threshold() == (YOUNG, 10, 10)
    assert gc.isenabled()
    other.end()
    assert gc.get_threshold() == (700, 10, 10)
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("threshold", [0, YOUNG + 1])
def test_what_the_program_has_set_is_left_alone(thresholds, threshold):
    """No collections at all, or fewer than ours."""
    gc.set_threshold(threshold, 5, 5)
    crawl = Collections()
    crawl.begin()
    assert gc.get_threshold() == (threshold, 5, 5)
    crawl.end()
    assert gc.get_threshold() == (threshold, 5, 5)


def test_what_the_program_sets_meanwhile_stays(thresholds):
    gc.set_threshold(700, 10, 10)
    crawl = Collections()
    crawl.begin()
    gc.set_threshold(50_000, 20, 20)
    crawl.end()
    assert gc.get_threshold() == (50_000, 20, 20)


@pytest.mark.parametrize("threshold", [0, 50_000])
def test_bodies_are_no_reason_to_collect_then(thresholds, threshold):
    gc.set_threshold(700, 10, 10)
    crawl = Collections()
    crawl.begin()
    gc.set_threshold(threshold, 10, 10)
    before = gc.get_stats()[1]["collections"]
    crawl.note_body(2 * BODIES)
    assert gc.get_stats()[1]["collections"] == before
    crawl.end()


def test_nor_is_what_it_sets_of_the_other_generations_put_back(thresholds):
    gc.set_threshold(700, 10, 10)
    crawl = Collections()
    crawl.begin()
    gc.set_threshold(YOUNG, 50, 50)
    crawl.end()
    assert gc.get_threshold() == (YOUNG, 50, 50)


def test_what_crawls_leave_that_overlap_is_found(thresholds):
    """Objects of one crawl are not kept from collections by the next one."""
    crawls = [Collections() for _ in range(3)]
    crawls[0].begin()
    frozen = gc.get_freeze_count()
    for before, after in pairwise(crawls):
        kept = [[] for _ in range(1000)]
        after.begin()
        before.end()
        assert gc.get_freeze_count() <= frozen
        del kept
    crawls[-1].end()
