"""A TCP proxy between crawlers and Redis that cuts, delays, loses and swallows."""

from __future__ import annotations

import asyncio
import contextlib


class Proxy:
    """Passes everything on unless told otherwise.

    Attributes
    ----------
    delay_s : float
        Replies come so much later.
    loses : bool
        Replies are lost, and the connection with them.
    swallows : bool
        Nothing comes through, and nobody is told.
    """

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self.delay_s = 0.0
        self.loses = self.swallows = False
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self) -> tuple[asyncio.Server, int]:
        """Serve until the result is closed; return it and its port."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        return server, server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Cut all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(self._socket)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(self._pass(reader, back, is_reply=False), self._pass(there, writer, is_reply=True))
        for one in (writer, back):
            self._writers.discard(one)
            one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_reply: bool) -> None:
        while data := await reader.read(65536):
            if is_reply and self.delay_s:
                await asyncio.sleep(self.delay_s)
            if is_reply and self.loses:
                raise ConnectionResetError
            while self.swallows:
                await asyncio.sleep(0.05)
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError
