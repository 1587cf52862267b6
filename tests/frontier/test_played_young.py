"""A site whose articles change soon after they appear, and then no more, played through dispatch, judge and planner on a set clock."""

from __future__ import annotations

import numpy as np
import pytest
from played_crawl import Play, parse
from timed_namespace import START, open_namespace

from optimal_frontier.state.checking import check_state
from optimal_frontier.state.published import sound_youth

LISTS, OLD, BUDGET = 5, 100, 0.6
#: Seconds between two new articles; the ages up to which one changes three times; how long the site is played.
NEW_S, YOUTH_S, UNTIL_S = 30.0, 120.0, 5000.0


class News(Play):
    """Lists have the numbers 0 to 4 and show the articles that are new; articles that were there before never change."""

    def __init__(self, store, settings, restless=True) -> None:
        super().__init__(store, settings, self.edition)
        rng = np.random.default_rng(3)
        self.restless = restless
        for i in range(LISTS):
            self.add_page(f"news/list/{i}")
        for i in range(OLD):
            self.add_page(f"news/old/{i}.html")
        self.born = np.sort(rng.uniform(0.0, UNTIL_S, int(UNTIL_S / NEW_S)))
        #: All changes of an article come in its youth, or at any time.
        ages = np.sort(rng.uniform(0.0, YOUTH_S if restless else UNTIL_S / 4, (len(self.born), 3)))
        self.changes = self.born[:, None] + ages
        self.article: dict[int, int] = {}
        self._shown = [0] * LISTS

    def edition(self, number: int, at: float) -> int:
        if number < LISTS:
            return int(np.searchsorted(self.born[number::LISTS], at))
        article = self.article.get(number)
        return 0 if article is None else int(np.searchsorted(self.changes[article], at))

    def judged(self, handout):
        number = self.numbers[handout.page]
        if number < LISTS:
            shown = int(np.searchsorted(self.born[number::LISTS], self.now - START))
            for i in range(self._shown[number], shown):
                found_on = handout if handout.row.visits else None
                self.article[self.add_page(f"news/a/{i * LISTS + number}.html", found_on=found_on)] = i * LISTS + number
            self._shown[number] = shown
        return super().judged(handout)

    def stale(self, since: float) -> float:
        """Share of the time from ``since`` on in which the copies of new articles were not current, or there were none."""
        numbers = {article: number for number, article in self.article.items()}
        lost = total = 0.0
        for article, born in enumerate(self.born):
            visits = np.sort(np.array(self.visits.get(numbers.get(article, -1), []))) - START
            events = np.append(born, self.changes[article])
            events = events[events < UNTIL_S]
            at = np.searchsorted(visits, events)
            ends = np.where(at < len(visits), np.append(visits, UNTIL_S)[at], UNTIL_S)
            last = max(since, born)
            for event, end in zip(events, ends, strict=True):
                begin = max(event, last)
                lost += max(end - begin, 0.0)
                last = max(last, end)
            total += max(UNTIL_S - max(since, born), 0.0)
        return lost / total

    def youth(self):
        return sound_youth(self.store.command("GET", self.store.key("youth", 0)))


SETTINGS = {"CRAWL_RATE": BUDGET, "MIN_INTERVAL": 1.0, "MAX_INTERVAL": 30 * 86400.0}


def test_articles_that_change_at_first_are_looked_at_then(space, redis_socket, namespace):
    """By the calendar each waits for the interval that its kind has on average, long after all that happens to it."""
    young = News(space, parse(**SETTINGS))
    young.until(UNTIL_S / 2)
    (before,) = young.youth()
    # Another planner goes on with what was learned.
    young.run_by(young.settings)
    young.until(UNTIL_S)
    other = open_namespace(redis_socket, f"{namespace}-other")
    plain = News(other, parse(NEIGHBOURHOODS=False, **SETTINGS))
    plain.until(UNTIL_S)
    since = UNTIL_S / 2
    assert young.stale(since) < 0.5 * plain.stale(since)
    assert young.count(since, UNTIL_S) == pytest.approx(plain.count(since, UNTIL_S), rel=0.02)
    (found,) = young.youth()
    assert found["looks"].sum() > before["looks"].sum() > 20
    assert 1 / 80 < found["rate"] < 1 / 20
    assert 64.0 <= found["until"] <= 256.0
    assert int(space.hash("plan")["young_patterns"]) == 1
    assert not len(plain.youth())
    assert check_state(space, sleep=lambda _: None).violations == []
    other.connection.close()


def test_articles_that_change_at_any_time_are_visited_as_ever(space):
    play = News(space, parse(**SETTINGS), restless=False)
    play.until(UNTIL_S)
    (found,) = play.youth()
    assert found["rate"] == 0.0
    # But for one in eight, that is looked at early to learn this.
    looks = [np.diff(play.visits[number])[0] for number in play.article if len(play.visits[number]) > 1]
    assert np.mean(np.array(looks) < 0.5 * np.median(looks)) < 0.3
