"""Pages from the hosts that the owner allows. The one place of the agent that fetches from the web."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from agent.errors import ToolError
from agent.sandbox.hosts import HostRefused, Hosts
from agent.sandbox.output_buffer import clean
from agent.web.page import text_of

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES = 4 << 20  # of a page, decompressed
MOST_REDIRECTS = 5
_SECONDS = 30
_REDIRECTS = (301, 302, 303, 307, 308)
_TEXT = ("text/", "application/json", "application/xml", "application/xhtml", "application/rss")

Permit = Callable[[str], Awaitable[None]]


class Fetcher:
    """agent.tools.context.Web over the owner's list of hosts."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    async def fetch(self, url: str, permit: Permit) -> str:
        """The text of a page; each redirect is a new address to check and to permit."""
        for _ in range(MOST_REDIRECTS + 1):
            page, onward = await self._step(url, permit)
            if not onward:
                return page
            url = onward
        raise ToolError("The page redirects too often.")

    async def _step(self, url: str, permit: Permit) -> tuple[str, str]:
        """The text, or where it went."""
        host, port = _place(url)
        try:
            addresses = await self._hosts.addresses(host, port)
        except HostRefused as error:
            raise ToolError(str(error)) from None
        await permit(f"{host}:{port}")
        return await _get(url, addresses)


def _place(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ToolError(f"{url} is not an address.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ToolError("url must begin with https:// or http:// and name a host.")
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)


async def _get(url: str, addresses: Sequence[str]) -> tuple[str, str]:
    import aiohttp

    from agent.web.pinned import session

    try:
        async with (
            asyncio.timeout(_SECONDS),
            session(addresses) as web,
            web.get(url, allow_redirects=False) as response,
        ):
            if response.status in _REDIRECTS:
                return "", urljoin(url, response.headers.get("Location", ""))
            return await _text(url, response), ""
    except TimeoutError:
        raise ToolError(f"{url} did not answer within {_SECONDS} s.") from None
    except (aiohttp.ClientError, OSError) as error:
        raise ToolError(f"{url} cannot be fetched: {str(error) or type(error).__name__}.") from None


async def _text(url: str, response: "aiohttp.ClientResponse") -> str:
    kind = response.content_type
    if response.status >= 400:
        raise ToolError(f"{url} answered {response.status} {response.reason or ''}".rstrip() + ".")
    if not kind.startswith(_TEXT):
        raise ToolError(f"{url} is {kind}, not text.")
    raw = bytearray()
    async for piece in response.content.iter_chunked(1 << 16):
        raw += piece
        if len(raw) >= MOST_BYTES:
            break
    text = bytes(raw[:MOST_BYTES]).decode(_charset(response), "replace")
    return clean(text_of(text) if "html" in kind else text)


def _charset(response: "aiohttp.ClientResponse") -> str:
    try:
        b"".decode(response.charset or "utf-8")
    except LookupError:
        return "utf-8"
    return response.charset or "utf-8"
