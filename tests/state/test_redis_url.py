"""Which URLs of Redis are understood, and that no password is shown."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import pytest

from optimal_frontier.errors import ConfigurationError
from optimal_frontier.state.connection import Connection
from optimal_frontier.state.redis_url import client_options, parse_redis_url

PASSWORD = "s3cr3t-Pa55"


@pytest.mark.parametrize(
    ("url", "display"),
    [
        ("redis://localhost", "redis://localhost:6379/0"),
        (" redis://localhost:7000/3\n", "redis://localhost:7000/3"),
        (f"REDIS://user:{PASSWORD}@Example.com/1", "redis://example.com:6379/1"),
        (f"redis://:{PASSWORD}@[::1]:6380", "redis://[::1]:6380/0"),
        (f"redis://{PASSWORD}@host", "redis://host:6379/0"),
        (f"redis://host?password={PASSWORD}&db=4", "redis://host:6379/4"),
        (f"rediss://user:{PASSWORD}@host:1/2?ssl_cert_reqs=none&socket_timeout=3", "rediss://host:1/2"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock?db=0"),
        (f"unix://user:{PASSWORD}@/run/redis.sock?db=2", "unix:///run/redis.sock?db=2"),
    ],
)
def test_a_url_is_shown_without_user_password_and_options(url: str, display: str) -> None:
    parsed = parse_redis_url(url, Path())
    assert parsed.display == display
    assert parsed.data_dir is None
    assert PASSWORD not in repr(parsed) + str(parsed) + repr(Connection(parsed))


def test_embedded_urls_name_a_data_dir(tmp_path: Path) -> None:
    assert parse_redis_url("embedded", tmp_path).data_dir == tmp_path / ".scrapy" / "optimal_frontier"
    assert parse_redis_url("embedded:///var/lib/x%20y", tmp_path).data_dir == Path("/var/lib/x y")
    assert parse_redis_url("embedded", tmp_path).display == f"embedded://{tmp_path}/.scrapy/optimal_frontier"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        PASSWORD,
        f"http://:{PASSWORD}@localhost",
        "embedded://",
        "embedded:///",
        "embedded://relative/path",
        "unix://",
        f"redis://:{PASSWORD}",
        f"redis://:{PASSWORD}@host:port",
        f"redis://:{PASSWORD}@host:99999",
        f"redis://:a/{PASSWORD}@host",
        f"redis://:1/{PASSWORD}@host",
        f"redis://:1?{PASSWORD}@host",
        f"redis://:1#{PASSWORD}@host",
        f"redis://:{PASSWORD}[@host",
        f"unix://:a/{PASSWORD}@/run/redis.sock",
        f"redis://:{PASSWORD}@host/db",
        f"redis://:{PASSWORD}@host?nonsense={PASSWORD}",
        f"redis://host?db={PASSWORD}",
        "redis://host?socket_timeout=soon",
        "redis://host?decode_responses=True",
        "redis://host?protocol=3",
        "rediss://host?ssl_cert_reqs=maybe",
        *(f"redis://host?{name}={value}" for name in ("socket_timeout", "socket_connect_timeout") for value in ("-1", "0", "nan", "inf")),
        f"unix:///run/redis.sock?socket_timeout={'9' * 400}",
        "redis+cluster://host?socket_timeout=-1",
        "redis://host?socket_read_size=" + "9" * 30,
        *(
            f"redis://host?{name}=3"
            for name in ("retry", "credential_provider", "encoding", "encoding_errors", "redis_connect_func", "event_dispatcher")
        ),
        *(f"redis://{option}" for option in ("?host=other", "host?port=7000", "host?socket_type=1")),
        "rediss://host?ssl_min_version=5",
        *(f"{scheme}://{PASSWORD}..host" for scheme in ("redis", "rediss", "redis+cluster")),
        "redis://" + "a" * 64,
        None,
    ],
)
def test_an_unusable_url_names_the_setting_and_shows_nothing_of_itself(url: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^OPTIMAL_FRONTIER_REDIS_URL .*expected \"embedded\"") as caught:
        parse_redis_url(url, Path())
    assert PASSWORD not in "".join(traceback.format_exception(caught.value)).replace(repr(url), "")
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("name", ["ssl_check_hostname", "ssl_validate_ocsp", "socket_keepalive", "retry_on_timeout"])
@pytest.mark.parametrize("word", ["maybe", "off", "2"])
def test_what_is_neither_true_nor_false_is_refused(name: str, word: str) -> None:
    with pytest.raises(ConfigurationError, match=f"sets {name} to something else than True or False; expected"):
        parse_redis_url(f"rediss://host?{name}={word}", Path())


@pytest.mark.parametrize(("word", "meant"), [("False", False), ("no", False), ("0", False), ("True", True), ("yes", True)])
def test_words_for_true_and_false_are_read_alike_for_all_options(word: str, meant: bool) -> None:
    """redis-py gives some of them as texts, of which "False" counts as True."""
    options = client_options(f"rediss://host?ssl_check_hostname={word}&ssl_validate_ocsp={word}")
    assert (options["ssl_check_hostname"], options["ssl_validate_ocsp"]) == (meant, meant)


def test_a_cluster_shows_neither_password_nor_database() -> None:
    spec = parse_redis_url(f"redis+cluster://:{PASSWORD}@host:7000", Path())
    assert spec.cluster
    assert spec.display == "redis+cluster://host:7000"
    with pytest.raises(ConfigurationError, match="a cluster has only one"):
        parse_redis_url("redis+cluster://host:7000/1", Path())
