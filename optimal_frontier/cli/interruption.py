"""Ctrl-C and SIGTERM for commands that run until they are stopped."""

from __future__ import annotations

import os
import select
import signal
import threading
from types import FrameType
from typing import Any


class Interruption:
    """Within its block the first SIGINT or SIGTERM ends the wait instead of the process; the second one is as usual.

    Examples
    --------
    >>> with Interruption() as interruption:
    ...     interruption.wait(0.0)
    False
    """

    def __init__(self) -> None:
        self.happened = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        # A pipe and no threading.Event: a handler that sets an event may wait for a lock that the interrupted code holds.
        self._read, self._write = os.pipe()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()
        os.close(self._read)
        os.close(self._write)

    def wait(self, seconds: float) -> bool:
        """Wait, and tell whether a signal came, now or before."""
        if not self.happened:
            select.select([self._read], [], [], max(0.0, seconds))
        return self.happened

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.happened = True
        os.write(self._write, b"\0")
        self._restore()

    def _restore(self) -> None:
        while self._previous:
            number, handler = self._previous.popitem()
            signal.signal(number, handler)
