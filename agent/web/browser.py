"""What one chat may search and read of the web, and which addresses need no question."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from yarl import URL

from agent.errors import ToolError
from agent.sandbox.hosts import Permit, WholeWeb, is_public
from agent.sandbox.output_buffer import clean
from agent.sandbox.sandbox import BASH, Sandbox
from agent.store.taints import AddressTable

if TYPE_CHECKING:  # loaded only where an engine is named
    from agent.web.search import SearXNG
    from agent.web.search_services import KeyedEngine
import re
from collections.abc import Iterator

Reading = Literal["seen", "ask", "never"]
CACHED_SECONDS = 900
CACHED_CHARACTERS = 16 << 20  # of all chats
RENDERED = "#rendered"  # ends the address of a page whose scripts have run; no other has a fragment
PDF_SECONDS = 30
PDF_PROGRAM = Path("/usr/bin/pdftotext")
NO_PDF = (
    "It is a PDF, and this machine cannot read those. The owner can install poppler-utils; say so."
)


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as text; `address` is the last one after redirects."""

    address: str
    text: str
    at: float


@dataclass(frozen=True)
class PageCache:
    """Pages that chats have read, the newest last; a chat finds only its own."""

    clock: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)
    _pages: OrderedDict[tuple[str, str], WebPage] = field(default_factory=OrderedDict)

    def get(self, chat: str, address: str) -> WebPage | None:
        page = self._pages.get((chat, address))
        return page if page and self.clock() - page.at < CACHED_SECONDS else None

    def put(self, chat: str, address: str, page: WebPage) -> None:
        self._pages.pop((chat, address), None)
        self._pages[chat, address] = page
        while sum(len(each.text) for each in self._pages.values()) > CACHED_CHARACTERS:
            self._pages.popitem(last=False)


@dataclass(frozen=True)
class Browser:
    """Searches and reads the web for one chat. `engine` is None without a search engine.

    `reading` and `rendering` are agent.web.read and .render of the configuration; `hosts` are all that may be connected to.
    """

    chat: str
    table: AddressTable
    engine: "SearXNG | KeyedEngine | None" = None
    reading: Reading = "seen"
    cache: PageCache = field(default_factory=PageCache)
    hosts: WholeWeb = field(default_factory=lambda: WholeWeb(is_public))
    rendering: bool = False

    async def found(self, addresses: Collection[str]) -> None:
        """Record addresses that a search has returned."""
        await self.table.keep(self.chat, addresses)

    async def needs_question(self, address: str, written: str = "") -> bool:
        """Whether an owner has to be asked about an address (`canonical`). `written` are a
        person's words that led to just this call."""
        if address in addresses_in(written):
            return False
        return self.reading != "seen" or not await self.seen(address)

    async def seen(self, address: str) -> bool:
        """Whether a person wrote exactly this address in the chat, or a search returned it."""
        if await self.table.kept(self.chat, address):
            return True
        texts = await self.table.said(self.chat, URL(address).host or "")
        if not any(address in addresses_in(text) for text in texts):
            return False
        await self.table.keep(self.chat, [address])  # for when that message is deleted by age
        return True

    async def read(
        self, address: str, permit: Permit, sandbox: Sandbox, *, load: Permit | None = None
    ) -> WebPage:
        """Fetch a page and read it; `permit` is awaited before each request. ToolError says why that fails. With `load`
        its scripts run, and that is awaited before what they ask for."""
        from agent.web.fetch import PDF, TEXT, download

        found = await download(
            address, self.hosts, permit, sandbox.observer, program="web read", kinds=(*TEXT, PDF)
        )
        if load and "html" in found.kind:
            from agent.web.chromium import render

            found = await render(found, self.hosts, load, sandbox)
        if found.kind == PDF:
            text = await pdf_text(found.raw, sandbox)
        else:
            text = await found.text(markdown=True)
        page = WebPage(found.url, text.strip("\n"), self.cache.clock())
        if not page.text:
            more = (
                "" if load else " Its scripts may make it: --render, where the owner allows that."
            )
            raise ToolError(f"The page has no text.{more}")
        self.cache.put(self.chat, address + RENDERED * bool(load), page)
        return page


async def pdf_text(raw: bytes, sandbox: Sandbox) -> str:
    """The text of a PDF with a heading for each page, extracted in the sandbox."""
    if not PDF_PROGRAM.exists():
        raise ToolError(NO_PDF)
    script = [*BASH, f"exec {PDF_PROGRAM} -enc UTF-8 /tmp/page.pdf - 2> /dev/null"]
    text = await sandbox.read_internal(
        script, seconds=PDF_SECONDS, inputs={"page.pdf": raw}, inner=True
    )
    pages = text.decode("utf-8", "replace").removesuffix("\f").split("\f")
    if not any(page.strip() for page in pages):
        raise ToolError("The PDF has no text: it is a scan, locked, or damaged.")
    return clean("\n\n".join(f"## Page {n}\n\n{page.strip()}" for n, page in enumerate(pages, 1)))


# -- addresses in a text ------------------------------------------------------


LONGEST = 2000  # characters of an address
OPENING = "<([{\"'`*_|“‘«"
CLOSING = ">)]}\"'`*_|”’».,;:!?…"
WITHOUT_SCHEME = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d+)?(?:[/?#].*)?", re.I)


def canonical(address: str) -> str:
    """The address in the form of a request: no fragment, no default port, host in lower case, with a path; empty
    for anything that is no address of the web, or names a user."""
    if len(address) > LONGEST:
        return ""
    try:
        url = URL(address.strip())
        if url.scheme not in ("http", "https") or not url.host or url.user or url.password:
            return ""
        return str(url.with_fragment(None).with_path(url.path or "/", keep_query=True))
    except (ValueError, IndexError):  # yarl raises the latter for "http://[]@"
        return ""


def addresses_in(text: str) -> set[str]:
    """All words that may be meant as an address, in `canonical` form; one without a scheme with both."""
    return {found for word in text.split() for each in readings(word) if (found := canonical(each))}


def readings(word: str) -> Iterator[str]:
    """The addresses that a word may contain: from where one begins, with and without the signs that may close a
    sentence or bracket."""
    start = re.search(r"https?://", word, re.IGNORECASE)
    rest = word[start.start() :] if start else word.lstrip(OPENING)
    while rest:
        if start:
            yield rest
        elif WITHOUT_SCHEME.fullmatch(rest):
            yield from (f"https://{rest}", f"http://{rest}")
        if rest[-1] not in CLOSING:
            return
        rest = rest[:-1]
