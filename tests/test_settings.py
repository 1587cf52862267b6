"""Settings: what is refused names the setting, what is accepted may come as text, and rules merge in order."""

from __future__ import annotations

import json
import math
import random
import re
from types import MappingProxyType

import pytest
from each_value import each

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.frontier.judging.waits import shortest_wait
from optimal_frontier.settings import DAY_S, PREFIX, TABLE, FrontierSettings, PageRule, Timetable, UrlLimits
from optimal_frontier.settings.frontier_settings import mean_slot_period
from optimal_frontier.state.rows import Row


def parse(**values: object) -> FrontierSettings:
    """Parse settings given without their prefix."""
    return FrontierSettings.parse({PREFIX + name: value for name, value in values.items()})


REJECTED = {
    "REDIS_URL": ["", 5, None, b"embedded"],
    "NAMESPACE": ["", "a b", "a{b", "a*", "x" * 201, 5, "a\n", "[x]", "q?"],
    "PARTITIONS": [0, -1, 1.5, "many", None, True, 16_385, "inf"],
    "SERVE_PARTITIONS": [5, [], "", True, [True], [-1], ["a"], ["3-1"], [1.5], [16_384], ["0-16384"], [None], "[0", {"a": 1}, [4]],
    "CRAWL_RATE": [0, -1, "fast", "Auto", None, True, float("nan"), "inf", float("inf"), [], 10**400],
    "DISCOVERY_SHARE": [-0.1, 1, 1.5, "x", None, False, "nan"],
    "OBJECTIVE": ["fresh", None, 1, "", ["freshness"]],
    "POLICY": ["Poisson", "uniform", None, 1, "", ["poisson"]],
    "EXPLORATION": ["Median", "explore", None, 1, "", ["median"], "explore_then_commit", "mean", "thompson"],
    "RESOLVE_INTERVAL": [0, -5, "soon", None, "inf", True],
    "MIN_INTERVAL": [0, -1, "x", None, "inf"],
    "MAX_INTERVAL": [0, -1, "x", None, "inf"],
    "RULES": [
        "{",
        '{"pattern": "x"}',
        5,
        None,
        {"pattern": "x"},
        ["x"],
        [{}],
        [{"pattern": "a", "host": "b"}],
        [{"pattern": "("}],
        [{"pattern": 5}],
        [{"pattern": b"x"}],
        [{"pattern": re.compile(b"x")}],
        [{"host": ""}],
        [{"host": 5}],
        [{"pattern": "x", "importance": 0}],
        [{"pattern": "x", "importance": "much"}],
        [{"pattern": "x", "importance": True}],
        [{"pattern": "x", "min_interval": -1}],
        [{"pattern": "x", "max_interval": "inf"}],
        [{"pattern": "x", "interval": 0}],
        [{"pattern": "x", "interval": 5, "min_interval": 1}],
        [{"pattern": "x", "interval": 5, "max_interval": 9}],
        [{"pattern": "x", "min_interval": 5, "max_interval": 4}],
        [{"pattern": "x", "update_times": []}],
        [{"pattern": "x", "update_times": 5}],
        [{"pattern": "x", "update_times": [86_400]}],
        [{"pattern": "x", "update_times": [-1]}],
        [{"pattern": "x", "update_times": [5, 5]}],
        [{"pattern": "x", "update_times": [50, 5]}],
        [{"pattern": "x", "update_times": [5, 5.5]}],
        [{"pattern": "x", "update_times": [0, 59.5], "period": 60}],
        [{"pattern": "x", "update_times": [0, 60], "period": 60}],
        [{"pattern": "x", "update_times": [(5, 1.5)]}],
        [{"pattern": "x", "update_times": [(5, -0.5)]}],
        [{"pattern": "x", "update_times": [(5, "often")]}],
        [{"pattern": "x", "update_times": [(5, 0.5, 1)]}],
        [{"pattern": "x", "update_times": ["noon"]}],
        [{"pattern": "x", "update_times": [0], "period": 0}],
        [{"pattern": "x", "update_times": list(range(0, 98, 2))}],
        [{"pattern": "x", "update_times": [5], "interval": 50}],
        [{"pattern": "x", "period": 60}],
        [{"pattern": "x", "revisit": "no"}],
        [{"pattern": "x", "revisit": 0}],
        [{"pattern": "x", "fingerprint": "html"}],
        [{"pattern": "x", "include": ["p["]}],
        [{"pattern": "x", "exclude": ["$.a["]}],
        [{"pattern": "x", "ignore": ["("]}],
        [{"pattern": "x", "distance": 1.5}],
        [{"pattern": "x", "fingerprint": "body", "include": ["p"]}],
        [{"pattern": "x", "fingerprint": "a.b", "ignore": ["p"]}],
        [{"pattern": "x", "import": 3}],
        [{"pattern": "x", 5: 3}],
    ],
    "HOST_DELAY": [-1, "x", "inf", True, []],
    "HOST_MAX_RATE": [0, -1, "x", "inf", "nan", True, [], 1e-320],
    "LEASE_SECONDS": [0, -1, "x", None, "inf"],
    "RESULT_TIMEOUT": [0, -1, "x", None, "inf"],
    "FINGERPRINT": ["html", None, 5, "", "a..b", ".a", "a.", "a b.c", "1.2", ["text"]],
    "FINGERPRINT_INCLUDE": [5, None, [5], [""], ["p["], ["p::text"], ["$"], ["$x"], ["$.a["], ["$.a..", "p"], "p[", {"p": 1}, "[5]"],
    "FINGERPRINT_EXCLUDE": [5, None, [None], [" "], [":nth-child(x)"], ["a", "p >"], ["p:no-such"], ["$.items[x]"], '["p["]'],
    "FINGERPRINT_IGNORE": [5, None, [5], [""], ["("], ["a", "*"], "(", {"a": 1}, [re.compile("a")]],
    "FINGERPRINT_DISTANCE": [-1, 65, 1.5, "few", None, True, "nan"],
    "DISCOVERY_VALUE": ["yes", None, 2, 1.0, "", []],
    "NEIGHBOURHOODS": ["yes", None, 2, 1.0, "", []],
    "CONDITIONAL_GET": ["yes", None, 2, 1.0, "", []],
    "TEMPLATE_CHANGES": "yes",
    "CALLBACK_ON": ["never", None, 5],
    "ITEM_FIELD": ["", 5, [], True],
    "IGNORED_PARAMETERS": [5, None, [5], [""], {"a": 1}, "[", '[""]', True],
    "FOLD_URLS": [5, None, ["ww"], "host", '["x"]', "[", True],
    "CANONICAL_LINKS": ["yes", None, 2, [], 1.0, "on"],
    "MAX_DEPTH": [0, -1, 1.5, "deep", True, []],
    "HOST_MAX_PAGES": [0, -1, 1.5, "all", True, "inf"],
    "PATTERN_MAX_PAGES": [0, -1, 1.5, "all", True, "nan"],
    "URL_LIMITS": [5, [], "{", "x", {"size": 5}, {"length": 0}, {"repeats": 1}, {"segments": 1.5}, {"parameters": "few"}, {5: 5}, True],
    "SOURCES": [5, None, True, {}, [""], ["feed.xml"], ["ftp://a.org/"], ["http://"], ["http://[::1"], [b"http://a.org/"], "[1"],
    "SOURCE_LIMITS": [5, None, [], "{", "x", {"size": 5}, {"entries": 0}, {"ratio": 0}, {"nesting": -1}, {"bytes": 1.5}, True],
    "SOURCE_HOSTS": [5, None, True, {"a": 1}, [5], [""], ["a b"], ["http://a.org/"], ["a.*"], "[1"],
    "SCHEMES": [5, None, True, [], [5], ["1http"], ["http:"], ["data"], "https,javascript", "[1"],
    "PRIVATE_LINKS": ["yes", None, 2, 1.0, "", []],
    "CALLBACKS": [5, True, {"a": 1}, [5], ["a b"], ["a."], "[1"],
    "URL_KEYS": [5, None, True, {"a": 1}, [5], [""], [" "], "[1"],
    "CLOSE_AFTER": [0, -1, 1.5, "x", "inf", float("inf"), "nan", True],
}


