"""Classes of requests: one of the user's own may tell a middleware what to do, for instance that a browser is to render the page."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from types import MemberDescriptorType
from typing import Any, Final

from scrapy import Request
from scrapy.http import FormRequest, JsonRequest, XmlRpcRequest

from optimal_frontier.state.records import REQUEST_CLASS

#: Once they are made, requests of these are fetched in the same way.
_SCRAPYS: Final = frozenset({Request, FormRequest, JsonRequest, XmlRpcRequest})
#: Attributes of every request; up to Scrapy 2.13 they are no slots.
_OF_REQUEST: Final = frozenset(dir(Request)) | frozenset(getattr(Request("data:,"), "__dict__", ()))


def class_parts(request: Any) -> dict[str, Any]:
    """Return the name of a request's class and the state that it adds to a `Request`, to be stored; nothing for classes of Scrapy's."""
    kind = type(request)
    return {} if kind in _SCRAPYS else {REQUEST_CLASS: name_of(kind), "state": _own_state(request)}


def find_class(name: str) -> type[Request] | None:
    """Return the loaded class of requests of that name, the last that was defined; None: there is none.

    Nothing is imported: whoever can write to Redis names them.
    """
    found, kinds = None, [Request]
    for kind in kinds:
        found = kind if name_of(kind) == name else found
        kinds += [each for each in kind.__subclasses__() if each not in kinds]
    return found


def build_request(kind: type[Request], state: Mapping[str, Any], arguments: Mapping[str, Any]) -> Request:
    """Return a request with these arguments of `Request`, and with what its class adds.

    The constructor of the class is not called: it may want arguments that are not known any more.

    Raises
    ------
    TypeError, ValueError
        The arguments make no request.
    """
    request = Request.__new__(kind)
    Request.__init__(request, **arguments)
    # Not what every request has: a stored URL has been looked at, and state that came from a stranger may not replace it.
    for name in state.keys() - _OF_REQUEST:
        # A slot that the class had when the request was stored, and has no more, is nothing that anybody looks at.
        with contextlib.suppress(AttributeError):
            object.__setattr__(request, name, state[name])
    return request


def copy_request(request: Any) -> Request:
    """Return a copy with all that its class adds; ``request.copy()`` knows what the class lists in ``attributes``."""
    return build_request(type(request), _own_state(request), {name: getattr(request, name) for name in Request.attributes})


def name_of(kind: type) -> str:
    """Return module and name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _own_state(request: Any) -> dict[str, Any]:
    slots = {name for kind in type(request).__mro__ for name, value in vars(kind).items() if isinstance(value, MemberDescriptorType)}
    state = {name: getattr(request, name) for name in slots if hasattr(request, name)} | getattr(request, "__dict__", {})
    return {name: value for name, value in state.items() if name not in _OF_REQUEST}
