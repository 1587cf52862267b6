"""Plain Frontera's visits are judged as Scrapy's are."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from frontera.core.models import Request, Response
from leased import handed_out
from scrapy.http import HtmlResponse

from optimal_frontier.frontier.judging.fetched_once import is_page
from optimal_frontier.frontier.judging.fingerprinting import Fingerprinting
from optimal_frontier.frontier.judging.judge import Context, judge
from optimal_frontier.frontier.judging.noise import PageNoise
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.visits import Visit, visit_of
from optimal_frontier.integrations.frontera.plain_visits import Lent, plain_visit
from optimal_frontier.integrations.frontera.url_identity import UrlIdentity
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import NOTHING_REMEMBERED
from optimal_frontier.state.messages import Handout, Observation
from optimal_frontier.state.published import Published
from optimal_frontier.state.rows import ACTIVE, DONE, ONCE, Row

URL = "http://a.example/news"
SETTINGS = FrontierSettings.parse({})
FINGERPRINTING = Fingerprinting(SETTINGS)
SHA1 = UrlIdentity("frontera.utils.fingerprint.sha1")
HEADERS = {b"Content-Type": [b"text/html"], b"ETag": [b'"1"'], b"Last-Modified": [b"Tue, 05 Mar 2024 09:58:20 GMT"]}


def plain(handout: Handout, body: bytes, status: int = 200, **redirected: Any) -> Visit:
    url = handout.record["url"]
    request = Request(url, meta={b"redirect_reasons": redirected["reasons"]} if redirected else None)
    response = Response(redirected.get("url", url), status_code=status, headers=HEADERS, body=body, request=request)
    return plain_visit(Lent(handout), response, FINGERPRINTING, SHA1, is_page=is_page(handout, SETTINGS), reads_canonical=False)


def scrapys(handout: Handout, body: bytes, status: int = 200) -> Visit:
    response = HtmlResponse(handout.record["url"], status=status, headers=HEADERS, body=body)
    return visit_of(response, response.url, FINGERPRINTING, time.monotonic(), time.time())


def both(handout: Handout, body: bytes, status: int, contexts: list[Context]) -> Observation:
    """The observation, which is the same either way."""
    visits = plain(handout, body, status), scrapys(handout, body, status)
    for visit in visits:
        visit.responded = handout.received
        visit.age = None if visit.age is None else 1000.0
    one, other = (judge(handout, visit, context) for visit, context in zip(visits, contexts, strict=True))
    assert one == other
    return one


def test_noise_is_found_and_forgiven() -> None:
    """A number that differs within seconds is noise; what differs beside it is a change."""
    contexts = [Context(SETTINGS, replace(Published(), prior_time=1000.0), Recent()) for _ in range(2)]
    row, memory, counted, bits = Row(state=ACTIVE, max_interval=1e6), NOTHING_REMEMBERED, set(), []
    for visit in range(80):
        steady = "".join(f"<p>Paragraph {n} of the article, as it always was.</p>" for n in range(8))
        body = f"<html><body>{steady}<p>{visit * 7919} readers have seen this page today</p></body></html>"
        elapsed = 3.0 if PageNoise.unpack(memory.noise).checks else 3600.0
        handout = handed_out(URL, elapsed, memory, **row._replace(host=1)._asdict() | {"b": 0.0})
        handout.row = handout.row._replace(b=(handout.at - elapsed) * 1e6 if row.visits else 0.0)
        observation = both(handout, body.encode(), 200, contexts)
        row, memory = observation.row, observation.memory or memory
        counted |= set(observation.counters)
        bits.append(observation.bit)
    assert "noisy" in counted
    assert bits[-1] == 0


@pytest.mark.parametrize("status", [404, 410, 429, 500, 503, 206, 203])
def test_statuses_mean_the_same(status: int) -> None:
    """Backoff, retirement, validators."""
    contexts = [Context(SETTINGS, Published(), Recent()) for _ in range(2)]
    both(handed_out(URL), b"<html><body>x</body></html>", status, contexts)


def test_block_pages_are_seen_through() -> None:
    """One content at many pages of a host is no page's own."""
    contexts = [Context(SETTINGS, Published(), Recent()) for _ in range(2)]
    flagged = set()
    for n in range(40):
        handout = handed_out(f"{URL}/{n}", content=b"%016d" % n, tag=FINGERPRINTING.way(URL).tag, shape=1.0, time=1e6)
        flagged.add(both(handout, b"<html><body>Checking your browser before you go on</body></html>", 200, contexts).flag)
    assert len(flagged) > 1


def test_a_page_that_no_rule_has_fetched_once_any_more_is_seen() -> None:
    """What it holds at the first visit is what the next one compares with; of a request that says so itself nothing is kept."""
    body, context = b"<html><body>An article</body></html>", Context(SETTINGS, Published(), Recent())
    handout = handed_out(URL, state=ONCE, visits=0, b=0.0)
    seen = judge(handout, plain(handout, body), context).row
    assert (seen.state, seen.tag, seen.content != Row().content) == (ACTIVE, FINGERPRINTING.way(URL).tag, True)
    handout.record["meta"] = {b"revisit": False}
    assert judge(handout, plain(handout, body), context).row.state == DONE


def test_what_a_redirect_leads_to_has_no_validators_of_this_page() -> None:
    """They are those of another address."""
    visit = plain(handed_out(URL), b"x", url="http://a.example/new", reasons=[301])
    assert (visit.found, list(visit.hops), any(visit.validators)) == ("http://a.example/new", [301], False)
