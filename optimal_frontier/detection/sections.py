"""A page cut into sections, each with a short hash of its text: what changes on every visit can then be told from what does not."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

from optimal_frontier.detection.content import Response, body_bytes, decoded_text, has_text, media_type
from optimal_frontier.detection.section_names import TOP, Name, name_of
from optimal_frontier.detection.visible import parse_html

#: Sections of a page at most; beyond that neighbours are taken together.
MOST_SECTIONS: Final = 128
#: Bytes of a body beyond which a page is not cut.
MOST_BYTES: Final = 1 << 21
#: Stands behind the selector of an element whose own text is a section, though it holds much else: to exclude it would drop all of that.
OWN_TEXT: Final = " (own text)"
#: What is left where there are still too many sections.
REST: Final = "(rest)"

#: Characters that an element may hold beside its own text and still be left out for the sake of that.
_MOST_HELD: Final = 200
_HIDDEN: Final = frozenset(("script", "style", "noscript", "template"))
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_PLACE: Final = re.compile(r":nth-of-type\(\d+\)(?=$| )")
_PLAIN_KEY: Final = re.compile(r"[^\s.\[\]'\"*$]+")


class Section(NamedTuple):
    """A part of a page: its selector (CSS; of JSON a path as RULES take it), and 4 bytes of a hash of its text."""

    selector: str
    digest: bytes


def sections(response: Response) -> tuple[Section, ...]:
    """Cut a page into sections.

    Parameters
    ----------
    response : object
        As for `fingerprint`.

    Returns
    -------
    tuple of Section
        Different selectors, at most `MOST_SECTIONS`, of sections that hold any text; none for what is neither HTML, JSON nor XML, cannot be
        read, or is longer than `MOST_BYTES`. Only visible text counts, without white space; attributes do not.

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
    body = body_bytes(response)
    if len(body) > MOST_BYTES:
        return ()
    media, text = media_type(response), ""
    try:
        if media.endswith(("/json", "+json")):
            return _closed(_json(json.loads(decoded_text(response))))
        if media.endswith(("/xml", "+xml")) and media not in _HTML:
            return _closed(_xml(body))
        if media in _HTML or (not media and has_text(response)):
            text = decoded_text(response)
            start = text[:1024].lstrip("\ufeff \t\r\n").lower()
            if not media and start.startswith(("{", "[")):
                return _closed(_json(json.loads(text)))
            if not media and start.startswith("<?xml") and "<html" not in start:
                return _closed(_xml(body))
            return _closed(_html(text))
    except (ValueError, RecursionError, etree.LxmlError):
        pass
    return ()


def _closed(found: Mapping[str, list[str]]) -> tuple[Section, ...]:
    """Hash what was found, once there is not too much of it."""
    texts = {name: text for name, pieces in found.items() if (text := "".join("".join(pieces).split()))}
    if len(texts) > MOST_SECTIONS:
        texts = _coarser(texts)
    return tuple(Section(name, _digest(text)) for name, text in texts.items())


def _digest(text: str) -> bytes:
    return blake2b(unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass"), digest_size=4).digest()


def _coarser(texts: dict[str, str]) -> dict[str, str]:
    """Give up places, then levels, of those of which there are most; what does not fit even so is one section."""
    for shorten in (_without_place, _without_end):
        while len(texts) > MOST_SECTIONS:
            shorter = {name: shorten(name) for name in texts}
            sizes = Counter(short for name, short in shorter.items() if short != name)
            if not sizes or sizes.most_common(1)[0][1] < 2:
                break
            largest = sizes.most_common(1)[0][0]
            texts = _joined((shorter[name] if shorter[name] == largest else name, text) for name, text in texts.items())
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
        return name[: max(name.rfind("."), name.rfind("["), 2)] if name.count(".") + name.count("[") > 1 else name
    return name.rpartition(" > ")[0] or name


class _Open:
    """An element that is being walked through: what its section is, how much text it holds, and how much of that is its section's."""

    __slots__ = ("characters", "name", "own", "places")

    def __init__(self, name: Name) -> None:
        self.name, self.characters, self.own = name, 0, 0
        self.places: Counter[str] = Counter()


def _html(markup: str) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    held: Counter[str] = Counter()
    open_: list[_Open] = [_Open(TOP)]

    def read(text: str | None) -> None:
        if text and (length := len(text) - text.count(" ") - text.count("\n")) > 0:
            at = open_[-1]
            found[at.name.selector].append(text)
            at.characters += length
            at.own += length

    hidden = 0
    for event, element in etree.iterwalk(parse_html(markup), events=("start", "end", "comment", "pi")):
        if event == "start":
            hidden += element.tag in _HIDDEN
            if not hidden:
                above = open_[-1]
                above.places[element.tag] += 1
                open_.append(_Open(name_of(element, element.tag, above.name, above.places[element.tag])))
                read(element.text)
            continue
        if event == "end" and not hidden:
            done, above = open_.pop(), open_[-1]
            above.characters += done.characters
            if done.name.selector == above.name.selector:
                above.own += done.own
            else:
                held[done.name.selector] += done.characters - done.own
        hidden -= event == "end" and element.tag in _HIDDEN
        if not hidden:
            read(element.tail)
    return {name + OWN_TEXT if held[name] > _MOST_HELD or not name else name: pieces for name, pieces in found.items()}


def _json(document: Any) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    waiting: list[tuple[str, Any]] = [("$", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict) and value:
            waiting += ((f"{path}{_step(key)}", value[key]) for key in sorted(value, reverse=True))
        elif isinstance(value, list) and value:
            waiting += ((f"{path}[*]", element) for element in reversed(value))
        else:
            found[path].append(json.dumps(value, ensure_ascii=False) + ",")
    return found


def _step(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key):
        return f".{key}"
    # a key with both quotes cannot be written as a path
    return f"['{key}']" if "'" not in key else f'["{key}"]' if '"' not in key else ".*"


def _xml(body: bytes) -> Mapping[str, list[str]]:
    parser = etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, remove_comments=True, remove_pis=True
    )
    root = etree.fromstring(body, parser)
    found: dict[str, list[str]] = defaultdict(list)
    if root is not None:
        for name, text in _named_texts(root):
            found[name].append(text)
    return found


def _named_texts(root: Any) -> Iterator[tuple[str, str]]:
    path: list[str] = []
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if event == "start":
            path.append(etree.QName(element).localname)
            text = element.text
            # what links and enclosures point to is theirs alone
            text = f"{text or ''}{element.get('href', '')}{element.get('url', '')}"
        else:
            path.pop()
            text = element.tail or ""
        if text.strip() and path:
            yield " > ".join(path[-2:]), text
