"""Noise in the markup that no reader sees."""
# ruff: noqa: E501 -- markup stands as sites send it

from __future__ import annotations

import base64

from .case import Case, Fetch, listing, news, paragraphs, price, product, threads


def csrf_token(edition: int, fetch: Fetch) -> str:
    return product(edition, form=f'<input type="hidden" name="csrfmiddlewaretoken" value="{fetch.token(64)}">')


def csp_nonce(edition: int, fetch: Fetch) -> str:
    nonce = fetch.token(24)
    return news("", edition=edition, head=f'<script nonce="{nonce}">window.t0=Date.now()</script><style nonce="{nonce}">h1{{}}</style>')


def reordered_attributes(edition: int, fetch: Fetch) -> str:
    pairs = ['rel="next"', 'href="/page/2"', 'class="pager"', 'data-turbo="true"']
    fetch.random().shuffle(pairs)
    return listing(threads(edition), after=f"<a {' '.join(pairs)}>Next page</a>")


def session_ids_in_links(edition: int, fetch: Fetch) -> str:
    return listing(threads(edition)).replace('href="/', f'href="/;jsessionid={fetch.token(32).upper()}/')


def cache_busters(edition: int, fetch: Fetch) -> str:
    at = int(fetch.at * 1000) + fetch.number
    return product(edition, head=f'<link rel=stylesheet href="/app.css?v={at}"><script src="/app.js?_={at}"></script>')


def experiment_classes(edition: int, fetch: Fetch) -> str:
    arm = fetch.random().choice(["control", "variant-a", "variant-b", "variant-c"])
    page = product(edition).replace('class="buy-box"', f'class="{arm} buy-box exp-{fetch.number % 7}"')
    return page.replace("<body>", f'<body data-experiment="{fetch.token(6)}" class="{arm}">')


def minified_now_and_then(edition: int, fetch: Fetch) -> str:
    page = news("", edition=edition)
    return page.replace("\n", "") if fetch.number % 2 else page.replace("><", ">\n\t<")


def comments_by_the_cache(edition: int, fetch: Fetch) -> str:
    return (
        news("", edition=edition)
        + f"<!-- Performance optimized by W3 Total Cache. Served in {fetch.random().random():.3f} s, {fetch.time:%c} -->"
    )


def inline_svg_ids(edition: int, fetch: Fetch) -> str:
    key = fetch.token(8)
    icon = f'<svg width="16"><defs><linearGradient id="g-{key}"><stop offset="1"/></linearGradient></defs><path fill="url(#g-{key})" d="M0 0h9"/></svg>'
    return product(edition, extra=f'<div class="badges">{icon}<span class="badge">Bestseller</span></div>')


def base64_images(edition: int, fetch: Fetch) -> str:
    pixels = base64.b64encode(fetch.random().randbytes(900)).decode()
    return news(
        f'<figure><img alt="Chart" src="data:image/png;base64,{pixels}"><figcaption>Traffic by hour</figcaption></figure>', edition=edition
    )


def css_in_js_classes(edition: int, fetch: Fetch) -> str:
    key = fetch.token(6)
    return (
        product(edition)
        .replace('class="description"', f'class="css-{key} sc-{key[:4]}Ab description"')
        .replace("<h1 ", f'<h1 data-v-{key}="" ')
    )


def captcha_token(edition: int, fetch: Fetch) -> str:
    widget = (
        f'<div class="g-recaptcha" data-sitekey="6Lc" data-s="{fetch.token(40)}"></div><iframe src="/captcha?t={fetch.token(16)}"></iframe>'
    )
    return product(edition, form=widget)


def generated_ids(edition: int, fetch: Fetch) -> str:
    """A framework that numbers its elements anew on each fetch."""
    base = fetch.random().randint(1000, 9000)
    tabs = "".join(f'<div id="ember{base + at}" class="tab-panel"><h3>Part {at}</h3>{paragraphs(f"tab{at}", 1)}</div>' for at in range(3))
    return product(edition, extra=f'<div class="tabs" aria-owns="ember{base}">{tabs}</div>')


def view_state(edition: int, fetch: Fetch) -> str:
    state = base64.b64encode(fetch.random().randbytes(600)).decode()
    rows = "".join(f"<tr><td>{year}</td><td>{year * 3 + (edition if year == 2021 else 0)}</td></tr>" for year in range(2015, 2024))
    return f"""<html><head><title>Permits by year</title></head><body><form id="aspnetForm" method="post" action="Permits.aspx">
<input type="hidden" name="__VIEWSTATE" id="__VIEWSTATE" value="{state}"><div id="ctl00_Main"><h2>Permits by year</h2>
<table id="ctl00_Grid"><tr><th>Year</th><th>Permits</th></tr>{rows}</table></div></form></body></html>"""


def script_state(edition: int, fetch: Fetch) -> str:
    """A page that was rendered by the server, with the data for the client's turn, and what the server measured, in a script."""
    state = f'{{"props":{{"price":"{price(edition)}"}},"buildId":"{fetch.token(20)}","ts":{int(fetch.at)}}}'
    return product(edition, extra=f'<script id="__NEXT_DATA__" type="application/json">{state}</script>')


_ALL = (csrf_token, csp_nonce, reordered_attributes, session_ids_in_links, cache_busters, experiment_classes, minified_now_and_then)
_MORE = (comments_by_the_cache, inline_svg_ids, base64_images, css_in_js_classes, captcha_token, generated_ids, view_state, script_state)
MARKUP = tuple(Case(render.__name__, render) for render in (*_ALL, *_MORE))
