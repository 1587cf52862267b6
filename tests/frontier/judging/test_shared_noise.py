"""Noise that pages share: found on a few of them, and left out of all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from handed_out import AT, TAG, again, context, handed, judged, planned, visit

from optimal_frontier.detection.section_history import SectionHistory
from optimal_frontier.detection.sections import WHOLE, Section
from optimal_frontier.frontier.judging import shared_noise
from optimal_frontier.frontier.judging.judge import conditions_of
from optimal_frontier.frontier.judging.noise import PageNoise
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.shared_noise import (
    MOST_ASKED,
    OF_HOST,
    SHOWN_BY,
    Shared,
    SharedNoise,
    latest_of,
    name_of,
    parse_name,
)
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import Observation
from optimal_frontier.state.rows import CHECKED

#: Number of a page, and of the fetch of all -> texts by section.
Look = Callable[[int, int], Mapping[str, Any]]
COUNTER = "span.counter"


class Site:
    """Pages that are fetched in turn, and again within a second where a visit asks for that; ``patterns`` of them there are."""

    def __init__(self, look: Look, pages: int = 20, patterns: int = 1, wait: float = 1.0, round_s: float = 3600.0) -> None:
        self.look, self.wait = look, wait
        self.recent = Recent()
        self.context = context(planned(0.0, round_s), self.recent)
        self.handouts = {n: handed(visits=0, page=n.to_bytes(12, "big"), pattern=1 + n % patterns) for n in range(pages)}
        self.last: dict[int, Observation] = {}
        self.flags: list[bytes] = []
        self.bits: dict[int, list[int]] = {n: [] for n in range(pages)}
        self.fetches = self.seconds = self.cuts = 0

    def fetch(self, number: int, elapsed: float = 3600.0, **values: Any) -> Observation:
        if number in self.last:
            self.handouts[number] = again(self.last[number], elapsed)
        self.fetches += 1
        texts = self.look(number, self.fetches)
        content = "|".join(f"{name}={text}" for name, text in sorted(texts.items())).encode().ljust(16)[-16:]

        def cut() -> list[Section]:
            self.cuts += 1
            return [Section(name, f"{text}".encode().rjust(4)[-4:]) for name, text in texts.items()]

        seen = self.last[number] = judged(self.handouts[number], visit(content, sections=cut, **values), self.context)
        self.bits[number].append(seen.bit)
        self.flags += [seen.flag] if seen.flag else []
        return seen

    def round(self) -> list[int]:
        """Fetch all pages; return the bits of visits that were no second fetches."""
        bits = []
        for number in self.handouts:
            seen = self.fetch(number)
            bits.append(seen.bit)
            for _ in range(4):
                if seen.row.flags & CHECKED:
                    self.seconds += 1
                    seen = self.fetch(number, self.wait)
        return bits

    def shared(self, pattern: int = 1) -> tuple[str, ...]:
        found = self.recent.noise.of("h", pattern)
        return () if found is None else found.left_out


def noisy(number: int, fetch: int) -> dict[str, Any]:
    """Pages with a counter: each third one changes at every visit, the others never do."""
    return {"h1": fetch // 20 if number % 3 == 0 else 0, "p": number, COUNTER: fetch}


def test_what_differs_on_a_few_pages_is_left_out_of_all(caplog):
    site = Site(noisy)
    with caplog.at_level(logging.INFO):
        site.round()
        second = site.round()
    assert site.shared() == (COUNTER,)
    assert 3 <= site.seconds <= MOST_ASKED
    # Until it is found out, pages have changed; from then on there is nothing to compare with.
    assert second == [1] * second.count(1) + [-1] * second.count(-1)
    assert second.count(1) < 10
    # Of pages that were visited before it was found out, one visit more says nothing.
    site.round()
    assert site.round() == [int(number % 3 == 0) for number in range(20)]
    assert caplog.messages == ["h: 1 sections of pages like http://h/a differ within seconds; they do not count as changes"]


def test_what_was_learned_from_noise_is_forgotten():
    site = Site(noisy)
    for _ in range(3):
        site.round()
    row = site.last[1].row
    assert (row.shape, row.time, row.score, row.variance) == (0.0,) * 4


def test_a_page_that_seldom_changed_keeps_what_was_learned():
    """The counter appears on its pattern late, when much is known of the pages."""
    site = Site(lambda number, fetch: {"h1": number, COUNTER: max(0, fetch - 200)})
    for _ in range(10):
        site.round()
    before = site.last[19].row
    while not site.shared():
        site.round()
    site.round()
    after = site.last[19].row
    assert before.changes == 0
    assert after.shape > 0
    assert after.observations >= before.observations


def test_pages_that_do_not_change_cost_nothing():
    site = Site(lambda number, fetch: {"h1": number, "p": 0})
    for _ in range(10):
        site.round()
    assert (site.seconds, site.cuts, site.shared()) == (0, 0, ())


def test_pages_that_change_between_visits_are_asked_a_few_times_and_ever_more_seldom():
    """Nothing differs within seconds: eight second fetches of the first 64 visits, then as many after twice as many, and so on."""
    site, day = Site(lambda number, fetch: {"h1": day["n"], "p": number}), {"n": 0}
    asked = []
    for day["n"] in range(4):
        site.round()
        asked.append(site.seconds)
    assert asked[1] == asked[2] == asked[3] == MOST_ASKED
    assert site.shared() == ()
    assert site.bits[19] == [-1, 1, 1, 1]


def test_what_few_pages_have_is_not_left_out_of_all():
    """A third of the pages has a counter; all of them change at each visit."""
    site, day = Site(lambda number, fetch: {"h1": day["n"], COUNTER: fetch if number % 3 == 0 else 0}, pages=60), {"n": 0}
    for day["n"] in range(3):
        site.round()
    assert site.seconds > 0
    assert site.shared() == ()


@pytest.mark.parametrize("name", ["p.ad", "footer"])
def test_patterns_of_a_host_learn_from_each_other(name):
    """Ten patterns of two pages: none of them could find it out alone."""
    site = Site(lambda number, fetch: {"h1": number, name: fetch}, patterns=10)
    site.round()
    site.round()
    assert {site.shared(pattern) for pattern in (1, 10, 11)} == {(name,)}
    assert site.recent.noise.of("h", 1).pattern == OF_HOST
    assert site.recent.noise.of("other", 1) is None
    site.round()
    assert set(site.round()) == {0}


def test_by_its_place_alone_nothing_is_left_out_of_another_pattern():
    site = Site(lambda number, fetch: {"h1": number, "main > p:nth-of-type(2)": fetch}, patterns=10)
    for _ in range(3):
        site.round()
    assert site.seconds > SHOWN_BY
    assert site.shared() == ()


def test_what_is_noise_of_one_pattern_counts_on_another():
    """The counter of the first is the content of the second, which has it on one page of five."""
    site = Site(lambda number, fetch: {"h1": number, COUNTER: fetch if number % 2 == 0 else number}, patterns=2)
    for _ in range(3):
        site.round()
    assert site.shared(1) == (COUNTER,)
    assert site.shared(2) == ()


def test_a_pattern_that_shows_more_noise_later_leaves_out_both():
    site = Site(lambda number, fetch: {"h1": number, COUNTER: fetch, "p.ad": fetch if fetch > 120 else 0})
    for _ in range(9):
        site.round()
    assert set(site.shared()) == {COUNTER, "p.ad"}
    assert set(site.round()) == {0}
    assert [len(parse_name(name).left_out) for name in site.flags] == [1, 2]


def test_where_nothing_else_is_left_a_visit_gives_no_bit():
    site = Site(lambda number, fetch: {COUNTER: fetch})
    for _ in range(5):
        assert set(site.round()) <= {-1, 1}
    assert set(site.round()) == {-1}


def test_a_page_that_cannot_be_cut_is_not_left_out():
    site = Site(lambda number, fetch: {WHOLE: fetch})
    for _ in range(3):
        site.round()
    assert site.seconds > 0
    assert site.shared() == ()


@pytest.mark.parametrize(("wait", "round_s"), [(11.0, 3600.0), (1.0, 2.0)])
def test_where_second_fetches_tell_nothing_nothing_is_shared(wait, round_s):
    """They come late; or the crawl visits all pages within seconds."""
    site = Site(noisy, wait=wait, round_s=round_s)
    for _ in range(3):
        site.round()
    assert site.shared() == ()


def test_lists_that_gain_entries_are_news():
    """Each page is a list of which a second fetch shows an entry more."""

    def look(number: int, fetch: int) -> dict[str, Any]:
        return {"h1": number}

    site = Site(look)
    noise, lists = site.recent.noise, 0
    for number in range(20):
        for entries in (range(10), range(5, 20), range(6, 21)):
            parts = b"".join(b"%03d" % entry for entry in entries)
            section = Section("ul > li", parts[-4:], parts)
            if number in site.last:
                site.handouts[number] = again(site.last[number], 1.0 if site.last[number].row.flags & CHECKED else 3600.0)
            came = visit(parts[-16:], sections=lambda section=section: [section])
            seen = site.last[number] = judged(site.handouts[number], came, site.context)
            lists += bool(seen.counters.get("noise_checks")) and seen.bit == 1
    assert lists >= SHOWN_BY
    assert noise.of("h", 1) is None


def test_noise_of_a_page_ends_where_it_is_shared():
    """Nothing is kept of sections of a page that was noisy, and it counts as calm."""
    site = Site(noisy)
    site.round()
    known = PageNoise(SectionHistory().follow([Section("h1", b"same")]), is_noisy=True)
    site.last[0] = replace(site.last[0], memory=Memory(noise=known.pack()))
    site.recent.noise.learn([name_of(Shared("h", 1, AT, (COUNTER,)))])
    seen = site.fetch(0)
    assert (seen.bit, seen.memory, seen.counters["noisy_calmed"]) == (-1, Memory(), 1)


def test_what_others_have_found_counts_here_and_what_was_found_here_ends_with_what_is_stored():
    site = Site(noisy)
    site.round()
    told = Shared("h", 1, AT, (COUNTER, "p.ad"))
    site.recent.noise.learn([name_of(told), b"h 00ff", name_of(Shared("h", 1, AT - 1, ("h1",)))])
    site.round()
    assert (site.seconds, site.shared()) == (0, (COUNTER, "p.ad"))
    assert site.round() == [int(number % 3 == 0) for number in range(20)]
    site.recent.noise.learn([])
    assert site.shared() == ()

    own = Site(noisy)
    own.round()
    own.round()
    assert own.shared() == (COUNTER,)
    own.recent.noise.learn([])  # it is under way
    assert own.shared() == (COUNTER,)
    own.recent.noise.learn(own.flags)
    assert own.shared() == (COUNTER,)
    own.recent.noise.learn([])
    assert own.shared() == ()


def test_a_page_is_asked_for_by_its_validators_as_before():
    """The tag of its fingerprint is another one, which is no reason to fetch it in full."""
    site = Site(noisy)
    site.recent.noise.learn([name_of(Shared("h", 1, AT, (COUNTER,)))])
    seen = site.fetch(0)
    page = again(replace(seen, memory=Memory(etag=b'"1"')))
    assert page.row.tag != TAG
    assert conditions_of(page, TAG, site.context).etag == b'"1"'


def test_a_response_without_sections_is_judged_by_all_of_it():
    """As plain Frontera's, of which a hash is left; or of a source."""
    site = Site(noisy)
    site.recent.noise.learn([name_of(Shared("h", 1, AT, (COUNTER,)))])
    for values in ({"sections": None}, {"source": "whole"}):
        page = judged(handed(visits=0, pattern=1), visit(b"x" * 16, **({"sections": list} | values)), site.context)
        assert page.row.tag == TAG


