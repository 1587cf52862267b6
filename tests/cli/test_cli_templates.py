"""Changes of templates, in ``status``, ``page`` and ``noise``."""

from __future__ import annotations

import ast
import re

import pytest

from optimal_frontier.cli.template_facts import shared_sections
from optimal_frontier.detection.section_history import SectionHistory
from optimal_frontier.detection.sections import OWN_TEXT, Section
from optimal_frontier.frontier.judging.noise import PageNoise
from optimal_frontier.frontier.judging.template_events import name_of

from .stored_crawl import HOT
from .test_cli_noise import remember


@pytest.fixture
def changed(crawl):
    """The template of a.example changed twice; on another host it did once, and a block page came up."""
    names = [name_of("a.example", 5, 1000.0), name_of("a.example", 7, 2000.0), name_of("b.example", 5, 1500.0), b"a.example 00ff"]
    for name in names:
        crawl.namespace.command("ZADD", crawl.key("flagged"), 3000, name)
    crawl.namespace.command("HINCRBY", crawl.key("stats"), "template_changes", 214)
    return crawl


def test_status_counts_them(ask, run, changed):
    answer = ask("status")
    assert [answer[name] for name in ("template_events", "template_hosts", "template_changes")] == [3, 2, 214]
    assert answer["flagged_contents"] == 1
    assert re.search(r"\ntemplates +3 changes on 2 hosts; 214 visits showed nothing else, and count as unchanged", run("status").stdout)


def test_status_has_no_word_of_them_where_there_were_none(ask, run, crawl):
    assert ask("status")["template_events"] == 0
    assert "templates" not in run("status").stdout


def test_page_and_noise_say_when_the_template_of_the_host_changed(ask, run, changed):
    assert ask("page", HOT)["template_changes"] == [1000.0, 2000.0]
    assert re.search(r"\ntemplate +changed 2 times, last at 1970-01-01 .*; a page that changed by nothing else", run("page", HOT).stdout)
    for target in (HOT, "a.example"):
        assert ask("noise", target)["template"]["changes"] == [1000.0, 2000.0]
        assert "template of the host: changed 2 times" in run("noise", target).stdout


def followed(number: int, *footers: bytes) -> SectionHistory:
    history = SectionHistory()
    for turn, footer in enumerate(footers):
        own = Section("main", bytes([number, turn, 0, 0]))
        history = history.follow((own, Section("footer", footer), Section("nav", b"same"), Section("body" + OWN_TEXT, footer)))
    return history


def test_sections_that_changed_and_are_the_same_on_most_pages_are_of_the_template():
    histories = [followed(n, b"2025", b"2026", b"2026") for n in range(4)] + [followed(9, b"2024", b"2025")]
    found = shared_sections(histories)
    assert found == [{"selector": name, "pages": 5, "shared": 4, "changed": 5} for name in ("body" + OWN_TEXT, "footer")]
    assert shared_sections(histories[:2]) == []


def test_noise_names_sections_of_the_template_and_a_rule_for_the_host(ask, run, crawl):
    urls = [HOT, *(f"http://a.example/more/{n}" for n in range(3))]
    for n, url in enumerate(urls):
        if n:
            crawl.add(url)
        remember(crawl, url, PageNoise(followed(n, b"2025", b"2026")))
    template = ask("noise", "a.example")["template"]
    assert [section["selector"] for section in template["sections"]] == ["body" + OWN_TEXT, "footer"]
    assert template["rule"] == {"pattern": r"^https?://a\.example/", "exclude": ["footer"]}
    assert ast.literal_eval(template["rule_python"]) == template["rule"]
    assert "of the template: footer, the same on 4 of 4 pages" in run("noise", "a.example").stdout
    assert ask("noise", HOT)["template"]["sections"] == []
