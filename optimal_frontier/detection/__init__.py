"""Response -> fingerprint -> "changed?".

Nothing here knows of Scrapy, Frontera or Redis: a response is anything with a ``body``.
"""

from __future__ import annotations

from optimal_frontier.detection.fingerprint import fingerprint
from optimal_frontier.detection.modified import modified_age, parse_lastmod
from optimal_frontier.detection.recipe import settings_tag
from optimal_frontier.detection.sections import Section, sections
from optimal_frontier.detection.similarity import distance, is_changed

__all__ = ["Section", "distance", "fingerprint", "is_changed", "modified_age", "parse_lastmod", "sections", "settings_tag"]
