"""A page cut into sections, each with a short hash of its text: what changes on every visit can then be told from what does not."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

from optimal_frontier.detection.content import Response, body_bytes, decoded_text
from optimal_frontier.detection.fingerprint import language_of
from optimal_frontier.detection.json_content import canonical_json
from optimal_frontier.detection.recipe import Recipe, make_recipe
from optimal_frontier.detection.section_names import LONGEST, TOP, Name, name_of
from optimal_frontier.detection.selecting import selection_of
from optimal_frontier.detection.visible import parse_html
from optimal_frontier.detection.xml_content import canonical_xml

#: Sections of a page at most; beyond that neighbours are taken together.
MOST_SECTIONS: Final = 128
#: Bytes of a body beyond which a page is not cut: that would take more than some tenths of a second.
MOST_BYTES: Final = 1 << 19
#: Stands behind the selector of an element whose own text is a section, though it holds much else: to exclude it would drop all of that.
OWN_TEXT: Final = " (own text)"
#: What is left where there are still too many sections.
REST: Final = "(rest)"
#: The only section of a page that cannot be cut.
WHOLE: Final = "(all of it)"

#: Characters that an element may hold beside its own text and still be left out for the sake of that.
_MOST_HELD: Final = 200
_HIDDEN: Final = frozenset(("script", "style", "noscript", "template"))
_PLACE: Final = re.compile(r":nth-of-type\([^)]+\)(?=$| )")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Control characters without a short escape: python-jsonpath refuses names that have one.
_UNQUOTABLE: Final = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")
_LAST_STEP: Final = re.compile(r"(?:\.\w+|\[\*\]|\['(?:[^'\\]|\\.)*'\])$", re.ASCII)


#: Bytes of the hash of a part of a section.
PART_BYTES: Final = 3


class Section(NamedTuple):
    """A part of a page: its selector (CSS; of JSON a path as RULES take it), 4 bytes of a hash of its text, and of each of its pieces
    `PART_BYTES`, where it has several."""

    selector: str
    digest: bytes
    parts: bytes = b""


def sections(response: Response, recipe: Recipe | None = None) -> tuple[Section, ...]:
    """Cut a page into sections.

    Parameters
    ----------
    response : object
        As for `fingerprint`.
    recipe : Recipe, optional
        How its fingerprint is made: what does not count there is in no section. The plain ``"text"`` unless given.

    Returns
    -------
    tuple of Section
        Different selectors, at most `MOST_SECTIONS`, of sections that hold any text. Only visible text counts, without white space;
        attributes do not. Of a page that cannot be cut there is one section, `WHOLE`: neither HTML, JSON nor XML, not readable, longer than
        `MOST_BYTES`, or one whose fingerprint is not made of its text; of JSON and XML also where only what is included counts.

    Notes
    -----
    HTML: the text of an element without a name of its own (an id, a class, being a landmark such as ``footer``) belongs to that of its
    nearest ancestor which has one, apart by place if it is a block. All elements with one selector are one section: ``div.card span.price``
    is all prices of a list, so that the number of sections is that of kinds of things. Names that look made up, or like a state, are passed
    over. JSON: a section for each path, all elements of a list together. XML: by the last two names of the path.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> page = SimpleNamespace(headers={"Content-Type": "text/html"}, body=b"<main><h1>News</h1><p>Now</p></main><footer>0.1 s</footer>")
    >>> [section.selector for section in sections(page)]
    ['main > h1', 'main > p:nth-of-type(1)', 'footer']
    """
    recipe = make_recipe("text") if recipe is None else recipe
    body = body_bytes(response)
    cut: tuple[Section, ...] = ()
    if len(body) <= MOST_BYTES and recipe.kind in ("text", "near"):
        with suppress(ValueError, RecursionError, etree.LxmlError):  # also those of what cannot be read
            cut = _closed(_found(response, body, recipe), recipe)
    return cut or (Section(WHOLE, blake2b(body, digest_size=4).digest()),)


def _found(response: Response, body: bytes, recipe: Recipe) -> Mapping[str, list[str]]:
    language = language_of(response)
    if language == "html":
        return _html(decoded_text(response), recipe)
    if language == "json" and not recipe.paths:
        return _json(json.loads(canonical_json(decoded_text(response), (), recipe.excluded_paths)[0]))
    if language == "xml" and not recipe.include:
        return _xml(canonical_xml(body, (), recipe.exclude)[0])
    return {}


def _closed(found: Mapping[str, list[str]], recipe: Recipe) -> tuple[Section, ...]:
    """Hash what was found, once there is not too much of it."""
    texts = {}
    for name, pieces in found.items():
        text = recipe.without_ignored(" ".join(" ".join(pieces).split())) if recipe.patterns else "".join(pieces)
        if text := "".join(text.split()):
            texts[name] = text
    if len(texts) > MOST_SECTIONS:
        texts = _coarser(texts)
    return tuple(Section(name, _digest(text), _parts(found.get(name, ()))) for name, text in texts.items())


def _digest(text: str, size: int = 4) -> bytes:
    return blake2b(unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass"), digest_size=size).digest()


def _parts(pieces: Sequence[str]) -> bytes:
    return b"".join(_digest("".join(piece.split()), PART_BYTES) for piece in pieces) if len(pieces) > 1 else b""


def _coarser(texts: dict[str, str]) -> dict[str, str]:
    """Give up places, then levels, of those of which there are most; what does not fit even so is one section."""
    for shorten in (_without_place, _without_end):
        while len(texts) > MOST_SECTIONS:
            shorter = {name: shorten(name) for name in texts}
            sizes = Counter(short for name, short in shorter.items() if short != name)
            given_up, left = set(), len(texts) - MOST_SECTIONS
            for short, size in sizes.most_common():
                if left > 0:
                    given_up.add(short)
                    left -= size - 1
            if not given_up:
                break
            texts = _joined((shorter[name] if shorter[name] in given_up else name, text) for name, text in texts.items())
    if len(texts) > MOST_SECTIONS:
        texts = _joined((name if at < MOST_SECTIONS - 1 else REST, text) for at, (name, text) in enumerate(texts.items()))
    return texts


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    joined: dict[str, list[str]] = defaultdict(list)
    for name, text in pairs:
        joined[name].append(text)
    return {name: "".join(pieces) for name, pieces in joined.items()}


def _without_place(name: str) -> str:
    places = list(_PLACE.finditer(name))
    return name[: places[-1].start()] + name[places[-1].end() :] if places else name


def _without_end(name: str) -> str:
    if name.startswith("$"):
        shorter = _LAST_STEP.sub("", name)
        return shorter if len(shorter) > 1 else name
    return name.rpartition(" > ")[0] or name


class _Open:
    """An element that is being walked through: what its section is, how much text it holds, and how much of that is its section's."""

    __slots__ = ("characters", "name", "own", "places")

    def __init__(self, name: Name) -> None:
        self.name, self.characters, self.own = name, 0, 0
        self.places: dict[str, int] = {}


