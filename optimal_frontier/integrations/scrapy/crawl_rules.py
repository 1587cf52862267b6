"""Requests of a CrawlSpider: Scrapy stores the number of their rule, and the rules of a spider change between runs.

Beside the number stands what the rule was, so that a page whose rule stands elsewhere now follows it. One whose rule is gone follows the
first that its URL matches, as a link to it would; where none does, the page is read as a start URL is: for its links.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final

from scrapy.spiders import CrawlSpider

#: In what is stored of a request: which rule it is of, see `rule_key`.
RULE: Final = "rule"
#: What a link extractor goes by, as far as that is told; regular expressions by their text.
_PARTS: Final = ("allow_res", "deny_res", "allow_domains", "deny_domains", "restrict_xpaths")


def rule_key(rule: Any) -> int:
    """Return a number of 32 bits for the parser of a rule and the links that it takes, whatever its place among others."""
    parts = [[getattr(one, "pattern", one) for one in sorted(getattr(rule.link_extractor, name, ()), key=repr)] for name in _PARTS]
    return zlib.crc32(repr((getattr(rule.callback, "__name__", rule.callback), rule.follow, parts)).encode())


def key_of_request(spider: Any, request: Any) -> int | None:
    """Return the key of the rule of a request; None: it has none."""
    rules, number = _rules_of(spider), request.meta.get("rule")
    if request.callback != getattr(spider, "_callback", None) or not isinstance(number, int) or not 0 <= number < len(rules):
        return None
    return rule_key(rules[number])


def rule_now(spider: Any, url: str, number: object, key: object) -> int | None:
    """Return the number that the rule of a stored request has now; None: there is none for it.

    Parameters
    ----------
    spider : CrawlSpider
    url : str
    number, key : object
        As they are stored; a request of an earlier build has no key, and keeps its number.
    """
    rules = _rules_of(spider)
    if isinstance(number, int) and 0 <= number < len(rules) and key in (None, rule_key(rules[number])):
        return number
    same = (at for at, rule in enumerate(rules) if rule_key(rule) == key)
    # A link extractor of the user's own may not tell.
    matching = (at for at, rule in enumerate(rules) if getattr(rule.link_extractor, "matches", lambda _: False)(url))
    return next(same, next(matching, None))


def is_of_rules(spider: Any, meta: Mapping[Any, Any], callback: Any) -> bool:
    """Tell whether a stored request goes by a rule: the spider chooses the callback by its number."""
    return isinstance(spider, CrawlSpider) and "rule" in meta and callback is not None and callback == spider._callback


def _rules_of(spider: Any) -> list[Any]:
    return list(spider._rules) if isinstance(spider, CrawlSpider) else []
