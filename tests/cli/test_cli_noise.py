"""``noise``: what is said of stored sections, and the rule that is proposed."""

from __future__ import annotations

import ast
import re

import pytest

from optimal_frontier.cli.noise_command import _regex
from optimal_frontier.detection.section_history import SectionHistory, key_of
from optimal_frontier.detection.sections import OWN_TEXT, Section
from optimal_frontier.frontier.admitting.pages import pattern_number
from optimal_frontier.frontier.admitting.patterns import pattern_of
from optimal_frontier.frontier.judging.noise import PageNoise
from optimal_frontier.frontier.judging.shared_noise import OF_HOST, Kind, Shared, name_of
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory

from .stored_crawl import HOT, UNSEEN, WARM
from .test_cli_project import make_project, only_line


def history(*steady: str, quick: int = 0, own_text: bool = False) -> SectionHistory:
    """Of eight visits to a page with an ad, a date, and what is `steady`; the last ones ``quick``."""
    kept = SectionHistory()
    for turn in range(8 + quick):
        is_quick = turn >= 8
        day = bytes([0, 0, 0, min(turn, 7)])
        page = [Section(name, b"same") for name in steady]
        page += [Section("div.ad", bytes([1, 0, 0, turn])), Section("footer > p:nth-of-type(2)", day)]
        if own_text:
            page.append(Section("#content" + OWN_TEXT, bytes([2, 0, 0, turn])))
        kept = kept.follow(page, quick=is_quick)
    return kept


def remember(crawl, url: str, noise: PageNoise) -> None:
    crawl.namespace.command("HSET", crawl.key("memory"), crawl.page(url), Memory(etag=b"x", noise=noise.pack()).pack())


NO_TEMPLATE = {"changes": [], "sections": [], "rule": None, "rule_python": None}


@pytest.fixture
def noisy(crawl):
    """HOT is noisy; of WARM, of the same host but another pattern, sections are kept."""
    remember(crawl, HOT, PageNoise(history("h1", "p", quick=2), is_noisy=True, mask=frozenset((key_of("div.ad"),))))
    remember(crawl, WARM, PageNoise(history("h1")))
    return crawl


def test_a_page_of_which_nothing_is_kept(ask, run, crawl):
    assert ask("noise", HOT) == {"target": HOT, "pages": 1, "shared": [], "kept": 0, "noisy": 0, "groups": [], "template": NO_TEMPLATE}
    assert "nothing to say" in run("noise", HOT).stdout
    assert ask("noise", "a.example")["pages"] == 2
    assert ask("page", HOT)["noise"] is None
    assert "\nnoise" not in run("page", HOT).stdout


def test_sections_of_a_page_and_its_rule(ask, run, noisy):
    answer = ask("noise", HOT)
    (group,) = answer["groups"]
    assert (answer["kept"], answer["noisy"], group["pairs"], group["quick_pairs"]) == (1, 1, 9, 2)
    assert [(row["selector"], row["changed"], row["pairs"], row["within_seconds"], row["changes"]) for row in group["sections"]] == [
        ("div.ad", 9, 9, 2, "within seconds"),
        ("footer > p:nth-of-type(2)", 7, 9, 0, "on every visit"),
    ]
    assert group["rule"] == {"pattern": r"^http://a\.example/hot$", "exclude": ["div.ad", "footer > p:nth-of-type(2)"]}
    shown = run("noise", HOT).stdout
    assert '{"pattern": r"^http://a\\.example/hot$", "exclude": ["div.ad", "footer > p:nth-of-type(2)"]}' in shown
    assert re.search(r"1 +9 of 9 +2 +2 of 2 +within seconds +div\.ad", shown)


def test_the_rule_can_be_pasted(ask, noisy):
    """It is Python, and RULES take it."""
    (group,) = ask("noise", HOT)["groups"]
    rule = ast.literal_eval(group["rule_python"])
    assert rule == group["rule"]
    settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_RULES": [rule]})
    assert settings.rules.of(HOT).exclude == tuple(rule["exclude"])
    assert settings.rules.of(WARM).exclude is None


def test_pages_of_a_host_are_grouped_by_pattern(ask, noisy):
    answer = ask("noise", "a.example")
    assert (answer["pages"], answer["kept"], answer["noisy"]) == (2, 2, 1)
    rules = {group["name"]: group["rule"] for group in answer["groups"]}
    assert set(rules) == {"/*", "/warm?x"}
    assert re.search(rules["/*"]["pattern"], HOT)
    assert not re.search(rules["/*"]["pattern"], WARM)
    assert re.search(rules["/warm?x"]["pattern"], WARM)


def test_a_rule_repeats_what_the_settings_leave_out_already(tmp_path, target, noisy, ask):
    """Of FINGERPRINT_EXCLUDE, or of RULES where they say something of the page."""
    rules = [{"pattern": "/warm", "exclude": ["nav"]}]
    text = f'OPTIMAL_FRONTIER_FINGERPRINT_EXCLUDE = [".clock", "div.ad"]\nOPTIMAL_FRONTIER_RULES = {rules}\n'
    project = make_project(tmp_path / "p", text)
    hot, warm = (ask("--project", str(project), "noise", url)["groups"][0]["rule"]["exclude"] for url in (HOT, WARM))
    assert hot == [".clock", "div.ad", "footer > p:nth-of-type(2)"]
    assert warm[0] == "nav"


def test_text_of_a_container_is_named_but_not_left_out(ask, run, crawl):
    remember(crawl, HOT, PageNoise(history("h1", own_text=True)))
    (group,) = ask("noise", HOT)["groups"]
    assert group["own_text"] == ["#content"]
    assert not any("#content" in entry for entry in group["rule"]["exclude"])
    assert "text of #content itself changes" in run("noise", HOT).stdout


