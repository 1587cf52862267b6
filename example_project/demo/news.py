"""The world of ``make example WORLD=news``: sections of sites whose pages change together, front pages, and a feed for each site.

A site has sections (``/sport/``), these have topics, and a topic has articles (``/sport/tennis/3.html``). Each topic has events, a Poisson
process of its own; at an event most of its articles change, sometimes the front page of the section, and that of the site. Articles change
by themselves as well. So the changes of each page alone are a Poisson process, whose rate the clairvoyant of the report knows; what it does
not know is that a change of one article tells of its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from demo.world import BUDGET, MARGIN_S, SECONDS, World, make_world

SITES: Final = 3
SECTIONS: Final = ("sport", "politics", "business", "culture")
TOPICS: Final = ("today", "people", "abroad")
ARTICLES: Final = 8
#: Fetches that the budget has for each change: enough to profit from a word on them, too few to see them all.
FETCHES_PER_CHANGE: Final = 1.0
#: Chance that an article changes at an event of its topic; the front page of its section; that of its site.
ARTICLE_SHARE: Final = 0.8
SECTION_SHARE: Final = 0.5
FRONT_SHARE: Final = 0.25
#: Changes of articles by themselves, as a share of those by events.
OWN_SHARE: Final = 0.1
#: Chance that the feed tells of a change of an article; entries without a change, as a share of those with one.
TOLD_SHARE: Final = 0.7
FALSE_SHARE: Final = 0.05

_DECADES: Final = 2.0
_ZIPF_EXPONENT: Final = 0.8


def make_news(seed: int = 1, seconds: float = SECONDS) -> World:
    """Draw the world; the same arguments give the same world. For parameters see `demo.world.make_world`."""
    rng = np.random.default_rng([seed, len(SECTIONS), ARTICLES])
    horizon = seconds + MARGIN_S
    topics = SITES * len(SECTIONS) * len(TOPICS)
    event_rate = rng.permutation(10.0 ** (_DECADES * (np.arange(topics) + 0.5) / topics))
    # of all pages together, for each event
    a_topic = ARTICLES * ARTICLE_SHARE * (1 + OWN_SHARE) + SECTION_SHARE + FRONT_SHARE
    event_rate *= BUDGET / FETCHES_PER_CHANGE / a_topic / event_rate.sum()

    paths: list[str] = []
    homes: list[int] = []
    rates: list[float] = []
    changes: list[np.ndarray] = []
    links: list[list[int]] = []
    notices: list[tuple[float, int]] = []

    def add(path: str, site: int) -> int:
        paths.append(path)
        homes.append(site)
        rates.append(0.0)
        changes.append(np.zeros(0))
        links.append([])
        return len(paths) - 1

    def change(page: int, times: np.ndarray, rate: float) -> None:
        changes[page] = np.sort(np.concatenate([changes[page], times]))
        rates[page] += rate

    fronts = [add("/", site) for site in range(SITES)]
    topic = 0
    for site, front in enumerate(fronts):
        links[front] += [other for other in fronts if other != front]
        for section in SECTIONS:
            index = add(f"/{section}/", site)
            links[front].append(index)
            for name in TOPICS:
                rate = float(event_rate[topic])
                events = _poisson_times(rng, rate, horizon)
                topic += 1
                change(front, events[rng.random(len(events)) < FRONT_SHARE], rate * FRONT_SHARE)
                change(index, events[rng.random(len(events)) < SECTION_SHARE], rate * SECTION_SHARE)
                for number in range(ARTICLES):
                    page = add(f"/{section}/{name}/{number}.html", site)
                    links[index].append(page)
                    links[page].append(index)
                    own = rate * ARTICLE_SHARE * OWN_SHARE
                    change(page, events[rng.random(len(events)) < ARTICLE_SHARE], rate * ARTICLE_SHARE)
                    change(page, _poisson_times(rng, own, horizon), own)
                    told = changes[page][rng.random(len(changes[page])) < TOLD_SHARE]
                    false = _poisson_times(rng, rates[page] * TOLD_SHARE * FALSE_SHARE, horizon)
                    notices += [(float(at), page) for at in (*told, *false)]

    importance = rng.permutation(np.arange(1, len(paths) + 1, dtype=float) ** -_ZIPF_EXPONENT)
    return World(
        importance,
        np.array(rates),
        np.full(len(paths), np.inf),
        tuple(changes),
        tuple(map(tuple, links)),
        tuple(paths),
        tuple(homes),
        tuple(sorted(notices)),
    )


def _poisson_times(rng: np.random.Generator, rate: float, horizon: float) -> np.ndarray:
    return np.sort(rng.uniform(0.0, horizon, rng.poisson(rate * horizon)))


#: What ``--world`` takes.
WORLDS: Final[dict[str, Callable[[int, float], World]]] = {"independent": make_world, "news": make_news}