@pytest.mark.parametrize(
    "name",
    [
        b"h ~00000001@1.0@%5B%22p%22",
        b"h ~00000001@1.0@[]",
        b"h ~00000001@1.0@[1]",
        b"h ~00000001@1.0@{}",
        b"h ~00000001@x@[%22p%22]",
        b"h ~0000000g@1.0@[%22p%22]",
        b"h ~",
        b"\xff ~\xff@\xff@\xff",
        b"h ~1@1@" + b"[" * 100_000,
        b"h +00000001@1.0",
    ],
)
def test_a_damaged_name_says_nothing(name):
    assert parse_name(name) is None
    assert latest_of([name]) == {}
    noise = SharedNoise()
    noise.learn([name])
    assert noise.of("h", 1) is None


def test_names_have_one_blank_before_their_sign():
    """What stands before the last blank is the host, for whoever looks for its partition."""
    shared = Shared("a.example:80", 2**32 - 1, 1.5, ('a[title="x y"] > b', "$['ü ~ @']", "p +"))
    assert name_of(shared).decode().rpartition(" ")[0] == "a.example:80"
    assert parse_name(name_of(shared)) == shared


def test_few_patterns_are_followed(monkeypatch):
    monkeypatch.setattr(shared_noise, "_MOST_GROUPS", 6)
    site = Site(noisy, patterns=20)
    site.round()
    site.round()
    assert len(site.recent.noise._groups) <= 7
