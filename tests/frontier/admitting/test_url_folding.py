"""Which URLs are one page: what was said not to count does not, and nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.frontier.admitting.url_folding import UrlFolding
from optimal_frontier.settings.urls import FOLDS, IGNORED


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("http://a.example/x?utm_source=1&id=7&UTM_medium=2", "http://a.example/x?id=7"),
        ("http://a.example/x?fbclid=1", "http://a.example/x"),
        ("http://a.example/x;jsessionid=5A?id=7", "http://a.example/x?id=7"),
        ("http://a.example/x;v=1;JSESSIONID=5A/y", "http://a.example/x;v=1/y"),
        ("http://a.example/x?utm%5Fsource=1&b", "http://a.example/x?b"),
        ("http://a.example/x?my_utm_source=1&sessionids=2", "http://a.example/x?my_utm_source=1&sessionids=2"),
        ("http://a.example/x?a=utm_source", "http://a.example/x?a=utm_source"),
    ],
)
def test_the_default_parameters_do_not_count(url, kept):
    assert UrlFolding(IGNORED).apply(url) == kept


@pytest.mark.parametrize(
    ("fold", "one", "other"),
    [
        ("scheme", "https://a.example/x", "http://a.example/x"),
        ("scheme", "https://a.example:443/x", "http://a.example:80/x"),
        ("www", "http://www.a.example/x", "http://a.example/x"),
        ("case", "http://a.example/News/X.html", "http://a.example/news/x.html"),
        ("slash", "http://a.example/x/", "http://a.example/x"),
        ("index", "http://a.example/x/index.php?id=5", "http://a.example/x/?id=5"),
        ("index", "http://a.example/Default.aspx", "http://a.example/"),
    ],
)
def test_a_fold_makes_one_of_two_by_itself(fold, one, other):
    """And no other fold does."""
    assert UrlFolding((), (fold,)).apply(one) == UrlFolding((), (fold,)).apply(other)
    others = UrlFolding((), tuple(name for name in FOLDS if name != fold))
    assert others.apply(one) != others.apply(other)


@pytest.mark.parametrize(
    "url", ["http://www.example/", "http://a.example:8080/index", "http://a.example/", "http://user:pw@www.a.example/"]
)
def test_what_is_left_when_everything_folds(url):
    """``www.example`` is a host, not a prefix; other ports are other hosts; the root stays."""
    expected = url.replace("www.a.", "a.")
    assert UrlFolding((), FOLDS).apply(url) == expected


URLS = st.builds(
    "{}://{}{}/{}?{}".format,
    st.sampled_from(["http", "https"]),
    st.sampled_from(["", "www."]),
    st.sampled_from(["a.example", "a.example:443", "b.example:8080"]),
    st.text("aA/.;=index", max_size=20),
    st.text("autm_=&%5F+", max_size=20),
)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(URLS, st.sets(st.sampled_from(FOLDS)), st.sets(st.sampled_from(IGNORED)))
def test_folding_twice_is_folding_once_but_for_nested_endings(url, folds, ignored):
    """One more round may take off an ending that the first one laid bare; it ends. Order and repetition of the options do not matter."""
    folding = UrlFolding(tuple(sorted(ignored)), tuple(sorted(folds)))
    assert UrlFolding.of(folding.text) == folding
    assert UrlFolding((*reversed(folding.ignored), *folding.ignored), folding.folds[::-1]).apply(url) == folding.apply(url)
    seen = [url]
    while folding.apply(seen[-1]) != seen[-1]:
        seen.append(folding.apply(seen[-1]))
        assert len(seen) < 20
    assert all(len(after) <= len(before) for before, after in pairwise(seen))
