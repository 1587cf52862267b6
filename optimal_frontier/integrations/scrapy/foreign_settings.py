"""Settings that are Scrapy's or Frontera's: what of them is not used, how ours agree with them, and what Frontera gets."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from frontera.contrib.scrapy.settings_adapter import ScrapySettingsAdapter
from scrapy.utils.misc import load_object

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.integrations.frontera.configuration import given, whole_number_of
from optimal_frontier.integrations.scrapy.callbacks import Callbacks
from optimal_frontier.integrations.scrapy.compatibility import middlewares_of
from optimal_frontier.integrations.scrapy.fingerprinter import CanonicalFingerprinter
from optimal_frontier.settings import PREFIX
from optimal_frontier.settings.trust_settings import NO_PLACES

logger = logging.getLogger(__name__)

BACKEND: Final = "optimal_frontier.integrations.frontera.OptimalBackend"
#: What has to be set for URLs to be folded.
CANONICAL: Final = "optimal_frontier.integrations.scrapy.CanonicalFingerprinter"
#: What the scheduler needs, and what is missed without it.
_NEEDED: Final = (
    ("DOWNLOADER_MIDDLEWARES", "ChangeDetectionMiddleware", "no visit counts, and all pages fail"),
    ("SPIDER_MIDDLEWARES", "FrontierSpiderMiddleware", "start() is waited for in vain, and nothing is known of where links were found"),
)


class FronteraSettings(ScrapySettingsAdapter):  # type: ignore[misc]  # frontera is untyped
    """Frontera's settings as the project has them, with our backend, started by us."""

    def get(self, key: str, default_value: Any = None) -> Any:
        if key == "BACKEND":
            return BACKEND
        if key == "AUTO_START":
            return False
        if key in ("MAX_REQUESTS", "MAX_NEXT_REQUESTS"):  # text, where the command line gives them
            return whole_number_of(self, key) or 0
        if key == "MIDDLEWARES" and given(self, key) is None and given(self, "CANONICAL_SOLVER") is None:
            return []  # Frontera's default brings each URL into a canonical form, for a fingerprint that nobody reads: Scrapy's counts
        return super().get(key, default_value)

    def __getattr__(self, name: str) -> Any:
        if name in ("BACKEND", "AUTO_START"):
            return self.get(name)
        return super().__getattr__(name)


def quieten_frontera() -> None:
    """Give Frontera's talkative loggers a level, unless they have one."""
    # Frontera writes debug records of kilobytes for every page, which cost a tenth of a crawl to make even where no handler wants them, and
    # LOG_LEVEL is DEBUG unless set. Who wants them gives these loggers a level.
    for name in ("manager", "manager.components"):
        frontera_logger = logging.getLogger(name)
        if frontera_logger.level == logging.NOTSET:
            frontera_logger.setLevel(logging.WARNING)


def check_settings(crawler: Any, schemes: Sequence[str], callbacks: Callbacks) -> None:
    """Check settings of ours by what Scrapy and the spider have, and warn of settings of the project that do not count.

    Parameters
    ----------
    crawler : Crawler
    schemes : sequence of str
        SCHEMES.
    callbacks : Callbacks
        With CALLBACKS.

    Raises
    ------
    ConfigurationError
        DOWNLOAD_HANDLERS has nothing for one of the schemes.
    """
    settings = crawler.settings
    # Who switches one of these two off need not say so here again: they are what SCHEMES is by default.
    fetched = {"http", "https"}.union(scheme for scheme, handler in settings.getwithbase("DOWNLOAD_HANDLERS").items() if handler)
    for scheme in schemes:
        if scheme not in fetched:
            known = ", ".join(sorted(fetched - NO_PLACES))
            raise ConfigurationError(f"{PREFIX}SCHEMES: Scrapy has no download handler for {scheme!r}; expected some of {known}")
    if missing := callbacks.missing():
        # No warning: several spiders may share the settings of a project.
        names = ", ".join(map(repr, missing))
        logger.info("%sCALLBACKS: the spider %r has no method %s; is it of another spider?", PREFIX, crawler.spider.name, names)
    running = middlewares_of(crawler)
    for name, middleware, missed in _NEEDED:
        needed = load_object(f"optimal_frontier.integrations.scrapy.{middleware}")
        if not any(isinstance(each, needed) for each in running[name]):
            logger.warning("%s has no %s: %s. ADDONS = {'optimal_frontier.Addon': 500} adds it", name, middleware, missed)
    if settings.get("BACKEND") not in (None, BACKEND):
        logger.warning("BACKEND = %r is not used: %s is", settings["BACKEND"], BACKEND)
    if (settings.getpriority("DUPEFILTER_CLASS") or 0) > 0:
        logger.info("DUPEFILTER_CLASS = %r is not used: the frontier knows its pages", settings["DUPEFILTER_CLASS"])
    if isinstance(crawler.request_fingerprinter, CanonicalFingerprinter):
        return
    for name in ("IGNORED_PARAMETERS", "FOLD_URLS"):
        if settings.get(PREFIX + name):
            logger.warning("%s%s counts with REQUEST_FINGERPRINTER_CLASS = %r only", PREFIX, name, CANONICAL)


def is_cached_blindly(settings: Any) -> bool:
    """Tell whether Scrapy's cache answers with whatever it holds (DummyPolicy)."""
    policy = settings.get("HTTPCACHE_POLICY")
    name = policy if isinstance(policy, str) else getattr(policy, "__name__", "")
    return settings.getbool("HTTPCACHE_ENABLED") and name.endswith("DummyPolicy")
