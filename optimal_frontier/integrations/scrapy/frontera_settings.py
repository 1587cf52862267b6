"""Frontera's own settings and loggers, where its manager runs inside of Scrapy."""

from __future__ import annotations

import logging
from typing import Any, Final

from frontera.contrib.scrapy.settings_adapter import ScrapySettingsAdapter

BACKEND: Final = "optimal_frontier.integrations.frontera.OptimalBackend"


class FronteraSettings(ScrapySettingsAdapter):  # type: ignore[misc]  # frontera is untyped
    """Frontera's settings as the project has them, with our backend, started by us."""

    def get(self, key: str, default_value: Any = None) -> Any:
        if key == "BACKEND":
            return BACKEND
        if key == "AUTO_START":
            return False
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
