"""A site whose lists show articles that are new, each of which changes three times."""

from __future__ import annotations

import numpy as np
from played_crawl import Play, stale_s
from timed_namespace import START

from optimal_frontier.state.published import pattern_key, sound_youth

LISTS, OLD = 5, 100
#: Seconds between two new articles; the ages up to which one changes three times; how long the site is played.
NEW_S, YOUTH_S, UNTIL_S = 30.0, 120.0, 5000.0
#: Ages at which an article changes: all soon after it appears; fewer and fewer; at any time.
AGES = {
    "young": lambda rng, size: rng.uniform(0.0, YOUTH_S, size),
    "fading": lambda rng, size: np.exp(rng.uniform(np.log(5.0), np.log(2500.0), size)),
    "any": lambda rng, size: rng.uniform(0.0, 2500.0, size),
}


class News(Play):
    """Lists have the numbers 0 to 4 and show the articles that are new; articles that were there before never change."""

    def __init__(self, store, settings, ages: str = "young", until: float = UNTIL_S, seed: int = 3) -> None:
        super().__init__(store, settings, self.edition)
        rng = np.random.default_rng(seed)
        self.until_s = until
        for i in range(LISTS):
            self.add_page(f"news/list/{i}")
        for i in range(OLD):
            self.add_page(f"news/old/{i}.html")
        self.born = np.sort(rng.uniform(0.0, until, int(until / NEW_S)))
        self.changes = self.born[:, None] + np.sort(AGES[ages](rng, (len(self.born), 3)))
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
            visits = self.visits.get(numbers.get(article, -1), [])
            lost += stale_s(visits, np.append(born, self.changes[article]), max(since, born), self.until_s)
            total += max(self.until_s - max(since, born), 0.0)
        return lost / total

    def youth(self):
        """What is published of the youth of the pattern of articles."""
        table = sound_youth(self.store.command("GET", self.store.key("youth", 0)))
        return table[table["key"] >= pattern_key(0)]
