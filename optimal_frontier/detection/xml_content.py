"""XML and feeds in one canonical form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from lxml import etree  # type: ignore[import-untyped]  # lxml ships no types

from optimal_frontier.detection.folding import fold
from optimal_frontier.detection.selecting import selection_of

_RDF: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}RDF"
_FEEDS: Final = frozenset({"rss", "{http://www.w3.org/2005/Atom}feed", "{http://purl.org/atom/ns#}feed"})
#: Errors after which nothing of the document is lost: entities that no one declared, and a bare "&".
_HARMLESS: Final = frozenset(
    {
        etree.ErrorTypes.ERR_UNDECLARED_ENTITY,
        etree.ErrorTypes.WAR_UNDECLARED_ENTITY,
        etree.ErrorTypes.ERR_NAME_REQUIRED,
        etree.ErrorTypes.ERR_ENTITYREF_SEMICOL_MISSING,
    }
)


class UnreadableXmlError(ValueError):
    """It is not well-formed, so what the parser found is not all there is."""


def canonical_xml(body: bytes, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> tuple[str, bool]:
    """Write an XML document such that documents of equal content are equal.

    Parameters
    ----------
    body : bytes
        The document. Entities are not expanded, and nothing is loaded.
    include, exclude : sequence of str
        CSS selectors of the elements that count (none: all), and of those that are left out. Names are those without their prefix. JSON
        paths among them are passed over.

    Returns
    -------
    canonical : str
        Canonical XML, white space folded, without comments, processing instructions and doctype. Of a feed (RSS 0.9x to 2.0, RSS 1.0,
        Atom) only its entries, whatever order they are in: what the channel says of itself, such as when it was built, does not count.
    missed : bool
        There are selectors of what to include, and none matches; then all of it counts.

    Raises
    ------
    UnreadableXmlError
        It is not well-formed.
    """
    parser = etree.XMLParser(
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_blank_text=True,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(body, parser)
        if root is None or any(e.level == etree.ErrorLevels.FATAL and e.type not in _HARMLESS for e in parser.error_log):
            raise UnreadableXmlError(str(parser.error_log.last_error))
        is_feed = _is_feed(root)
        selection = selection_of(tuple(include), tuple(exclude), "xml")
        if selection is not None:
            for element in root.iter(etree.Element):
                element.tag = etree.QName(element).localname
        kept, dropped = selection.find(root) if selection is not None else ([], [])
        missed = selection is not None and bool(selection.include) and not kept
        for element in dropped:
            if element is root:
                return "", missed
            _remove(element)
        _strip(root)
        if kept:
            parts = [_write(part) for part in _outermost(root, set(kept))]
        elif is_feed:
            parts = sorted(_write(entry) for entry in _entries(root))
        else:
            parts = [_write(root)]
    except (etree.LxmlError, ValueError) as error:
        raise UnreadableXmlError(str(error)) from error
    return "\n".join(parts), missed


def _is_feed(root: Any) -> bool:
    if root.tag == _RDF:
        return any(etree.QName(element).localname in ("channel", "item") for element in root.iterchildren(etree.Element))
    return root.tag in _FEEDS


def _entries(root: Any) -> Iterator[Any]:
    """Children of the root, or of its channel, that are entries of a feed."""
    for element in root.iterchildren(etree.Element):
        name = etree.QName(element).localname
        if name in ("item", "entry"):
            yield element
        elif name == "channel":
            yield from (item for item in element.iterchildren(etree.Element) if etree.QName(item).localname == "item")


def _remove(element: Any) -> None:
    """Take an element out of its tree; what follows it stays."""
    parent, before, tail = element.getparent(), element.getprevious(), element.tail
    if parent is None:
        return
    if tail:
        if before is not None:
            before.tail = (before.tail or "") + tail
        else:
            parent.text = (parent.text or "") + tail
    parent.remove(element)


def _outermost(root: Any, chosen: set[Any]) -> Iterator[Any]:
    """Yield those of `chosen` that lie in no other one."""
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        if element in chosen:
            walk.skip_subtree()
            yield element


def _strip(root: Any) -> None:
    """Take away the white space around tags."""
    for node in root.iter():
        if node.text and node.tag is not etree.Entity:
            node.text = node.text.strip()
        if node.tail:
            node.tail = node.tail.strip()


def _write(element: Any) -> str:
    try:
        written = etree.tostring(element, method="c14n", exclusive=True, with_tail=False).decode()
    except etree.LxmlError:  # no canonical form has namespaces that are relative, or entities that are not expanded
        written = etree.tostring(element, encoding="unicode", with_tail=False)
    return fold(written)
