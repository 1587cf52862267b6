"""Sums over the blocks of a page's text: what came and what went, whatever else there is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from optimal_frontier.detection import fingerprint
from optimal_frontier.detection.block_sums import SUM_BYTES, block_sum, difference, sum_of
from optimal_frontier.detection.fingerprint import take
from optimal_frontier.detection.folding import BREAK, narrowed
from optimal_frontier.detection.recipe import make_recipe

words = st.text(alphabet="abcä é", min_size=1, max_size=6).filter(str.strip)
blocks = st.lists(words, min_size=1, max_size=6)


@given(one=st.lists(words, max_size=20), other=st.lists(words, max_size=20))
def test_few_blocks_add_up_to_what_many_do(one, other):
    sums = [block_sum(narrowed(BREAK.join(some)).encode()) for some in (one, other, one + other)]
    assert sums[2] == (sums[0] + sums[1]) % 2 ** (8 * SUM_BYTES)


def page(*parts: str, inside: str = "div") -> Any:
    body = "".join(f"<{inside}>{part}</{inside}>" for part in parts)
    return SimpleNamespace(headers={"Content-Type": "text/html; charset=utf-8"}, body=f"<body>{body}</body>".encode())


def step(old: Any, new: Any, **options: Any) -> int:
    return difference(sum_of(fingerprint(old, **options)), sum_of(fingerprint(new, **options)))


@given(first=blocks, second=blocks, old=blocks, new=blocks, at=st.integers(0, 6))
def test_one_change_of_a_template_is_one_difference_of_all_pages(first, second, old, new, at):
    """Wherever its blocks stand, and however many they are; a page that changed by itself, too, differs otherwise."""
    steps = {step(page(*own[:at], *old, *own[at:]), page(*own[:at], *new, *own[at:])) for own in (first, second)}
    assert len(steps) == 1
    both = step(page(*first, *old), page(*second, *new))
    own = step(page(*first), page(*second))
    assert both == (steps.pop() + own) % 2 ** (8 * SUM_BYTES)


@given(parts=st.lists(words, min_size=2, max_size=6), at=st.integers(0, 5))
def test_order_is_a_change_without_a_difference_and_copies_count(parts, at):
    """As before: blocks in another order are a change of the page."""
    moved = parts[::-1]
    assume(" ".join(parts).split() != " ".join(moved).split())
    assert step(page(*parts), page(*moved)) == 0
    assert fingerprint(page(*parts)) != fingerprint(page(*moved))
    assert step(page(*parts), page(*parts, parts[at % len(parts)])) != 0


@given(parts=blocks, known=st.binary(min_size=16, max_size=16))
def test_what_is_known_spares_work_and_changes_nothing(parts, known):
    recipe = make_recipe("text")
    made = take(page(*parts), recipe)
    assert made.is_summed
    assert take(page(*parts), recipe, made.digest) == made
    assert take(page(*parts), recipe, known) == made


def test_words_count_and_elements_do_not():
    """Equal texts have equal fingerprints but for the sum, which only differs where the blocks are others."""
    one, other = (fingerprint(made) for made in (page("a b"), page("a", "b")))
    assert one[:-SUM_BYTES] == other[:-SUM_BYTES]
    assert sum_of(one) != sum_of(other)
    assert fingerprint(page(" a\n b ")) == fingerprint(page("a b"))
    assert sum_of(fingerprint(page("ab"))) != sum_of(fingerprint(page("ba")))


def test_what_is_left_out_is_in_no_sum():
    old, new = page("one", "<i>12:01</i>"), page("one", "<i>12:02</i>")
    assert step(old, new) != 0
    assert fingerprint(old, exclude=["i"]) == fingerprint(new, exclude=["i"])
    assert fingerprint(old, ignore=[r"\d+:\d+"]) == fingerprint(new, ignore=[r"\d+:\d+"])
    banner = [step(page(own, "<i>1</i>", "old"), page(own, "<i>2</i>", "new"), ignore=[r"\d"]) for own in ("one", "two")]
    assert banner[0] == banner[1] != 0


def test_only_html_text_is_summed():
    html, data = page("a"), SimpleNamespace(headers={"Content-Type": "application/json"}, body=b'{"a": 1}')
    kinds = {kind: take(html, make_recipe(kind)).is_summed for kind in ("text", "near", "body")}
    assert kinds == {"text": True, "near": False, "body": False}
    assert not take(data, make_recipe("text")).is_summed


def test_blocks_that_differ_in_white_space_are_equal():
    texts = f"a b{BREAK}{BREAK} c", f" a\u2003b {BREAK}c\n", f"c{BREAK}a  b"
    assert len({block_sum(narrowed(text).encode()) for text in texts}) == 1
    assert block_sum(b"a", b"rest") == block_sum(f"a{BREAK}rest".encode()) != block_sum(b"a")
    assert block_sum(b"") == 0
