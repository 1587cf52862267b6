"""Connections, and what an outage, a refusal or foreign data look like."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from redis import exceptions as redis_errors

from optimal_frontier.errors import OptimalFrontierError, SchemaMismatchError, StateError, StateUnavailableError
from optimal_frontier.state import connection as module
from optimal_frontier.state.connection import Connection, connect
from optimal_frontier.state.embedded import EmbeddedServer
from optimal_frontier.state.redis_failures import translated
from optimal_frontier.state.redis_url import ConnectionSpec, parse_redis_url

PASSWORD = "s3cr3t-Pa55"


def shown(error: BaseException) -> str:
    """All that a traceback would show."""
    return "".join(traceback.format_exception(error)) + repr(error)


@pytest.fixture
def spec(redis_socket: str) -> ConnectionSpec:
    return parse_redis_url(f"unix://{redis_socket}", Path())


@pytest.fixture
def connection(spec: ConnectionSpec) -> Iterator[Connection]:
    with connect(spec) as made:
        yield made


@pytest.fixture(scope="module")
def own_server(runtime_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A second server, on TCP too, that tests may reconfigure; has a user `crawler` with a password and few permissions."""
    server = EmbeddedServer(tmp_path_factory.mktemp("own"))
    path = server.ensure()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with redis.Redis(unix_socket_path=path, protocol=2) as admin:
        admin.config_set("bind", "127.0.0.1")
        admin.config_set("port", port)
        admin.execute_command("ACL", "SETUSER", "crawler", "on", f">{PASSWORD}", "~*", "+@all", "-info", "-flushall")
        yield SimpleNamespace(path=path, port=port, admin=admin)
    server.release()


# ---- connecting


def test_connects_and_closes(spec: ConnectionSpec, namespace: str) -> None:
    with connect(spec) as made:
        made.client.set(namespace, "value")
        assert made.client.get(namespace) == b"value"
        options = made.client.connection_pool.connection_kwargs
        assert (options["socket_connect_timeout"], options["socket_timeout"]) == (5.0, 30.0)
        assert made.client.get_retry().get_retries() == 0
    with pytest.raises(StateError, match="is closed"):
        made.client  # noqa: B018 -- the look is the test
    made.close()


def test_timeouts_of_the_url_win(redis_socket: str, namespace: str) -> None:
    with connect(parse_redis_url(f"unix://{redis_socket}?socket_timeout=0.05", Path())) as made:
        with pytest.raises(StateUnavailableError, match="did not answer in time"), made.translated():
            made.client.execute_command("BLPOP", namespace, 0)
        with made.translated():
            assert made.client.ping()  # the reply that came too late is not taken for this one


