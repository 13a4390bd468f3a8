"""Fetches pages and reads their text. Nothing else in the agent fetches from the web."""

import asyncio
import re
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from agent.aio import output_of
from agent.errors import ToolError
from agent.sandbox.hosts import HostRefused, HostRequest, Hosts, Permit, WholeWeb
from agent.sandbox.observer import Observer
from agent.sandbox.output_buffer import clean
from agent.web.html_text import NO_EXPRESSION, NO_FEED

MOST_BYTES = 4 << 20  # of a page, decompressed
MOST_PDF_BYTES = 32 << 20
MOST_REDIRECTS = 5
SECONDS = 30
LONGEST_REASON = 300  # characters
READ_SECONDS = 10
READ_MEMORY = 512 << 20  # bytes of address space
CHARSET = re.compile(r"[A-Za-z0-9][\w.:-]{0,39}", re.ASCII)
USER = re.compile(r"^((?:[a-z][a-z0-9+.-]*:)?//)[^/?#]*@", re.IGNORECASE)
CODE = Path(__file__).parents[2]
REDIRECTS = (301, 302, 303, 307, 308)
PDF = "application/pdf"
TEXT = (
    "text/",
    "application/json",
    "application/xml",
    "application/xhtml",
    "application/rss",
    "application/atom",
)
HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; Voltaire)",
    "Accept": "text/html, text/plain, application/json, */*",
}


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A page: `url` is the last one after redirects, `kind` its media type; `cut`: only its beginning was read."""

    url: str
    kind: str
    charset: str
    raw: bytes
    cut: bool = False

    async def text(self, *, markdown: bool = False) -> str:
        """The page as text; ToolError where reading it takes too much time or memory."""
        html, address = "html" in self.kind, self.url if markdown else ""
        text = await page_text(self.raw, self.charset, html=html, address=address)
        note = (
            f"\n\n[There is more: of a page {MOST_BYTES >> 20} MiB are read.]" if self.cut else ""
        )
        return text + note


@dataclass(frozen=True)
class Fetcher:
    """agent.tools.context.Web for the owner's list of hosts."""

    hosts: Hosts
    observer: Observer = field(default_factory=Observer)

    async def fetch(self, url: str, permit: Permit) -> str:
        page = await download(url, self.hosts, permit, self.observer, program="web_fetch")
        return await page.text()


async def download(
    url: str,
    hosts: Hosts | WholeWeb,
    permit: Permit,
    observer: Observer,
    *,
    program: str,
    kinds: Sequence[str] = TEXT,
) -> Downloaded:
    """Fetch a page of one of these media types. Each redirect is checked and permitted as a new address."""
    for _ in range(MOST_REDIRECTS + 1):
        host, port, scheme, target = parts_of(url)
        name = f"{host}:{port}"
        try:
            addresses = await hosts.addresses(host, port)
            await permit(hosts.marked(HostRequest("GET", host, port, target, scheme, program)))
        except (HostRefused, ToolError) as error:
            await observer.connection(name, str(error))
            raise ToolError(str(error)) from None
        await observer.connection(name)
        found = await get(url, addresses, kinds)
        if isinstance(found, Downloaded):
            return found
        url = found
    raise ToolError("The page redirects too often.")


