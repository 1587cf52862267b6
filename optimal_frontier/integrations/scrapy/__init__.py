"""The face of the frontier towards Scrapy."""

from __future__ import annotations

from optimal_frontier.integrations.scrapy.addon import Addon
from optimal_frontier.integrations.scrapy.change_detection import ChangeDetectionMiddleware
from optimal_frontier.integrations.scrapy.fingerprinter import CanonicalFingerprinter
from optimal_frontier.integrations.scrapy.scheduler import OptimalScheduler
from optimal_frontier.integrations.scrapy.sources import AnnouncedPages
from optimal_frontier.integrations.scrapy.spider_middleware import FrontierSpiderMiddleware

__all__ = ["Addon", "AnnouncedPages", "CanonicalFingerprinter", "ChangeDetectionMiddleware", "FrontierSpiderMiddleware", "OptimalScheduler"]
