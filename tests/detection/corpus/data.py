"""Feeds, sitemaps and interfaces for programs."""
# ruff: noqa: E501 -- markup stands as sites send it

from __future__ import annotations

import json
from email.utils import format_datetime

from .case import Case, Fetch, price, prose

_JSON = "application/json"


def rss_build_date(edition: int, fetch: Fetch) -> str:
    items = "".join(
        f"<item><title>{prose(f'i{at}', 6)}</title><link>http://a.example/{at}</link><guid>{at}</guid></item>"
        for at in range(8 + edition, 0, -1)
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>The Coast</title><link>http://a.example/</link>
<lastBuildDate>{format_datetime(fetch.time)}</lastBuildDate><ttl>{5 + fetch.number % 3}</ttl>{items}</channel></rss>"""


def rss_with_counters(edition: int, fetch: Fetch) -> str:
    items = "".join(
        f"<item><title>{prose(f'i{at}', 6)}{' (updated)' if at == 4 and edition else ''}{edition if at == 5 else ''}</title><guid>{at}</guid>"
        f"<slash:comments>{fetch.random(str(at)).randint(0, 90)}</slash:comments></item>"
        for at in range(9)
    )
    head = '<rss version="2.0" xmlns:slash="http://purl.org/rss/1.0/modules/slash/"><channel><title>Forum</title>'
    return f'<?xml version="1.0"?>{head}<pubDate>{format_datetime(fetch.time)}</pubDate>{items}</channel></rss>'


def atom_updated(edition: int, fetch: Fetch) -> str:
    entries = "".join(
        f"<entry><id>urn:{at}</id><title>{prose(f'e{at}', 5)}</title><summary>{prose(f's{at}', 12)}{'!' * edition if at == 2 else ''}</summary></entry>"
        for at in range(6)
    )
    return f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Log</title><updated>{fetch.time:%Y-%m-%dT%H:%M:%SZ}</updated>{entries}</feed>'


def json_generated_at(edition: int, fetch: Fetch) -> str:
    items = [{"id": at, "name": f"Berth {at}", "price": price(edition) if at == 3 else "12.00"} for at in range(12)]
    meta = {"generated_at": fetch.time.isoformat(), "request_id": fetch.token(32), "took_ms": fetch.random().randint(1, 90)}
    return json.dumps({"meta": meta, "items": items})


def json_keys_in_any_order(edition: int, fetch: Fetch) -> str:
    record = {"name": "Harbour", "depth": 12.5, "open": edition != 1, "berths": 40 + edition, "tags": ["sea", "ships"]}
    names = list(record)
    fetch.random().shuffle(names)
    return json.dumps({name: record[name] for name in names}, indent=fetch.number % 3 or None)


def json_counters_in_elements(edition: int, fetch: Fetch) -> str:
    posts = [
        {"id": at, "title": prose(f"p{at}", 5), "stats": {"views": fetch.random(str(at)).randint(10, 9000)}} for at in range(10 + edition)
    ]
    return json.dumps({"data": posts, "links": {"self": f"/posts?cursor={fetch.token(16)}"}})


def xml_sitemap(edition: int, fetch: Fetch) -> str:
    """A lastmod that is always now; what it lists changes."""
    now = f"{fetch.time:%Y-%m-%dT%H:%M:%S+00:00}"
    urls = "".join(f"<url><loc>http://a.example/page/{at}</loc><lastmod>{now}</lastmod></url>" for at in range(14 + edition))
    return f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'


def xml_answer(edition: int, fetch: Fetch) -> str:
    rates = "".join(
        f'<Rate currency="{name}">{1 + at / 7 + (edition / 100 if at == 2 else 0):.4f}</Rate>'
        for at, name in enumerate(("USD", "JPY", "CHF", "SEK"))
    )
    return f"<Envelope><Header><Sender>Bank</Sender><MessageId>{fetch.token(16)}</MessageId><Sent>{fetch.time.isoformat()}</Sent></Header><Rates>{rates}</Rates></Envelope>"


DATA = (
    Case("rss_build_date", rss_build_date, "application/rss+xml"),
    Case("rss_with_counters", rss_with_counters, "application/rss+xml"),
    Case("atom_updated", atom_updated, "application/atom+xml"),
    Case("json_generated_at", json_generated_at, _JSON),
    Case("json_keys_in_any_order", json_keys_in_any_order, _JSON),
    Case("json_counters_in_elements", json_counters_in_elements, _JSON),
    Case("xml_sitemap", xml_sitemap, "application/xml"),
    Case("xml_answer", xml_answer, "text/xml"),
)
