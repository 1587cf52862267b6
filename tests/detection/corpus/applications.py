"""Pages that a program in the browser fills."""
# ruff: noqa: E501 -- markup stands as sites send it

from __future__ import annotations

import json

from .case import Case, Fetch, price, prose


def shell_with_static_text(edition: int, fetch: Fetch) -> str:
    """Most of the page comes later; what the server sends of it has the title and a description."""
    state = json.dumps({"session": fetch.token(32), "flags": {"dark": fetch.number % 2 == 0}})
    title = ("Flat, 3 rooms, 900 a month", "Flat, 3 rooms, 950 a month", "Flat, 3 rooms, 990 a month")[edition]
    return f"""<!doctype html><html><head><title>{title}</title><meta name="viewport" content="width=device-width">
<script>window.__STATE__={state}</script><script defer src="/main.{fetch.token(8)}.js"></script></head>
<body><noscript>You need to enable JavaScript to run this app.</noscript><div id="root"><div class="skeleton">Loading</div></div></body></html>"""


def shell_with_all_content_in_a_script(edition: int, fetch: Fetch) -> str:
    """Nothing of the content is visible text: "text" cannot see the change."""
    state = json.dumps({"product": {"name": "Espresso maker", "price": price(edition)}, "requestId": fetch.token(32)})
    return f"""<!doctype html><html><head><title>Kitchen &amp; Co</title></head><body><div id="app"></div>
<script id="__DATA__" type="application/json">{state}</script><script src="/app.js?{fetch.number}"></script></body></html>"""


def hydrated_feed(edition: int, fetch: Fetch) -> str:
    """Rendered by the server, with class names and ids of the build and of the request, and an island of live numbers."""
    key = fetch.token(5)
    posts = "".join(
        f'<article class="_{key}x post" data-rid="{fetch.token(8, str(at))}"><h2>{prose(f"post{at}", 5)}</h2><p>{prose(f"body{at}", 30)}</p>'
        f'<span class="likes">{fetch.random(str(at)).randint(5, 900)} likes</span></article>'
        for at in range(5 + edition, 0, -1)
    )
    return f'<html><head><title>Timeline</title></head><body><div id="__next"><main class="feed">{posts}</main></div></body></html>'


def account_bar(edition: int, fetch: Fetch) -> str:
    """The name of a guest account, drawn anew, above a page of documentation."""
    steps = "".join(
        f"<li>{prose(f'step{at}', 9)}{' Restart the service.' if at == 3 and edition else ''}</li>" for at in range(7 + (edition == 2))
    )
    return f"""<html><head><title>Installing the server</title></head><body><div class="navbar"><a class="brand" href="/">Docs</a>
<span class="navbar-text">Signed in as guest-{fetch.token(6)}</span></div><div class="container"><div class="content"><h1>Installing the server</h1>
<p>{prose("install", 40)}</p><ol>{steps}</ol></div></div></body></html>"""


APPLICATIONS = tuple(
    Case(render.__name__, render) for render in (shell_with_static_text, shell_with_all_content_in_a_script, hydrated_feed, account_bar)
)
