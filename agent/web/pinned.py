"""A client that connects to addresses which were checked, and to none that DNS says later."""

import socket
from collections.abc import Sequence

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

_AGENT = "Mozilla/5.0 (compatible; Voltaire)"


class _Pinned(AbstractResolver):
    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        del family
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        return


def session(addresses: Sequence[str]) -> aiohttp.ClientSession:
    """Without a deadline: aiohttp's own total time-out may swallow a cancellation."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=_Pinned(addresses), use_dns_cache=False),
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": _AGENT, "Accept": "text/html, text/plain, application/json, */*"},
    )