def parts_of(url: str) -> tuple[str, int, str, str]:
    """Host, port, scheme, and path with query of an address; ToolError for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ToolError(f"{url} is not an address.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ToolError("url must begin with https:// or http:// and name a host.")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    port = port or (443 if parts.scheme == "https" else 80)
    return parts.hostname, port, parts.scheme, target


async def get(url: str, addresses: Sequence[str], kinds: Sequence[str]) -> Downloaded | str:
    """Fetch one address; return the page, or the address that it redirects to."""
    connector = aiohttp.TCPConnector(resolver=CheckedAddresses(addresses), use_dns_cache=False)
    session = open_session(connector=connector, headers=HEADERS)
    try:
        async with (
            asyncio.timeout(SECONDS),
            session,
            session.get(url, allow_redirects=False) as response,
        ):
            if response.status in REDIRECTS:
                return redirected(url, response.headers.get("Location", ""))
            return await read_response(url, response, kinds)
    except TimeoutError:
        raise ToolError(f"{url} did not answer within {SECONDS} s.") from None
    except (aiohttp.ClientError, OSError) as error:
        why = " ".join(clean(str(error)).split())[:LONGEST_REASON].rstrip(".")
        raise ToolError(f"{url} cannot be fetched: {why or type(error).__name__}.") from None


def redirected(url: str, location: str) -> str:
    """The address in a Location header, without the user and password that it may name, which would be shown
    and sent. ToolError where there is none."""
    location = USER.sub(r"\1", location)
    try:
        target = urljoin(url, location)
    except ValueError:
        target = ""
    if not location or not target:
        raise ToolError(f"{url} redirects to {location[:200]!r}, which is no address.")
    return target


class CheckedAddresses(AbstractResolver):
    """Resolves every name to addresses that were checked before, so that DNS cannot change them."""

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


async def read_response(
    url: str, response: aiohttp.ClientResponse, kinds: Sequence[str]
) -> Downloaded:
    kind = response.content_type
    if response.status >= 400:
        reason = clean(response.reason or "")[:100]
        raise ToolError(f"{url} answered {response.status} {reason}".rstrip() + ".")
    if not kind.startswith(tuple(kinds)):
        raise ToolError(f"{url} is {clean(kind)[:100]}, not text.")
    most = MOST_PDF_BYTES if kind == PDF else MOST_BYTES
    raw = await read_bounded(response, most)
    if kind == PDF and len(raw) > most:
        raise ToolError(f"{url} is a PDF of more than {most >> 20} MiB, which is not read.")
    return Downloaded(url, kind, response.charset or "", raw[:most], len(raw) > most)


def open_session(**options: Any) -> aiohttp.ClientSession:
    """A session without cookies, and without a deadline: aiohttp's own may swallow a cancellation."""
    return aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None), cookie_jar=aiohttp.DummyCookieJar(), **options
    )


async def read_bounded(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body; of one with more than `most` bytes, somewhat more than these."""
    raw = bytearray()
    async for piece in response.content.iter_chunked(1 << 16):
        raw += piece
        if len(raw) > most:
            break
    return bytes(raw)


# The isolated interpreter has no site-packages: it imports only the standard library.
READ_PAGE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, 2 * (int(sys.argv[2]),))
resource.setrlimit(resource.RLIMIT_CPU, 2 * (int(sys.argv[3]),))
sys.path.insert(0, sys.argv[1])
from agent.web.html_text import main
main(*sys.argv[4:])
"""


async def page_text(
    page: bytes,
    charset: str,
    *,
    html: bool,
    address: str = "",
    grep: str | None = None,
    feed: bool = False,
    seconds: int = READ_SECONDS,
) -> str:
    """The text of a page, read in a process of its own with bounds of time (seconds) and memory: its bytes are a
    stranger's, and none of its regular expressions, codecs or entities may hold up this program.

    With its `address` the main part as Markdown (html_text.markdown); with `grep` the lines that match
    a regular expression, with their numbers; of a `feed` its entries.
    """
    limits = [str(READ_MEMORY), str(seconds)]
    known = charset if CHARSET.fullmatch(charset) else ""
    kind = "html" if html else "feed" if feed else "plain" if grep is None else "grep"
    argv = ["-I", "-S", "-c", READ_PAGE, str(CODE), *limits, known, kind, grep or address]
    try:
        code, text = await output_of(sys.executable, *argv, seconds=seconds, stdin=page, env={})
    except TimeoutError:
        code, text = -1, b""
    if code == NO_EXPRESSION:
        raise ToolError(f"{grep} is not a regular expression.")
    if code == NO_FEED:
        raise ToolError("The page is no RSS or Atom feed.")
    if code:
        raise ToolError("The page takes too much time or memory to read.")
    return text.decode()