def test_passwords_work_and_are_never_shown(own_server: SimpleNamespace, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with connect(parse_redis_url(f"redis://crawler:{PASSWORD}@127.0.0.1:{own_server.port}", Path())) as made:
        assert "crawler" in str(made.client.acl_whoami())  # also: INFO, which the user may not call, is not needed
        assert PASSWORD not in repr(made) + repr(made.client) + repr(made.client.connection_pool)
        with pytest.raises(StateError, match="lacks a permission") as caught, made.translated():
            made.client.execute_command("FLUSHALL")
    assert PASSWORD not in shown(caught.value) + caplog.text


def test_a_wrong_password_is_called_so(own_server: SimpleNamespace) -> None:
    with pytest.raises(StateUnavailableError, match=rf"wrong password or user for redis://127\.0\.0\.1:{own_server.port}") as caught:
        connect(parse_redis_url(f"redis://crawler:not-{PASSWORD}@127.0.0.1:{own_server.port}", Path()))
    assert PASSWORD not in shown(caught.value)
    assert isinstance(caught.value.__cause__, redis_errors.AuthenticationError)


@pytest.mark.parametrize("word", ["wrong", "password", "Redis", "disabled"])
def test_a_password_that_is_a_word_of_ours_masks_nothing(own_server: SimpleNamespace, word: str) -> None:
    """What is missing would tell it."""
    with pytest.raises(StateUnavailableError) as caught:
        connect(parse_redis_url(f"redis://crawler:{word}@127.0.0.1:{own_server.port}", Path()))
    assert str(caught.value).startswith(f"wrong password or user for redis://127.0.0.1:{own_server.port}")
    assert str(caught.value).endswith("(OPTIMAL_FRONTIER_REDIS_URL): invalid username-password pair or user is disabled.")


def test_a_missing_password_is_called_so(own_server: SimpleNamespace) -> None:
    own_server.admin.config_set("requirepass", PASSWORD)
    try:
        with pytest.raises(StateUnavailableError, match=r"wrong password or user.*the URL has no password"):
            connect(parse_redis_url(f"redis://127.0.0.1:{own_server.port}", Path()))
        with connect(parse_redis_url(f"unix://:{PASSWORD}@{own_server.path}", Path())) as made:
            assert made.client.ping()
    finally:
        with redis.Redis(unix_socket_path=own_server.path, password=PASSWORD, protocol=2) as admin:
            admin.config_set("requirepass", "")


def test_a_server_that_quotes_the_password_is_not_quoted() -> None:
    secretive = parse_redis_url(f"redis://:{PASSWORD}@host", Path())
    with pytest.raises(StateError) as caught, translated(secretive):
        raise redis_errors.ResponseError(f"unknown command 'AUTH', with args beginning with: '{PASSWORD}'")
    assert "with args beginning with: '***'" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_nobody_listening_is_connection_refused_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening: nobody else can take it
        port = taken.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(StateUnavailableError, match=rf"redis://127\.0\.0\.1:{port}/0 .*connection refused") as caught:
            connect(parse_redis_url(f"redis://:{PASSWORD}@127.0.0.1:{port}", Path()))
    assert time.monotonic() - began < 1.0
    assert PASSWORD not in shown(caught.value)
    assert isinstance(caught.value.__cause__, redis_errors.ConnectionError)


def test_an_unknown_host_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(StateUnavailableError, match="host name cannot be resolved"):
        connect(parse_redis_url("redis://no.such.host.invalid", Path()))


def test_a_missing_socket_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(StateUnavailableError, match="there is no such socket"):
        connect(parse_redis_url(f"unix://{tmp_path}/none.sock", Path()))


def test_tls_to_a_plain_server_is_an_error_of_ours(own_server: SimpleNamespace) -> None:
    with pytest.raises(StateUnavailableError, match="rediss://"):
        connect(parse_redis_url(f"rediss://127.0.0.1:{own_server.port}?socket_timeout=0.1", Path()))


@pytest.mark.parametrize(
    ("info", "is_good"),
    [
        ({"redis_version": "6.2.0"}, True),
        ({"redis_version": "10.0.1"}, True),
        ({"redis_version": "7.2.4", "valkey_version": "8.0.0"}, True),
        ({"redis_version": "6.0.16"}, False),
        ({"redis_version": "5.0"}, False),
        ({}, False),
    ],
)
def test_an_old_server_is_refused(spec: ConnectionSpec, info: dict[str, str], is_good: bool) -> None:
    client = SimpleNamespace(info=lambda section: info)
    if is_good:
        module._check_version(client, spec)
    else:
        with pytest.raises(StateError, match=r"has version .*expected 6\.2 or newer, or Valkey"):
            module._check_version(client, spec)


def test_a_server_without_info_is_taken(spec: ConnectionSpec) -> None:
    """It may be forbidden by a right, or renamed; any other refusal is one."""

    def refused(error: Exception) -> SimpleNamespace:
        def info(section: str) -> None:
            raise error

        return SimpleNamespace(info=info)

    module._check_version(refused(redis_errors.NoPermissionError("this user has no permissions to run the 'info' command")), spec)
    module._check_version(refused(redis_errors.ResponseError("unknown command 'INFO', with args beginning with: 'server' ")), spec)
    with pytest.raises(redis_errors.ResponseError):
        module._check_version(refused(redis_errors.ResponseError("DB index is out of range")), spec)


@pytest.mark.parametrize(
    ("policy", "maxmemory", "expected"),
    [("allkeys-lru", "1gb", "allkeys-lru"), ("allkeys-lru", "0", ""), ("volatile-lru", "1gb", ""), ("noeviction", "1gb", "")],
)
def test_a_server_says_whether_it_removes_keys_of_ours(own_server: SimpleNamespace, policy: str, maxmemory: str, expected: str) -> None:
    """Those without an expiry, that is; to a user without a right to ask it says nothing."""
    own_server.admin.config_set("maxmemory-policy", policy)
    own_server.admin.config_set("maxmemory", maxmemory)
    with connect(parse_redis_url(f"redis://127.0.0.1:{own_server.port}", Path())) as made:
        assert made.eviction_policy() == expected
    with connect(parse_redis_url(f"redis://crawler:{PASSWORD}@127.0.0.1:{own_server.port}", Path())) as made:
        assert made.eviction_policy() == ""


# ---- the embedded server


def test_embedded_starts_restarts_and_stops(tmp_path: Path) -> None:
    with connect(parse_redis_url("embedded", tmp_path)) as made:
        made.client.set("key", "value")
        first = made.client
        made.reconnect()
        assert made.client is first  # nothing was wrong
        os.kill(made.client.info("server")["process_id"], signal.SIGKILL)
        with pytest.raises(StateUnavailableError), made.translated():
            made.client.ping()
        threads = [threading.Thread(target=made.reconnect) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made.client.get("key") == b"value"
    assert not (tmp_path / ".scrapy" / "optimal_frontier" / "server.json").exists()


def test_embedded_that_cannot_start_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / ".scrapy").write_text("a file")
    with pytest.raises(StateUnavailableError, match="embedded server"):
        connect(parse_redis_url("embedded", tmp_path))


def test_reconnect_replaces_a_client_that_gets_no_answer(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    first = connection.client
    monkeypatch.setattr(first, "ping", lambda: (_ for _ in ()).throw(redis_errors.ConnectionError("gone")))
    connection.reconnect()
    assert connection.client is not first
    assert connection.client.ping()


# ---- translation, with errors of a real server where it can be made to give them


@pytest.mark.parametrize("script", [None, "return redis.call('INCR', KEYS[1])"])
def test_another_type_under_a_key_is_a_schema_mismatch(connection: Connection, namespace: str, script: str | None) -> None:
    connection.client.rpush(namespace, "element")
    with pytest.raises(SchemaMismatchError, match=f"another type under the key '{namespace}'") as caught, connection.translated(namespace):
        connection.client.incr(namespace) if script is None else connection.client.eval(script, 1, namespace)
    assert isinstance(caught.value.__cause__, redis_errors.ResponseError)
    with pytest.raises(SchemaMismatchError, match="one of our keys"), connection.translated():
        connection.client.incr(namespace)


def test_wrong_type_wrapped_by_an_old_redis_is_recognised(spec: ConnectionSpec) -> None:
    old = "Error running script (call to f_0): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value"
    with pytest.raises(SchemaMismatchError), translated(spec):
        raise redis_errors.ResponseError(old)


def test_full_memory_is_an_outage(own_server: SimpleNamespace) -> None:
    own_server.admin.config_set("maxmemory", 1)
    try:
        with connect(parse_redis_url(f"unix://{own_server.path}", Path())) as made:
            for command in (["SET", "key", "value"], ["EVAL", "return redis.call('SET', KEYS[1], 'value')", 1, "key"]):
                with pytest.raises(StateUnavailableError, match="out of memory"), made.translated():
                    made.client.execute_command(*command)
    finally:
        own_server.admin.config_set("maxmemory", 0)


def test_a_replica_is_an_outage(own_server: SimpleNamespace) -> None:
    own_server.admin.replicaof("127.0.0.1", "1")
    try:
        made = connect(parse_redis_url(f"unix://{own_server.path}", Path()))
        with made, pytest.raises(StateUnavailableError, match="read-only replica"), made.translated():
            made.client.set("key", "value")
    finally:
        own_server.admin.replicaof("NO", "ONE")


def test_an_endless_script_is_an_outage(own_server: SimpleNamespace) -> None:
    own_server.admin.config_set("busy-reply-threshold", 1)
    with (
        redis.Redis(unix_socket_path=own_server.path, protocol=2) as other,
        connect(parse_redis_url(f"unix://{own_server.path}", Path())) as made,
    ):

        def run_endless() -> None:
            with contextlib.suppress(redis_errors.ResponseError):  # killed below
                other.eval("while true do end", 0)

        def ping_until_busy() -> None:
            give_up = time.monotonic() + 10
            while time.monotonic() < give_up:
                made.client.ping()

        endless = threading.Thread(target=run_endless)
        endless.start()
        try:
            with pytest.raises(StateUnavailableError, match="busy with a script"), made.translated():
                ping_until_busy()
        finally:
            own_server.admin.script_kill()
            endless.join()


@pytest.mark.parametrize(
    ("cause", "expected", "text"),
    [
        (redis_errors.BusyLoadingError("Valkey is loading the dataset in memory"), StateUnavailableError, "still loading"),
        (
            redis_errors.ResponseError("MISCONF Errors writing to the AOF file: No space left on device"),
            StateUnavailableError,
            "cannot save",
        ),
        (redis_errors.AuthenticationWrongNumberOfArgsError("wrong number of arguments"), StateUnavailableError, "wrong password or user"),
        (redis_errors.ConnectionError("Connection closed by server."), StateUnavailableError, "Connection closed by server"),
        (redis_errors.NoScriptError("No matching script."), StateError, "No matching script"),
        (redis_errors.ResponseError("BUSYGROUP Consumer Group name already exists"), StateError, "reports: BUSYGROUP"),
        (redis_errors.WatchError("Watched variable changed."), StateError, "Watched"),
    ],
)
def test_every_error_of_redis_becomes_one_of_ours(
    spec: ConnectionSpec, cause: Exception, expected: type[OptimalFrontierError], text: str
) -> None:
    with pytest.raises(expected, match=text) as caught, translated(spec):
        raise cause
    assert type(caught.value) is expected
    assert caught.value.__cause__ is cause
    assert spec.display in str(caught.value)


@pytest.mark.parametrize("error", [KeyError("ours"), StateError("ours"), redis_errors.DataError("ours")])
def test_other_errors_pass(spec: ConnectionSpec, error: Exception) -> None:
    with pytest.raises(type(error), match="ours") as caught, translated(spec):
        raise error
    assert caught.value is error
