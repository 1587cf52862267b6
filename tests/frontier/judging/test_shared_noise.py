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
from optimal_frontier.frontier.judging.judge import conditions_of, is_last_content
from optimal_frontier.frontier.judging.noise import PageNoise
from optimal_frontier.frontier.judging.recent import Recent
from optimal_frontier.frontier.judging.shared_noise import (
    CALM_AFTER,
    MOST_ASKED,
    OF_HOST,
    SHOWN_BY,
    Kind,
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
KIND = Kind("h", 1, TAG)


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
        found = self.recent.noise.of(Kind("h", pattern, TAG))
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
    assert caplog.messages == ["h: sections of pages like http://h/a that differ within seconds, and so do not count as changes: 1"]


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
    assert site.recent.noise.of(KIND).kind.pattern == OF_HOST
    assert site.recent.noise.of(KIND._replace(host="other")) is None
    assert site.recent.noise.of(KIND._replace(tag=TAG + 1)) is None
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
    """As on a page of which little else was there, and is gone."""
    site = Site(lambda number, fetch: {COUNTER: fetch})
    site.recent.noise.learn([name_of(Shared(KIND, AT, (COUNTER,)))])
    for _ in range(5):
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
    assert noise.of(KIND) is None


def test_noise_of_a_page_ends_where_it_is_shared():
    """Nothing is kept of sections of a page that was noisy, and it counts as calm."""
    site = Site(noisy)
    site.round()
    known = PageNoise(SectionHistory().follow([Section("h1", b"same")]), is_noisy=True)
    site.last[0] = replace(site.last[0], memory=Memory(noise=known.pack()))
    site.recent.noise.learn([name_of(Shared(KIND, AT, (COUNTER,)))])
    seen = site.fetch(0)
    assert (seen.bit, seen.memory, seen.counters["noisy_calmed"]) == (-1, Memory(), 1)


def test_what_others_have_found_counts_here_and_what_was_found_here_ends_with_what_is_stored():
    site = Site(noisy)
    site.round()
    told = Shared(KIND, AT, (COUNTER, "p.ad"))
    site.recent.noise.learn([name_of(told), b"h 00ff", name_of(Shared(KIND, AT - 1, ("h1",)))])
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
    site.recent.noise.learn([name_of(Shared(KIND, AT, (COUNTER,)))])
    seen = site.fetch(0)
    page = again(replace(seen, memory=Memory(etag=b'"1"')))
    assert page.row.tag != TAG
    assert conditions_of(page, TAG, site.context).etag == b'"1"'


def test_a_response_that_a_304_stands_for_is_known_by_what_counts():
    site = Site(noisy)
    site.recent.noise.learn([name_of(Shared(KIND, AT, (COUNTER,)))])
    page = again(site.fetch(1))
    for text, is_last in ((0, True), (1, False)):
        sections = [Section(name, f"{value}".encode().rjust(4)) for name, value in (("h1", text), ("p", 1), (COUNTER, "x"))]
        cached = visit(b"another counter!", sections=lambda sections=sections: sections, is_cached=True)
        assert is_last_content(page, cached, site.context) == is_last


def test_a_response_without_sections_is_judged_by_all_of_it():
    """As plain Frontera's, of which a hash is left; or of a source."""
    site = Site(noisy)
    site.recent.noise.learn([name_of(Shared(KIND, AT, (COUNTER,)))])
    for values in ({"sections": None}, {"source": "whole"}):
        page = judged(handed(visits=0, pattern=1), visit(b"x" * 16, **({"sections": list} | values)), site.context)
        assert page.row.tag == TAG
        page = again(replace(page, memory=Memory(etag=b'"1"')))
        assert conditions_of(page, TAG, site.context).etag == b'"1"'


@pytest.mark.parametrize(
    "name",
    [
        b"h ~000000010001@1.0@%5B%22p%22",
        b"h ~000000010001@1.0@[1]",
        b"h ~000000010001@1.0@{}",
        b"h ~000000010001@x@[%22p%22]",
        b"h ~0000000g0001@1.0@[%22p%22]",
        b"h ~00000001@1.0@[%22p%22]",
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
    assert noise.of(KIND) is None


def test_names_have_one_blank_before_their_sign():
    """What stands before the last blank is the host, for whoever looks for its partition."""
    shared = Shared(Kind("a.example:80", 2**32 - 1, 2**16 - 1), 1.5, ('a[title="x y"] > b', "$['ü ~ @']", "p +", "$['\ud800']"))
    assert name_of(shared).decode().rpartition(" ")[0] == "a.example:80"
    assert parse_name(name_of(shared)) == shared


def test_a_section_that_is_the_same_again_counts_again():
    """A live evening: the score differs within seconds, and daily from then on."""
    day = {"n": 0}
    site = Site(lambda number, fetch: {"h1": number, "div.score": fetch if day["n"] < 3 else day["n"]})
    for day["n"] in range(3):
        site.round()
    assert site.shared() == ("div.score",)
    for day["n"] in range(3, 18):
        site.round()
    assert site.shared() == ()
    assert parse_name(site.flags[-1]).left_out == ()
    for day["n"] in range(18, 20):
        bits = site.round()
    assert set(bits) == {1}


@pytest.mark.parametrize(("pages", "patterns"), [(4, 1), (8, 1), (12, 4), (24, 8)])
def test_on_few_pages_or_patterns_too(pages, patterns):
    """It was live for weeks."""
    day = {"n": 0}
    site = Site(lambda number, fetch: {"h1": number, "div.score": fetch if day["n"] < 60 else day["n"]}, pages=pages, patterns=patterns)
    for day["n"] in range(60):
        site.round()
    assert site.shared() == ("div.score",)
    for day["n"] in range(60, 500):
        if not site.shared():
            break
        site.round()
    assert site.shared() == ()


def test_what_is_all_of_a_page_is_checked_too():
    """Other sections are gone, and it does not differ within seconds any more."""
    day = {"n": 0}
    site = Site(lambda number, fetch: {"div.score": day["n"]})
    site.recent.noise.learn([name_of(Shared(KIND, AT, ("div.score",)))])
    for day["n"] in range(20):
        site.round()
    assert site.shared() == ()
    assert set(site.round()) == {0}


def test_a_second_fetch_is_asked_for_in_full():
    site, day = Site(lambda number, fetch: {"h1": day["n"], "p": number}, pages=20), {"n": 0}
    asked = []
    for day["n"] in range(2):
        for number in site.handouts:
            seen = site.fetch(number)
            page = again(replace(seen, memory=(seen.memory or Memory())._replace(etag=b'"1"')), 1.0)
            asked.append((bool(seen.row.flags & CHECKED), conditions_of(page, TAG, site.context) is None))
    assert set(asked) == {(False, False), (True, True)}


def test_a_section_that_still_differs_stays_left_out():
    site = Site(noisy)
    for _ in range(20):
        site.round()
    assert site.shared() == (COUNTER,)
    assert len(site.flags) == 1
    assert CALM_AFTER < site.seconds < 0.15 * site.fetches


def test_what_a_host_leaves_out_counts_on_a_pattern_on_which_it_does_not_differ():
    """What is a counter in ten patterns is content in another one, of which most was never fetched before."""
    site = Site(lambda number, fetch: {"h1": number, COUNTER: fetch // 200 if number % 11 == 0 else fetch}, pages=110, patterns=11)
    for _ in range(2):
        site.round()
    assert site.recent.noise.of(KIND._replace(pattern=2)).left_out == (COUNTER,)
    for _ in range(27):
        site.round()
    assert site.shared(1) == ()
    assert site.shared(2) == (COUNTER,)


def test_a_second_fetch_that_brings_another_page_says_nothing():
    """One that is refused with status 200 has next to nothing of the first."""

    def look(number: int, fetch: int) -> dict[str, Any]:
        is_again = bool(site.last.get(number) and site.last[number].row.flags & CHECKED)
        page = {"title": "shop", "h1": number, "main > p": day["n"], "footer": "us"}
        return {"title": "slow", "h1": "Too fast", "main > p": f"reference {fetch}"} if is_again else page

    site, day = Site(look), {"n": 0}
    for day["n"] in range(3):
        site.round()
    assert site.seconds > 0
    assert site.shared() == ()


@pytest.mark.parametrize("menus", [2, 18, 70])
def test_lists_on_pages_with_many_menus_are_news(menus):
    def parts(*entries: int) -> bytes:
        return b"".join(b"%03d" % entry for entry in entries)

    site, lists = Site(noisy), 0
    for _ in range(3):
        for number in range(20):
            for _turn in range(3):
                newest = site.fetches
                site.fetches += 1
                latest = parts(*range(newest % 900, newest % 900 + 10))
                cut = [Section(f"nav.menu{n} > a", b"menu", parts(*range(5))) for n in range(menus)]
                cut.append(Section("ul.latest li.entry", latest[-4:], latest))
                is_again = number in site.last and site.last[number].row.flags & CHECKED
                if number in site.last:
                    site.handouts[number] = again(site.last[number], 1.0 if is_again else 3600.0)
                came = visit(b"%016d" % newest, sections=lambda cut=cut: cut)
                site.last[number] = judged(site.handouts[number], came, site.context)
                lists += bool(is_again)
                if not site.last[number].row.flags & CHECKED:
                    break
    assert lists >= SHOWN_BY
    assert site.recent.noise.of(KIND) is None


def test_another_order_is_a_change():
    """Entries without a name that change places."""
    site = Site(lambda number, fetch: {"li:nth-of-type(1)": fetch > 20, "li:nth-of-type(2)": fetch <= 20, COUNTER: fetch})
    site.recent.noise.learn([name_of(Shared(KIND, AT, (COUNTER,)))])
    site.round()
    assert set(site.round()) == {1}
    assert set(site.round()) == {0}


@pytest.mark.parametrize("kind", ["whole", "near"])
def test_what_sections_cannot_show_keeps_its_fingerprint(kind):
    """A callable's, that of a large page or of a part of a document; and one that may differ a little."""
    site = Site(noisy)
    site.recent.noise.learn([name_of(Shared(KIND, AT, (COUNTER,)))])
    bits, page = [], handed(visits=0, pattern=1)
    for turn in range(4):
        distance = 6 if kind == "near" else 0
        name = "h1" if kind == "near" else WHOLE
        seen = judged(
            page, visit(b"same".ljust(16), distance=distance, sections=lambda t=turn, n=name: [Section(n, bytes([t]))]), site.context
        )
        bits.append(seen.bit)
        page = again(seen, 3600.0)
    assert bits == [-1, 0, 0, 0]


def test_pages_that_are_the_same_without_their_noise_are_no_block_pages():
    """Their own text stands in what is left out; what else is there changes on all pages to the same."""
    day = {"n": 0}
    site = Site(lambda number, fetch: {"#content": f"{number} {fetch}", "aside": day["n"] if day["n"] else number})
    site.recent.noise.learn([name_of(Shared(KIND, AT, ("#content",)))])
    for day["n"] in range(4):
        site.round()
        assert {seen.outcome for seen in site.last.values()} == {"ok"}


def test_block_pages_are_found_on_pages_that_share_noise():
    day = {"n": 0}
    site = Site(lambda number, fetch: {"h1": "busy"} if day["n"] else {"h1": number, COUNTER: fetch})
    site.recent.noise.learn([name_of(Shared(KIND, AT, (COUNTER,)))])
    for day["n"] in range(2):
        site.round()
    assert sum(seen.outcome != "ok" for seen in site.last.values()) == 18


def test_a_page_whose_own_noise_was_lost_is_found_noisy_again():
    """Nothing is remembered of it, but that all its last bits are changes."""
    site = Site(lambda number, fetch: {"h1": 0, "span.nonce": fetch}, pages=1)
    for _ in range(5):
        site.round()
    site.last[0] = replace(site.last[0], memory=Memory(), row=site.last[0].row._replace(bits=0b1111, observations=9))
    for _ in range(6):
        site.round()
    assert PageNoise.unpack(site.last[0].memory.noise).is_noisy
    assert site.seconds < 8


def test_once_many_kinds_are_stored_others_find_their_own(monkeypatch):
    monkeypatch.setattr(shared_noise, "MOST_STORED", 1)
    site = Site(noisy)
    site.recent.noise.learn([name_of(Shared(KIND._replace(host="other"), AT, (COUNTER,)))])
    for _ in range(3):
        site.round()
    assert (site.shared(), site.flags) == ((), [])


def test_few_patterns_are_followed(monkeypatch):
    monkeypatch.setattr(shared_noise, "_MOST_GROUPS", 6)
    site = Site(noisy, patterns=20)
    site.round()
    site.round()
    assert len(site.recent.noise._groups) <= 7
