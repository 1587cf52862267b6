"""What a chaos crawl consists of, and what its checks have to know of what was done to it."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from chaos_crawl.checks import Loss
from chaos_crawl.crawlers import NAMESPACE, Crawler
from chaos_crawl.proxy import Proxy
from chaos_crawl.server import Server
from chaos_crawl.site import Site

#: Longer than a lease, seconds.
LONG_S = 20.0
#: Where scripts of these crawlers look for how far ahead the server's clock is, seconds.
_AHEAD_KEY = f"{NAMESPACE}:{{0}}:chaos"


@dataclass
class World:
    """What troubles may touch.

    Attributes
    ----------
    proxies : list of Proxy
        One for each crawler.
    losses : list of Loss
        What the server has lost.
    hung : list of str
        What should have ended, and did not.
    """

    server: Server
    proxies: list[Proxy]
    crawlers: list[Crawler]
    site: Site
    rng: random.Random
    losses: list[Loss] = field(default_factory=list)
    hung: list[str] = field(default_factory=list)
    _servers: int = 1

    def some_proxies(self) -> list[Proxy]:
        """Return the proxies of all crawlers, or of one."""
        return self.rng.choice([self.proxies, [self.rng.choice(self.proxies)]])

    def lose(self, since: float) -> None:
        """Note that the server, which answers again, has lost what it was told from a time on."""
        self.losses.append(Loss(since, time.monotonic()))
        print(f"{since:.1f} to {self.losses[-1].until:.1f} is lost", flush=True)

    def learn_late(self, since: list[float]) -> None:
        """Note that some learn only now of what the server has lost from these times on; until now they went on as before."""
        for each in since:
            self.lose(each)

    def replace_server(self, server: Server) -> None:
        """Let all connections lead to another server, and none to the one before, which is gone."""
        self.server = server
        for proxy in self.proxies:
            proxy.socket = server.socket
            proxy.cut()

    def new_name(self) -> str:
        """Return the name of another server."""
        self._servers += 1
        return f"data-{self._servers}"

    @property
    def ahead(self) -> int:
        """How far ahead the server's clock is, seconds."""
        return int(self.server.client.hget(_AHEAD_KEY, "ahead") or 0)

    def set_clock(self, ahead: int) -> None:
        """Set the server's clock so many seconds ahead: nobody may set the machine's. What it deletes by the clock goes with it."""
        client, by = self.server.client, 1000 * (ahead - self.ahead)
        client.hset(_AHEAD_KEY, "ahead", ahead)
        for key in client.scan_iter(f"{NAMESPACE}:*", count=1000):
            left = client.pttl(key)
            if left > 0:
                client.pexpire(key, max(1, left - by))
