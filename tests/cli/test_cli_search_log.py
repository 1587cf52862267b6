"""``import --search-log``: importance from what was shown and clicked."""

from __future__ import annotations

import csv
import io
import json
import time

import numpy as np
import pytest

from optimal_frontier.cli.page_lists import MAX_LINE
from optimal_frontier.cli.search_log import weigh_pages
from optimal_frontier.errors import InvalidProblemError
from optimal_frontier.optimization import embarrassment_weights
from optimal_frontier.papers.wolf.result_counts import LEAST_IMPORTANCE
from optimal_frontier.settings import FrontierSettings

from .stored_crawl import HOT, UNSEEN, VISITED, WARM, WORTHLESS
from .test_cli_project import make_project

NEW = "http://new.example/"
#: Query, URL, result page, position, clicked: three queries, the last of which went on to the second result page.
ROWS = [
    ("q1", WARM, 1, 1, 1),
    ("q1", HOT, 1, 2, 0),
    ("q2", WARM, 1, 1, 1),
    ("q2", NEW, 1, 2, 0),
    ("q3", WARM, 1, 1, 0),
    ("q3", HOT, 1, 2, 1),
    ("q3", NEW, 2, 1, 1),
    ("q3", WORTHLESS, 2, 2, 0),
]
INCORRECT = {WARM: 0.5, HOT: 1.0, NEW: 0.2, WORTHLESS: 0.9}
PAGES = list(INCORRECT)


def as_csv(rows=ROWS, incorrect=INCORRECT) -> str:
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(["query_id", "url", "page", "position", "clicked", "incorrect"])
    writer.writerows([*row, incorrect[row[1]]] for row in rows)
    return lines.getvalue()


def as_json_lines() -> str:
    names = ("query_id", "url", "page", "position", "clicked")
    return "\n".join(json.dumps(dict(zip(names, row, strict=True)) | {"incorrect": INCORRECT[row[1]]}) for row in ROWS)


def expected() -> dict[str, float]:
    """Eq. 8 by the library, of the frequencies in ROWS; a weight of 0 is the least importance, all others have mean 1 with it."""
    shown, clicks = np.zeros((4, 2, 2)), np.zeros((2, 2))
    for _, url, page, position, clicked in ROWS:
        shown[PAGES.index(url), page - 1, position - 1] += 1
        clicks[page - 1, position - 1] += clicked
    weights = embarrassment_weights(list(INCORRECT.values()), clicks / shown.sum(axis=0), shown / 3)
    assert (weights == 0).tolist() == [False, False, False, True]
    return dict(zip(PAGES, np.where(weights == 0, LEAST_IMPORTANCE, weights * (4 - LEAST_IMPORTANCE) / weights.sum()), strict=True))


def weigh(data: str | bytes, name: str = "log.csv"):
    return weigh_pages(io.BytesIO(data.encode() if isinstance(data, str) else data), name, name)


def test_importance_is_eq_8_of_the_frequencies():
    log = weigh(as_csv())
    assert log.importance == pytest.approx(expected(), rel=1e-6)
    assert (log.counts.rows, log.counts.queries, log.counts.clicks, log.least) == (8, 3, 4, 1)
    assert sum(log.importance.values()) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("log.jsonl", as_json_lines()),
        ("-", as_json_lines()),
        ("-", "\ufeff" + as_csv().replace("\n", "\n\n")),
        ("log.csv", as_csv().replace("url,page", " URL , Page")),
        ("log.csv", as_csv().replace(",1,0.", ",True,0.").replace(",0,0.", ",false,0.").replace(",0,1.0", ",0.0,1")),
        ("log.csv", as_csv(sorted(ROWS, key=lambda row: row[1]))),
    ],
)
def test_every_way_to_write_it_gives_the_same(name, data):
    """Formats, empty lines, letters, words for clicks; and the order of rows."""
    assert weigh(data, name).importance == pytest.approx(expected(), rel=1e-6)


def test_pages_and_incorrect_may_be_left_out():
    """One result page, and every stale copy is wrong."""
    log = weigh(f"clicked,position,url\n1,1,{HOT}\n0,2,{WARM}\n0,1,{WARM}\n1,2,{HOT}\n0,1,{HOT}\n")
    # Clicks: 1/3 in position 1, 1/2 in position 2. HOT: 2 x 1/3 + 1/2, WARM: 1/3 + 1/2, of three queries.
    assert log.importance == pytest.approx({HOT: 2 * (7 / 6) / 2, WARM: 2 * (5 / 6) / 2})
    assert log.embarrassing == pytest.approx(2 / 3)


