"""Limits a server's connections: in total, per address, and in time until they present a session.

aiohttp holds a connection before any middleware runs, so the bounds are applied to the transports.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:  # loaded by servers alone
    from aiohttp.web import Application

log = logging.getLogger(__name__)
# aiohttp logs what a stranger sent in place of HTTP, perhaps with a key, and where it noticed.
log.addFilter(lambda record: getattr((record.exc_info or ("", ""))[1], "code", 0) != 400)

MOST = 128
MOST_OF_ADDRESS = 64
SECONDS = 20.0  # in which a connection must show a session, a secret, or end


@dataclass
class Connections:
    """The open connections, oldest first, each with the deadline that ends it; None once it has shown a session."""

    seconds: float = SECONDS
    _open: dict[asyncio.Transport, asyncio.TimerHandle | None] = field(default_factory=dict)

    @asynccontextmanager
    async def serving(
        self, app: "Application", host: str, port: int, **options: Any
    ) -> AsyncIterator[int]:
        """Serve an application for the block; return its port. `options` are AppRunner's. Raises OSError."""
        from aiohttp.web import AppRunner

        runner = AppRunner(app, access_log=None, logger=log, **options)
        await runner.setup()
        assert runner.server
        make, loop = partial(BoundedProtocol, self, runner.server), asyncio.get_running_loop()
        try:
            server = await loop.create_server(make, host.strip("[]"), port)
            try:
                yield server.sockets[0].getsockname()[1]
            finally:
                server.close()
        finally:
            await runner.cleanup()

    def admit(self, transport: asyncio.Transport) -> bool:
        """Register a new connection; the oldest without a session makes room. False when none can."""
        for ended in [each for each in self._open if each.is_closing()]:
            self.forget(ended)
        address = address_of(transport)
        neighbours = [each for each in self._open if address_of(each) == address]
        for crowd, most in ((neighbours, MOST_OF_ADDRESS), (list(self._open), MOST)):
            if sum(each in self._open for each in crowd) >= most:
                oldest = next((each for each in crowd if self._open.get(each)), None)
                if oldest is None:
                    return False
                self.end(oldest)
        loop = asyncio.get_running_loop()
        self._open[transport] = loop.call_later(self.seconds, self.end, transport)
        return True

    def end(self, transport: asyncio.Transport) -> None:
        self.forget(transport)
        transport.abort()

    def keep(self, transport: asyncio.BaseTransport | None) -> None:
        """Lift the deadline of a connection that has presented a session."""
        deadline = self._open.get(cast("asyncio.Transport", transport))
        if deadline:
            deadline.cancel()
            self._open[cast("asyncio.Transport", transport)] = None

    def forget(self, transport: asyncio.Transport) -> None:
        if deadline := self._open.pop(transport, None):
            deadline.cancel()


def address_of(transport: asyncio.Transport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if peer else ""


class BoundedProtocol(asyncio.Protocol):
    """Hands an admitted connection over to a protocol of the server's own."""

    def __init__(self, connections: Connections, make: Callable[[], asyncio.Protocol]) -> None:
        self._connections = connections
        self._make = make

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast("asyncio.Transport", transport)
        if not self._connections.admit(accepted):
            accepted.abort()
            return
        accepted.set_protocol(inner := self._make())
        inner.connection_made(accepted)
