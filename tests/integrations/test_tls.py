"""TLS to Redis: certificates of a CA of one's own, those of clients too, and what is said of wrong ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawls import crawling
from misbehaving_site import MisbehavingSite
from real_server import binary_of, free_port, real_server
from tls_certificates import make_usual_certificates

from optimal_frontier.errors import ConfigurationError, StateUnavailableError
from optimal_frontier.state.connection import connect
from optimal_frontier.state.redis_url import parse_redis_url

SPIDER = """
    class Tester(Base):
        paths = ["/pages/3"]
        def parse(self, response):
            for link in response.css("a"):
                yield response.follow(link)
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of certificates: of `ca` the server's and a client's, and another CA `stranger`."""
    folder = tmp_path_factory.mktemp("tls")
    make_usual_certificates(folder)
    return folder


@pytest.fixture(scope="module")
def port(keys: Path) -> Iterator[int]:
    """Port of a redis-server that speaks TLS only, and asks clients for a certificate."""
    options = {
        "port": 0,
        "tls-port": free_port(),
        "tls-cert-file": keys / "server.pem",
        "tls-key-file": keys / "server.key",
        "tls-ca-cert-file": keys / "ca.pem",
        "tls-auth-clients": "yes",
    }
    with real_server(binary_of("redis"), keys, options) as listening:
        yield listening


def url_of(port: int, host: str = "127.0.0.1", **options: object) -> str:
    return f"rediss://{host}:{port}/0?" + "&".join(f"{name}={value}" for name, value in options.items())


def test_a_crawl_over_tls(port: int, keys: Path, tmp_path: Path) -> None:
    """The CA of the server and the certificate of the client are options of the URL."""
    url = url_of(port, ssl_ca_certs=keys / "ca.pem", ssl_certfile=keys / "client.pem", ssl_keyfile=keys / "client.key")
    settings = {"OPTIMAL_FRONTIER_REDIS_URL": url, "OPTIMAL_FRONTIER_NAMESPACE": "over-tls"}
    with connect(parse_redis_url(url, tmp_path)) as connection, MisbehavingSite() as site:
        with crawling(tmp_path, site.url(""), SPIDER, settings) as run:
            run.until(lambda: int(connection.client.hget("over-tls:{0}:stats", "visits") or 0) >= 10)
            run.stop()
        assert "Traceback" not in run.log
        # Only what stands in front of the options is shown.
        assert f"rediss://127.0.0.1:{port}/0," in run.log
        assert str(keys) not in run.log


def test_the_certificate_of_the_server_need_not_be_checked(port: int, keys: Path, tmp_path: Path) -> None:
    """`ssl_cert_reqs=none` takes any: the connection is encrypted, but nobody knows with whom."""
    url = url_of(port, ssl_cert_reqs="none", ssl_certfile=keys / "client.pem", ssl_keyfile=keys / "client.key")
    with connect(parse_redis_url(url, tmp_path)) as connection:
        assert connection.client.ping()


FAULTS = {
    "another CA": ({"ssl_ca_certs": "stranger.pem"}, r"TLS failed: .*certificate verify failed"),
    "no CA": ({}, r"TLS failed: .*certificate verify failed"),
    "no certificate of the client": (
        {"ssl_certfile": None, "ssl_keyfile": None, "ssl_ca_certs": "ca.pem"},
        r"cannot reach .*(TLS failed|clos|reset|pipe)",
    ),
    "a key of another": ({"ssl_ca_certs": "ca.pem", "ssl_keyfile": "server.key"}, r"TLS failed: .*"),
    "no certificate in the file": ({"ssl_ca_certs": "ca.key"}, r"TLS failed: .*"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_tls_is_one_line(fault: str, port: int, keys: Path, tmp_path: Path) -> None:
    """It names the server, the setting and what failed."""
    given, text = FAULTS[fault]
    options = {"ssl_certfile": "client.pem", "ssl_keyfile": "client.key", **given}
    url = url_of(port, **{name: keys / str(value) for name, value in options.items() if value is not None})
    with pytest.raises(StateUnavailableError, match=text) as caught:
        connect(parse_redis_url(url, tmp_path))
    assert len(str(caught.value).splitlines()) == 1
    assert f"Redis at rediss://127.0.0.1:{port}/0 (OPTIMAL_FRONTIER_REDIS_URL)" in str(caught.value)


@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_certfile", "ssl_keyfile"])
def test_a_file_that_is_missing_is_told_by_its_option(option: str, tmp_path: Path) -> None:
    """Before anything is connected to, and as wrong usage, not as an outage."""
    with pytest.raises(ConfigurationError, match=f"^OPTIMAL_FRONTIER_REDIS_URL names a file by {option} that is not there"):
        parse_redis_url(url_of(1, **{option: tmp_path / "missing.pem"}), tmp_path)


def test_another_host_name_than_in_the_certificate_is_refused(port: int, keys: Path, tmp_path: Path) -> None:
    """Names are checked unless the URL says `ssl_check_hostname=False`."""
    options = {"ssl_ca_certs": keys / "ca.pem", "ssl_certfile": keys / "client.pem", "ssl_keyfile": keys / "client.key"}
    with pytest.raises(StateUnavailableError, match=r"TLS failed: .*localhost"):
        connect(parse_redis_url(url_of(port, "localhost", **options), tmp_path))
    with connect(parse_redis_url(url_of(port, "localhost", ssl_check_hostname=False, **options), tmp_path)) as connection:
        assert connection.client.ping()


def test_neither_speaks_to_the_other_without_tls(port: int, keys: Path, tmp_path: Path) -> None:
    """redis:// to a server with TLS, and rediss:// to one without."""
    for scheme in ("redis", "redis+cluster"):
        with pytest.raises(StateUnavailableError, match=rf"cannot reach Redis at {re.escape(scheme)}://.*TLS needs rediss://"):
            connect(parse_redis_url(f"{scheme}://127.0.0.1:{port}", tmp_path))
    with (
        real_server(binary_of("redis"), tmp_path, {"port": free_port()}) as plain,
        pytest.raises(StateUnavailableError, match="does it speak TLS"),
    ):
        connect(parse_redis_url(url_of(plain, ssl_ca_certs=keys / "ca.pem", socket_connect_timeout=1, socket_timeout=600), tmp_path))


def test_the_time_for_replies_is_that_of_the_url_also_over_tls(port: int, keys: Path, tmp_path: Path) -> None:
    """The time for connecting bounds the handshake only."""
    options = {"ssl_ca_certs": keys / "ca.pem", "ssl_certfile": keys / "client.pem", "ssl_keyfile": keys / "client.key"}
    url = url_of(port, socket_connect_timeout=0.3, socket_timeout=20, **options)
    with connect(parse_redis_url(url, tmp_path)) as connection:
        assert connection.client.blpop(["nothing"], timeout=0.6) is None
