"""The line between the bot and the Bot API server: a TCP relay that can be cut or fall silent."""

import asyncio
from types import TracebackType
from typing import Self

PIECE = 1 << 16


class Line:
    """`url` reaches the server at 127.0.0.1:`port` while the line is well."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._port = 0
        self._server: asyncio.Server | None = None
        self._flows = asyncio.Event()
        self._flows.set()
        self._ends: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.mend()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.speak()
        await self.cut()

    async def cut(self) -> None:
        """Connections break, new ones are refused."""
        assert self._server
        self._server.close()
        for end in self._ends:
            end.transport.abort()
        await self._server.wait_closed()

    async def mend(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    def hush(self) -> None:
        """Connections stay, and nothing comes through: as when packets vanish."""
        self._flows.clear()

    def speak(self) -> None:
        """What was on its way arrives late."""
        self._flows.set()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, back}
        self._ends |= both
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        finally:
            self._ends -= both
            for end in both:
                end.transport.abort()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while piece := await source.read(PIECE):
                await self._flows.wait()
                sink.write(piece)
                await sink.drain()
            sink.write_eof()
        except (OSError, RuntimeError):  # one end is gone
            sink.transport.abort()