@each("case", [(name, value) for name, values in REJECTED.items() for value in values])
def test_what_is_refused_names_the_setting(case):
    """In one line that says what was expected."""
    name, value = case
    if name == "NAMESPACE" and value is None:
        return
    with pytest.raises(ConfigurationError) as caught:
        parse(**{name: value})
    message = str(caught.value)
    assert message.startswith(PREFIX + name)
    assert "\n" not in message


def test_a_rule_that_is_refused_is_counted_from_zero():
    with pytest.raises(ConfigurationError, match=re.escape("OPTIMAL_FRONTIER_RULES[1]['importance'] = -1")):
        parse(RULES=[{"pattern": "a"}, {"pattern": "b", "importance": -1}])


def test_every_setting_is_tested_for_refusal():
    assert set(REJECTED) == {setting.name for setting in TABLE}


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("CRAWLRATE", "CRAWL_RATE"), ("MIN_INTERVALL", "MIN_INTERVAL"), ("RULE", "RULES"), ("rules", None), ("XYZZY", None), ("BOGUS", None)],
)
def test_an_unknown_name_is_refused_with_a_suggestion(wrong, meant):
    """The setting that was meant, or all there are."""
    expected = rf"unknown setting {PREFIX}{wrong}; " + (rf"did you mean {PREFIX}{meant}\?" if meant else "known are")
    with pytest.raises(ConfigurationError, match=expected):
        parse(**{wrong: 1})


