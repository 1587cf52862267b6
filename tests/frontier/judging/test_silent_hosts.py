"""Hosts that do not answer are left alone for as long as they have been silent, unless it is this process that hears nobody."""

from __future__ import annotations

import gc

import pytest
from handed_out import RECEIVED, context, handed, judged, visit

from optimal_frontier.frontier.judging.retry_after import LONGEST_HOLD_S
from optimal_frontier.frontier.judging.silent_hosts import SilentHosts
from optimal_frontier.frontier.judging.visits import Visit, failed_visit
from optimal_frontier.state.rows import ONCE, TRANSIENT

SILENT, OTHER, TIMEOUT_S = "silent.example", "other.example", 10.0


class Crawl:
    """Fetches of two hosts, at times of its own: one that answers at once, and one that lets each fetch wait for `TIMEOUT_S`."""

    def __init__(self) -> None:
        self.hosts, self.now = SilentHosts(), 0.0

    def answer(self, error: str = "", host: str = OTHER) -> None:
        self.now += 0.1
        assert self.hosts.after(host, error, self.now - 0.05, self.now) == 0.0

    def wait(self, error: str = "TimeoutError", begun: float | None = None) -> float:
        """Return for how long the host is left alone afterwards."""
        begun = self.now if begun is None else begun
        self.now = max(self.now, begun + TIMEOUT_S)
        return self.hosts.after(SILENT, error, begun, self.now)


@pytest.fixture
def crawl() -> Crawl:
    made = Crawl()
    for begun in (0.0, 0.0, 1.0, 1.0):  # several at once, before anybody knows
        assert made.wait(begun=begun) == 0.0
        made.answer()
    return made


def test_a_host_is_left_alone_for_as_long_as_it_is_silent(crawl: Crawl) -> None:
    """From its first fetch without an answer on, which ended at 10 s; so fetches become fewer and fewer."""
    assert crawl.hosts.hosts() == [SILENT]
    held = []
    for _ in range(12):
        held.append(crawl.wait())
        assert held[-1] == pytest.approx(min(crawl.now - TIMEOUT_S, LONGEST_HOLD_S))
        crawl.now += held[-1]
    assert held[-1] == LONGEST_HOLD_S
    assert held[4] > 16 * held[0]


@pytest.mark.parametrize("error", ["", "404", "503", "truncated", "TooManyRedirects"])
def test_any_answer_ends_it(crawl: Crawl, error: str) -> None:
    assert crawl.wait() > 0.0
    crawl.answer(error, SILENT)
    assert crawl.hosts.hosts() == []
    assert [crawl.wait(), crawl.wait()] == [0.0, 0.0]


@pytest.mark.parametrize("error", ["RobotsDenied", "IgnoreRequest", "dropped", "NotSupported", "callback"])
def test_what_was_not_asked_of_a_host_says_nothing_of_it(crawl: Crawl, error: str) -> None:
    assert crawl.hosts.after(SILENT, error, crawl.now, crawl.now) == 0.0
    assert crawl.wait() > 0.0


@pytest.mark.parametrize("error", ["TimeoutError", "CannotResolveHostError", "ConnectionRefusedError", "SSLError"])
def test_single_failures_hold_nobody(error: str) -> None:
    crawl = Crawl()
    for _ in range(20):
        assert [crawl.wait(error), crawl.wait(error)] == [0.0, 0.0]
        assert crawl.hosts.hosts() == []
        crawl.answer()
        crawl.answer(host=SILENT)


def test_where_nobody_answers_it_is_the_crawler_that_is_away() -> None:
    """When its network is back no host is left alone for it: neither for fetches that began before, nor after."""
    crawl = Crawl()
    crawl.answer()
    for _ in range(30):
        assert crawl.wait() == 0.0
    assert crawl.hosts.hosts() == [SILENT]
    begun = crawl.now
    crawl.answer()
    assert crawl.wait(begun=begun) == 0.0
    crawl.answer(host=SILENT)
    assert crawl.hosts.hosts() == []


def test_few_hosts_are_remembered() -> None:
    hosts = SilentHosts()
    for n in range(10_000):
        for _ in range(3):
            hosts.after(f"h{n}", "TimeoutError", n, n)
    assert len(hosts.hosts()) == 4_000
    assert "h9999" in hosts.hosts()


@pytest.mark.parametrize("state", [0, ONCE, TRANSIENT])
def test_the_judge_says_so_of_all_requests(state: int) -> None:
    """Not where a crawl is to end: there each page is owed its attempt."""
    values = {"state": state} if state else {}
    for settings, is_held in [({}, True), ({"CLOSE_AFTER": 1}, False)]:
        within = context(**settings)
        for at in range(4):
            handout = handed(received=RECEIVED + at, **values)
            observation = judged(handout, Visit(RECEIVED + at + 0.5, "TimeoutError"), within)
            judged(handed(host="other", received=RECEIVED + at), visit(responded=RECEIVED + at + 0.6), within)
        assert (observation.hold == 3.0) == is_held
        assert within.recent.silent_hosts.hosts() == ["h"] * is_held


@pytest.mark.parametrize(("found", "is_silent"), [("http://dead.example/", False), ("http://h/elsewhere", True), ("", True)])
def test_a_redirect_to_a_host_that_is_away_is_an_answer(found: str, is_silent: bool) -> None:
    """The page fails, and its host is no silent one for that; one that redirects to itself and falls silent is."""
    within = context()
    for at in range(6):
        observation = judged(handed(received=RECEIVED + at), failed_visit("TimeoutError", RECEIVED + at + 0.5, found), within)
        judged(handed(host="other", received=RECEIVED + at), visit(responded=RECEIVED + at + 0.6), within)
        assert observation.row.failures == 1
    assert (observation.hold > 0.0) == is_silent
    assert within.recent.silent_hosts.hosts() == ["h"] * is_silent


def test_a_redirect_answers_before_what_it_leads_to_fails() -> None:
    """Or a network that went away meanwhile would look like one that is there, and hosts be left alone for that."""
    within = context()
    for at in (0, 20, 40, 60):
        observation = judged(handed(received=RECEIVED + at), failed_visit("TimeoutError", RECEIVED + at + 5), within)
        judged(handed(host="other", received=RECEIVED), failed_visit("TimeoutError", RECEIVED + at + 6, "http://dead.example/"), within)
    assert observation.hold == 0.0


def test_a_cached_response_is_no_answer() -> None:
    within = context()
    for at in range(3):
        judged(handed(), Visit(RECEIVED + at, "TimeoutError"), within)
        judged(handed(), visit(is_cached=True, is_downloaded=False), within)
    assert within.recent.silent_hosts.hosts() == ["h"]


def test_another_thread_can_list_them_meanwhile() -> None:
    """Also where garbage is collected in the midst of it, and what that runs lets the thread that judges go on: the courier would end."""
    hosts, heard = SilentHosts(), SilentHosts.after
    for n in range(2_000):
        for _ in range(3):
            hosts.after(f"h{n}", "TimeoutError", n, n)

    def judge_one(phase: str, _: object) -> None:
        heard(hosts, "h0", "" if phase == "start" else "TimeoutError", 0.0, 0.0)

    thresholds = gc.get_threshold()
    gc.callbacks.append(judge_one)
    gc.set_threshold(10)
    try:
        assert len(hosts.hosts()) >= 1_999
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(judge_one)