def test_two_ways_to_write_a_url_are_one_page():
    """By Scrapy's fingerprint, as everywhere; otherwise the second would replace the importance of the first."""
    log = weigh("url,position,clicked\nhttp://a.example/?a=1&b=2,1,1\nhttp://a.example/?b=2&a=1#here,1,1\nhttp://b.example/,2,1\n")
    assert log.importance == pytest.approx({"http://a.example/?a=1&b=2": 4 / 3, "http://b.example/": 2 / 3})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense,1,1,1,", "expected a URL"),
        ("ftp://a.example/,1,1,1,", "expected a URL"),
        (f"{HOT},1,0,1,", "expected a position that is a whole number from 1, got '0'"),
        (f"{HOT},1,1.5,1,", "expected a position that is a whole number from 1, got '1.5'"),
        (f"{HOT},1,,1,", "expected a position that is a whole number from 1, got nothing"),
        (f"{HOT},1,1766000000,1,", "expected a position"),
        (f"{HOT},-1,1,1,", "expected a page that is a whole number from 1, got '-1'"),
        (f"{HOT},inf,1,1,", "expected a page"),
        (f"{HOT},1,1,2,", "expected clicked to be 0 or 1, got '2'"),
        (f"{HOT},1,1,,", "expected clicked to be 0 or 1, got nothing"),
        (f"{HOT},1,1,yes,", "expected clicked to be 0 or 1, got 'yes'"),
        (f"{HOT},1,1,1,1.2", "expected an incorrect that is a probability, 0 to 1, got '1.2'"),
        (f"{HOT},1,1,1,nan", "expected an incorrect"),
        (f"{HOT}", "expected a position that is a whole number from 1, got nothing"),
        (f'"{HOT},1,1,1', "expected url,position,clicked as CSV"),
        (b"http://a.example/\xff,1,1,1,", "expected UTF-8"),
        (b"x" * (MAX_LINE + 5), "expected a line of less than"),
    ],
)
def test_a_row_that_is_no_result_is_named(line, message):
    line = line if isinstance(line, bytes) else line.encode()
    with pytest.raises(InvalidProblemError) as caught:
        weigh(f"url,page,position,clicked,incorrect\n{HOT},1,1,1,\n".encode() + line + b"\n")
    assert str(caught.value).startswith(f"log.csv:3: {message}")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("log.csv", f"{HOT},1,1\n", "log.csv:1: expected a header that names url, position, clicked, got"),
        ("log.csv", f"url,importance\n{HOT},1\n", "log.csv:1: expected a header"),
        ("log.csv", "", "log.csv: expected results that were shown and clicks on them, found no result"),
        ("log.csv", "url,position,clicked\n", "log.csv: expected results .*, found no result"),
        ("log.csv", f"url,position,clicked\n{HOT},1,0\n", "log.csv: expected results .*, found no click"),
        ("log.csv", f"url,position,clicked,incorrect\n{HOT},1,1,0\n", "log.csv: expected results .*, found incorrect 0"),
        ("log.jsonl", "{}", 'log.jsonl:1: expected {"url": ..., "position": ..., "clicked": ...}'),
        ("log.jsonl", '{"url"', "log.jsonl:1: .* as JSON"),
        ("log.jsonl", '{"url": "http://a.example/", "position": true, "clicked": 1}', "log.jsonl:1: expected a position"),
        ("log.jsonl", '{"url": "http://a.example/", "position": 1, "clicked": [1]}', "log.jsonl:1: expected clicked"),
    ],
)
def test_a_file_that_is_no_search_log_is_refused(name, data, message):
    with pytest.raises(InvalidProblemError, match=message):
        weigh(data, name)


def test_known_pages_are_weighed_and_unknown_ones_added(run, ask, crawl, tmp_path):
    """Pages that the log does not have keep their importance; nothing else of a page changes."""
    file = tmp_path / "log.csv"
    file.write_text(as_csv())
    before = {row["url"]: row for row in ask("pages")}
    result = run("import", "--search-log", str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.split(maxsplit=1) for line in result.stdout.splitlines()] == [
        ["log", "8 results of 3 queries, 4 clicks"],
        ["pages", "4: 1 new, 3 known"],
        ["importance", "0.001 to 2.068, mean 1; 1 at the least"],
        ["embarrassing", "0.6444 clicks per query, were all copies stale"],
        ["others", "1 pages are not in the log and keep their importance"],
    ]
    after = {row["url"]: row for row in ask("pages")}
    assert set(after) == {*VISITED, UNSEEN, NEW}
    assert {url: after[url]["importance"] for url in PAGES} == pytest.approx(expected(), rel=1e-6)
    assert after[UNSEEN] == before[UNSEEN]
    for url in VISITED:
        # What a page is worth decides how often it is visited.
        moved = {"importance": 0, "rate": 0, "interval": 0}
        assert after[url] | moved == before[url] | moved
    assert ask("check")["ok"] is True