def test_names_without_the_prefix_are_none_of_our_business():
    assert FrontierSettings.parse({"CRAWL_RATE": "nonsense", "FRONTERA_X": 1, 5: 6}).crawl_rate is None


def test_defaults_are_those_of_the_table():
    settings = FrontierSettings.parse({})
    assert settings.crawl_rate is None
    assert settings.namespace == "scrapybot:frontera"
    assert (settings.min_interval, settings.max_interval) == (1.0, 30 * DAY_S)
    assert (settings.discovery_share, settings.resolve_interval, settings.lease_seconds) == (0.2, 60.0, 15.0)
    assert settings.partitions == 1
    assert (settings.host_delay, settings.close_after, settings.rules.entries) == (0.0, None, ())
    assert all(setting.meaning and setting.full_name == PREFIX + setting.name for setting in TABLE)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("CRAWL_RATE", "12.5", 12.5),
        ("CRAWL_RATE", "auto", None),
        ("CRAWL_RATE", 5, 5.0),
        ("DISCOVERY_SHARE", "0", 0.0),
        ("RESOLVE_INTERVAL", "1e1", 10.0),
        ("MAX_INTERVAL", "86400", 86400.0),
        ("HOST_DELAY", "0.5", 0.5),
        ("HOST_DELAY", "None", 0.0),
        ("HOST_MAX_RATE", "0.5", 0.5),
        ("HOST_MAX_RATE", "None", None),
        ("POLICY", "poisson", "poisson"),
        ("PARTITIONS", "16", 16),
        ("EXPLORATION", "explore-then-commit", "explore-then-commit"),
        ("FINGERPRINT", "near", "near"),
        ("FINGERPRINT", "shop.contents.Offer.of", "shop.contents.Offer.of"),
        ("FINGERPRINT_INCLUDE", "[data-x]", ("[data-x]",)),
        ("FINGERPRINT_INCLUDE", '["main", "$.items[*]"]', ("main", "$.items[*]")),
        ("FINGERPRINT_EXCLUDE", (".ad", "$['any name'][-1]..*"), (".ad", "$['any name'][-1]..*")),
        ("FINGERPRINT_IGNORE", r"\d+", (r"\d+",)),
        ("FINGERPRINT_IGNORE", "2024", ("2024",)),
        ("FINGERPRINT_IGNORE", "null", ("null",)),
        ("FINGERPRINT_EXCLUDE", "", ()),
        ("FINGERPRINT_EXCLUDE", ".ad, .top", (".ad, .top",)),
        ("FINGERPRINT_DISTANCE", "8", 8),
        ("SOURCES", ["http://a.org/feed"], ("http://a.org/feed",)),
        ("SOURCES", '["http://a.org/feed"]', ("http://a.org/feed",)),
        ("SOURCES", "http://a.org/1 https://a.org/2", ("http://a.org/1", "https://a.org/2")),
        ("URL_KEYS", "one,two, one", ("one", "two")),
        ("URL_KEYS", '["a,b"]', ("a,b",)),
        ("CLOSE_AFTER", "3", 3),
        ("CLOSE_AFTER", "None", None),
        ("CLOSE_AFTER", 3.0, 3),
        ("NAMESPACE", "my:spider", "my:spider"),
        ("OBJECTIVE", "changes", "changes"),
    ],
)
def test_values_may_be_text_as_the_command_line_gives_them(name, text, value):
    assert getattr(parse(**{name: text}), name.lower()) == value
    assert type(getattr(parse(**{name: text}), name.lower())) is type(value)


