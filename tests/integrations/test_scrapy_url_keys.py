"""URLs that other programs push into Redis keys while a crawl runs."""

from __future__ import annotations

import json
import time
from collections import Counter

from crawler import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite
from redis import Redis

SPIDER = """
    class Tester(Base):
        async def start(self):
            return
            yield
        if scrapy.version_info < (2, 13):
            def start_requests(self):
                return []
        def parse_offer(self, response, shop):
            note(url=response.url, shop=shop, meta=response.meta.get("job"), priority=response.request.priority)
"""


BAD = [b"no URL", b"\xff", b'{"url": 5}', b'{"url": "http://a.org/", "callback": "x"}', b"mailto:a@b.org"]


def test_what_is_pushed_is_fetched_within_seconds(crawl: Crawler, site: MisbehavingSite, state: State, redis_client: Redis) -> None:
    """From a list, a set and a sorted set, plain and as JSON; what is no page is put aside, and the crawl goes on."""
    keys = {kind: f"{state.namespace.name}-{kind}" for kind in ("list", "set", "zset", "hash")}
    redis_client.hset(keys["hash"], "a", "b")
    try:
        with crawl(SPIDER, of_URL_KEYS=list(keys.values()), of_MIN_INTERVAL=600, LOGSTATS_INTERVAL=1) as running:
            running.until(lambda: "holds a hash" in running.log)
            pushed = time.monotonic()
            redis_client.rpush(keys["list"], site.url("/static/0"), *BAD)
            running.until(lambda: len(site.fetches) == 1)
            assert time.monotonic() - pushed < 2.5
            offer = {"callback": "parse_offer", "cb_kwargs": {"shop": 7}, "meta": {"job": "x"}, "importance": 3}
            redis_client.sadd(keys["set"], json.dumps({"url": site.url("/static/1"), **offer}))
            form = json.dumps({"url": site.url("/static/2"), "q": "a b"})
            redis_client.zadd(keys["zset"], {site.url("/static/3"): 5, form: 9})
            running.until(lambda: len(site.fetches) == 4 and state.at(site.url("/static/1")).get("visits"))
            running.until(lambda: not any(redis_client.exists(keys[kind]) for kind in ("list", "set", "zset")))
            running.until(lambda: "Frontier: 4 pages known, 0 wait for their first visit; " in running.log)
            assert running.log.count("holds a hash") == 1
            assert running.log.count("was put aside") == 1
            running.stop()
        assert {fetch.path for fetch in site.fetches} == {"/static/0", "/static/1", "/static/2?q=a+b", "/static/3"}
        assert {"url": site.url("/static/1"), "shop": 7, "meta": "x", "priority": 0} in running.record
        assert state.at(site.url("/static/1"))["importance"] == 3
        assert redis_client.hgetall(keys["hash"]) == {b"a": b"b"}
        assert (state.counts["pushed"], state.counts["pushed_refused"]) == (4, 5)
        assert (running.stats["optimal_frontier/pushed"], running.stats["optimal_frontier/pushed_refused"]) == (4, 5)
        aside = [json.loads(text) for text in redis_client.lrange(state.key("refused_urls"), 0, -1)]
        assert Counter(one["key"] for one in aside) == {keys["list"]: 5}
        assert aside[0]["reason"] == "a mailto: URL names no place, and is no page; expected http://host/path or https://host/path"
        assert [one["entry"] for one in aside] == [entry.decode("utf-8", "backslashreplace") for entry in reversed(BAD)]
    finally:
        redis_client.delete(*keys.values())


def test_nothing_is_lost_by_kills(crawl: Crawler, site: MisbehavingSite, state: State, redis_client: Redis) -> None:
    """Two crawlers that are killed while they take entries: every URL becomes a page."""
    key, n = f"{state.namespace.name}-urls", 1500
    redis_client.rpush(key, *(site.url(f"/static/{i}") for i in range(n)))
    try:
        with crawl(SPIDER, of_URL_KEYS=[key], of_CRAWL_RATE=5) as one, crawl(SPIDER, of_URL_KEYS=[key], of_CRAWL_RATE=5) as other:
            one.until(lambda: redis_client.llen(key) < n - 500)
            one.kill()
            other.kill()
        assert 0 < redis_client.llen(key) < n
        redis_client.delete(state.key("drainer"))  # it would expire
        with crawl(SPIDER, of_URL_KEYS=[key], of_CRAWL_RATE=5) as running:
            running.until(lambda: not redis_client.exists(key))
            running.stop()
        assert state.counts["pages"] == n
        assert "Traceback" not in running.log
    finally:
        redis_client.delete(key)
