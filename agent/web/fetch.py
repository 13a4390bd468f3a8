"""Pages from the hosts that the owner allows. The one place of the agent that fetches from the web."""

import asyncio
import socket
from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from agent.errors import ToolError
from agent.sandbox.hosts import HostRefused, Hosts, Permit
from agent.sandbox.output_buffer import clean
from agent.web.html_text import html_text

MOST_BYTES = 4 << 20  # of a page, decompressed
MOST_REDIRECTS = 5
SECONDS = 30
REDIRECTS = (301, 302, 303, 307, 308)
TEXT = ("text/", "application/json", "application/xml", "application/xhtml", "application/rss")
HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; Voltaire)",
    "Accept": "text/html, text/plain, application/json, */*",
}


class Fetcher:
    """agent.tools.context.Web over the owner's list of hosts."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    async def fetch(self, url: str, permit: Permit) -> str:
        """The text of a page; each redirect is a new address to check and to permit."""
        for _ in range(MOST_REDIRECTS + 1):
            host, port = host_and_port(url)
            try:
                addresses = await self._hosts.addresses(host, port)
            except HostRefused as error:
                raise ToolError(str(error)) from None
            await permit(f"{host}:{port}")
            page, location = await get(url, addresses)
            if not location:
                return page
            url = location
        raise ToolError("The page redirects too often.")


def host_and_port(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ToolError(f"{url} is not an address.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ToolError("url must begin with https:// or http:// and name a host.")
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)


async def get(url: str, addresses: Sequence[str]) -> tuple[str, str]:
    """The text of the page, or the address that it redirects to."""
    # Without a deadline of aiohttp's own: its total time-out may swallow a cancellation.
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=CheckedAddresses(addresses), use_dns_cache=False),
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=HEADERS,
    )
    try:
        async with (
            asyncio.timeout(SECONDS),
            session,
            session.get(url, allow_redirects=False) as response,
        ):
            if response.status in REDIRECTS:
                return "", urljoin(url, response.headers.get("Location", ""))
            return await response_text(url, response), ""
    except TimeoutError:
        raise ToolError(f"{url} did not answer within {SECONDS} s.") from None
    except (aiohttp.ClientError, OSError) as error:
        raise ToolError(f"{url} cannot be fetched: {str(error) or type(error).__name__}.") from None


class CheckedAddresses(AbstractResolver):
    """Resolves every name to addresses that were checked before, and not to what DNS says later."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
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


async def response_text(url: str, response: aiohttp.ClientResponse) -> str:
    kind = response.content_type
    if response.status >= 400:
        raise ToolError(f"{url} answered {response.status} {response.reason or ''}".rstrip() + ".")
    if not kind.startswith(TEXT):
        raise ToolError(f"{url} is {kind}, not text.")
    raw = bytearray()
    async for piece in response.content.iter_chunked(1 << 16):
        raw += piece
        if len(raw) >= MOST_BYTES:
            break
    page = bytes(raw[:MOST_BYTES])
    try:
        text = page.decode(response.charset or "utf-8", "replace")
    except LookupError:
        text = page.decode("utf-8", "replace")
    # Beside the event loop: a hostile page takes seconds.
    return clean(await asyncio.to_thread(html_text, text) if "html" in kind else text)
