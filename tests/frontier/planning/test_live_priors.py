"""Pages without a bit are planned from what pages of the same pattern have taught."""

from __future__ import annotations

import numpy as np
import pytest
from crawled import Crawl, new_page, page_of, parse, pattern_of

from optimal_frontier.estimation import RatePosterior, posterior_median
from optimal_frontier.estimation.like_pages import LikePages
from optimal_frontier.estimation.sibling_priors import sibling_priors
from optimal_frontier.frontier.judging.waits import Terms, numbers_of
from optimal_frontier.frontier.planning import priors as priors_module
from optimal_frontier.frontier.planning.planner import Planner
from optimal_frontier.frontier.planning.priors import Priors, Taught, Teachers, fit_priors
from optimal_frontier.scheduling.numbers import deadline
from optimal_frontier.state.rows import LAYOUT, Row

SETTINGS = parse(CRAWL_RATE=1.0)
#: Section -> shape and time (s) of the posteriors of its pages; the default prior of 41 pages at 1/s is Gamma(1, 41 s).
SECTIONS = {"fast": (30.0, 500.0), "slow": (8.0, 6000.0)}


class Site:
    """Twenty pages of each section, known by the posteriors above, and a plan; then newcomers."""

    def __init__(self, crawl: Crawl) -> None:
        self.crawl, self.planner = crawl, Planner(crawl.namespace, SETTINGS)
        self.add(*(f"{section}/{i}" for section in SECTIONS for i in range(20)))
        self.plan()

    def add(self, *paths: str) -> None:
        names = {page_of(f"a/{path}"): path for path in paths}
        self.crawl.add(*(new_page(f"a/{path}") for path in paths))
        for handout in self.crawl.firsts():
            if handout.page in names:
                known = SECTIONS[names[handout.page].split("/")[0]] if names[handout.page][-1].isdigit() else None
                self.crawl.observe(handout, SETTINGS, **({"shape": known[0], "time": known[1]} if known else {}))

    def plan(self):
        self.crawl.advance(0.01)
        report = self.planner.plan()
        assert report is not None
        return report

    def wait(self, path: str) -> float:
        row = self.crawl.row(f"a/{path}")
        return min(max(row.a + row.s * self.crawl.log_price(), row.e), row.l)


@pytest.fixture
def site(crawl):
    return Site(crawl)


def test_a_new_page_starts_from_its_siblings(site):
    """Published by pattern; at its first visit by the judge, in the next plan too, and unlike a page of a pattern that is new."""
    site.add("fast/new", "slow/new", "other/new")
    published = site.crawl.published()
    medians = {name: RatePosterior(*published.prior_of(pattern_of(f"a/{name}/1"))).median for name in SECTIONS}
    default = RatePosterior(1.0, published.prior_time).median
    assert pattern_of("a/other/1") not in published.priors
    assert medians["slow"] < 0.2 * default
    assert 1.5 * default < medians["fast"] < 30 / 500
    assert 0 < site.wait("other/new") < site.wait("slow/new")
    site.plan()
    assert site.wait("slow/new") == pytest.approx(site.wait("slow/1"), rel=0.5)
    assert site.wait("slow/new") > 2 * site.wait("fast/new")
    terms = Terms(site.crawl.log_price(), site.crawl.published(), SETTINGS)
    for name in (*SECTIONS, "other"):
        row = site.crawl.row(f"a/{name}/new")
        assert row.shape == 0
        assert site.wait(f"{name}/new") == pytest.approx(
            deadline(0, numbers_of(row, page_of(f"a/{name}/new"), terms), terms.log_price), rel=0.05
        )


