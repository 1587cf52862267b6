"""Conditional requests in a real crawl, of hosts that answer them honestly and hosts that do not, beside Scrapy's HTTP cache."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from crawler import crawler
from crawls import State
from leased import handed_out
from misbehaving_site import Fetch
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse
from twisted.python.failure import Failure
from validating_site import ValidatingSite

from optimal_frontier.estimation.validator_trust import ValidatorTrust
from optimal_frontier.frontier.judging.block_pages import name_of
from optimal_frontier.frontier.judging.fingerprinting import Fingerprinting
from optimal_frontier.frontier.judging.judge import Context, is_news
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.integrations.scrapy.change_detection import ChangeDetectionMiddleware
from optimal_frontier.integrations.scrapy.conditional import ConditionalRequests
from optimal_frontier.integrations.scrapy.garbage import Collections
from optimal_frontier.integrations.scrapy.lease import LEASE, Lease
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import UNCONDITIONAL

#: Seconds between two changes of a page that never changes.
NEVER = 1e9
#: Answers of the liar after it was found out.
LAST = 20

SPIDER = """
class Tester(Base):
    def first(self):
        for site, pages in SITES:
            for at in range(pages):
                yield Request(f"{site}/page/{at}", errback=self.failed)
        honest = SITES[0][0]
        yield Request(honest + "/page/0?uncached", errback=self.failed, meta={"dont_cache": True})
        yield Request(honest + "/page/0?mine", errback=self.failed, headers={"If-None-Match": "mine"})
        yield Request(honest + "/moving/0", errback=self.failed)

    def parse(self, response):
        seen = response.meta["optimal_frontier"]
        note(url=response.url, status=response.status, flags=response.flags, changed=seen["changed"], text=response.text)
        if response.url.endswith("/page/0"):
            yield response.request.replace(url=response.urljoin("/static/copied"), dont_filter=False)

    def failed(self, failure):
        note(failed=failure.request.url)
