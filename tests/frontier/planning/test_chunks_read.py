"""What a read of the table makes of replies that are not one sound row for each page, and of very many pages."""

from __future__ import annotations

import numpy as np
import pytest
from crawled import Crawl, page_of

from optimal_frontier.estimation import posterior_median
from optimal_frontier.frontier.planning.page_columns import Pages, find_medians
from optimal_frontier.frontier.planning.page_table import PageTable
from optimal_frontier.frontier.planning.priors import Priors
from optimal_frontier.state.rows import HEAD_BYTES, Row


def test_a_page_that_comes_twice_counts_as_it_was_last_and_what_is_no_row_not_at_all(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """HSCAN may return a page twice; other programs may write into the hash."""
    crawl.crawled(40)
    page, key = page_of("h1/1"), crawl.namespace.key("pages")
    stored = crawl.namespace.command("HGETALL", key)
    old = stored[page]
    new = Row.unpack(old)._replace(importance=7.0).pack() + old[HEAD_BYTES:]
    others = {name: value for name, value in stored.items() if name != page}
    told = [(5, {page: old, **others}), (9, {b"short": old, b"x" * 12: b"short"}), (0, {page: new})]
    replies = ((cursor, [word for pair in rows.items() for word in pair]) for cursor, rows in told)
    monkeypatch.setattr(crawl.namespace, "scan", lambda scan, partition: replies)
    table = PageTable(crawl.namespace, 0)
    assert table.read(1.0, 0.0) == table.pages.count == 40
    found = {bytes(name): importance for name, importance in zip(table.pages["id"].tolist(), table.pages["importance"], strict=True)}
    assert found[page] == 7.0
    assert set(found) == set(stored)


def test_medians_of_a_large_table_are_those_of_each_page() -> None:
    """A posterior of half a number has none, and keeps no other from its own."""
    rng, count = np.random.default_rng(3), 20_000
    pages = Pages.none()
    pages.append(count, shape=rng.uniform(0.01, 50.0, count), time=10.0 ** rng.uniform(0, 7, count), median=np.nan)
    pages["time"][::1000] = 0.0
    find_medians(pages, np.arange(count), Priors().alike)
    whole = pages["time"] > 0.0
    assert np.isnan(pages["median"][~whole]).all()
    exact = posterior_median(*(pages[name][whole].astype(float) for name in ("shape", "time")))
    np.testing.assert_allclose(pages["median"][whole], exact, rtol=1e-7)
