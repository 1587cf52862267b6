"""A news site whose listing pages change faster than anyone can follow, played through dispatch, judge and planner on a set clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from played_crawl import Play, parse
from timed_namespace import START

from optimal_frontier.state.checking import check_state
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.rows import HUB

LISTINGS, ARTICLES = 50, 600
#: Seconds between two changes of a listing page, of an article, and between two new articles on a listing page.
CHURN_S, ARTICLE_S, NEW_S = 0.7, 300.0, 300.0
BUDGET, MAX_INTERVAL = 4.0, 30 * 86400.0


class News(Play):
    """Listing pages have the numbers 0 to 49; each links to the articles that appeared on it."""

    def __init__(self, store, settings, listings=LISTINGS, articles=ARTICLES) -> None:
        super().__init__(store, settings, self.edition)
        rng = np.random.default_rng(5)
        self.listings = listings
        self.offset = rng.uniform(0, 1, listings + articles + 100_000)
        for i in range(listings):
            self.add_page(f"news/list/{i}")
        for i in range(articles):
            self.add_page(f"news/old/{i}")
        #: Name of an article -> when it appeared, and when it was found, seconds after START.
        self.found: dict[str, tuple[float, float]] = {}
        self._shown = [0] * listings
        self.publishes = True

    def edition(self, number: int, at: float) -> int:
        return int(at / (CHURN_S if number < self.listings else ARTICLE_S) + self.offset[number])

    def judged(self, handout):
        number = self.numbers[handout.page]
        if number < self.listings and self.publishes:
            at = self.now - START
            for i in range(self._shown[number], int(at / NEW_S + self.offset[number])):
                name = f"news/new/{number}/{i}"
                added = self.add_page(name)
                found_on = handout if self.settings.discovery_value and handout.row.visits else None
                self._new[-1] = self.added[added] = replace(self._new[-1], found_on=found_on)
                self.found[name] = ((i + 1 - self.offset[number]) * NEW_S, at)
            self._shown[number] = max(self._shown[number], int(at / NEW_S + self.offset[number]))
        return super().judged(handout)

    def memory(self, number: int) -> Memory:
        new = self.added[number]
        return Memory.unpack(self.store.command("HGET", self.store.key("memory", 0), new.page))

    def delays(self, since: float, until: float) -> np.ndarray:
        """Seconds until each article was found that appeared between two times; until now where it was not."""
        told = []
        for number in range(self.listings):
            for i in range(int(since / NEW_S), int(until / NEW_S) + 2):
                born = (i + 1 - self.offset[number]) * NEW_S
                if since <= born < until:
                    told.append(self.found.get(f"news/new/{number}/{i}", (born, self.now - START))[1] - born)
        return np.array(told)


def test_listing_pages_of_a_news_site_stay_visited(space):
    """The case that was found, a fifth as large: all were put at their longest interval, and nothing new was to be found for a month."""
    play = News(space, parse(CRAWL_RATE=BUDGET, MAX_INTERVAL=MAX_INTERVAL))
    play.until(800.0)
    play.publishes = False
    play.until(801.0)  # what was found last is added
    rows = play.rows()[:LISTINGS]
    assert np.all(rows["flags"] & HUB)
    gaps = np.array([play.gaps(number, since=400.0).mean() for number in range(LISTINGS)])
    assert np.median(gaps) < 200.0
    assert gaps.max() < 400.0
    rates = [play.memory(number).yielded.pages / play.memory(number).yielded.seconds for number in range(LISTINGS)]
    assert np.median(rates) == pytest.approx(1 / NEW_S, rel=0.2)
    # Half a gap, as visits are evenly spaced; and a new article is visited at once.
    assert play.delays(400.0, 700.0).mean() < 100.0
    new = play.rows()[LISTINGS + ARTICLES :]
    assert np.mean(new["visits"] > 0) > 0.97
    # The rest of the budget is for the articles, as before.
    assert play.count(400.0, 800.0) == pytest.approx(400 * BUDGET, rel=0.01)
    assert check_state(space, sleep=lambda _: None).violations == []


def test_without_the_setting_they_are_given_up(space):
    """As before: each visit teaches that they change too fast, and the plan says how many are given up."""
    settings = parse(CRAWL_RATE=BUDGET / 4, MAX_INTERVAL=MAX_INTERVAL, DISCOVERY_VALUE=False, NEIGHBOURHOODS=False)
    play = News(space, settings, LISTINGS // 4, ARTICLES // 4)
    play.until(2800.0)
    rows = play.rows()[: play.listings]
    assert not np.any(rows["flags"] & HUB)
    assert np.mean(np.isinf(rows["a"])) > 0.8
    # Twice what it is with the setting. Of 400 seconds alone the mean is anything from 200 to 400.
    assert play.delays(800.0, 2400.0).mean() > 200.0
    plan = space.hash("plan")
    assert int(plan["given_up"]) > 0.8 * play.listings
    assert plan["hubs"] == "0"