@pytest.mark.parametrize(
    ("value", "served"),
    [
        ([0, 3, "8-11"], (0, 3, 8, 9, 10, 11)),
        ("0, 3, 8-11", (0, 3, 8, 9, 10, 11)),
        ('[3, "0 - 1"]', (0, 1, 3)),
        ([2, 2], (2,)),
        ("None", None),
    ],
)
def test_partitions_that_are_served_may_be_ranges(value, served):
    assert parse(PARTITIONS=12, SERVE_PARTITIONS=value).serve_partitions == served


def test_a_partition_that_is_served_must_be_one():
    """The line names both settings."""
    with pytest.raises(ConfigurationError, match=r"^OPTIMAL_FRONTIER_SERVE_PARTITIONS names partition 12: expected 0 to 11.*_PARTITIONS"):
        parse(PARTITIONS=12, SERVE_PARTITIONS=["8-12"])


def test_rules_may_be_json():
    rules = [{"pattern": "/news/", "interval": 60}, {"host": "Example.org", "revisit": False}]
    assert parse(RULES=json.dumps(rules)).rules.digest() == parse(RULES=rules).rules.digest()
    assert parse(RULES=tuple(MappingProxyType(rule) for rule in rules)).rules.digest() == parse(RULES=rules).rules.digest()


@pytest.mark.parametrize("host", ["Bücher.example", "xn--bcher-kva.example", "bücher.example:8080"])
def test_rules_of_a_host_hold_for_its_pages_in_whatever_letters(host: str) -> None:
    """Requests of Scrapy have it in ASCII, those of plain Frontera as they were given."""
    rules = parse(RULES=[{"host": host, "importance": 3}]).rules
    urls = ("http://xn--bcher-kva.example:8080/a", "http://bücher.example:8080/ü")
    assert [rules.of(url).importance for url in (*urls, "http://b.example:8080/")] == [3, 3, None]


def test_bot_name_and_download_delay_give_defaults():
    settings = FrontierSettings.parse({"BOT_NAME": "bot", "DOWNLOAD_DELAY": "0.25"}, "spider")
    assert (settings.namespace, settings.host_delay) == ("bot:spider", 0.25)
    settings = FrontierSettings.parse({"BOT_NAME": "bot", "DOWNLOAD_DELAY": 1, PREFIX + "NAMESPACE": "n", PREFIX + "HOST_DELAY": 0})
    assert (settings.namespace, settings.host_delay) == ("n", 0.0)
    with pytest.raises(ConfigurationError, match="DOWNLOAD_DELAY"):
        FrontierSettings.parse({"DOWNLOAD_DELAY": "slow"})


def test_the_smaller_of_host_delay_and_host_max_rate_holds():
    """Whichever of the two allows a host less."""
    assert parse(HOST_MAX_RATE=4).host_pause == 0.25
    assert parse(HOST_MAX_RATE=4, HOST_DELAY=0.1).host_pause == 0.25
    assert parse(HOST_MAX_RATE=4, HOST_DELAY=2).host_pause == 2.0
    slowed = FrontierSettings.parse({"DOWNLOAD_DELAY": 1, PREFIX + "HOST_MAX_RATE": 4})
    assert slowed.host_pause == 1.0
    assert slowed.slot_period == pytest.approx(1.218, abs=1e-3)
    assert FrontierSettings.parse({"DOWNLOAD_DELAY": 2, "DOWNLOAD_DELAY_JITTER": 0}).slot_period == 2.0


