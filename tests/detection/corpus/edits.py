"""Small changes that count, on pages whose markup differs on each fetch, and some with an advertisement beside."""

from __future__ import annotations

from .case import Case, Fetch, listing, news, paragraphs, product, prose, threads


def _ad(fetch: Fetch) -> str:
    return f'<div class="ad-box"><p>{prose(f"ad{fetch.random().randint(0, 900)}", 8)}</p></div>'


def _head(fetch: Fetch) -> str:
    return f'<meta name="csrf-token" content="{fetch.token(40)}"><script src="/s.js?{fetch.number}"></script>'


def one_digit_of_a_price(edition: int, fetch: Fetch) -> str:
    return product(edition, head=_head(fetch))


def one_digit_of_a_price_beside_advertisements(edition: int, fetch: Fetch) -> str:
    return product(edition, head=_head(fetch), extra=_ad(fetch))


def one_word_of_an_article(edition: int, fetch: Fetch) -> str:
    return news(_ad(fetch), edition=edition, head=_head(fetch))


def stock_status(edition: int, fetch: Fetch) -> str:
    return product(0, head=_head(fetch), extra=_ad(fetch), stock=("In stock", "Only 2 left", "Sold out")[edition])


def text_of_a_link(edition: int, fetch: Fetch) -> str:
    return news("", head=_head(fetch)).replace("Ann Archer", ("Ann Archer", "Ann B. Archer", "A. Archer")[edition])


def title_only(edition: int, fetch: Fetch) -> str:
    return news("", head=_head(fetch)).replace(
        "- The Coast</title>", ("- The Coast</title>", "| The Coast</title>", "| Coast</title>")[edition]
    )


def one_table_cell(edition: int, fetch: Fetch) -> str:
    return product(0, head=_head(fetch), extra=_ad(fetch), shown="24.50").replace("720 g", ("720 g", "725 g", "735 g")[edition])


def removed_paragraph(edition: int, fetch: Fetch) -> str:
    body = paragraphs("removed", 5).split("\n")
    return news("\n".join(body[: 5 - edition]) + _ad(fetch), head=_head(fetch))


def new_entry_of_a_list(edition: int, fetch: Fetch) -> str:
    return listing(threads(edition), head=_head(fetch), after=_ad(fetch))


def new_comment(edition: int, fetch: Fetch) -> str:
    comments = "".join(f'<li class="comment"><b class="who">reader{at}</b><p>{prose(f"c{at}", 14)}</p></li>' for at in range(3 + edition))
    return news(f'<ol class="comments">{comments}</ol>{_ad(fetch)}', head=_head(fetch))


def one_character_of_punctuation(edition: int, fetch: Fetch) -> str:
    return news("", head=_head(fetch), headline=("Harbour bridge reopens", "Harbour bridge reopens!", "Harbour bridge reopens?")[edition])


def entries_swapped(edition: int, fetch: Fetch) -> str:
    places = [("Ann", "Ben", "Cem"), ("Ben", "Ann", "Cem"), ("Cem", "Ben", "Ann")][edition]
    rows = "".join(f'<li class="rank"><span class="name">{name}</span></li>' for name in places)
    return listing(rows, head=_head(fetch), after=_ad(fetch))


EDITS = tuple(
    Case(render.__name__, render)
    for render in (
        one_digit_of_a_price,
        one_digit_of_a_price_beside_advertisements,
        one_word_of_an_article,
        stock_status,
        text_of_a_link,
        title_only,
        one_table_cell,
        removed_paragraph,
        new_entry_of_a_list,
        new_comment,
        one_character_of_punctuation,
        entries_swapped,
    )
)
