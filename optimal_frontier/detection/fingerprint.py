"""A response in 16 bytes that change when its content does."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha1
from typing import Any, Final, NamedTuple

from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

from optimal_frontier.detection.block_sums import block_sum, is_same_text, with_sum
from optimal_frontier.detection.content import PARSED_BYTES, Response, body_bytes, decoded_text, has_text, is_guessed, media_type
from optimal_frontier.detection.folding import fold, folded_bytes, narrowed, squeezed
from optimal_frontier.detection.items import canonical_bytes
from optimal_frontier.detection.json_content import UnreadableJsonError, canonical_json
from optimal_frontier.detection.recipe import Recipe, make_recipe
from optimal_frontier.detection.selecting import TooManySiblingsError, selection_of
from optimal_frontier.detection.similarity import simhash
from optimal_frontier.detection.visible import DEEP_BYTES, UnreadableMarkupError, parse_html, text_of
from optimal_frontier.detection.xml_content import UnreadableXmlError, canonical_xml

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_JSON: Final = frozenset({"application/json", "text/json", "application/x-json"})
_XML: Final = frozenset({"application/xml", "text/xml"})
#: Sets apart the fingerprints of pages in which nothing to include was found; for ``near`` half of the bits, far from all others.
_MISSED: Final = b"nothing included"
_MISSED_BITS: Final = bytes([0b01010101] * 16)


class Taken(NamedTuple):
    """A fingerprint (16 bytes); whether selectors of what to include matched nothing, so that all of the page counts; and whether it ends
    with the sum of the blocks of its text (`block_sums`)."""

    digest: bytes
    missed: bool = False
    is_summed: bool = False


class _Found(NamedTuple):
    """The text that counts, whether nothing to include was found, whether white space still has to be folded, and whether `BREAK` parts
    its blocks."""

    text: str
    missed: bool
    is_raw: bool = False
    has_blocks: bool = False


def fingerprint(
    response: Response, *, kind: str = "text", include: Sequence[str] = (), exclude: Sequence[str] = (), ignore: Sequence[str] = ()
) -> bytes:
    """Fingerprint of the content of a response.

    Parameters
    ----------
    response : object
        Anything with ``body`` (bytes); ``headers`` (a mapping), ``text`` and ``selector`` are used where there are any, as on Scrapy's
        responses. Nothing is read of the URL or the status. HTML is read through ``response.selector``, so that a callback that uses it
        later has it already. It is not edited; what somebody else took out of it before does not count.
    kind : str
        ``"body"``: every byte of the body. ``"text"``: of HTML the text that a reader sees, see
        `optimal_frontier.detection.visible.visible_text`; of ``text/plain`` the text; of JSON and XML the content, whatever the order of
        names and attributes, the white space and the way numbers are written; of feeds their entries; every byte of anything else, and
        of what cannot be read to the end. ``"near"``: a SimHash of the same text, to be compared by `is_changed` with a distance.
        Otherwise the dotted path of a callable that is given the response and returns bytes, text, an item or items
        (`optimal_frontier.detection.items.canonical_bytes`).
    include, exclude : sequence of str
        CSS selectors of the elements of HTML and XML that count (none: all) and of those that do not; those that start with ``$`` are
        paths into JSON (`optimal_frontier.settings.json_paths.parse_json_path`). Those of another language than the response's are passed
        over. Where nothing of what to include is found, all of the page counts, but the fingerprint is not that of the same page without
        `include`. An attribute never counts in HTML; the content of a script does where the script itself is included.
    ignore : sequence of str
        Regular expressions; what they match is dropped from the text after white space was folded (the text is one line), one after
        the other. For ``"body"`` from the decoded text as it is.

    Returns
    -------
    bytes, 16
        The first half and more of a SHA-1, or a SimHash; of the text of HTML 12 bytes of a SHA-1, and a sum over the blocks of the text
        (`optimal_frontier.detection.block_sums`). No content, however broken, raises.

    Raises
    ------
    InvalidProblemError
        If an option is not one; naming it and its index. What a callable raises is not caught, and what it returns that is no content is
        a TypeError.

    Notes
    -----
    Of HTML and plain text the first 4 MiB are read as described, the rest counts byte by byte; larger JSON and XML count byte by byte.
    With a selector that looks at siblings (``li + li``, ``:nth-child(2)``) or has ``:has()``, so do pages of more than 20,000 elements
    (``li ~ li``: 4,000), or 1,000 in one of them. Time and memory are linear in the size of the body, except for what regular expressions
    ask for (``re`` cannot be interrupted).

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> html = {"Content-Type": "text/html"}
    >>> a = SimpleNamespace(headers=html, body=b"<p class=x>Hello,  world<script>t=1</script><i>12:01</i>")
    >>> b = SimpleNamespace(headers=html, body=b"<p class=y>Hello, <b>world</b><script>t=2</script><i>12:02</i>")
    >>> fingerprint(a) == fingerprint(b), fingerprint(a, exclude=["i"]) == fingerprint(b, exclude=["i"])
    (False, True)
    >>> fingerprint(a, ignore=[r"\\d+:\\d+"]) == fingerprint(b, ignore=[r"\\d+:\\d+"])
    True
    """
    return take(response, make_recipe(kind, include, exclude, ignore)).digest


def take(response: Response, recipe: Recipe, known: bytes = b"") -> Taken:
    """Return the fingerprint by a compiled recipe; for parameters and errors see `fingerprint`.

    ``known`` is a fingerprint that is likely to be the answer: where it is, the blocks need not be added up again.
    """
    if recipe.function is not None:
        return Taken(_hash(canonical_bytes(recipe.function(response))))
    body = body_bytes(response)
    if recipe.kind == "body":
        if not recipe.patterns:
            return Taken(_hash(body))
        text = decoded_text(response, PARSED_BYTES)
        for pattern in recipe.patterns:
            text = pattern.sub("", text)
        return Taken(_hash(_encoded(text), body[PARSED_BYTES:]))
    found = _content(response, body, recipe)
    if found is None:
        return Taken(_hash(body))
    text, rest, missed = found.text, body[PARSED_BYTES:], found.missed
    if recipe.kind == "text" and found.has_blocks:
        return _summed(text, rest, missed, recipe, known)
    if recipe.patterns:
        text = recipe.without_ignored(fold(text))
    if recipe.kind == "near":
        near = simhash(text, rest.split(b"\n") if rest else ())
        return Taken(bytes(bit ^ flip for bit, flip in zip(near, _MISSED_BITS, strict=True)) if missed else near, missed)
    folded = folded_bytes(text) if found.is_raw and not recipe.patterns else _encoded(text)
    return Taken(_hash(folded, _MISSED if missed else b"", rest), missed)


def _summed(text: str, rest: bytes, missed: bool, recipe: Recipe, known: bytes) -> Taken:
    """The fingerprint of a text in blocks."""
    text = narrowed(text)
    encoded = _encoded(text)
    folded = _encoded(recipe.without_ignored(fold(text))) if recipe.patterns else squeezed(encoded)
    digest = _hash(folded, _MISSED if missed else b"", rest)
    if is_same_text(digest, known):
        return Taken(known, missed, True)
    if recipe.patterns:
        for pattern in recipe.patterns:
            text = pattern.sub(" ", text)
        encoded = _encoded(text)
    return Taken(with_sum(digest, block_sum(encoded, rest)), missed, True)


def _hash(content: bytes, *more: bytes) -> bytes:
    # Nobody gains by two contents of equal fingerprint, so what counts is speed: half the time of BLAKE2b.
    state = sha1(content, usedforsecurity=False)
    for part in more:
        if part:
            state.update(b"\x00")
            state.update(part)
    return state.digest()[:16]


def _encoded(text: str) -> bytes:
    # a lone surrogate is a character here like any other
    return text.encode("utf-8", "surrogatepass")


def _content(response: Response, body: bytes, recipe: Recipe) -> _Found | None:
    """What counts of the response; None where the bytes do."""
    language = language_of(response)
    is_whole = len(body) <= PARSED_BYTES
    with suppress(UnreadableMarkupError, UnreadableJsonError, UnreadableXmlError, TooManySiblingsError):
        if language == "html":
            return _html(response, len(body), recipe)
        if language == "plain":
            return _Found(decoded_text(response, PARSED_BYTES), False, is_raw=True)
        if language == "json" and is_whole:
            return _Found(*canonical_json(decoded_text(response), recipe.paths, recipe.excluded_paths))
        if language == "xml" and is_whole:
            return _Found(*canonical_xml(body, recipe.include, recipe.exclude))
    return None


def language_of(response: Response) -> str:
    """Return what a response is read as: ``html``, ``json``, ``xml``, ``plain``, or nothing where its bytes count."""
    media = media_type(response)
    if media or not has_text(response):
        return _language(media)
    # no word on what it is: what starts like XML or JSON is not read as a page
    start = decoded_text(response, PARSED_BYTES)[:1024].lstrip("\ufeff \t\r\n").lower()
    return "json" if start.startswith(("{", "[")) else "xml" if start.startswith("<?xml") and "<html" not in start else "html"


def _language(media: str) -> str:
    if media in _HTML:
        return "html"
    if media in _JSON or media.endswith("+json"):
        return "json"
    if media in _XML or media.endswith("+xml"):
        return "xml"
    return "plain" if media == "text/plain" else ""


def _html(response: Response, size: int, recipe: Recipe) -> _Found:
    root = _selector_root(response) if size <= PARSED_BYTES and not is_guessed(response) else None
    if root is None:
        root = parse_html(decoded_text(response, PARSED_BYTES))
    selection = selection_of(recipe.include, recipe.exclude, "html") if recipe.has_css else None
    if selection is None:
        return _Found(text_of(root, may_be_deep=size >= DEEP_BYTES), False, is_raw=True, has_blocks=True)
    marked, missed = selection.mark(root)
    return _Found(text_of(marked, is_marked=True), missed, is_raw=True, has_blocks=True)


def _selector_root(response: Response) -> Any:
    """Root of the response's own selector, which makes it, and keeps it for the callback, where it is not there yet; None without one."""
    # whatever a response of another class understands by a selector, and whatever its encoding does to it
    with suppress(Exception):
        selector: Any = getattr(response, "selector", None)
        if getattr(selector, "type", None) == "html" and isinstance(selector.root, etree._Element):
            return selector.root
    return None
