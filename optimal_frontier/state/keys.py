"""Every key of a namespace: pattern, type, encoding, unit, bound on its growth, who writes it. ``docs/redis.md`` is rendered from this."""

from __future__ import annotations

from typing import Final, NamedTuple


class Key(NamedTuple):
    """One row of the table; ``name`` stands behind the prefix of a partition, ``NAMESPACE:{k}:``, H is the number of a host."""

    name: str
    type: str
    content: str
    growth: str
    writer: str


#: Of each partition.
KEYS: Final = (
    Key(
        "meta",
        "hash",
        "schema, spider, identity, partitions, opened (s), run: a random number of this namespace; import: which import fills it",
        "fixed",
        "open",
    ),
    Key(
        "pages",
        "hash",
        "page (12 bytes of its fingerprint, or of a hash of that) -> its row: head, then importance that was stated (f4) and record",
        "pages",
        "add_pages, observe, write_plan, revise, moves",
    ),
    Key(
        "q",
        "zset",
        "page -> even: when to look at it; odd: leased until then, and that is the lease's token (us)",
        "pages",
        "dispatch, observe, renew, write_plan, revise",
    ),
    Key(
        "f",
        "zset",
        "H, of hosts with pages that wait for their first visit -> rank of its first page (below 0), or when the host opens (us)",
        "hosts",
        "add_pages, dispatch, observe, forget",
    ),
    Key(
        "f:H",
        "zset",
        "pages of host H that wait for their first visit -> rank: priority, importance, arrival in one number",
        "pages",
        "add_pages, dispatch, observe, forget",
    ),
    Key(
        "opens",
        "hash",
        "H in 4 bytes -> when requests to it may begin, in doubles: see below",
        "hosts",
        "dispatch, shut_hosts, take_turns",
    ),
    Key("grace", "string", "while it is there, leases that ran out are spared: nobody could renew them; expires", "fixed", "dispatch"),
    Key("hosts", "hash", "host name -> H", "hosts", "add_pages, adopt, take_turns"),
    Key("hosts:names", "hash", "H -> host name", "hosts", "add_pages, adopt, take_turns"),
    Key(
        "hosts:words",
        "hash",
        "H -> msgpack: checks of its Last-Modified, sitemaps, 304s; pages seen and found gone (state/host_words.py)",
        "hosts",
        "visit_notes",
    ),
    Key("kept", "hash", "hH, pP -> pages of host H, of pattern P that are known", "hosts and patterns", "add_pages, forget, moves"),
    Key(
        "memory",
        "hash",
        "page -> msgpack of what its last responses left for the next fetch (state/memory.py)",
        "pages",
        "observe, revise, adopt",
    ),
    Key("amended", "set", "pages whose tail was replaced while they were leased", "pages in flight", "add_pages, observe"),
    Key(
        "aliases",
        "hash",
        "page that it was before it moved -> partition (u4), page that it is now, URL that it had",
        "moves",
        "become_alias, aliases",
    ),
    Key(
        "damaged",
        "hash",
        "page that was put aside, as what is stored of it is damaged -> why, a zero byte, and what was stored (state/put_aside.py)",
        "10,000",
        "put_aside",
    ),
    Key("retired:H", "list", "pages of host H that were retired last, newest first", "32 a host", "visit_notes"),
    Key(
        "d",
        "string",
        "what the partition keeps of itself, in doubles: see below",
        "fixed",
        "dispatch, publish_plan, forget",
    ),
    Key("plan", "hash", "the last plan, as text", "fixed", "publish_plan"),
    Key("plans", "stream", "the same of the last plans", "100", "publish_plan"),
    Key(
        "priors",
        "string",
        "of each pattern that taught: pattern (u4), shape (above 2: its pages are alike), time (s; f4), siblings (u4)",
        "patterns",
        "publish_plan",
    ),
    Key(
        "youth",
        "string",
        "of each pattern and host of which pages appeared: what their first looks saw, and how often they change while they are young "
        "(state/published.py); only with NEIGHBOURHOODS",
        "2,000 patterns and hosts",
        "publish_plan",
    ),
    Key("prices", "string", "of each host at its limit: H (u4), what it adds to the log price (f4)", "hosts", "publish_plan"),
    Key(
        "fence",
        "string",
        "the planner's fencing token: rises, and is no less than the time when it was given (us)",
        "fixed",
        "take_planner_lock",
    ),
    Key("planner", "string", "owner of the planner's lock; expires", "fixed", "take_planner_lock"),
    Key(
        "slots",
        "hash",
        "of the first partition: crawler -> msgpack of what its downloader admits, and partitions that it serves, if not all "
        "(state/downloader_limits.py)",
        "crawlers; 1,000 slots of each",
        "crawlers",
    ),
    Key("stats", "hash", "counters by name", "fixed", "all"),
    Key(
        "lateness",
        "list",
        "of the last revisits, seconds from the deadline to the start of the download, those of one call in one text",
        "1,000 calls",
        "visit_notes",
    ),
    Key(
        "changes",
        "stream",
        "pages that changed: page, time (s), url, previous and new fingerprint (hexadecimal)",
        "about 10,000",
        "observe, moves",
    ),
    Key(
        "visited",
        "stream",
        "visits that gave a bit, those of one call in one entry, packed (state/visit_log.py); only with NEIGHBOURHOODS",
        "about 4,000 calls",
        "observe",
    ),
    Key(
        "clocks",
        "hash",
        "what the planner knows of clocks of neighbourhoods: of groups of pages and of hosts, packed (state/clocks.py)",
        "groups of three pages or more that were visited within four rounds; hosts of three pages or more",
        "store_clocks",
    ),
    Key(
        "flagged",
        "zset",
        "contents that are no page's own: host, blank, fingerprint in hexadecimal; changes of templates: host, blank, `+`, difference, "
        "`@`, when it was first seen (s); noise that pages share: host, blank, `~`, pattern and "
        "tag in hexadecimal, `@`, when it was found (s), `@`, selectors as JSON in percent-encoding -> when that was found out (s)",
        "2,000",
        "flagged",
    ),
    Key(
        "drainer",
        "string",
        "owner of the lock of URL_KEYS; expires; in partition 0 only",
        "fixed",
        "url_keys",
    ),
    Key(
        "refused_urls",
        "list",
        "entries of URL_KEYS that were put aside, newest first, as JSON: key, entry, reason; in partition 0 only",
        "1,000",
        "url_keys",
    ),
    Key(
        "sources",
        "hash",
        "source of signals, by name -> 16 doubles, see estimation/signal_sources.py",
        "sources",
        "add_to_sources",
    ),
    Key(
        "pings", "stream", "pings that wait to be taken: url, source, at (s); in partition 0 only", "until a crawler takes them", "anybody"
    ),
)

#: Keys that exist once in a partition and their types, checked when a namespace is opened.
KEY_TYPES: Final = {key.name: key.type for key in KEYS if not key.name.endswith(":H")}
