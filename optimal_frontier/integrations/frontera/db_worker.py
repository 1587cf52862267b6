"""``python -m optimal_frontier.integrations.frontera.db_worker --config SETTINGS``: Frontera's DB worker, without what fails in it.

Frontera 0.7.2's own command ends in ``frontera/worker/server.py``, `WorkerJsonRpcService`: ``putChild("status", ...)`` raises ``TypeError:
Path segment must be bytes`` in every Twisted of Python 3. Its JSON-RPC service is left out here; the worker is Frontera's.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from frontera.contrib.backends.partitioners import FingerprintPartitioner
from frontera.settings import Settings
from frontera.utils.misc import load_object
from frontera.worker.db import DBWorker

from optimal_frontier.errors import ConfigurationError, OptimalFrontierError
from optimal_frontier.integrations.frontera.backend import OptimalBackend
from optimal_frontier.integrations.frontera.distributed import check_codec

#: A spider that is not heard of for so long is not there, seconds. One that fetches what it has got for longer gets more when it is heard.
SILENT_S: Final = 30.0
#: What Frontera raises where a setting names what it cannot load, or what is of another kind.
_NOT_LOADED: Final = (AssertionError, ImportError, NameError, ValueError)


class HeardFeed:
    """Frontera's spider feed, with those spiders that are there: to it, all are from the start, and for ever.

    The bus drops what nobody listens to, and its page waits for RESULT_TIMEOUT.

    Parameters
    ----------
    feed : SpiderFeedStream
        Tells which partitions have room.
    producer : spider feed producer
        Asked for its offset with each message of a spider that asks for requests.
    """

    def __init__(self, feed: Any, producer: Any) -> None:
        self._feed, self._offset_of = feed, producer.get_offset
        #: Partition -> when its spider was heard last, local monotonic time.
        self._heard: dict[int, float] = {}
        producer.get_offset = self._hear

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)

    def available_partitions(self) -> set[int]:
        """Return the partitions whose spiders are there, and have room."""
        since = time.monotonic() - SILENT_S
        return {k for k in self._feed.available_partitions() if self._heard.get(k, -math.inf) > since}

    def _hear(self, partition: int) -> Any:
        self._heard[partition] = time.monotonic()
        try:
            return self._offset_of(partition)
        except KeyError:  # ZeroMQ's, of a partition that got nothing yet
            return 0


class ReadyPartitioner(FingerprintPartitioner):  # type: ignore[misc]  # frontera is untyped
    """Sends requests to spiders that have room for them: Frontera's own fills the queue of a slow spider until messages are dropped.

    Parameters
    ----------
    feed : SpiderFeedStream
        Tells which partitions are ready.
    """

    def __init__(self, feed: Any) -> None:
        super().__init__(feed.partitions)
        self._feed = feed

    def partition(self, key: bytes, partitions: Sequence[int] | None = None) -> int:
        ready = partitions or sorted(self._feed.available_partitions())
        return int(super().partition(key, ready))


class OptimalDBWorker(DBWorker):  # type: ignore[misc]  # frontera is untyped
    """Frontera's DB worker, which takes results and gives out requests: a lease ends where it began, so that one process does both.

    Parameters
    ----------
    settings : frontera Settings

    Attributes
    ----------
    has_failed : bool
        It has stopped, as Redis cannot be used.

    Raises
    ------
    ConfigurationError
        A class of MESSAGE_BUS, MIDDLEWARES ... cannot be loaded, MESSAGE_BUS_CODEC is one of Frontera's, MAX_NEXT_REQUESTS is 0, or a
        setting of ours is outside its range.
    """

    has_failed = False

    def __init__(self, settings: Any) -> None:
        check_codec(settings)
        if settings.get("MAX_NEXT_REQUESTS") == 0:
            raise ConfigurationError("MAX_NEXT_REQUESTS: expected 1 or more with Frontera's workers, whose spiders ask for as many")
        try:
            load_object(settings.get("MESSAGE_BUS"))
        except _NOT_LOADED as error:
            raise ConfigurationError(f"MESSAGE_BUS: {error}; ZeroMQ comes with pip install 'optimal-frontier[distributed]'") from error
        try:
            super().__init__(settings, no_batches=False, no_incoming=False, no_scoring=False)
        except _NOT_LOADED as error:
            raise ConfigurationError(f"a class cannot be loaded that BACKEND, MIDDLEWARES or another setting names: {error}") from error
        producer = self.spider_feed_producer
        self.spider_feed: Any = HeardFeed(self.spider_feed, producer)
        if self.spider_feed_partitioning == "fingerprint" and hasattr(producer, "partitioner"):
            producer.partitioner = ReadyPartitioner(self.spider_feed)

    def new_batch(self, *_: Any, **__: Any) -> int:
        """Send a batch to the spiders that have room; return how many requests. The next one gathers meanwhile, at the pace of the budget.

        The worker listens to the bus for a second or more between two batches, and would use only what the budget has saved up by then.
        """
        if not isinstance(self._backend, OptimalBackend):
            return int(super().new_batch())
        courier = self._backend.session.courier
        if courier.failure is not None:
            # For good, as the courier has logged. Frontera would call again, for ever.
            from twisted.internet import reactor

            self.has_failed = True
            reactor.stop()  # type: ignore[misc]  # a module that stands for an object
            return 0
        count = int(super().new_batch())
        ready = self.spider_feed.available_partitions()
        if ready:
            courier.ask(self.max_next_requests * len(ready), {}, 0)
        return count


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a DB worker until it gets SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m optimal_frontier.integrations.frontera.db_worker", description="Frontera's DB worker.")
    parser.add_argument("--config", required=True, help="Module with Frontera's settings and ours.")
    levels = ("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")
    parser.add_argument("--log-level", "-L", default="INFO", type=str.upper, choices=levels, help="INFO unless given.")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=given.log_level, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    try:
        settings = Settings(module=given.config)
    except ImportError as error:
        parser.error(f"--config: expected a module that can be imported: {error}")
    try:
        worker = OptimalDBWorker(settings)
    except OptimalFrontierError as error:
        parser.error(str(error))
    worker.run()
    if worker.has_failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
