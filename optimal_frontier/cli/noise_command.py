"""``noise``: which sections of pages change on every visit, and the rule that leaves them out."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
import numpy as np

from optimal_frontier.cli.host_naming import check_host, partitions_of_host, unknown_host
from optimal_frontier.cli.options import Options
from optimal_frontier.cli.output import NOTHING, number, printable, show_json, show_table
from optimal_frontier.cli.page_identity import check_url, identified_in
from optimal_frontier.cli.project import Workplace, find_workplace, opened_namespace
from optimal_frontier.cli.shared_noise_facts import pattern_line, shared_noise
from optimal_frontier.cli.template_facts import shared_sections, template_changes, template_line
from optimal_frontier.detection.noisy_sections import Noise, differs_on_every_visit, differs_within_seconds, join_places, noise_of
from optimal_frontier.detection.sections import OWN_TEXT, REST, WHOLE
from optimal_frontier.errors import ConfigurationError, StateError
from optimal_frontier.frontier.admitting.hosts import host_of
from optimal_frontier.frontier.admitting.patterns import pattern_of
from optimal_frontier.frontier.judging.noise import PageNoise, noise_of_memory
from optimal_frontier.frontier.judging.shared_noise import OF_HOST, Shared
from optimal_frontier.settings import FrontierSettings
from optimal_frontier.state.memory import Memory
from optimal_frontier.state.messages import page_of
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.reading import read_page
from optimal_frontier.state.rows import ACTIVE
from optimal_frontier.state.scanning import StoredPages, batches, read_pages, read_urls

#: Sections that are shown of a group of pages.
_MOST_SHOWN: Final = 20
#: Share of the pages of a group of which something must be noise to be left out of all of them.
_SHARE: Final = 0.5


@dataclass(frozen=True)
class _Kept:
    """A page of which sections are kept."""

    url: str
    noise: PageNoise
    found: Noise


@click.command()
@click.argument("target", metavar="URL|HOST")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def noise(options: Options, target: str, as_json: bool) -> None:
    """Say which sections of a page, or of a host's pages, change on every visit, and propose the RULES entry that leaves them out.

    HOST is named as in RULES: a.example, of any port, or a.example:8080. Fetches nothing. Sections are kept of pages that changed on
    each of their last three visits.
    """
    check_url(target)
    workplace = find_workplace(options)
    with opened_namespace(workplace) as namespace:
        is_page = "://" in target or _is_name(namespace, workplace, target)
        hosts = {} if is_page else partitions_of_host(namespace, check_host(target))
        kept, pages, shared = _of_page(namespace, workplace, target) if is_page else _of_host(namespace, workplace, hosts)
        if not pages:
            raise unknown_host(target)
        names = [host_of(target)] if is_page else [name for some in hosts.values() for name in some.values()]
        changes = sorted(change for name in names for change in template_changes(namespace, name))
    answer = {"target": target, "pages": pages, "shared": shared, **_answer(kept, workplace.settings, is_page=is_page)}
    answer["template"] = {"changes": changes, **_template(kept, workplace.settings, is_page=is_page)}
    if as_json:
        show_json(answer)
    else:
        _show(answer)


def _is_name(namespace: Namespace, workplace: Workplace, target: str) -> bool:
    """Tell whether what is no URL is a page of plain Frontera's; else it is a host."""
    try:
        asked = page_of(identified_in(namespace, workplace)(target))
    except ConfigurationError:
        return False
    return read_page(namespace, asked, host_of(target)) is not None


def _of_page(namespace: Namespace, workplace: Workplace, url: str) -> tuple[list[_Kept], int, list[dict[str, Any]]]:
    reading = read_page(namespace, page_of(identified_in(namespace, workplace)(url)), host_of(url))
    if reading is None:
        raise StateError(f"{url} is not known in namespace {workplace.settings.namespace!r}")
    kept, known = noise_of_memory(reading.memory), str(reading.record.get("url", url))
    told = [shared for shared in shared_noise(namespace, reading.host) if shared.kind.pattern in (reading.row.pattern, OF_HOST)]
    own = [shared for shared in told if shared.kind.pattern != OF_HOST]
    shared = [_shared_by(one, known, workplace.settings) for one in own or told]
    return ([] if kept is None else [_Kept(known, kept, noise_of(kept.history))]), 1, shared


