"""A live crawl, on a clock that the test sets: new pages start from what pages of the same pattern have taught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clocked_store import fingerprint
from played_crawl import parse

from optimal_frontier.estimation import RatePosterior
from optimal_frontier.frontier.budget_curve import read_crawl_curve
from optimal_frontier.frontier.dispatcher import Dispatcher, Exchange
from optimal_frontier.frontier.judgement import judge_visit
from optimal_frontier.frontier.planner import Planner
from optimal_frontier.frontier.siblings import learned_priors, with_prior
from optimal_frontier.scheduling import PRIOR_SHAPE
from optimal_frontier.state.records import Observation, Published, encode_record

SETTINGS = parse(CRAWL_RATE=1.0, MIN_INTERVAL=1e-3, MAX_INTERVAL=1e9)
#: Section -> shape and time (s) of the posteriors of its pages; the default prior of 41 pages at 1/s is Gamma(1, 41 s).
SECTIONS = {"fast": (30.0, 500.0), "slow": (8.0, 6000.0)}
TAG, OLD, NEW = 7, b"o" * 16, b"n" * 16


class Site:
    """Twenty pages of each section, known by the posteriors above, and a plan; then newcomers."""

    def __init__(self, store):
        self.store = store
        self.dispatcher, self.planner = Dispatcher(store, SETTINGS), Planner(store, SETTINGS)
        self.add(*(f"{section}/{i}.html" for section in SECTIONS for i in range(20)))
        for handout in self.take():
            shape, time = SECTIONS[handout.record["url"].split("/")[3]]
            self.end(Observation(handout.slot, handout.token, "ok", float("inf"), -1, shape, time))
        self.plan()

    def add(self, *paths: str) -> None:
        urls = [f"http://a.example/{path}" for path in paths]
        pages = [self.dispatcher.new_page(fingerprint(url), url, encode_record({"url": url})) for url in urls]
        self.dispatcher.exchange(Exchange(pages=pages))

    def take(self, *paths: str):
        """Hand out what waits for a first visit; or pages that are forced."""
        for path in paths:
            self.store.run([("force_page", [fingerprint(f"http://a.example/{path}")])])
        if paths:
            self.store.advance(0.001)
        handouts, _ = self.store.dispatch(100)
        wanted = [h for h in handouts if (h.record["url"].removeprefix("http://a.example/") in paths if paths else h.visits == 0)]
        for handout in handouts:
            if handout not in wanted:
                self.store.observe(handout, "released")
        return wanted

    def judge(self, handout, content: bytes = OLD) -> Observation:
        published = self.store.parse_dispatch(self.store.run([("dispatch", ["you", 0, "60", "1", "0.2", "0", "0", 0])])[0])[2]
        # The clock of the test stands in the future: what passed is in `elapsed`.
        return judge_visit(replace(handout, received=0.0), content, TAG, 0.0, published)

    def end(self, observation: Observation) -> None:
        self.store.run(self.store.observe_calls([replace(observation, responded=float("inf"))], 1e15))

    def plan(self):
        self.store.advance(0.01)
        report = self.planner.plan()
        assert report is not None
        return report

    def rate(self, path: str) -> float:
        return float(self.store.records_at("plan", [self.slot(path)])["rate"][0])

    def slot(self, path: str) -> int:
        return int(self.store.command("HGET", self.store.key("ids"), fingerprint(f"http://a.example/{path}")))


@pytest.fixture
def site(store):
    return Site(store)


def test_a_new_page_starts_from_its_siblings(site):
    """At its first visit by the rate until the next plan, in that plan, and in the posterior after its first bit."""
    site.add("fast/new.html", "slow/new.html", "other/new.html")
    handouts = {h.record["url"].split("/")[3]: h for h in site.take()}
    priors = {name: (h.prior_shape, h.prior_time) for name, h in handouts.items()}
    assert priors["other"] == (0.0, 0.0)  # its pattern is newer than the plan
    medians = {name: RatePosterior(*priors[name]).median for name in SECTIONS}
    default = RatePosterior(PRIOR_SHAPE, 41.0).median
    assert medians["slow"] < 0.2 * default
    assert 1.5 * default < medians["fast"] < 30 / 500
    first = {name: site.judge(handout) for name, handout in handouts.items()}
    assert {o.bit for o in first.values()} == {-1}
    assert {o.shape for o in first.values()} == {0.0}
    assert 0 < first["slow"].rate < first["other"].rate
    for observation in first.values():
        site.end(observation)
    site.plan()
    assert site.rate("slow/new.html") == pytest.approx(site.rate("slow/1.html"), rel=0.5)
    assert site.rate("slow/new.html") < 0.5 * site.rate("fast/new.html")
    site.store.advance(30.0)
    for name in SECTIONS:
        (handout,) = site.take(f"{name}/new.html")
        assert handout.elapsed == pytest.approx(30.0, abs=0.1)
        observation = site.judge(handout, NEW)
        expected = RatePosterior(handout.prior_shape, handout.prior_time)
        expected.update(handout.elapsed, True)
        assert (observation.bit, observation.shape, observation.time) == (1, expected.shape, expected.time)
        site.end(observation)
        seen = site.store.seen(site.slot(f"{name}/new.html"))
        assert seen["shape"] == pytest.approx(expected.shape)
        # From now on it goes by its own posterior.
        (again,) = site.take(f"{name}/new.html")
        assert site.judge(again).time > expected.time


def test_the_plan_and_the_column_have_the_same_priors(site):
    """What is planned with is what is handed out, and what `whatif` believes."""
    site.add("fast/new.html", "slow/new.html", "other/new.html")
    for handout in site.take():
        site.end(site.judge(handout))
    site.plan()
    page, seen = site.store.columns("page", "seen")
    fitted = learned_priors(page, seen, len(page) / float(site.store.hash("published")["revisit_budget"]))
    stored = site.store.priors()
    assert stored["shape"].tolist() == fitted.shape.tolist()
    assert stored["time"].tolist() == fitted.time.tolist()
    assert stored["siblings"][1:3] == pytest.approx([20.0, 20.0], rel=0.05)
    assert stored["siblings"][3] == 0.0
    believed = with_prior(page, seen, fitted)
    new = [site.slot(f"{name}/new.html") for name in ("fast", "slow", "other")]
    assert believed["time"][new].tolist() == stored["time"][page["pattern"][new]].tolist()
    assert (believed["shape"][:40] == seen["shape"][:40]).all()
    assert (seen["shape"][new] == 0).all()
    curve = read_crawl_curve(site.store, SETTINGS)
    assert curve.seen["time"][-3:].tolist() == pytest.approx(believed["time"][-3:].tolist(), rel=1e-6)


def test_nothing_is_taught_before_the_first_bit(store):
    """The prior follows the default of the day then."""
    dispatcher = Dispatcher(store, SETTINGS)
    url = "http://a.example/x/1"
    dispatcher.exchange(Exchange(pages=[dispatcher.new_page(fingerprint(url), url, encode_record({"url": url}))]))
    store.visit_all()
    assert Planner(store, SETTINGS).plan() is not None
    assert not np.frombuffer(store.priors().tobytes(), "u1").any()
    store.run([("force_page", [fingerprint(url)])])
    store.advance(0.001)
    (handout,) = store.dispatch(1)[0]
    assert (handout.prior_shape, handout.prior_time) == (0.0, 0.0)
    observation = judge_visit(
        replace(handout, content_tag=TAG, content=OLD, elapsed=9.0, received=0.0), OLD, TAG, 0.0, Published(1.0, 50.0)
    )
    assert (observation.shape, observation.time) == (PRIOR_SHAPE, 59.0)


def test_a_newcomer_unlike_a_fast_section_is_known_after_a_few_visits(site):
    """Quiet at each of six visits: by then it is planned as a slow page, not as its siblings."""
    site.add("fast/quiet.html")
    for handout in site.take():
        site.end(site.judge(handout))
    site.plan()
    for _ in range(6):
        site.store.advance(1.0 / site.rate("fast/quiet.html"))
        (handout,) = site.take("fast/quiet.html")
        site.end(site.judge(handout))
        site.plan()
    seen = site.store.seen(site.slot("fast/quiet.html"))
    assert RatePosterior(seen["shape"], seen["time"]).median < RatePosterior(PRIOR_SHAPE, 41.0).median