def test_page_tells_of_noise(ask, run, noisy):
    facts = ask("page", HOT)["noise"]
    assert facts == {
        "noisy": True,
        "judged_by": "other sections",
        "pairs": 9,
        "quick_pairs": 2,
        "within_seconds": ["div.ad"],
        "on_every_visit": ["footer > p:nth-of-type(2)"],
        "own_text": [],
    }
    assert re.search(r"\nnoise +noisy, judged by its other sections; changes within seconds: div\.ad; ", run("page", HOT).stdout)


def test_status_counts_what_was_found(ask, run, crawl):
    assert ask("status")["noise"] == {"found": 0, "calmed": 0, "checks": 0, "shared_patterns": 0, "shared_hosts": 0}
    crawl.namespace.command("HSET", crawl.key("stats"), "noisy", 2, "noisy_calmed", 1, "noise_checks", 9)
    assert ask("status")["noise"] == {"found": 2, "calmed": 1, "checks": 9, "shared_patterns": 0, "shared_hosts": 0}
    assert "2 pages found to differ within seconds, 1 of them calm again; 9 second fetches" in run("status").stdout


@pytest.fixture
def shared(crawl):
    """Of pages like HOT two sections are left out; of other pages of its host one is; a block page came up there."""
    kind = Kind("a.example", pattern_number("a.example", HOT), 7)
    of_hot = Shared(kind, 1000.0, ("p.ad", "span.views"))
    of_host = Shared(kind._replace(pattern=OF_HOST), 2000.0, ("footer",))
    ended = Shared(kind._replace(host="b.example:8080"), 2000.0, ())
    crawl.rewrite(HOT, pattern=kind.pattern, tag=of_hot.tag)
    crawl.rewrite(WARM, tag=of_host.tag)
    for name in (*map(name_of, (of_hot, of_host, ended, of_hot._replace(since=500.0, left_out=("old",)))), b"a.example 00ff"):
        crawl.namespace.command("ZADD", crawl.key("flagged"), 3000, name)
    return crawl


def test_noise_names_what_is_left_out_of_all_pages(ask, run, shared):
    of_hot = {"host": "a.example", "pattern": "/*", "since": 1000.0, "left_out": ["p.ad", "span.views"]}
    of_host = {"host": "a.example", "pattern": None, "since": 2000.0, "left_out": ["footer"]}
    told = [ask("noise", target)["shared"] for target in (HOT, WARM, "a.example")]
    rules = [[entry.pop("rule") for entry in entries] for entries in told]
    assert [[ast.literal_eval(entry.pop("rule_python")) for entry in entries] for entries in told] == rules
    assert told == [[of_hot], [of_host], [of_host, of_hot]]
    (of_hot_rule,), (of_host_rule,) = rules[:2]
    assert (of_hot_rule["exclude"], of_host_rule["exclude"]) == (["p.ad", "span.views"], ["footer"])
    assert [bool(re.search(of_hot_rule["pattern"], url)) for url in (HOT, WARM, UNSEEN)] == [True, False, False]
    assert [bool(re.search(of_host_rule["pattern"], url)) for url in (HOT, WARM, UNSEEN)] == [True, True, False]
    shown = run("noise", "a.example").stdout
    assert re.search(r"^left out of /\* of a\.example since 1970-01-01 .*: p\.ad, span\.views$", shown, re.M)
    assert re.search(r"^left out of pages of a\.example since 1970-01-01 .*: footer$", shown, re.M)
    assert "nothing to say" not in shown


def test_page_and_status_tell_of_noise_that_is_shared(ask, run, shared):
    assert [ask("page", url)["shared_noise"] for url in (HOT, WARM, UNSEEN)] == [["p.ad", "span.views"], ["footer"], []]
    row = r"\nshared noise +of this page and others like it does not count, as it differs within seconds: p\.ad, span\.views\n"
    assert re.search(row, run("page", HOT).stdout)
    assert "shared noise" not in run("page", UNSEEN).stdout
    answer = ask("status")
    assert (answer["noise"]["shared_patterns"], answer["noise"]["shared_hosts"], answer["flagged_contents"]) == (1, 1, 1)
    said = r"\nnoise +sections that differ within seconds are left out on 1 host, by 1 pattern; 0 second fetches for that\n"
    assert re.search(said, run("status").stdout)


@pytest.mark.parametrize(
    ("target_", "code", "said"),
    [("http://a.example/unknown", 1, "is not known"), ("c.example", 1, "no page of host"), ("http://[::1", 2, "is no URL")],
)
def test_what_is_not_known_or_no_url(run, crawl, target_, code, said):
    result = run("noise", target_)
    assert result.exit_code == code
    assert said in only_line(result)


def test_a_page_that_was_never_visited(ask, crawl):
    assert ask("noise", UNSEEN)["kept"] == 0


@pytest.mark.parametrize(
    "urls",
    [
        ["http://a.example/news/2024/05/17/some-title.html", "http://a.example/news/2025/06/01/other-title-of-it.html"],
        ["https://a.example/view.php?id=17&page=2", "https://a.example/view.php?page=3&id=1"],
        ["http://a.example/"],
        ["http://a.example/a/b/c/d/e.html", "http://a.example/a/b/c/x/y/z.html"],
        ["http://a.example:8080/item-12/5", "http://a.example:8080/item-9/77"],
    ],
)
def test_the_expression_of_a_pattern_matches_its_urls_and_no_other_host(urls):
    (pattern,) = {pattern_of(url) for url in urls}
    expression = _regex(urls, pattern)
    assert all(re.search(expression, url) for url in urls)
    assert not re.search(expression, urls[0].replace("a.example", "aXexample"))
    assert not re.search(expression, "http://b.example/" + urls[0])
