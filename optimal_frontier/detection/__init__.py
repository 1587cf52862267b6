"""Response -> fingerprint -> "changed?".

Nothing here knows of Scrapy, Frontera or Redis: a response is anything with a ``body``.
"""

from __future__ import annotations

from optimal_frontier.detection.fingerprint import fingerprint, settings_tag
from optimal_frontier.detection.modified import modified_age, parse_lastmod

__all__ = ["fingerprint", "modified_age", "parse_lastmod", "settings_tag"]
