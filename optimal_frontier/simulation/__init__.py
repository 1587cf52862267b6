"""Page worlds x policies -> freshness; the papers' figures. Pure."""

from __future__ import annotations

from optimal_frontier.simulation.azar_figure_1 import Bar, Measurement, Point, bars, measurements, points
from optimal_frontier.simulation.azar_figure_2 import RefreshRates, azar_figure_2
from optimal_frontier.simulation.azar_pages import Pages, azar_pages
from optimal_frontier.simulation.azar_policies import POLICIES
from optimal_frontier.simulation.bandwidth import BandwidthChange
from optimal_frontier.simulation.comparing import Interval, Standing, compare, standings
from optimal_frontier.simulation.cycle import cycle_freshness, cycle_slots
from optimal_frontier.simulation.interval_rules import Frontera, IntervalRule, Nutch, StormCrawler
from optimal_frontier.simulation.learners import LEARNERS
from optimal_frontier.simulation.planned_crawl import Conditions
from optimal_frontier.simulation.policies import Exploring, Knowledge, Planner, Pricing
from optimal_frontier.simulation.processes import Drifting, Jumping, Pareto, Poisson, QuasiDeterministic, Weibull
from optimal_frontier.simulation.ragged import Ragged
from optimal_frontier.simulation.search_log import SearchLog, search_log
from optimal_frontier.simulation.simulating import DEFAULT_LEARNER, POLICY_NAMES, Report, simulate
from optimal_frontier.simulation.traces import Trace, events_of, read_trace, write_trace
from optimal_frontier.simulation.upadhyay_figure_2 import EstimationError, upadhyay_figure_2
from optimal_frontier.simulation.upadhyay_regret import REGRET_POLICIES, Growth, Regret, growths, regrets
from optimal_frontier.simulation.wolf_figure_7 import figure_7_checks, weighted_wins, wolf_figure_7
from optimal_frontier.simulation.wolf_figure_8 import figure_8_checks, wolf_figure_8
from optimal_frontier.simulation.wolf_figure_9 import figure_9_checks, wolf_figure_9
from optimal_frontier.simulation.wolf_figure_10 import SlotDeviations, figure_10_checks, wolf_figure_10
from optimal_frontier.simulation.wolf_pages import WolfPages, wolf_pages
from optimal_frontier.simulation.wolf_schemes import Check, SchemePoint, in_proportion
from optimal_frontier.simulation.worlds import PROCESSES, STANDARD_WORLDS, WORLDS, SyntheticWorld, TraceWorld, World, synthetic_world

__all__ = [
    "DEFAULT_LEARNER",
    "LEARNERS",
    "POLICIES",
    "POLICY_NAMES",
    "PROCESSES",
    "REGRET_POLICIES",
    "STANDARD_WORLDS",
    "WORLDS",
    "BandwidthChange",
    "Bar",
    "Check",
    "Conditions",
    "Drifting",
    "EstimationError",
    "Exploring",
    "Frontera",
    "Growth",
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
    "Pricing",
    "QuasiDeterministic",
    "Ragged",
    "RefreshRates",
    "Regret",
    "Report",
    "SchemePoint",
    "SearchLog",
    "SlotDeviations",
    "Standing",
    "StormCrawler",
    "SyntheticWorld",
    "Trace",
    "TraceWorld",
    "Weibull",
    "WolfPages",
    "World",
    "azar_figure_2",
    "azar_pages",
    "bars",
    "compare",
    "cycle_freshness",
    "cycle_slots",
    "events_of",
    "figure_7_checks",
    "figure_8_checks",
    "figure_9_checks",
    "figure_10_checks",
    "growths",
    "in_proportion",
    "measurements",
    "points",
    "read_trace",
    "regrets",
    "search_log",
    "simulate",
    "standings",
    "synthetic_world",
    "upadhyay_figure_2",
    "weighted_wins",
    "wolf_figure_7",
    "wolf_figure_8",
    "wolf_figure_9",
    "wolf_figure_10",
    "wolf_pages",
    "write_trace",
]
