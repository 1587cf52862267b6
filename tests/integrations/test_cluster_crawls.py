"""Real crawls on a cluster: a master dies, one loses its data, slots move, all of it over TLS; nothing is lost, or counted twice."""

from __future__ import annotations

import contextlib
import re
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cluster_servers import ClusterServers, cluster_servers, port_of
from crawls import Crawl, crawling
from misbehaving_site import MisbehavingSite
from tls_certificates import make_usual_certificates

from optimal_frontier.errors import ConfigurationError, StateUnavailableError
from optimal_frontier.state.checking import check_state
from optimal_frontier.state.connection import connect
from optimal_frontier.state.layouts import PartitionState
from optimal_frontier.state.namespace import Namespace
from optimal_frontier.state.records import unpack_record
from optimal_frontier.state.redis_url import parse_redis_url
from optimal_frontier.state.rows import Row, split_tail

PARTITIONS = 16
#: So many that each node has some.
HOSTS = [f"127.0.0.{n}" for n in range(1, 41)]
#: A page with links on each host, and how many pages it links to.
LINKS = 2
PAGES = len(HOSTS) * (1 + LINKS)
SPIDER = f"""
    class Tester(Base):
        def first(self):
            for n in range(1, {len(HOSTS) + 1}):
                yield Request(SITE.replace("127.0.0.1", f"127.0.0.{{n}}") + "/pages/{LINKS}")

        def parse(self, response):
            for link in response.css("a::attr(href)").getall():
                yield response.follow(link)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterServers]:
    """A cluster of three masters with a replica each."""
    with cluster_servers("redis", tmp_path_factory.mktemp("cluster"), replicas=1) as servers:
        yield servers


@pytest.fixture
def servers(made: ClusterServers) -> ClusterServers:
    """The same, all nodes alive."""
    made.restore()
    return made


class ClusterCrawl:
    """A crawl of 120 pages over forty hosts, and a look at what it leaves."""

    def __init__(self, url: str, site: MisbehavingSite, folder: Path) -> None:
        self.site, self.url = site, url
        self.name = f"crawl-{uuid.uuid4().hex[:8]}"
        self.folder = folder
        self.connection = connect(parse_redis_url(url, folder))
        self.space = Namespace(self.connection, self.name)
        self.space.partitions = PARTITIONS

    def start(self) -> contextlib.AbstractContextManager[Crawl]:
        ours = {"REDIS_URL": self.url, "NAMESPACE": self.name, "PARTITIONS": PARTITIONS, "CRAWL_RATE": 50}
        ours |= {"MIN_INTERVAL": 2, "RESOLVE_INTERVAL": 3, "DISCOVERY_SHARE": 0.9}
        settings = {f"OPTIMAL_FRONTIER_{name}": value for name, value in ours.items()}
        return crawling(self.folder, self.site.url(""), SPIDER, settings)

    def partition_of(self, host: str) -> int:
        return self.space.partition_of(f"{host}:{self.site.port}")

    def visits(self) -> dict[tuple[str, str], int]:
        """Return visits of all pages by host and path."""
        found = {}
        for k in range(PARTITIONS):
            rows = [["HGETALL", self.space.key("pages", k)], ["HGETALL", self.space.key("hosts:names", k)]]
            pages, names = map(_pairs, self.space.commands(rows, partition=k))
            for value in pages.values():
                row = Row.unpack(value)
                parts = urlsplit(unpack_record(split_tail(value)[1], names[b"%d" % row.host].decode())["url"])
                found[str(parts.hostname), parts.path] = row.visits
        return found

    def is_all_visited(self) -> bool:
        """Tell whether all pages are known, and none waits for its first visit; not while the cluster cannot be read."""
        time.sleep(0.2)
        try:
            counts = self.space.counts()
        except StateUnavailableError:
            with contextlib.suppress(StateUnavailableError):
                self.connection.reconnect()
            return False
        return (counts.get("pages"), counts.get("fetched"), counts.get("pending")) == (PAGES, PAGES, 0)

    def calls(self, client: Any, partition: int) -> float:
        """Return how many calls for requests a partition has counted, as its node says."""
        kept = PartitionState.stored(client.get(self.space.key("d", partition)))
        return 0.0 if kept is None else kept.dispatches

    def fetches(self, after: float = 0.0) -> Counter[tuple[str, str]]:
        return Counter((one.headers["host"].partition(":")[0], one.path) for one in list(self.site.fetches) if one.at > after)

    def hosts_of(self, servers: ClusterServers, client: Any) -> list[str]:
        return [host for host in HOSTS if servers.master_of(self.space.prefix(self.partition_of(host))) is client]

    def expect_well(self, run: Crawl) -> None:
        """End the crawl, and see that it ends well, that no page counts more visits than were made, and that all invariants hold."""
        assert run.stop() == 0
        assert "Traceback" not in run.log
        assert "ERROR" not in run.log
        visits, fetches = self.visits(), self.fetches()
        assert {page: n for page, n in visits.items() if n > fetches[page]} == {}
        self.space.open(create=False)
        assert check_state(self.space).violations == []


def _pairs(flat: Any) -> dict[bytes, bytes]:
    return flat if isinstance(flat, dict) else dict(zip(flat[::2], flat[1::2], strict=True))


@pytest.fixture
def site() -> Iterator[MisbehavingSite]:
    with MisbehavingSite(*HOSTS[1:]) as running:
        yield running


@pytest.mark.parametrize("lags", [False, True], ids=["with all it had", "without its last half second"])
def test_a_master_dies_in_mid_crawl(servers: ClusterServers, site: MisbehavingSite, tmp_path: Path, lags: bool) -> None:
    """The one with the first partition. Its replica takes over, also one that has not seen all; lines tell of the outage and its end."""
    crawl = ClusterCrawl(servers.url(*servers.clients[:3]), site, tmp_path)
    with crawl.start() as run:
        run.until(lambda: len(site.fetches) > 50)
        node = servers.master_of(crawl.space.prefix(0))
        hosts = crawl.hosts_of(servers, node)
        if lags:
            servers.cut_off_replicas(node)
            lost = [k for k in range(PARTITIONS) if servers.master_of(crawl.space.prefix(k)) is node]
            before = [crawl.calls(node, k) for k in lost]
            run.until(lambda: [crawl.calls(node, k) for k in lost] != before)  # a crawler tells a loss by its own calls
            so_far = time.monotonic()
            run.until(lambda: time.monotonic() > so_far + 0.5)
        killed = time.monotonic()
        servers.kill(node)
        run.until(crawl.is_all_visited)
        run.until(lambda: {host for host, _ in crawl.fetches(after=killed + 2)} >= set(hosts))
        outage_s = time.monotonic() - killed
        crawl.expect_well(run)
    assert hosts
    assert 1 <= run.log.count("trying again") <= 1 + outage_s / 2
    assert f", node 127.0.0.1:{port_of(node)} " in run.log
    assert "answers again, after" in run.log
    told = [line for line in run.log.splitlines() if "is not where it was" in line]
    assert (1 if lags else 0) <= len(told) <= 1, told
    assert all("has an earlier state of partition" in line for line in told)


@pytest.mark.parametrize("is_first", [False, True], ids=["another", "that of the first partition"])
def test_a_node_loses_its_data_in_mid_crawl(servers: ClusterServers, site: MisbehavingSite, tmp_path: Path, is_first: bool) -> None:
    """Its partitions are made anew, and their pages found again; the others go on with what they have."""
    crawl = ClusterCrawl(servers.url(), site, tmp_path)
    with crawl.start() as run:
        run.until(crawl.is_all_visited)
        first = servers.master_of(crawl.space.prefix(0))
        used = {crawl.partition_of(host) for host in HOSTS}
        others = {servers.master_of(crawl.space.prefix(k)): k for k in used}
        node = first if is_first else next(client for client in others if client is not first)
        lost = crawl.hosts_of(servers, node)
        before = crawl.visits()
        wiped = time.monotonic()
        node.flushall()
        run.until(lambda: "is not where it was" in run.log)
        run.until(crawl.is_all_visited)
        after = crawl.visits()
        crawl.expect_well(run)
    assert lost
    assert all(visits >= before[page] for page, visits in after.items() if page[0] not in lost)
    assert {page for page in crawl.fetches(after=wiped) if page[0] in lost} == {page for page in before if page[0] in lost}
    lost_all = r"it has lost the state of partition \d+ at least, and the namespace was made anew"
    line = lost_all if is_first else r"it has an earlier state of partition \d+ at least, and the crawl goes on from there"
    assert len(re.findall(line, run.log)) == run.log.count("is not where it was") == 1


def test_slots_move_in_mid_crawl(servers: ClusterServers, site: MisbehavingSite, tmp_path: Path) -> None:
    """`redis-cli --cluster reshard` gives another node a partition of which pages are fetched."""
    crawl = ClusterCrawl(servers.url(), site, tmp_path)
    used = {crawl.partition_of(host) for host in HOSTS}
    source, target, count = servers.nearest_move(map(crawl.space.prefix, used))
    before = crawl.hosts_of(servers, source)
    with crawl.start() as run:
        run.until(lambda: len(site.fetches) > 50)
        servers.move_slots(source, target, count)
        moved_at = time.monotonic()
        run.until(crawl.is_all_visited)
        moved = set(before) - set(crawl.hosts_of(servers, source))
        run.until(lambda: {host for host, _ in crawl.fetches(after=moved_at)} >= moved)
        crawl.expect_well(run)
    assert moved
    assert "is not where it was" not in run.log


def test_a_crawl_on_a_cluster_over_tls(site: MisbehavingSite, tmp_path: Path) -> None:
    """CA and certificate of the client are options of the URL, as for a single server. Nothing of them is shown."""
    keys = tmp_path / "keys"
    keys.mkdir()
    make_usual_certificates(keys)
    files = {"tls-cert-file": keys / "server.pem", "tls-key-file": keys / "server.key", "tls-ca-cert-file": keys / "ca.pem"}
    options = files | {"tls-auth-clients": "yes", "tls-cluster": "yes", "tls-replication": "yes"}
    tls = {"ssl_ca_certs": keys / "ca.pem", "ssl_certfile": keys / "client.pem", "ssl_keyfile": keys / "client.key"}
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    with cluster_servers("redis", nodes, options=options, tls=tls) as servers:
        crawl = ClusterCrawl(servers.url(*servers.clients), site, tmp_path)
        with crawl.start() as run:
            run.until(crawl.is_all_visited)
            crawl.expect_well(run)
        shown = crawl.connection.spec.display
        assert shown == f"rediss+cluster://{','.join(map(servers.address_of, servers.clients))}"
        assert f"{shown}," in run.log
        assert str(keys) not in run.log
        stranger = servers.url().replace("ca.pem", "stranger.pem")
        with pytest.raises(StateUnavailableError, match=r"TLS failed: .*certificate verify failed") as caught:
            connect(parse_redis_url(stranger, tmp_path))
        assert len(str(caught.value).splitlines()) == 1
        with pytest.raises(ConfigurationError, match="names a file by ssl_ca_certs that is not there"):
            parse_redis_url(servers.url().replace("ca.pem", "missing.pem"), tmp_path)
