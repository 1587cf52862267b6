"""``import``: what is a page is stored as a spider would store it, what is not is listed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from judged_crawl import JudgedCrawl
from scrapy import Request
from scrapy.utils.request import fingerprint

from optimal_frontier.cli.page_lists import MAX_LINE, ListedPage, RejectedLineError, read_rows
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.namespace import SCHEMA
from optimal_frontier.state.reading import read_page
from optimal_frontier.state.scanning import read_host_names

from .test_cli_project import make_project

A, B, C = "http://a.example/", "https://b.example:8443/x?y=1", "http://c.example/"


def read(data: bytes, name: str = "list.csv"):
    return list(read_rows(io.BytesIO(data), name))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", f"{A},2\n{B}\n{C},0.5\n"),
        ("a.csv", f"url,importance\n{A},2\n{B},\n{C},0.5\n"),
        ("a.csv", f"Importance, URL ,note\r\n2,{A},x\r\n,{B},\r\n0.5,{C}\r\n"),
        ("a.CSV", f'\ufeff"{A}", "2"\n\n  \n{B}\n{C},0.5'),
        ("a.jsonl", f'{{"url": "{A}", "importance": 2}}\n{{"url": "{B}"}}\n{{"url": "{C}", "importance": 0.5, "note": 1}}\n'),
        ("-", f'{{"url": "{A}", "importance": 2}}\n\n{{"url": "{B}", "importance": null}}\n{{"url": "{C}", "importance": "0.5"}}'),
        ("-", f"{A},2\n{B}\n{C},0.5\n"),
    ],
)
def test_every_format_gives_the_same_pages(name, data):
    rows = [row for _, row in read(data.encode(), name)]
    assert rows == [ListedPage(A, 2.0), ListedPage(B), ListedPage(C, 0.5)]


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("a.csv", b"no url", "expected a URL"),
        ("a.csv", b"ftp://a.example/", "expected a URL"),
        ("a.csv", b"http:///path", "expected a URL"),
        ("a.csv", b"http://a.example:port/", "expected a URL"),
        ("a.csv", b"http://a b.example/", "expected a URL"),
        ("a.csv", b"http://[::1/", "expected a URL"),
        ("a.csv", b",2", "expected a URL"),
        ("a.csv", b"http://user:secret@a.example/", "expected a URL without a user name and a password"),
        ("a.csv", b"http://a.example/,zero", "expected an importance above 0, got 'zero'"),
        ("a.csv", b"http://a.example/,0", "expected an importance above 0"),
        ("a.csv", b"http://a.example/,-1", "expected an importance above 0"),
        ("a.csv", b"http://a.example/,inf", "expected an importance above 0"),
        ("a.csv", b"http://a.example/,nan", "expected an importance above 0"),
        ("a.csv", b'"http://a.example/,1', "as CSV"),
        ("a.csv", b"http://a.example/\xff", "expected UTF-8"),
        ("a.csv", b"x" * (MAX_LINE + 5), "expected a line of less than"),
        ("a.jsonl", b"{", "as JSON"),
        ("a.jsonl", b"[" * 100_000, "as JSON"),
        ("a.jsonl", b"[]", 'expected {"url"'),
        ("a.jsonl", b'{"url": 1}', 'expected {"url"'),
        ("a.jsonl", b'{"url": "http://a.example/", "importance": true}', "expected an importance"),
        ("a.jsonl", b'{"url": "http://a.example/", "importance": [1]}', "expected an importance"),
        ("a.jsonl", b'{"url": "http://a.example/", "importance": 1' + b"0" * 400 + b"}", "expected an importance"),
    ],
)
def test_a_broken_line_spoils_no_other(name, line, expected):
    good = b"http://good.example/" if name.endswith("csv") else b'{"url": "http://good.example/"}'
    (first, before), (second, broken), (third, after) = read(good + b"\n" + line + b"\n" + good + b"\n", name)
    assert (first, second, third) == (1, 2, 3)
    assert before == after == ListedPage("http://good.example/")
    assert isinstance(broken, RejectedLineError)
    assert expected in str(broken)


def test_urls_are_written_as_scrapy_writes_them():
    (_, row), (_, other) = read("http://bücher.example/ä b\nhttp://[::1]:8000/x\n".encode())
    assert row.url == Request("http://bücher.example/ä b").url
    assert other.url == "http://[::1]:8000/x"


@pytest.mark.parametrize("command", ["import -", "page", "force", "forget", "reparse", "importance 2", "ping"])
@pytest.mark.parametrize("url", ["http://user:secret@a.example/", "http//user:secret@a.example/", "http://:secret@[/"])
def test_a_password_is_neither_taken_nor_shown(run, ask, store, command, url):
    assert run("import", "-", input=A).exit_code == 0
    result = run(*command.split(), input=url) if command.endswith("-") else run(*command.split(), url)
    assert result.exit_code in (1, 2)
    assert "a.example" in result.output or "[" in result.output
    assert "secret" not in result.output
    assert [row["url"] for row in ask("pages")] == [A]


def test_good_lines_are_stored_and_broken_ones_listed(run, ask, tmp_path, store):
    file = tmp_path / "pages.csv"
    file.write_text(f"url,importance\n{A},2\nnonsense\n{B}\n{A},3\n{C},-1\n")
    result = run("import", str(file))
    assert result.exit_code == 1
    assert result.stdout == "2 new, 1 known, 2 rejected\n"
    listed = result.stderr.splitlines()
    assert len(listed) == 2
    assert listed[0].startswith(f"{file}:3: expected a URL")
    assert listed[1] == f"{file}:6: expected an importance above 0, got '-1'"
    assert {row["url"]: row["importance"] for row in ask("pages")} == {A: 3.0, B: 1.0}
    assert ask("check")["ok"] is True
    again = run("import", "-", input=f"{A}\n{B}\n")
    assert (again.exit_code, again.stdout) == (0, "0 new, 2 known, 0 rejected\n")
    assert {row["url"]: row["importance"] for row in ask("pages")} == {A: 3.0, B: 1.0}


def test_many_batches(run, store):
    lines = "".join(f"http://h{at % 7}.example/{at}\n" for at in range(2500))
    assert run("import", "-", input=lines).stdout == "2,500 new, 0 known, 0 rejected\n"
    assert store.namespace.counts()["pages"] == 2500


def test_an_empty_namespace_may_begin_with_an_import(run, namespace, redis_client):
    """The first spider claims it later."""
    assert run("import", "-", input=f"{A}\n").exit_code == 0
    assert redis_client.hget(f"{namespace}:{{0}}:meta", "schema") == SCHEMA.encode()
    assert redis_client.hget(f"{namespace}:{{0}}:meta", "spider") is None


@pytest.mark.parametrize(("text", "code"), [("", 0), ("url,importance\n", 0), ("nonsense\n", 1)])
def test_a_list_without_a_page_begins_no_namespace(run, namespace, redis_client, text, code):
    result = run("import", "-", input=text)
    assert (result.exit_code, result.stdout) == (code, f"0 new, 0 known, {code} rejected\n")
    assert not redis_client.exists(f"{namespace}:{{0}}:meta")


def test_a_file_that_is_not_there_is_wrong_usage(run):
    assert run("import", "nowhere.csv").exit_code == 2


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="nothing else that opens and cannot be read")
@pytest.mark.parametrize(
    "command", [("import",), ("import", "--merge"), ("import", "--search-log"), ("ping", "--file"), ("force", "--file")]
)
def test_a_file_that_cannot_be_read_is_named(run, store, command):
    """It was the answer that could not be written, as for a disk that is full."""
    result = run(*command, "/proc/self/mem")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "optimal-frontier: /proc/self/mem: cannot be read (Input/output error)\n"


def test_a_namespace_keeps_the_partitions_that_it_has(redis_socket, namespace, run, ask):
    """Whatever the settings here say of new ones."""
    crawl = JudgedCrawl(redis_socket, namespace, partitions=3)
    lines = "".join(f"http://h{at}.example/\n" for at in range(12))
    assert run("import", "-", input=lines).stdout == "12 new, 0 known, 0 rejected\n"
    assert all(crawl.namespace.counts(k)["pages"] for k in range(3))
    assert ask("status")["pages"] == 12
    assert ask("check")["ok"] is True
    crawl.close()


def test_a_new_namespace_gets_the_partitions_of_the_settings(tmp_path, run, redis_client, namespace):
    project = make_project(tmp_path / "p", "OPTIMAL_FRONTIER_PARTITIONS = 4\n")
    assert run("--project", str(project), "import", "-", input=f"{A}\n").exit_code == 0
    assert redis_client.hget(f"{namespace}:{{0}}:meta", "partitions") == b"4"


def test_a_page_is_stored_as_a_spider_would(run, store):
    """As a plain Request(url, meta={"importance": 2.0}): importance, bounds, host, and meta that comes back on every revisit."""
    run("import", "-", input=f"{B},2\n")
    page = read_page(store.namespace, fingerprint(Request(B))[:12], "b.example:8443")
    settings = FrontierSettings.parse({})
    assert page.record == {"url": B, "meta": {b"scrapy_meta": {"importance": 2.0}}}
    assert (page.stated, page.row.importance) == (2.0, 2.0)
    assert page.row.min_interval == settings.min_interval
    assert page.row.max_interval == settings.max_interval
    assert read_host_names(store.namespace, 0) == {page.row.host: "b.example:8443"}


def test_a_spider_with_other_bounds_brings_imported_pages_in_line(run, store):
    """At their first visit, whatever the settings were here."""
    run("import", "-", input=f"{A}\n")
    store.settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_MIN_INTERVAL": 7.0})
    assert store.row(A).min_interval == 1.0
    store.see_all()
    assert store.row(A).min_interval == 7.0


def test_an_imported_importance_goes_before_rules(run, ask, store):
    """Of new pages and of pages that a spider had added without one; where the list states none, a rule speaks."""
    run("import", "-", input=f"{A}\n{B}\n")
    run("import", "-", input=f"{A},2\n{C},3\n")
    store.see_all()
    store.settings = FrontierSettings.parse({"OPTIMAL_FRONTIER_RULES": [{"pattern": ".", "importance": 7.0}]})
    store.advance(100.0)
    store.make_due(A, B, C)
    store.see_all()
    assert {row["url"]: row["importance"] for row in ask("pages")} == {A: 2.0, B: 7.0, C: 3.0}


def test_a_known_page_keeps_its_request(run, store):
    """Only its importance is news, whatever the page waits for; a line without one changes nothing."""
    for url in (A, B):
        store.add(url, importance=1.5, meta={b"scrapy_callback": b"parse_item", b"scrapy_meta": {"shop": 7}})
    store.lease(A)
    assert run("import", "-", input=f"{A},4\n{B},3\n{C},2\n").stdout == "1 new, 2 known, 0 rejected\n"
    assert run("import", "-", input=f"{A}\n{B}\n").stdout == "0 new, 2 known, 0 rejected\n"
    for url, importance in ((A, 4.0), (B, 3.0)):
        page = read_page(store.namespace, fingerprint(Request(url))[:12], "")
        assert page.record == {"url": url, "meta": {b"scrapy_callback": b"parse_item", b"scrapy_meta": {"shop": 7}}}
        assert page.stated == importance
