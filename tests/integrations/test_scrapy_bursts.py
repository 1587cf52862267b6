"""Pages whose changes come in bursts, beside pages that change at any time, in a real crawl."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import Crawler
from crawls import State
from misbehaving_site import MisbehavingSite

from optimal_frontier.cli import main
from optimal_frontier.estimation.bursts import are_bursty
from optimal_frontier.frontier.budget_curve import read_crawl_curve
from optimal_frontier.optimization.updates import Weibull
from optimal_frontier.settings import FrontierSettings

BURSTY = [f"/weibull/0.3/0.05/{n}" for n in range(4)]
STEADY = [f"/weibull/1/0.05/{n}" for n in range(3)]
SPIDER = f"""
    class Tester(Base):
        paths = {BURSTY + STEADY}

        def parse(self, response):
            pass
"""
SETTINGS = {"CRAWL_RATE": 150.0, "RESOLVE_INTERVAL": 0.5, "MIN_INTERVAL": 0.01}


def test_a_bursty_page_gets_its_model_and_is_planned_by_it(
    crawl: Crawler, site: MisbehavingSite, state: State, redis_socket: str, namespace: str
) -> None:
    """After enough bits; and then a visit to it is worth by its model what the others are worth by theirs, to 1e-3."""

    def bursty() -> list[str]:
        """Those that are well beyond the moment of rejection."""
        rows = [state.at(site.url(path), "bursts") for path in BURSTY]
        enough = [row and row["variance"] > 6.0 and row["score"] > 4.5 * math.sqrt(row["variance"]) for row in rows]
        return [path for path, is_far in zip(BURSTY, enough, strict=True) if is_far]

    with crawl(SPIDER, LOG_LEVEL="WARNING", **{f"of_{name}": value for name, value in SETTINGS.items()}) as running:
        found = running.until(bursty, 25.0)
        running.until(lambda: float(state.plan["time"]) > state.store.now() - 0.1)
        running.stop()

    settings = FrontierSettings.parse({f"OPTIMAL_FRONTIER_{name}": value for name, value in SETTINGS.items()})
    curve = read_crawl_curve(state.store, settings)
    plan = curve.plan(SETTINGS["CRAWL_RATE"])
    target = ["--redis-url", f"unix://{redis_socket}", "--namespace", namespace]
    for path in found:
        answer = json.loads(CliRunner().invoke(main, [*target, "page", site.url(path), "--json"]).output)
        model = answer["model"]
        assert (model["name"], model["is_planned"]) == ("weibull", True)
        assert 0.25 <= model["shape"] < 0.9
        assert 0.005 < model["mean"] < 0.5
        assert "so a visit is worth what a Weibull model of shape" in answer["why"]
        rate = plan.rates[answer["slot"]]
        assert 0 < rate < 1 / SETTINGS["MIN_INTERVAL"]
        worth = float(Weibull.from_mean(model["mean"], model["shape"]).crawl_worth(1 / rate))
        assert worth == pytest.approx(plan.multiplier, rel=1e-3)
        # What the crawl itself planned last is next to it: a few bits have come in since.
        assert math.log(answer["rate"] / rate) == pytest.approx(0.0, abs=0.5)
    steady = [state.place(site.url(path)) for path in STEADY]
    kept = state.store.columns("bursts")[0][steady]
    assert np.count_nonzero(are_bursty(kept["score"], kept["variance"])) <= 1
