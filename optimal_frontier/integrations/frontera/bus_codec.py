"""The codec of messages between Frontera's spiders and workers, for MESSAGE_BUS_CODEC: those that Frontera 0.7 comes with do not run.

Its msgpack codec calls ``unpackb(encoding=...)``, which msgpack has not taken since 1.0; its JSON codec makes text, where the ZeroMQ bus
takes bytes only. Both leave out headers, without which neither ``Retry-After`` nor validators nor the kind of content are known.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from frontera.core.codec import BaseDecoder, BaseEncoder

from optimal_frontier.integrations.frontera.requests import ASKED, IS_LINK, PAGE
from optimal_frontier.state.records import CALLBACKS, decode_record, encode_record

logger = logging.getLogger(__name__)

#: Where a project names it.
CODEC: Final = "optimal_frontier.integrations.frontera.bus_codec"

#: Names in meta that are for one process begin so; of these only what a result or a strategy is told by goes any further.
_OURS: Final = b"optimal_frontier_"
_SENT: Final = (PAGE, ASKED, IS_LINK)
#: What `encode_record` raises at anything but plain data.
_NOT_PLAIN: Final = (TypeError, OverflowError, ValueError)
#: Most levels of what is looked through for values that cannot be sent.
_MOST_LEVELS: Final = 20


class Encoder(BaseEncoder):  # type: ignore[misc]  # frontera is untyped
    """Makes messages of plain data. Names and values in meta that are none are sent as None, which is logged once.

    Parameters
    ----------
    request_model : type
        Not used; the workers give it.
    send_body : bool
        Whether responses are sent with their body: STORE_CONTENT, in spiders.
    """

    def __init__(self, request_model: type[Any], *_: Any, send_body: bool = False, **__: Any) -> None:
        self._sends_body = bool(send_body)
        self._warned = False

    def encode_add_seeds(self, seeds: Iterable[Any]) -> bytes:
        return self._packed("add_seeds", [_parts(seed) for seed in seeds])

    def encode_page_crawled(self, response: Any) -> bytes:
        body = response.body if self._sends_body else None
        headers = dict((response.headers or {}).items())
        return self._packed("page_crawled", [response.url, response.status_code, headers, body, _parts(response.request)])

    def encode_links_extracted(self, request: Any, links: Iterable[Any]) -> bytes:
        found = [_parts(link) for link in links]
        for *_, meta in found:
            meta[IS_LINK] = True  # a strategy passes it on: limits of links hold for what it schedules
        return self._packed("links_extracted", _parts(request), found)

    def encode_request_error(self, request: Any, error: Any) -> bytes:
        return self._packed("request_error", _parts(request), str(error))

    def encode_request(self, request: Any) -> bytes:
        return self._packed("request", _parts(request))

    def encode_update_score(self, request: Any, score: float, schedule: bool) -> bytes:
        return self._packed("update_score", _parts(request), score, schedule)

    def encode_new_job_id(self, job_id: int) -> bytes:
        return self._packed("new_job_id", int(job_id))

    def encode_offset(self, partition_id: int, offset: int | None) -> bytes:
        # Frontera's ZeroMQ consumer has none after a message was lost, or its producer has begun anew.
        return self._packed("offset", int(partition_id), int(offset or 0))

    def _packed(self, *message: Any) -> bytes:
        try:
            return encode_record(list(message))
        except _NOT_PLAIN:
            return encode_record(self._plain(list(message)))

    def _plain(self, value: Any, level: int = 0) -> Any:
        if level < _MOST_LEVELS:
            if isinstance(value, dict):
                return {self._plain(name, level + 1): self._plain(part, level + 1) for name, part in value.items()}
            if isinstance(value, list):
                return [self._plain(part, level + 1) for part in value]
            try:
                encode_record(value)
                return value
            except _NOT_PLAIN:
                pass
        if not self._warned:
            self._warned = True
            logger.warning("a value of type %s cannot be sent, and None is (further ones are not logged)", type(value).__name__)
        return None


class Decoder(BaseDecoder):  # type: ignore[misc]  # frontera is untyped
    """Reads what `Encoder` made.

    Parameters
    ----------
    request_model, response_model : type
        REQUEST_MODEL and RESPONSE_MODEL.
    """

    def __init__(self, request_model: type[Any], response_model: type[Any], *_: Any, **__: Any) -> None:
        self._request_model, self._response_model = request_model, response_model

    def decode(self, buffer: bytes) -> tuple[Any, ...]:
        """Return the name of a message and what it says, as Frontera's workers expect it.

        Raises
        ------
        TypeError
            It is no message of ours; the workers log it and go on.
        """
        try:
            kind, *said = decode_record(buffer)
            match kind:
                case "add_seeds":
                    return kind, [self._request(seed) for seed in said[0]]
                case "page_crawled":
                    url, status, headers, body, request = said[0]
                    return kind, self._response_model(url, status, headers, body, self._request(request))
                case "links_extracted":
                    return kind, self._request(said[0]), [self._request(link) for link in said[1]]
                case "request_error" | "update_score":
                    return kind, self._request(said[0]), *said[1:]
                case "new_job_id" | "offset":
                    return kind, *said
        except Exception as error:  # whoever sent it
            raise TypeError(f"the message cannot be read: {error!r}") from error
        raise TypeError(f"the message is of an unknown kind: {kind!r}")

    def decode_request(self, buffer: bytes) -> Any:
        """Return a request of the spider feed; raises TypeError where it is none."""
        try:
            _, request = decode_record(buffer)
            return self._request(request)
        except Exception as error:
            raise TypeError(f"the message is no request: {error!r}") from error

    def _request(self, parts: list[Any]) -> Any:
        url, method, headers, cookies, body, meta = parts
        return self._request_model(url, method=method, headers=headers, cookies=cookies, meta=_shared(meta), body=body)


def _parts(request: Any) -> list[Any]:
    """Return what is sent of a request, its meta last."""
    return [request.url, request.method, dict(request.headers.items()), request.cookies, request.body, _shared(request.meta)]


def _shared(meta: dict[Any, Any]) -> dict[Any, Any]:
    return {name: value for name, value in meta.items() if not _is_left_out(name, value)}


def _is_left_out(name: Any, value: Any) -> bool:
    if name in CALLBACKS:
        return value is None  # so Frontera's converter says that a Scrapy request names none; a record says nothing
    return isinstance(name, bytes) and name.startswith(_OURS) and name not in _SENT