def test_the_next_plan_goes_by_it(run, crawl, tmp_path):
    """The page that embarrasses most gets more visits than before, at the cost of the one that was important until then."""

    project = str(make_project(tmp_path / "p", "OPTIMAL_FRONTIER_CRAWL_RATE = 1.0\n"))

    def rates() -> dict[str, float]:
        assert run("--project", project, "plan", "--once").exit_code == 0
        return {row["url"]: row["rate"] for row in json.loads(run("pages", "--json").stdout)}

    before = rates()
    rows = "".join(f"{WARM},1,1\n{HOT},2,0\n" for _ in range(99)) + f"{HOT},2,1\n"
    assert run("import", "--search-log", "-", input="url,position,clicked\n" + rows).exit_code == 0
    after = rates()
    assert after[WARM] > before[WARM]
    assert after[HOT] < before[HOT]


def test_as_json(run, crawl):
    answer = json.loads(run("import", "--search-log", "-", "--json", input=as_json_lines()).stdout)
    importance = expected()
    assert answer.pop("lowest_importance") == LEAST_IMPORTANCE
    assert answer.pop("highest_importance") == pytest.approx(max(importance.values()))
    assert answer.pop("embarrassing_clicks_per_query") == pytest.approx(1 / 3 + 2 / 9 + 0.2 * 4 / 9)
    counts = {"rows": 8, "queries": 3, "clicks": 4, "pages": 4, "new": 1, "known": 3, "at_least_importance": 1, "other_pages": 1}
    assert answer == counts
    plain = run("import", "-", "--json", input=f"{HOT},2\n{NEW}x\nnonsense\n")
    assert (plain.exit_code, json.loads(plain.stdout)) == (1, {"new": 1, "known": 1, "rejected": 1})


def test_nothing_is_stored_of_a_file_that_has_a_broken_row(run, ask, crawl, tmp_path):
    """Also where the broken row is the last of many."""
    file = tmp_path / "log.csv"
    file.write_text(as_csv() + "".join(f"q,http://h.example/{at},1,1,1,\n" for at in range(3000)) + "q,nonsense,1,1,1,\n")
    before = ask("pages")
    result = run("import", "--search-log", str(file))
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"optimal-frontier: {file}:3010: expected a URL, http://host/path or https://host/path, got 'nonsense'")
    assert ask("pages") == before


def test_an_empty_namespace_may_begin_with_a_search_log(run, ask):
    result = run("import", "--search-log", "-", input=as_csv())
    assert result.exit_code == 0
    assert "4: 4 new, 0 known" in result.stdout
    assert {row["url"]: row["importance"] for row in ask("pages")} == pytest.approx(expected())


def test_other_rules_leave_imported_importance_of_new_pages(run, ask, store):
    """As any that `import` states: a rule speaks where nothing else does."""
    run("import", "--search-log", "-", input=as_csv())
    store.settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_RULES": [{"pattern": ".", "importance": 7.0}]})
    assert store.see_all() == 4
    assert {row["url"]: row["importance"] for row in ask("pages")} == pytest.approx(expected(), rel=1e-6)


def test_rules_that_change_leave_pages_of_the_log_alone_and_speak_for_others(run, ask, crawl):
    """Also pages that were known before, whose requests stated no importance."""
    run("import", "--search-log", "-", input=as_csv())
    crawl.settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_RULES": [{"pattern": ".", "importance": 7.0}]})
    crawl.advance(100.0)
    crawl.see_all()
    found = {row["url"]: row["importance"] for row in ask("pages")}
    assert {url: found[url] for url in PAGES} == pytest.approx(expected(), rel=1e-6)
    assert found[UNSEEN] == 7.0


def test_a_big_log_takes_seconds(run, store):
    """50,000 results of 4,000 pages: rows are counted, not sent."""
    rng = np.random.default_rng(0)
    pages = rng.zipf(1.3, 50_000) % 4000
    clicked = rng.random(len(pages)) < 0.3 / (np.arange(len(pages)) % 10 + 1)
    rows = "".join(f"q{at // 10},http://h{page % 7}.example/{page},{at % 10 + 1},{clicked[at]:d}\n" for at, page in enumerate(pages))
    begin = time.process_time()
    result = run("import", "--search-log", "-", "--json", input="query_id,url,position,clicked\n" + rows)
    assert time.process_time() - begin < 2.5
    answer = json.loads(result.stdout)
    assert (answer["rows"], answer["queries"], answer["clicks"]) == (50_000, 5_000, int(clicked.sum()))
    assert answer["new"] == answer["pages"] == len(set(pages.tolist())) == store.namespace.counts()["pages"]
