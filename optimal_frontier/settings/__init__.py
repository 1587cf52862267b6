"""The settings: one declared table, parsed into one frozen object.

Names are those of Scrapy's settings.py with the prefix ``OPTIMAL_FRONTIER_``. A value may be a string, as ``scrapy crawl -s NAME=VALUE``
gives it. An unknown name under the prefix, or a value outside its range, raises `ConfigurationError` at start, naming the setting.
"""

from __future__ import annotations

from optimal_frontier.settings.frontier_settings import BOT_NAME, NO_SPIDER, FrontierSettings, default_namespace
from optimal_frontier.settings.rules import PageRule, Rule, Rules
from optimal_frontier.settings.table import PREFIX, TABLE, Setting
from optimal_frontier.settings.timetable import DAY_S, Timetable
from optimal_frontier.settings.trust_settings import SourceLimits
from optimal_frontier.settings.urls import UrlLimits

__all__ = [
    "BOT_NAME",
    "DAY_S",
    "NO_SPIDER",
    "PREFIX",
    "TABLE",
    "FrontierSettings",
    "PageRule",
    "Rule",
    "Rules",
    "Setting",
    "SourceLimits",
    "Timetable",
    "UrlLimits",
    "default_namespace",
]