def test_a_slot_with_a_random_delay_lets_through_as_much_as_plans_count_with():
    """The mean of what Scrapy's slot does: a new draw whenever the last one is over, until one is no longer than what has passed."""
    rng = random.Random(1)
    for jitter in (0.0, 0.2, 0.5, 1.0):
        periods = []
        for _ in range(20_000):
            passed = drawn = rng.uniform(1 - jitter, 1 + jitter)
            while (drawn := rng.uniform(1 - jitter, 1 + jitter)) > passed:
                passed = drawn
            periods.append(passed)
        assert sum(periods) / len(periods) == pytest.approx(mean_slot_period(1.0, jitter), rel=0.01)


def test_memoryless_visits_are_for_freshness():
    """Azar's problem has no other objective; the line names both settings."""
    with pytest.raises(ConfigurationError, match=r"^OPTIMAL_FRONTIER_POLICY = 'poisson'.*OPTIMAL_FRONTIER_OBJECTIVE.*'changes'") as caught:
        parse(POLICY="poisson", OBJECTIVE="changes")
    assert "\n" not in str(caught.value)
    assert parse(POLICY="poisson", OBJECTIVE="freshness").policy == "poisson"
    assert parse(OBJECTIVE="changes").policy == "periodic"


@pytest.mark.parametrize("name", ["DISPATCH", "HALF_LIFE"])
def test_settings_of_the_first_edition_are_refused(name):
    """There is one way to dispatch, and habits that change are learned anew by themselves."""
    with pytest.raises(ConfigurationError, match=f"unknown setting {PREFIX}{name}"):
        parse(**{name: "edf"})


def test_intervals_that_exclude_each_other_are_refused():
    with pytest.raises(ConfigurationError, match=r"MIN_INTERVAL = 60.*MAX_INTERVAL = 30"):
        parse(MIN_INTERVAL=60, MAX_INTERVAL=30)
    assert parse(MIN_INTERVAL=60, MAX_INTERVAL=60).min_interval == 60


def test_options_that_the_kind_of_fingerprint_does_not_look_at_are_refused():
    """Where both are said in one place; a rule may say otherwise than the settings."""
    with pytest.raises(ConfigurationError, match=r"^OPTIMAL_FRONTIER_FINGERPRINT_INCLUDE = \['p'\].*OPTIMAL_FRONTIER_FINGERPRINT = 'body'"):
        parse(FINGERPRINT="body", FINGERPRINT_INCLUDE=["p"])
    with pytest.raises(ConfigurationError, match=r"^OPTIMAL_FRONTIER_RULES\[1\]\['ignore'\] = \['p'\].*\['fingerprint'\] = 'a.b'"):
        parse(RULES=[{"host": "a"}, {"host": "a", "fingerprint": "a.b", "ignore": ["p"]}])
    assert parse(FINGERPRINT="body", FINGERPRINT_IGNORE=["p"], RULES=[{"host": "a", "include": ["p"]}]).fingerprint == "body"


def test_what_is_refused_of_a_list_is_counted_from_zero():
    with pytest.raises(ConfigurationError, match=r"^OPTIMAL_FRONTIER_FINGERPRINT_EXCLUDE\[1\] = 'p\[': expected a CSS selector"):
        parse(FINGERPRINT_EXCLUDE=["p", "p["])
    with pytest.raises(ConfigurationError, match=r"^OPTIMAL_FRONTIER_RULES\[0\]\['include'\]\[1\] = '\$\.a\[': expected a JSON path"):
        parse(RULES=[{"host": "a", "include": ["p", "$.a["]}])
    with pytest.raises(ConfigurationError, match=r"^OPTIMAL_FRONTIER_FINGERPRINT_IGNORE\[0\] = '\(': expected a regular expression"):
        parse(FINGERPRINT_IGNORE="(")