"""


@dataclass
class Outcome:
    """What a crawl of the four sites left."""

    sites: dict[str, ValidatingSite]
    state: State
    stats: dict[str, Any]
    record: list[dict[str, Any]]
    log: str

    def trust(self, kind: str) -> ValidatorTrust:
        return ValidatorTrust(*self.state.words(f"127.0.0.1:{self.sites[kind].port}").validators)

    def told(self, path: str) -> list[dict[str, Any]]:
        """What the callback saw of a page of the honest site."""
        return [line for line in self.record if line.get("url") == self.sites["honest"].url(path)]


def has_conditions(fetch: Fetch) -> bool:
    return bool({"if-none-match", "if-modified-since"} & fetch.headers.keys())


@pytest.fixture(scope="module")
def outcome(redis_socket: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """One crawl, until the liar was found out and everything was visited often."""
    namespace, folder = f"test-{uuid.uuid4().hex[:12]}", tmp_path_factory.mktemp("conditional")
    state = State(f"unix://{redis_socket}", namespace)
    honest, liar = ValidatingSite("honest", [NEVER, NEVER, 0.8]), ValidatingSite("liar", [0.7] * 5)
    rotating, silent = ValidatingSite("rotating", [NEVER] * 3), ValidatingSite("silent", [NEVER] * 2)
    with honest, liar, rotating, silent:
        honest.elsewhere = liar.url("")
        sites = {site.kind: site for site in (honest, liar, rotating, silent)}
        listed = [(site.url(""), len(site.periods)) for site in sites.values()]
        spider = f"SITES = {listed!r}\n{SPIDER}"
        found = Outcome(sites, state, {}, [], "")
        cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(folder / "cache")}
        settings = {"of_CRAWL_RATE": 150, "of_MAX_INTERVAL": 1.0, "of_MIN_INTERVAL": 0.1}
        with crawler(folder, honest, redis_socket, namespace)(spider, **settings, **cache) as running:
            running.until(lambda: honest.count("/page/0") > 20 and honest.count("/page/1") > 20)
            running.until(lambda: not found.trust("liar").is_believed)
            since = len(liar.fetches)
            running.until(lambda: len(liar.fetches) >= since + LAST + 5 and honest.count("/moving/0") > 2 and len(rotating.statuses) > 30)
            running.stop()
            found.stats, found.record, found.log = running.stats, running.record, running.log
        yield found
    state.close()


def test_unchanged_pages_are_answered_by_304(outcome):
    """But for first visits and a few checks."""
    answers = Counter(status for path, status in outcome.sites["honest"].statuses if path in ("/page/0", "/page/1"))
    assert answers[304] > 5 * answers[200] / 2
    fetches = outcome.sites["honest"].of("/page/1")
    assert not has_conditions(fetches[0])
    assert fetches[1].headers["if-none-match"] == '"1-0"'
    assert "GMT" in fetches[1].headers["if-modified-since"]


def test_a_304_reaches_the_callback_as_the_last_response_that_the_cache_has(outcome):
    shown = outcome.told("/page/1")
    cached = [line for line in shown if line["flags"] == ["cached"]]
    assert len(cached) > 3
    assert {(line["status"], line["changed"]) for line in cached} == {(200, False)}
    assert all("page 1, version 0" in line["text"] for line in cached)


def test_the_cache_follows_a_page_that_changes(outcome):
    """Revisits pass it by; what they bring is in it all the same, so that no old version is shown."""
    versions = [int(line["text"].partition("version ")[2].partition("<")[0]) for line in outcome.told("/page/2")]
    assert versions == sorted(versions)
    assert len(set(versions)) > 1
    assert any(line["flags"] == ["cached"] for line in outcome.told("/page/2") if "version 0" not in line["text"])


def test_else_a_304_reaches_nobody(outcome):
    """Neither callback nor errback, and the log stays quiet; the visit counts."""
    shown, page = outcome.told("/page/0?uncached"), outcome.sites["honest"].url("/page/0?uncached")
    fetched = outcome.sites["honest"].of("/page/0?uncached")
    answered = sum(has_conditions(fetch) for fetch in fetched)
    assert answered > 3
    assert len(shown) == len(fetched) - answered
    assert page not in [line.get("failed") for line in outcome.record]
    assert outcome.stats["optimal_frontier/callbacks_spared"] >= answered
    assert "Ignoring response" not in outcome.log
    assert " ERROR" not in outcome.log


def test_a_liar_is_found_and_its_pages_are_fetched_in_full(outcome):
    trust = outcome.trust("liar")
    assert trust.checks >= 2
    assert not trust.is_believed or trust.told > 0
    last = [status for _, status in outcome.sites["liar"].statuses[-LAST:]]
    assert last.count(200) >= 0.7 * LAST
    assert all(outcome.trust(kind).is_believed for kind in ("honest", "rotating", "silent"))


def test_a_rotating_etag_gives_way_to_last_modified(outcome):
    fetches = outcome.sites["rotating"].of("/page/0")
    alone = [fetch for fetch in fetches if "if-modified-since" in fetch.headers and "if-none-match" not in fetch.headers]
    assert len(alone) > 3
    assert sum(status == 304 for _, status in outcome.sites["rotating"].statuses) > 3


def test_a_304_that_nobody_asked_for_is_a_failure(outcome):
    assert outcome.stats["optimal_frontier/failed/304"] == outcome.state.counts["failures"]
    for at in range(2):
        seen = outcome.state.at(outcome.sites["silent"].url(f"/page/{at}"))
        assert seen["visits"] < seen["attempts"]


def test_our_headers_go_no_further_than_the_page(outcome):
    """Neither to where a redirect leads, nor into what a callback makes of its request, nor in place of the user's own."""
    honest, liar = outcome.sites["honest"], outcome.sites["liar"]
    assert any(has_conditions(fetch) for fetch in honest.of("/moving/0"))
    assert liar.of("/static/landed")
    assert not any(has_conditions(fetch) for fetch in liar.of("/static/landed"))
    assert outcome.state.memory(honest.url("/moving/0")) == Memory()
    assert honest.of("/static/copied")
    assert not any(has_conditions(fetch) for fetch in honest.of("/static/copied"))
    assert {fetch.headers.get("if-none-match") for fetch in honest.of("/page/0?mine")} == {"mine"}
    assert not any("if-modified-since" in fetch.headers for fetch in honest.of("/page/0?mine"))


def test_what_was_saved_is_counted(outcome):
    counts = outcome.state.counts
    asked = sum(status == 304 for site in outcome.sites.values() for _, status in site.statuses)
    assert counts["not_modified"] == outcome.stats["optimal_frontier/not_modified"]
    assert asked - counts["failures"] - 3 <= counts["not_modified"] <= asked
    assert counts["bytes_saved"] == outcome.stats["optimal_frontier/bytes_saved"]
    assert counts["bytes_saved"] == pytest.approx(750 * counts["not_modified"], rel=0.1)