def _of_host(
    namespace: Namespace, workplace: Workplace, hosts: Mapping[int, Mapping[int, str]]
) -> tuple[list[_Kept], int, list[dict[str, Any]]]:
    found: list[_Kept] = []
    shared: list[dict[str, Any]] = []
    pages = 0
    for k, names in hosts.items():
        table = read_pages(namespace, k)
        known = [
            (page.tobytes(), names[of])
            for page, of, state in zip(table.pages, table.heads["host"].tolist(), table.heads["state"].tolist(), strict=True)
            if state == ACTIVE and of in names
        ]
        pages += len(known)
        shared += _shared_on(namespace, workplace.settings, table, names)
        asked = batches([page for page, _ in known])
        memories = [raw for part in asked for raw in namespace.command("HMGET", namespace.key("memory", k), *part, partition=k)]
        noisy = [(*one, kept) for one, raw in zip(known, memories, strict=True) if (kept := noise_of_memory(Memory.readable(raw)))]
        urls = read_urls(namespace, [page for page, _, _ in noisy], [name for _, name, _ in noisy], k)
        found += [_Kept(url, kept, noise_of(kept.history)) for url, (_, _, kept) in zip(urls, noisy, strict=True) if url]
    return found, pages, shared


def _shared_on(namespace: Namespace, settings: FrontierSettings, table: StoredPages, names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return what is left out of pages of hosts of a partition: of all pages of a pattern, and of a host."""
    found = []
    for of, name in names.items():
        for shared in shared_noise(namespace, name):
            which = np.flatnonzero((table.heads["host"] == of) & (table.heads["pattern"] == shared.kind.pattern))
            url = next(iter(read_urls(namespace, [table.pages[which[0]].tobytes()], [name], table.partition)), None) if len(which) else None
            if url or shared.kind.pattern == OF_HOST:
                found.append(_shared_by(shared, str(url or f"http://{name}/"), settings))
    return found


def _shared_by(one: Shared, url: str, settings: FrontierSettings) -> dict[str, Any]:
    """Return what is left out, and the rule that leaves it out for less CPU: of ``url`` and pages like it, or of all of its host."""
    pattern = None if one.kind.pattern == OF_HOST else pattern_of(url)
    exclude = _usable(one.left_out, frozenset())
    rule = {
        "pattern": _regex([url], "**" if pattern is None else pattern),
        "exclude": [*dict.fromkeys([*_excluded(settings, url), *exclude])],
    }
    told = {"host": one.kind.host, "pattern": pattern, "since": one.since, "left_out": list(one.left_out)}
    return told | {"rule": rule if exclude else None, "rule_python": _python(rule) if exclude else None}


def _answer(kept: Sequence[_Kept], settings: FrontierSettings, *, is_page: bool) -> dict[str, Any]:
    groups: dict[str, list[_Kept]] = defaultdict(list)
    for page in kept:
        groups[page.url if is_page else pattern_of(page.url)].append(page)
    shown = [_group(name, pages, settings, is_page=is_page) for name, pages in sorted(groups.items(), key=lambda item: -len(item[1]))]
    return {"kept": len(kept), "noisy": sum(page.noise.is_noisy for page in kept), "groups": shown}


def _group(name: str, pages: Sequence[_Kept], settings: FrontierSettings, *, is_page: bool) -> dict[str, Any]:
    exclude = _shared([page.found.exclude for page in pages])
    rule = None
    if exclude:
        urls = [page.url for page in pages]
        # Rules replace what the settings say, so what counts already must be repeated.
        present = dict.fromkeys(entry for url in urls for entry in _excluded(settings, url))
        pattern = f"^{re.escape(urls[0])}$" if is_page else _regex(urls, name)
        rule = {"pattern": pattern, "exclude": [*present, *(entry for entry in exclude if entry not in present)]}
    return {
        "name": name,
        "pages": len(pages),
        "noisy": sum(page.noise.is_noisy for page in pages),
        "pairs": sum(page.noise.history.pairs for page in pages),
        "quick_pairs": sum(page.noise.history.quick_pairs for page in pages),
        "sections": _sections(pages),
        "own_text": _shared([page.found.own_text for page in pages]),
        "rule": rule,
        "rule_python": None if rule is None else _python(rule),
    }


def _template(kept: Sequence[_Kept], settings: FrontierSettings, *, is_page: bool) -> dict[str, Any]:
    """Return the sections that changed, and whose text most pages have in common; and a rule for all of the host that leaves them out."""
    histories = [page.noise.history for page in kept]
    sections = [] if is_page else shared_sections(histories)
    exclude = _usable([section["selector"] for section in sections], frozenset().union(*(history.keys() for history in histories)))
    if not exclude:
        return {"sections": sections, "rule": None, "rule_python": None}
    begin = f"^https?://{re.escape(kept[0].url.partition('://')[2].partition('/')[0])}/"
    present = dict.fromkeys(entry for page in kept for entry in _excluded(settings, page.url))
    rule = {"pattern": begin, "exclude": [*present, *(entry for entry in exclude if entry not in present)]}
    return {"sections": sections, "rule": rule, "rule_python": _python(rule)}


def _usable(selectors: Sequence[str], keys: Collection[bytes]) -> list[str]:
    """Return what leaves out sections, neighbours at once where all of them are to be."""
    usable = [selector for selector in selectors if not selector.endswith(OWN_TEXT) and selector not in (REST, WHOLE)]
    joined = join_places(usable, keys)
    return list(dict.fromkeys(joined[selector] for selector in usable))


def _shared(found: Sequence[Sequence[str]]) -> list[str]:
    """Return what was found of half of the pages or more."""
    often = Counter(entry for entries in found for entry in entries)
    return [entry for entry, pages in often.items() if pages >= _SHARE * len(found)]


def _excluded(settings: FrontierSettings, url: str) -> Sequence[str]:
    by_rules = settings.rules.of(url).exclude
    return settings.fingerprint_exclude if by_rules is None else by_rules


def _sections(pages: Sequence[_Kept]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for page in pages:
        history = page.noise.history
        for row in history.rows:
            names = ("pages", "changed", "pairs", "alone", "within_seconds", "quick_pairs", "is_quick", "is_steady")
            verdicts = (differs_within_seconds(row, history), differs_on_every_visit(row, history))
            values = (1, row.differed, history.pairs, row.alone, row.quick, history.quick_pairs, *map(int, verdicts))
            sums = rows.setdefault(row.selector, dict.fromkeys(names, 0))
            for name, value in zip(names, values, strict=True):
                sums[name] += value
    found = []
    for selector, sums in sorted(rows.items(), key=lambda item: -item[1]["changed"]):
        is_quick, is_steady = (sums.pop(name) >= _SHARE * sums["pages"] for name in ("is_quick", "is_steady"))
        verdict = "within seconds" if is_quick else "on every visit" if is_steady else None
        found.append({"selector": selector, **sums, "changes": verdict})
    return found


def _regex(urls: Sequence[str], pattern: str) -> str:
    """Return a regular expression of the URLs of a pattern; of all of their host where that does not fit."""
    begin = f"^https?://{re.escape(urls[0].partition('://')[2].partition('/')[0])}"
    path, mark, _ = pattern.partition("?")
    parts = {"**": ".*", "*": "[^/?#]*", "#": "[^?#]*"}
    middle = "".join(parts[part] if part in parts else re.escape(part) for part in re.split(r"(\*\*|\*|#)", path))
    whole = begin + middle + (r"\?" if mark else "$")
    return whole if all(re.search(whole, url) for url in urls) else begin + "/"


def _python(rule: dict[str, Any]) -> str:
    """Return a rule as Python that can be pasted.

    Examples
    --------
    >>> print(_python({"pattern": r"^https?://a\\.example/", "exclude": ["span.views"]}))
    {"pattern": r"^https?://a\\.example/", "exclude": ["span.views"]}
    """
    pattern = rule["pattern"]
    written = f'r"{pattern}"' if '"' not in pattern and pattern.isprintable() and not pattern.endswith("\\") else repr(pattern)
    return f'{{"pattern": {written}, "exclude": {json.dumps(rule["exclude"], ensure_ascii=False)}}}'


def _show(answer: dict[str, Any]) -> None:
    _show_template(answer["template"])
    for entry in answer["shared"]:
        click.echo(pattern_line(entry))
        if entry["rule_python"]:
            click.echo(printable(entry["rule_python"]))
    if not answer["kept"] and not answer["shared"]:
        click.echo("nothing to say: sections are kept of pages that changed on each of their last three visits, and there is none here")
    if not answer["kept"]:
        return
    click.echo(f"sections are kept of {number(answer['kept'])} of {number(answer['pages'])} pages; {number(answer['noisy'])} noisy")
    for group in answer["groups"]:
        pairs = f"{number(group['pairs'])} pairs of visits, {number(group['quick_pairs'])} of them second fetches"
        click.echo(f"\n{printable(group['name'])}  ({number(group['pages'])} pages, {pairs})")
        names = ("pages", "changed", "alone", "in seconds", "it changes", "section")
        show_table(names, map(_cells, group["sections"][:_MOST_SHOWN]), left=2)
        for selector in group["own_text"]:
            click.echo(f'text of {printable(selector)} itself changes, and it holds much else: that takes a regular expression in "ignore"')
        click.echo(printable(group["rule_python"]) if group["rule_python"] else "no rule to propose")


def _show_template(template: dict[str, Any]) -> None:
    changes = template["changes"]
    if changes:
        click.echo(f"template of the host: {template_line(changes)}")
    for section in template["sections"]:
        click.echo(f"of the template: {printable(section['selector'])}, the same on {section['shared']} of {section['pages']} pages")
    if template["rule_python"]:
        click.echo(printable(template["rule_python"]))


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        number(row["pages"]),
        f"{row['changed']} of {row['pairs']}",
        number(row["alone"]),
        f"{row['within_seconds']} of {row['quick_pairs']}",
        row["changes"] or NOTHING,
        row["selector"],
    ]
