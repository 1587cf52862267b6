"""Lists that gain an entry at every visit are no noise, however soon; clocks, counters, nonces and random choices are."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from handed_out import again, judged, visit
from test_noise import Page as Sections

from optimal_frontier.detection.fingerprint import fingerprint
from optimal_frontier.detection.growing_lists import has_gained, parts_of
from optimal_frontier.detection.section_history import key_of
from optimal_frontier.detection.sections import Section, sections
from optimal_frontier.frontier.judging.noise import PageNoise
from optimal_frontier.state.rows import CHECKED

STEADY = "<h1>News</h1><p>All of it.</p>"


class Page(Sections):
    """A page of HTML, fetched and judged."""

    def fetch(self, wait: float | None = None) -> int:
        elapsed = wait if wait is not None else 1.0 if self.again else self.interval
        response = SimpleNamespace(headers={"Content-Type": "text/html"}, body=f"<main>{STEADY}{self.look(self.fetches)}</main>".encode())
        self.fetches += 1
        if self.fetches > 1:
            self.handout = again(self.observation, elapsed)
        self.observation = judged(self.handout, visit(fingerprint(response), sections=lambda: sections(response)), self.context)
        for name, by in self.observation.counters.items():
            self.counters[name] = self.counters.get(name, 0) + by
        self.again = bool(self.observation.row.flags & CHECKED)
        return self.observation.bit


def entries(n: int, count: int = 20) -> list[int]:
    """The newest first, a window of them."""
    return list(range(n, n - count, -1))


LISTS = {
    "items without names": lambda n: "<ul>" + "".join(f"<li>Entry {i}</li>" for i in entries(n)) + "</ul>",
    "items with a name": lambda n: "".join(f'<div class="item"><a>Entry {i}</a></div>' for i in entries(n)),
    "items of two parts": lambda n: "<ul>" + "".join(f"<li><h2>Entry {i}</h2><p>Of {i * 7}</p></li>" for i in entries(n)) + "</ul>",
    "at its end": lambda n: "<ol>" + "".join(f"<li>Entry {i}</li>" for i in range(n + 5)) + "</ol>",
    "a table": lambda n: "<table>" + "".join(f"<tr><td>{i}</td><td>{i % 5}</td></tr>" for i in range(n + 5, 0, -1)) + "</table>",
    "a log": lambda n: '<div class="log">' + "".join(f"Line {i}<br>" for i in range(n + 9)) + "</div>",
    "two at once": lambda n: "<ul>" + "".join(f"<li>Entry {i}</li>" for i in entries(2 * n)) + "</ul>",
}
NOISES = {
    "a clock": lambda n: f"<p class='clock'>12:00:{n:02}</p>",
    "a counter": lambda n: f"<footer>Visitor {1000 + n}</footer>",
    "a nonce in a list": lambda n: "<ul>" + "".join(f"<li>Entry {i if i != 3 else n * 1000}</li>" for i in range(9)) + "</ul>",
    "a random choice": lambda n: "".join(f'<div class="ad">Ad {i}</div>' for i in random.Random(n).sample(range(500), 6)),
    "another order": lambda n: "".join(f'<div class="ad">Ad {i}</div>' for i in random.Random(n).sample(range(9), 9)),
    "views in a list": lambda n: "<ul>" + "".join(f"<li>Entry {i}<span>{n * i} views</span></li>" for i in range(1, 9)) + "</ul>",
}


@pytest.mark.parametrize("look", LISTS.values(), ids=LISTS.keys())
def test_a_list_that_gains_an_entry_at_every_fetch_is_no_noise(look) -> None:
    """Each fetch is a change, seconds apart or not, and what is learned is that."""
    page = Page(look)
    bits = page.fetch_many(80)
    assert bits == [-1] + [1] * 79
    assert page.counters["noise_checks"] >= 1
    assert "noisy" not in page.counters
    assert not page.noise.is_noisy


@pytest.mark.parametrize("look", NOISES.values(), ids=NOISES.keys())
def test_what_is_another_at_every_fetch_is_noise_once_it_was_compared_over_several(look) -> None:
    """Four changes, and two second fetches in both of which the same differs."""
    page = Page(look)
    bits = page.fetch_many(5)
    assert bits == [-1, 1, 1, 1, 1]
    assert not page.noise.is_noisy
    page.fetch()
    assert not page.noise.is_noisy
    page.fetch()
    assert page.noise.is_noisy
    assert set(page.fetch_many(30)) == {0}


@pytest.mark.parametrize("look", LISTS.values(), ids=LISTS.keys())
def test_a_list_beside_noise_goes_on_telling_of_changes(look) -> None:
    """The clock is noise; an entry that the list gains every few visits is a change, also of those that a check sees."""
    page = Page(lambda n: NOISES["a clock"](n) + look(n // 5))
    page.fetch_many(12)
    assert page.noise.is_noisy
    bits = [page.fetch() for _ in range(200)]
    assert sum(bit == 1 for bit in bits) == pytest.approx(40, abs=1)


def test_what_is_remembered_of_lists_is_short_and_goes_with_the_check() -> None:
    page = Page(lambda n: "".join(f'<div class="item">Entry {i}</div>' for i in range(n, n + 1000)))
    sizes = []
    for _ in range(30):
        page.fetch()
        noise = page.noise or PageNoise()
        assert PageNoise.unpack(noise.pack()) == noise
        assert bool(noise.parts) == page.again
        sizes.append(len(noise.pack()))
    assert max(sizes) < 1500
    many = [Section(f"#s{at}", b"1234", bytes(3 * 500)) for at in range(100)]
    first = frozenset((key_of("#s77"), key_of("#s99")))
    kept = parts_of(many, first)
    assert first <= kept.keys()
    assert sum(map(len, kept.values())) <= 16 * 48 * 3


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("abcdef", "xyabcd", True),
        ("abcdef", "cdefxy", True),
        ("abcdef", "abxcdyef", True),
        ("ab", "xab", True),
        ("ab", "xa", False),
        ("abcdef", "uvwxab", False),  # less than half has stayed
        ("abcdef", "abcxef", False),
        ("abcdef", "abcde", False),
        ("abcdef", "fabcde", False),
        ("abcdef", "abcdef", False),
        ("", "abc", False),
    ],
)
def test_lists_gain(before: str, now: str, expected: bool) -> None:
    assert has_gained([*map(str.encode, before)], [*map(str.encode, now)]) is expected