def _html(markup: str, recipe: Recipe) -> Mapping[str, list[str]]:
    root = parse_html(markup)
    selection = selection_of(recipe.include, recipe.exclude, "html") if recipe.has_css else None
    kept, dropped = (set(), set()) if selection is None else map(set, selection.find(root))
    found: dict[str, list[str]] = defaultdict(list)
    held: Counter[str] = Counter()
    open_: list[_Open] = [_Open(TOP)]
    # how many elements around do not count, and how many are included
    hidden, inside = 0, int(not kept)

    def read(text: str | None) -> None:
        if text and inside and (length := len(text) - text.count(" ") - text.count("\n")) > 0:
            at = open_[-1]
            found[at.name.selector].append(text)
            at.characters += length
            at.own += length

    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event == "start":
            above = open_[-1]
            tag = element.tag
            if not hidden:  # what is hidden itself has its place, too
                above.places[tag] = place = above.places.get(tag, 0) + 1
            hidden += tag in _HIDDEN or element in dropped
            inside += element in kept
            if not hidden:
                open_.append(_Open(name_of(element, tag, above.name, place)))
                read(element.text)
            continue
        if event == "end":
            if not hidden:
                done, above = open_.pop(), open_[-1]
                above.characters += done.characters
                if done.name.selector == above.name.selector:
                    above.own += done.own
                else:
                    held[done.name.selector] += done.characters - done.own
            hidden -= element.tag in _HIDDEN or element in dropped
            inside -= element in kept
        if not hidden:
            read(element.tail)
    return {name + OWN_TEXT if held[name] > _MOST_HELD or not name else name: pieces for name, pieces in found.items()}


def _json(document: Any) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    waiting: list[tuple[str, Any]] = [("$", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict) and value:
            waiting += ((_deeper(path, key), value[key]) for key in sorted(value, reverse=True))
        elif isinstance(value, list) and value:
            inside = f"{path}[*]" if len(path) < LONGEST else path
            waiting += ((inside, element) for element in reversed(value))
        else:
            found[path].append(json.dumps(value, ensure_ascii=False) + ",")
    return found


def _deeper(path: str, key: str) -> str:
    # what many values lie below must not be copied for each of them
    return f"{path}{_step(key)}" if len(path) + len(key) < LONGEST else path


def _step(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key):
        return f".{key}"
    if _UNQUOTABLE.search(key):
        return ".*"
    # as RFC 9535 writes normal paths: JSON's escapes, between other quotes
    quoted = json.dumps(key, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"['{quoted}']"


def _xml(canonical: str) -> Mapping[str, list[str]]:
    # of a feed there are several elements
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    found: dict[str, list[str]] = defaultdict(list)
    path: list[str] = []
    for event, element in etree.iterwalk(etree.fromstring(f"<all>{canonical}</all>", parser), events=("start", "end")):
        if event == "start":
            path.append(etree.QName(element).localname)
            # what links and enclosures point to is theirs alone
            text = " ".join(filter(None, (element.text, *element.attrib.values())))
        else:
            path.pop()
            text = element.tail or ""
        if text.strip():
            found[" > ".join(path[1:][-2:]) or REST].append(text)
    return found
