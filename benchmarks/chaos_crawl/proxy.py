"""A TCP proxy between a crawler and Redis that cuts, delays, loses, tears and swallows."""

from __future__ import annotations

import asyncio
import contextlib


class Proxy:
    """Passes everything on unless told otherwise.

    Attributes
    ----------
    socket : str
        Where new connections lead to.
    delay_s : float
        Replies come so much later.
    loses : bool
        Replies are lost, and the connection with them.
    tears : bool or None
        One half comes through of replies (True) or of requests (False), and then the connection is lost.
    swallows : bool
        Nothing comes through, and nobody is told.
    """

    def __init__(self, socket: str) -> None:
        self.socket = socket
        self.delay_s = 0.0
        self.loses = self.swallows = False
        self.tears: bool | None = None
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
            there, back = await asyncio.open_unix_connection(self.socket)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        passing = [asyncio.ensure_future(self._pass(*way)) for way in ((reader, back, False), (there, writer, True))]
        await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        for one in (writer, back):
            self._writers.discard(one)
            if self.tears is None:
                one.transport.abort()
            else:
                one.close()  # the half is on its way still
        for way in passing:
            way.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_reply: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if is_reply and self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if is_reply and self.loses:
                    return
                while self.swallows:
                    await asyncio.sleep(0.05)
                if self.tears == is_reply:
                    writer.write(data[: len(data) // 2])
                    return
                writer.write(data)
                await writer.drain()
