"""Page worlds x policies -> freshness. Pure."""

from __future__ import annotations

from optimal_frontier.simulation.azar_pages import Pages, azar_pages
from optimal_frontier.simulation.bandwidth import BandwidthChange
from optimal_frontier.simulation.comparing import Interval, Run, Standing, compare, reports_of, standings
from optimal_frontier.simulation.interval_rules import Frontera, IntervalRule, Nutch, StormCrawler
from optimal_frontier.simulation.oracles import ORACLE_NAMES
from optimal_frontier.simulation.path_groups import path_groups
from optimal_frontier.simulation.planned_crawl import Conditions
from optimal_frontier.simulation.policies import Exploring, Knowledge, Planner, Pricing
from optimal_frontier.simulation.processes import Drifting, Jumping, Pareto, Poisson, QuasiDeterministic, Weibull
from optimal_frontier.simulation.ragged import Ragged
from optimal_frontier.simulation.simulating import DEFAULT_LEARNER, LEARNERS, POLICY_NAMES, Report, simulate
from optimal_frontier.simulation.traces import Event, Trace, events_of, read_trace, write_trace
from optimal_frontier.simulation.worlds import PROCESSES, STANDARD_WORLDS, WORLDS, SyntheticWorld, TraceWorld, World, synthetic_world

__all__ = [
    "DEFAULT_LEARNER",
    "LEARNERS",
    "ORACLE_NAMES",
    "POLICY_NAMES",
    "PROCESSES",
    "STANDARD_WORLDS",
    "WORLDS",
    "BandwidthChange",
    "Conditions",
    "Drifting",
    "Event",
    "Exploring",
    "Frontera",
    "Interval",
    "IntervalRule",
    "Jumping",
    "Knowledge",
    "Nutch",
    "Pages",
    "Pareto",
    "Planner",
    "Poisson",
    "Pricing",
    "QuasiDeterministic",
    "Ragged",
    "Report",
    "Run",
    "Standing",
    "StormCrawler",
    "SyntheticWorld",
    "Trace",
    "TraceWorld",
    "Weibull",
    "World",
    "azar_pages",
    "compare",
    "events_of",
    "path_groups",
    "read_trace",
    "reports_of",
    "simulate",
    "standings",
    "synthetic_world",
    "write_trace",
]