URL = "http://a.example/"
PAGE = HtmlResponse(URL, body=b"<p>x", headers={"ETag": '"2"'})


OLD = b"o" * 16
SETTINGS = FrontierSettings.parse({})


def asking(lease: Lease, *, is_own: bool = True, cache: Any = None) -> ChangeDetectionMiddleware:
    """A middleware in an open crawl that knows what the page had for a block page, if it is not its own."""
    recent = Recent()
    recent.blocks.learn({} if is_own else {name_of(lease.handout.host, OLD): True})
    conditional = ConditionalRequests.__new__(ConditionalRequests)
    conditional._spider, conditional._cache, conditional.is_on = None, cache, True
    middleware = ChangeDetectionMiddleware(None)
    middleware._scheduler = SimpleNamespace(
        settings=SETTINGS,
        context=lambda handout: Context(SETTINGS, Published(), recent),
        sources=SimpleNamespace(read=lambda *_: None),
        collections=Collections(),
    )
    middleware._conditional, middleware._fingerprinting = conditional, Fingerprinting(SETTINGS)
    return middleware


def leased() -> Lease:
    """A revisit of a page that has left an ETag."""
    tag = Fingerprinting(SETTINGS).way(URL).tag
    handout = handed_out(URL, 40.0, Memory(etag=b'"1"'), shape=3.0, time=3000.0, tag=tag, content=OLD)
    request = Request(URL)
    lease = Lease(handout, SimpleNamespace(meta={}), request)
    request.meta[LEASE] = lease
    return lease


@pytest.mark.parametrize("is_own", [True, False])
def test_what_comes_after_a_block_page_leaves_validators(is_own):
    """A block page is not asked for again, but the full answer that comes instead is."""
    lease = leased()
    middleware = asking(lease, is_own=is_own)
    middleware.process_request(lease.request)
    assert ("If-None-Match" in lease.request.headers) == is_own
    assert middleware.process_response(lease.request, PAGE) is PAGE
    assert "If-None-Match" not in lease.request.headers
    assert lease.observation.memory.etag == b'"2"'
    assert lease.observation.bit == (1 if is_own else -1)


def test_a_cache_that_cannot_be_written_to_costs_no_visit(caplog):
    """A full disk, or a storage of the user's."""

    def fails(*_: Any) -> None:
        raise OSError("disk full")

    policy, lease = SimpleNamespace(should_cache_request=lambda _: True, should_cache_response=lambda *_: True), leased()
    middleware = asking(lease, cache=SimpleNamespace(policy=policy, storage=SimpleNamespace(store_response=fails)))
    middleware.process_request(lease.request)
    middleware.process_response(lease.request, PAGE)
    assert lease.observation.memory.etag == b'"2"'
    assert "Could not write the cache entry of http://a.example/" in caplog.text


def test_nothing_is_sent_under_a_lease_that_was_lost():
    """Once it was sent, what comes back is judged; the observation is refused."""
    lease = leased()
    middleware = asking(lease)
    lease.is_lost = True
    with pytest.raises(IgnoreRequest, match="lease"):
        middleware.process_request(lease.request)
    lease.reached = True
    middleware.process_request(lease.request)


def test_a_page_whose_callback_raised_is_fetched_in_full_again():
    """Its bit counts; CALLBACK_ON "change" or not, what comes next is shown."""
    lease = leased()
    middleware = asking(lease)
    middleware.process_request(lease.request)
    response = middleware.process_response(lease.request, PAGE.replace(request=lease.request))
    middleware.callback_failed(Failure(ValueError("a bug")), response)
    assert lease.observation.bit == 1
    row = lease.observation.row
    assert row.flags & UNCONDITIONAL
    again = Lease(replace(lease.handout, row=row, memory=lease.observation.memory), SimpleNamespace(meta={}), Request(URL))
    again.request.meta[LEASE] = again
    middleware.process_request(again.request)
    assert "If-None-Match" not in again.request.headers
    middleware.process_response(again.request, PAGE)
    assert again.observation.bit == 0
    assert is_news(again.observation)
    assert not again.observation.row.flags & UNCONDITIONAL
