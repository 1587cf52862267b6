"""Page worlds x policies -> freshness; the papers' figures. Pure."""

from __future__ import annotations

from optimal_frontier.simulation.azar_figure_1 import Bar, Measurement, Point, bars, measurements, points
from optimal_frontier.simulation.azar_figure_2 import RefreshRates, azar_figure_2
from optimal_frontier.simulation.azar_pages import Pages, azar_pages
from optimal_frontier.simulation.azar_policies import POLICIES
from optimal_frontier.simulation.comparing import Interval, Standing, compare, standings
from optimal_frontier.simulation.cycle import cycle_freshness, cycle_slots
from optimal_frontier.simulation.interval_rules import Frontera, IntervalRule, Nutch, StormCrawler
from optimal_frontier.simulation.policies import Exploring, Knowledge, Planner
from optimal_frontier.simulation.processes import Drifting, Jumping, Pareto, Poisson, QuasiDeterministic, Weibull
from optimal_frontier.simulation.ragged import Ragged
from optimal_frontier.simulation.simulating import POLICY_NAMES, Report, simulate
from optimal_frontier.simulation.traces import Trace, events_of, read_trace, write_trace
from optimal_frontier.simulation.worlds import PROCESSES, WORLDS, SyntheticWorld, TraceWorld, World, synthetic_world

__all__ = [
    "POLICIES",
    "POLICY_NAMES",
    "PROCESSES",
    "WORLDS",
    "Bar",
    "Drifting",
    "Exploring",
    "Frontera",
    "Interval",
    "IntervalRule",
    "Jumping",
    "Knowledge",
    "Measurement",
    "Nutch",
    "Pages",
    "Pareto",
    "Planner",
    "Point",
    "Poisson",
    "QuasiDeterministic",
    "Ragged",
    "RefreshRates",
    "Report",
    "Standing",
    "StormCrawler",
    "SyntheticWorld",
    "Trace",
    "TraceWorld",
    "Weibull",
    "World",
    "azar_figure_2",
    "azar_pages",
    "bars",
    "compare",
    "cycle_freshness",
    "cycle_slots",
    "events_of",
    "measurements",
    "points",
    "read_trace",
    "simulate",
    "standings",
    "synthetic_world",
    "write_trace",
]
