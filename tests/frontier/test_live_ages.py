"""Trust that is earned and lost in Redis, on a clock that the test sets."""

from __future__ import annotations

import pytest
from clocked_store import START, ClockedStore, fingerprint, new_page
from played_crawl import parse

from optimal_frontier.estimation.trust import Trust
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.state.records import Handout, Published

PUBLISHED = Published(1.0, 5000.0)


class Site:
    """Pages that a crawl visits; the test says what they look like and what they say."""

    def __init__(self, store: ClockedStore) -> None:
        self.store = store
        self.version = 0

    def visit(self, content: bytes = b"o", age: float | None = None, published: Published = PUBLISHED) -> Handout:
        """Fetch the one page that is due; every deadline is at once."""
        (handout,), _ = self.store.dispatch(1)
        observation = judge_visit(handout, content * 16, 77, handout.received, published, age=age)
        assert self.store.run(self.store.observe_calls([observation], 1e15))[0] == [1]
        if handout.visits == 0:
            self.store.plan(handout.slot, 1e3)
        self.store.advance(1000.0)
        return handout

    def changes(self, times: int, age: float) -> Handout:
        for _ in range(times):
            self.version += 1
            handout = self.visit(bytes([self.version]), age)
        return handout

    def posterior(self, name: str) -> tuple[float, float]:
        seen = self.store.seen(self.store.slot(name))
        return float(seen["shape"]), float(seen["time"])


@pytest.fixture
def site(store: ClockedStore) -> Site:
    return Site(store)


def test_trust_is_earned_in_fifteen_changes_and_lost_in_four(site: Site) -> None:
    """Until then the posterior is that of the bits; the counts are those of the reference."""
    site.store.add(new_page("h/page", max_rate=1e3))
    site.visit(b"x")
    site.changes(15, 400.0)
    assert "ages" not in site.store.counts()
    assert site.store.counts()["ages_distrusted"] == 15
    shape, time = site.posterior("h/page")
    handout = site.changes(1, 400.0)
    assert Trust(*handout.header_trust).is_earned
    assert site.posterior("h/page") == pytest.approx((shape + 1.0, time + 400.0))
    assert site.store.counts()["ages"] == 1
    site.changes(5, 0.0)
    (handout,), _ = site.store.dispatch(1)
    assert not Trust(*handout.header_trust).is_earned
    assert site.store.counts()["ages"] == 1


def test_the_counts_in_redis_are_those_of_the_reference(site: Site) -> None:
    site.store.add(new_page("h/page", max_rate=1e3))
    site.visit(b"x")
    trust, content = Trust(), b"x"
    for at in range(60):
        changed, age = at % 3 == 0, (400.0, 1500.0, 2.0, None)[at % 4]
        content = bytes([65 + at]) if changed else content
        handout = site.visit(content, age)
        assert handout.header_trust == pytest.approx((trust.unchanged, trust.moved, trust.changed, trust.wrong), rel=1e-5)
        if age is not None:
            trust = trust.after(changed, age != 400.0 if changed else age != 1500.0)
    host = site.store.command("HGET", site.store.key("hosts"), "h").decode()
    assert site.store.hash("trust").keys() == {f"{host}:header"}


def test_hosts_are_trusted_one_by_one_and_so_are_their_new_pages(site: Site) -> None:
    site.store.add(new_page("good/0", max_rate=1e3))
    site.visit(b"x")
    site.changes(16, 400.0)
    site.store.add(new_page("good/1", max_rate=1e3, priority=1), new_page("other/1", max_rate=1e3))
    good, other = site.store.slot("good/1"), site.store.slot("other/1")
    seen = {}
    for handout in site.store.dispatch(10)[0]:
        observation = judge_visit(handout, b"o" * 16, 77, handout.received, PUBLISHED, age=8000.0)
        site.store.run(site.store.observe_calls([observation], 1e15))
        seen[handout.slot] = handout.header_trust
    assert Trust(*seen[good]).is_earned
    assert seen[other] == (0.0, 0.0, 0.0, 0.0)
    assert site.posterior("good/1") == (1.5, 9000.0)
    assert site.posterior("other/1") == (0.0, 0.0)


def test_the_latest_word_of_a_sitemap_comes_with_the_handout(site: Site) -> None:
    """Also of a page that is known already; of which nothing else changes."""
    dispatcher = Dispatcher(site.store, parse())
    told = START - 7000.0

    def tell(modified: float, **values: float) -> int:
        page = new_page("h/page", max_rate=1e3, lastmod=(modified, 60.0), **values)
        return dispatcher.exchange(Exchange(pages=[page])).new

    assert tell(told, importance=3.0) == 1
    handout = site.visit()
    assert handout.lastmod == pytest.approx((0.0, 7000.0, 60.0), abs=1e-3)
    columns = [site.store.columns(name)[0].tobytes() for name in ("page", "seen", "plan", "content")]
    record = site.store.hash("records")
    assert tell(told + 7500.0) == 0
    site.store.advance(300.0)
    assert [site.store.columns(name)[0].tobytes() for name in ("page", "seen", "plan", "content")] == columns
    assert site.store.hash("records") == record
    assert site.visit().lastmod == pytest.approx((300.0, 500.0, 60.0), abs=1e-3)
    tell(START + 1e6)  # nonsense
    assert site.visit().lastmod == pytest.approx((1300.0, 500.0, 60.0), abs=1e-3)
    site.store.run([("forget_page", [fingerprint("h/page")])])
    assert site.store.hash("lastmod") == {}


def test_sitemaps_have_a_trust_of_their_own(site: Site) -> None:
    """Told 10,000 s after the last visit, of a change 4,000 s before; visited 100 s later."""
    site.store.add(new_page("h/page", max_rate=1e3))
    site.visit(b"x")
    shape = time = 0.0
    for at in range(17):
        shape, time = site.posterior("h/page")
        site.store.advance(9000.0)
        page = new_page("h/page", lastmod=(site.store.time() - 4000.0, 60.0))
        site.store.run(site.store.lastmod_calls([page]))
        site.store.advance(100.0)
        handout = site.visit(bytes([65 + at]))
    assert handout.header_trust == (0.0, 0.0, 0.0, 0.0)
    assert Trust(*handout.sitemap_trust).is_earned
    assert site.posterior("h/page") == pytest.approx((shape + 1.0, time + 4000.0), abs=1e-2)