def test_what_counts_as_content_is_no_column():
    """Rules that say nothing else change no stored page."""
    rules = [{"host": "a", "importance": 2}]
    told = [{**rules[0], "fingerprint": "near", "include": ["p"], "exclude": [], "ignore": ["x"], "distance": 3}]
    assert parse(RULES=told).rules.digest() == parse(RULES=rules).rules.digest()
    page = parse(RULES=[*told, {"host": "a", "include": []}]).rules.of("http://a/")
    assert (page.fingerprint, page.include, page.exclude, page.ignore, page.distance) == ("near", (), (), ("x",), 3)


def test_every_rule_that_matches_applies_and_later_ones_win():
    rules = parse(
        RULES=[
            {"pattern": "example", "importance": 2, "min_interval": 10, "max_interval": 100},
            {"host": "example.org", "max_interval": 50},
            {"pattern": r"/pinned/", "interval": 7},
            {"pattern": r"/pinned/loose", "min_interval": 5},
            {"pattern": r"/once$", "revisit": False},
            {"pattern": r"/once$", "importance": 3},
        ]
    ).rules
    assert rules.of("http://other.net/") == PageRule()
    assert rules.of("http://example.net/") == PageRule(2, 10, 100)
    assert rules.of("http://example.org/a") == PageRule(2, 10, 50)
    assert rules.of("http://example.org/pinned/") == PageRule(2, 7, 7)
    assert rules.of("http://example.org/pinned/loose") == PageRule(2, 5, None)
    assert rules.of("http://other.net/once") == PageRule(3, None, None, revisit=False)


def test_a_host_rule_is_for_the_host_alone():
    """Whatever its case, with any port or with the one named; not for hosts that contain its name."""
    rules = parse(RULES=[{"host": "Example.org", "importance": 2}, {"host": "example.org:8080", "importance": 3}]).rules
    importance = {
        "http://example.org/": 2,
        "http://EXAMPLE.ORG/example.com": 2,
        "http://user:pw@example.org:80/": 2,
        "http://example.org:8080/": 3,
        "http://www.example.org/": None,
        "http://example.org.net/": None,
        "http://other/example.org": None,
    }
    assert {url: rules.of(url).importance for url in importance} == importance


@pytest.mark.parametrize(
    ("rule", "longest", "shortest", "gap"),
    [
        (PageRule(), 1000, 10, 10),
        (PageRule(None, 50, 500), 500, 50, 50),
        (PageRule(None, 2, None), 1000, 2, 2),
        (PageRule(None, 5000, None), 5000, 5000, 5000),
        (PageRule(None, None, 4), 4, 4, 4),
        (PageRule(None, 60, 60), 60, 60, 30),
    ],
)
def test_bounds_of_a_rule_go_before_those_of_the_settings(rule, longest, shortest, gap):
    """And always leave room: the shortest is never above the longest. Pinned pages may come after half their interval."""
    found = parse(MIN_INTERVAL=10, MAX_INTERVAL=1000).interval_bounds(rule)
    assert found == pytest.approx((shortest, longest), rel=1e-5)
    assert (found[0] == found[1]) == (rule.min_interval is not None and rule.min_interval == rule.max_interval)
    row = Row(min_interval=found[0], max_interval=found[1])
    assert shortest_wait(Row.unpack(row.pack())) == pytest.approx(gap, rel=1e-5)
    assert found[0] >= (rule.min_interval or 0) or rule.max_interval is not None
    assert found[1] <= (rule.max_interval or math.inf)


def test_rules_that_merge_to_a_contradiction_still_give_bounds():
    rules = parse(RULES=[{"pattern": "a", "min_interval": 100}, {"pattern": "a", "max_interval": 10}]).rules
    shortest, longest = parse().interval_bounds(rules.of("a"))
    assert 0 < shortest <= longest < math.inf