def test_the_plan_goes_by_the_priors_that_are_published(site):
    """As they are rounded there; and they are the fit of what is stored."""
    site.add("fast/new", "slow/new", "other/new")
    site.plan()
    published = site.crawl.published()
    rows = list(site.crawl.rows().values())
    patterns, inverse = np.unique([row["pattern"] for row in rows], return_inverse=True)
    fitted = sibling_priors(
        [float(row["shape"]) for row in rows], [float(row["time"]) for row in rows], [0] * len(rows), inverse + 1, published.prior_time
    )
    alike = LikePages(len(patterns) + 1, published.prior_time)
    alike.add(np.array([float(row["shape"]) for row in rows]), np.array([float(row["time"]) for row in rows]), inverse + 1)
    shape, rate = alike.fitted()
    for at, pattern in enumerate(patterns.tolist(), start=1):
        expected = (shape[at], shape[at] / rate[at]) if shape[at] > 2.0 else (fitted.shape[at], fitted.time[at])
        assert published.priors[pattern] == pytest.approx(expected, rel=1e-6)
    # The sections were made of pages that are alike; those of the fast one change more often than they can be visited.
    assert sorted(shape > 2.0) == [False, False, False, True]
    pages = site.planner.crawl.tables[0].pages
    new = np.flatnonzero(pages["shape"] == 0)
    assert len(new) == 3
    for at in new:
        expected = posterior_median(*published.prior_of(int(pages["pattern"][at])))
        assert site.planner.crawl.median[at] == pytest.approx(expected, rel=1e-9)


def test_nothing_is_taught_before_the_first_bit(crawl):
    """The default of the day holds then: the time in which all pages can be visited once."""
    crawl.crawled(20, shape=0.0, time=0.0)
    Planner(crawl.namespace, SETTINGS).plan()
    published = crawl.published()
    assert published.priors == {}
    assert published.prior_of(7) == (1.0, 20.0)


def test_the_default_prior_goes_by_what_hosts_admit_and_by_all_pages(crawl):
    """Pages that wait for their first visit count; a slow host makes the round longer."""
    crawl.crawled(20, hosts=1)
    crawl.add(*(new_page(f"h0/new{i}") for i in range(80)))
    Planner(crawl.namespace, parse(CRAWL_RATE=10, DISCOVERY_SHARE=0)).plan()
    assert crawl.published().prior_time == pytest.approx(10.0)
    Planner(crawl.namespace, parse(CRAWL_RATE=10, DISCOVERY_SHARE=0, HOST_MAX_RATE=2)).plan()
    assert crawl.published().prior_time == pytest.approx(50.0)


def test_a_newcomer_unlike_a_fast_section_is_known_after_a_few_visits(site):
    """Quiet at each of six visits: by then it is planned as a slow page, not as its siblings."""
    site.add("fast/quiet")
    site.plan()
    prior = site.crawl.published().prior_of(pattern_of("a/fast/quiet"))
    posterior = RatePosterior(*prior)
    for _ in range(6):
        wait = site.wait("fast/quiet")
        site.crawl.advance(wait)
        posterior.update(wait, False)
        site.crawl.observe(site.crawl.take("a/fast/quiet"), SETTINGS, shape=posterior.shape, time=posterior.time)
        site.plan()
    assert posterior.median < RatePosterior(1.0, 41.0).median


def test_only_the_patterns_with_most_pages_are_published(monkeypatch):
    """What crawlers read with every plan is bounded."""
    monkeypatch.setattr(priors_module, "MOST_PATTERNS", 2)
    rows = np.zeros(9, LAYOUT)
    rows["pattern"] = [5, 5, 5, 6, 7, 7, 8, 0, 0]
    rows["shape"], rows["time"] = 3.0, 10.0
    parts = [Taught(some["pattern"], some["shape"], some["time"], np.zeros(len(some), np.int64)) for some in (rows[:4], rows[4:])]
    fitted = fit_priors(Teachers(lambda: [part.pattern for part in parts], lambda: parts), 1.0)
    assert fitted.table["pattern"].tolist() in ([5, 7], [0, 5])
    assert len(fitted.packed()) == 2 * 16


def test_a_pattern_that_is_not_published_has_the_default():
    assert Priors(9.0).of(np.array([3, 4]))[1].tolist() == [9.0, 9.0]
    assert Row().pattern == 0
