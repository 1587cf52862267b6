"""What counts as the text that a reader sees."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimal_frontier.detection.visible import DEEP_BYTES, UnreadableMarkupError, fold, parse_html, text_of, visible_text

bounded = settings(max_examples=100, derandomize=True, deadline=None, database=None)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>one</p><p>two</p>", "one two"),
        ("foo<b>bar</b><i>baz</i> <span>qux</span>", "foobarbaz qux"),
        ("foo<!-- c -->bar<?php echo 1 ?>", "foobar"),
        ("one<br>two<hr>three", "one two three"),
        ("<ul><li>one<li>two</ul>", "one two"),
        ("<table><tr><td>1<td>2</table>", "1 2"),
        ("<title>T</title><body>x", "T x"),
        ("a<script>s</script>b<style>s</style>c<noscript><p>n</p></noscript>d<template><p>t</p></template>e", "abcde"),
        ("<SCRIPT>s</SCRIPT>x", "x"),
        ("a&nbsp;&amp;&lt;b&gt; &eacute; &quot;q&quot; &amp;amp;lt;", 'a &<b> é "q" &amp;lt;'),
        ("<p title='a > b' alt=x data-x='<i>'>text", "text"),
        ("<input value=v placeholder=p><img alt=a title=t>text", "text"),
        ("<textarea>typed</textarea><select><option>o</select>", "typed o"),
        ("<p>cafe\u0301</p>", "café"),
        ("<pre>a\n   b\t\u2003c\r\nd&#13;e</pre>", "a b c d e"),
        ("<p>never closed <b>nor this <a href='x", "never closed nor this"),
        ("< not a tag & not an entity", "< not a tag & not an entity"),
        ("plain", "plain"),
        ("", ""),
        (" \n\t ", ""),
        ("<!-- only -->", ""),
        ("<?xml version='1.0' encoding='utf-16'?><html><body>é</body></html>", "é"),
        ("<meta charset=latin-1>é€", "é€"),
        ("nul\x00byte", "nulbyte"),
    ],
)
def test_the_text_of(markup: str, text: str) -> None:
    assert visible_text(markup) == text


@pytest.mark.parametrize("tag", ["<b>", "<p>", "<a>", "<i>", "<u>", "<q>"])
def test_a_document_that_is_too_short_to_be_too_deep_is_not(tag: str) -> None:
    """`text_of` need not look how deep it is: not even one of the shortest elements alone is cut off."""
    markup = tag * ((DEEP_BYTES - 5) // 3) + "deep"
    assert len(markup.encode()) < DEEP_BYTES
    root = parse_html(markup)
    assert text_of(root, may_be_deep=False) == text_of(root)
    assert "deep" in text_of(root)


def test_elements_nested_too_deep_for_the_parser_are_reported_and_not_cut_off() -> None:
    assert visible_text("<div>" * 1000 + "deep") == "deep"
    with pytest.raises(UnreadableMarkupError):
        visible_text("<div>" * 100_000 + "deep")


words = st.lists(st.text(alphabet="abcé<&>\"'1", min_size=1, max_size=6), min_size=1, max_size=8)
blanks = st.text(alphabet=" \n\t\r\u00a0\u2003", min_size=1, max_size=4)


def escaped(word: str) -> str:
    return word.replace("&", "&amp;").replace("<", "&lt;")


@bounded
@given(words=words, data=st.data())
def test_neither_white_space_nor_tags_nor_attributes_change_it(words: list[str], data: st.DataObject) -> None:
    separators = st.one_of(blanks, st.sampled_from(["<br>", "</p><p>", "<div class='x>y'>", " <b> ", "<script>var a = '<p>'</script> "]))
    markup = "<p>" + "".join(escaped(word) + data.draw(separators) for word in words)
    assert visible_text(markup) == " ".join(words)


@bounded
@given(words=words, at=st.integers(0, 7))
def test_every_other_word_changes_it(words: list[str], at: int) -> None:
    other = list(words)
    other[at % len(words)] += "x"
    assert visible_text("<p>" + " ".join(map(escaped, words))) != visible_text("<p>" + " ".join(map(escaped, other)))


@bounded
@given(st.text(alphabet=st.characters(), max_size=200))
def test_no_characters_make_it_raise(text: str) -> None:
    folded = visible_text(text)
    assert folded == fold(folded)


@bounded
@given(st.text(alphabet="<>/!-?&;#x1abp='\" \x00\ud800[]", max_size=120))
def test_no_broken_markup_makes_it_raise(text: str) -> None:
    folded = visible_text(text)
    assert folded == fold(folded)


def test_folding_is_done_once_and_for_all() -> None:
    assert fold("  a\u00a0 \n b\x1f") == "a b"
    assert fold("e\u0301") == fold("\u00e9")