def test_the_digest_tells_rules_apart():
    """It decides whether stored bounds are brought in line."""
    variants = [
        [],
        [{"pattern": "a"}],
        [{"host": "a"}],
        [{"pattern": "a", "importance": 2}],
        [{"pattern": "a", "importance": 3}],
        [{"pattern": "a"}, {"pattern": "b"}],
        [{"pattern": "b"}, {"pattern": "a"}],
    ]
    assert len({parse(RULES=rules).rules.digest() for rules in variants}) == len(variants)
    assert parse(RULES=[{"pattern": "a", "importance": "2"}]).rules.digest() == parse(RULES=variants[3]).rules.digest()


def test_explorations_are_those_that_there_are():
    """Of live crawls; simulations know more."""
    row = next(setting for setting in TABLE if setting.name == "EXPLORATION")
    names = ["median", "epsilon", "explore-then-commit"]
    assert [parse(EXPLORATION=name).exploration for name in names] == names
    with pytest.raises(ConfigurationError) as caught:
        parse(EXPLORATION="none")
    assert re.findall(r'"([\w-]+)"', str(caught.value).partition("expected")[2]) == names
    assert row.default == names[0] == FrontierSettings.parse({}).exploration


def test_update_times_are_those_of_a_day_and_certain_unless_told():
    """As a list, or as JSON; a later interval drops them, and the other way round."""
    given = [
        {"pattern": "/news", "update_times": [21600, (64800, 0.25)]},
        {"pattern": "/ticker", "update_times": [[0, 1], [4, "0.5"]], "period": 8},
    ]
    for settings in (parse(RULES=given), parse(RULES=json.dumps(given))):
        assert settings.rules.of("http://a/news").update_times == Timetable(DAY_S, (21600.0, 64800.0), (1.0, 0.25))
        assert settings.rules.of("http://a/ticker").update_times == Timetable(8.0, (0.0, 4.0), (1.0, 0.5))
        assert settings.rules.of("http://a/").update_times is None
    pinned = {"pattern": "/news", "interval": 60}
    assert parse(RULES=[*given, pinned]).rules.of("http://a/news") == PageRule(None, 60.0, 60.0)
    assert parse(RULES=[pinned, *given]).rules.of("http://a/news").min_interval is None
    assert parse(RULES=given).rules.digest() != parse(RULES=given[:1]).rules.digest()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("IGNORED_PARAMETERS", "utm_*, sid", ("utm_*", "sid")),
        ("IGNORED_PARAMETERS", '["sid"]', ("sid",)),
        ("IGNORED_PARAMETERS", [], ()),
        ("FOLD_URLS", "www,slash", ("www", "slash")),
        ("FOLD_URLS", ["case"], ("case",)),
        ("CANONICAL_LINKS", "True", True),
        ("CANONICAL_LINKS", 0, False),
        ("ITEM_FIELD", "_change", "_change"),
        ("ITEM_FIELD", "None", None),
        ("MAX_DEPTH", "5", 5),
        ("MAX_DEPTH", "None", None),
        ("HOST_MAX_PAGES", 1e3, 1000),
        ("URL_LIMITS", {"repeats": 5}, UrlLimits(repeats=5)),
        ("URL_LIMITS", '{"length": null}', UrlLimits(length=None)),
        ("URL_LIMITS", None, UrlLimits(None, None, None, None)),
        ("URL_LIMITS", "None", UrlLimits(None, None, None, None)),
    ],
)
def test_settings_of_urls_may_come_as_text(name, value, expected):
    """As JSON, or with commas between; of URL_LIMITS what is not said stays as it is by default."""
    assert getattr(parse(**{name: value}), name.lower()) == expected


def test_a_spider_has_a_namespace_and_keys_of_its_own():
    values = {"BOT_NAME": "bot", PREFIX + "URL_KEYS": ["%(name)s:start_urls", "shared"]}
    one, other = (FrontierSettings.parse(values, spider) for spider in ("one", "{other} *"))
    assert (one.namespace, one.url_keys) == ("bot:one", ("one:start_urls", "shared"))
    assert other.namespace == "bot:%7Bother%7D%20%2A"
    assert FrontierSettings.parse({PREFIX + "NAMESPACE": one.namespace}).namespace == one.namespace
