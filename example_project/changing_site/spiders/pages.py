"""A plain spider: it knows nothing about revisits, the frontier brings every page back to `parse` when it is due."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import Response


class PagesSpider(scrapy.Spider):
    """Follow every link of the changing site and yield what each fetch saw.

    Parameters
    ----------
    start_url : str
        The first page (``scrapy crawl pages -a start_url=...``).
    start_importance : float
        Importance of the first page; that of the others stands beside the links to them.
    """

    name = "pages"
    # Feeds count as much as a page of average importance, until they are known by what they tell.
    source_importance = 0.05

    def __init__(self, start_url: str, start_importance: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_url = start_url
        self.start_importance = float(start_importance)

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Ask for the first page."""
        yield scrapy.Request(self.start_url, meta={"importance": self.start_importance})

    def parse(self, response: Response) -> Iterator[dict[str, Any] | scrapy.Request]:
        """Yield one item per fetch, and the links with the importance that the site gives them."""
        seen = response.meta.get("optimal_frontier") or {}
        yield {
            "url": response.url,
            "version": int(response.css("#version::text").get("-1")),
            "changed": seen.get("changed"),
        }
        for link in response.css("a[data-importance]"):
            yield response.follow(link, meta={"importance": float(link.attrib["data-importance"])})
