"""Commands that name a page find it by the identity that the crawl gave it."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import replace

import pytest
from scrapy import Request

from optimal_frontier.cli.page_identity import identity
from optimal_frontier.frontier.admitting.claimed_identity import SCRAPYS
from optimal_frontier.frontier.admitting.url_folding import UrlFolding
from optimal_frontier.integrations.frontera.url_identity import UrlIdentity
from optimal_frontier.integrations.scrapy import CanonicalFingerprinter
from optimal_frontier.integrations.scrapy.fingerprinter import describe
from optimal_frontier.state.partition import add_calls
from optimal_frontier.state.records import pack_record

from .test_cli_project import make_project

PLAIN, TAGGED = "http://www.a.example/x?id=7", "http://a.example/x/?utm_source=mail&id=7"
FOLDING = CanonicalFingerprinter(UrlFolding(("utm_*",), ("www", "slash")))


def noted(store) -> str | None:
    return store.namespace.hash("meta").get("identity")


def test_without_a_project_the_namespace_says_what_its_pages_are_known_by(run, ask, store):
    store.namespace.command("HSET", store.key("meta"), "identity", describe(FOLDING))
    assert run("import", "-", input=f"{PLAIN},2\n{TAGGED}\n").stdout == "1 new, 1 known, 0 rejected\n"
    assert ask("page", TAGGED)["fingerprint"] == FOLDING.fingerprint(Request(PLAIN))[:12].hex()
    assert run("force", TAGGED).exit_code == 0
    assert run("page", "http://a.example/y?id=7").exit_code == 1
    assert run("forget", TAGGED).exit_code == 0
    assert run("page", PLAIN).exit_code == 1


def test_a_search_log_weighs_pages_by_that_identity(run, store):
    store.namespace.command("HSET", store.key("meta"), "identity", describe(FOLDING))
    log = f"query,url,position,clicked\nq,{PLAIN},1,1\nq,{TAGGED},2,1\nq,http://b.example/,3,1\n"
    answer = json.loads(run("import", "--search-log", "-", "--json", input=log).stdout)
    assert (answer["pages"], answer["new"]) == (2, 2)


def test_an_import_notes_what_the_pages_are_known_by(run, store):
    run("import", "-", input=f"{PLAIN}\n")
    assert noted(store) == SCRAPYS
    assert store.namespace.command("HGET", store.key("pages"), identity(PLAIN)[:12]) is not None


SETTINGS = """
REQUEST_FINGERPRINTER_CLASS = "optimal_frontier.integrations.scrapy.CanonicalFingerprinter"
OPTIMAL_FRONTIER_FOLD_URLS = "www,slash"
"""


def test_a_project_says_it_of_a_new_namespace(run, tmp_path, store):
    project = make_project(tmp_path / "p", SETTINGS)
    assert run("--project", str(project), "import", "-", input=f"{PLAIN}\n{TAGGED}\n").stdout == "1 new, 1 known, 0 rejected\n"

    assert noted(store).endswith(',["slash","www"]]')
    # The default parameters do not count either.
    assert run("page", TAGGED).exit_code == 0


def test_a_fingerprinter_of_the_users_is_asked_in_its_project_only(run, tmp_path, store):
    module = f"own_{uuid.uuid4().hex[:8]}"
    project = make_project(tmp_path / "p", f'REQUEST_FINGERPRINTER_CLASS = "{module}.Own"\nOWN_LENGTH = 7\n')
    (project / f"{module}.py").write_text(
        "class Own:\n"
        "    def __init__(self, length): self.length = length\n"
        "    @classmethod\n"
        "    def from_crawler(cls, crawler): return cls(crawler.settings.getint('OWN_LENGTH'))\n"
        "    def fingerprint(self, request): return request.url[-self.length:].encode().rjust(20)\n"
    )
    assert run("--project", str(project), "import", "-", input="http://a.example/123456\nhttp://b.example/123456\n").stdout.startswith(
        "1 new"
    )
    assert noted(store) == f"{module}.Own"
    assert run("--project", str(project), "page", "http://c.example/123456").exit_code == 0
    elsewhere = run("page", "http://c.example/123456")
    assert elsewhere.exit_code == 2
    assert "run this in the project" in elsewhere.stderr


@pytest.mark.parametrize("value", ["no.such.Class", "os.path.join"])
def test_a_fingerprinter_that_cannot_be_made_is_one_line(run, tmp_path, value):
    project = make_project(tmp_path / "p", f'REQUEST_FINGERPRINTER_CLASS = "{value}"\n')
    result = run("--project", str(project), "import", "-", input=f"{PLAIN}\n")
    assert result.exit_code == 2
    assert result.stderr.startswith("optimal-frontier: cannot read REQUEST_FINGERPRINTER_CLASS")
    assert len(result.stderr.splitlines()) == 1


def test_pages_of_plain_frontera_are_found_by_its_function(run, ask, store):
    """Frontera's own functions are known here; no other name that Redis holds is loaded."""
    noted_as = "URL_FINGERPRINT_FUNCTION frontera.utils.fingerprint.md5"
    store.namespace.command("HSET", store.key("meta"), "identity", noted_as)
    assert run("import", "-", input="http://a.example/?b=1&a=2\nhttp://a.example/?a=2&b=1\n").stdout == "1 new, 1 known, 0 rejected\n"
    expected = hashlib.md5(b"http://a.example/?a=2&b=1", usedforsecurity=False).hexdigest()[:24]
    assert ask("page", "http://a.example/?b=1&a=2")["fingerprint"] == expected
    assert run("force", "http://a.example/?b=1&a=2").exit_code == 0
    assert "A1 is not known in namespace" in run("page", "A1").stderr
    store.namespace.command("HSET", store.key("meta"), "identity", "URL_FINGERPRINT_FUNCTION os.remove")
    refused = run("page", "http://a.example/")
    assert refused.exit_code == 2
    assert "known by URL_FINGERPRINT_FUNCTION os.remove, a function of the crawl's own" in refused.stderr


def test_pages_of_plain_frontera_need_no_scheme(run, ask, store):
    """Frontera takes any name for a URL, and so do all commands; where pages are Scrapy's they say what is expected."""
    store.namespace.command("HSET", store.key("meta"), "identity", "URL_FINGERPRINT_FUNCTION frontera.utils.fingerprint.sha1")
    known = UrlIdentity("frontera.utils.fingerprint.sha1").of_url("A1")
    store.namespace.run(add_calls(0, [replace(store.new_page(PLAIN), page=known[:12], host="", record=pack_record({"url": "A1"}, ""))]))
    assert ask("page", "A1")["url"] == "A1"
    assert ask("noise", "A1")["pages"] == 1
    assert run("force", "A1").stdout == "already waiting for its first visit: A1\n"
    assert run("importance", "3", "A1").exit_code == 0
    assert "no page of host 'A2'" in run("noise", "A2").stderr
    assert run("forget", "A1").stdout == "forgotten: A1\n"
    assert "A1 is not known in namespace" in run("forget", "A1").stderr
    store.namespace.command("HDEL", store.key("meta"), "identity")
    for command in ("page", "force", "forget", "reparse"):
        refused = run(command, "A1")
        assert (refused.exit_code, "is no URL" in refused.stderr) == (2, True)
