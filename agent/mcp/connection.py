"""A session with a server, by the official SDK. This module is imported in a thread (it takes a second) when a
server is first used.

What a server sends is bounded before the SDK sees it: the length of a message, its values, the messages, other lines and
bytes between two requests. Sampling, elicitation and roots are not offered, and are refused.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from agent.aio import BackgroundTasks
from agent.errors import ToolError
from agent.mcp.config import BrokenServer, SignInNeeded
from agent.sandbox.hosts import HostRefused, is_public, resolved
from agent.sandbox.long_running import LongRunningProcess
from agent.sandbox.output_buffer import visible

log = logging.getLogger(__name__)

START_SECONDS = 60  # the first start of a large program on a slow disk
CALL_SECONDS = 60  # without a sign of life
LONGEST_MESSAGE = 16 << 20
LONGEST_LIST = 2 << 20  # of a page of tools, resources or prompts: reading it holds up other chats
MOST_VALUES = 40_000  # in a message: rendering them holds up everything else, for 0.1 s at worst
MOST_ENTRIES = 5000  # in its lists: the SDK tries every kind of content for a wrong one
# Fields of which the SDK checks nothing.
FREE_FORM = {"structuredContent", "inputSchema", "outputSchema", "_meta"}
MOST_BYTES = 64 << 20  # between two requests
MOST_MESSAGES = 2000
MOST_PAGES = 50
LONGEST_SAID = 500  # characters of an error of theirs
STRING = re.compile(rb'"(?:[^"\\\n]++|\\.)*+("?)', re.DOTALL)  # in JSON, also one without an end
BEGUN = re.compile(  # an answer, whatever follows
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"'
)
MOST_OF_LINE = 1000  # values
SPACE = re.compile(r"\s*")
MARK = re.compile(r"^(?:\ufeff|\x1b\[[\d;]*m|\s)+")
PIECE = 1 << 16  # bytes that are looked through at once
SESSION = "mcp-session-id"
ASKED = {
    "sampling/createMessage": "wanted to use the model",
    "elicitation/create": "wanted to ask the person something",
    "roots/list": "wanted to know folders",
}

OnToolProgress = Callable[[float, float | None, str | None], None]


@dataclass
class Screen:
    """Bounds the traffic of a server, and records its requests that were rejected."""

    count: int = 0
    size: int = 0
    longest: int = field(default_factory=lambda: LONGEST_MESSAGE)  # in bytes, for this request
    asked: list[str] = field(default_factory=list)
    changed: bool = True  # its list of tools
    tools: list[Any] = field(default_factory=list)  # as they are listed
    reason: str = ""  # why the session was ended
    unauthorized: bool = False  # its last answer to a request was 401
    forbidden: bool = False  # it was 403: the token does not allow enough
    lost: bool = False  # it was 404: it does not know the session
    why: Callable[[], str] = str  # it wants a sign-in (SignInNeeded)

    def renew(self, longest: int) -> None:
        """Begin to count for a new request. Its answers have at most `longest` bytes each (0: LONGEST_MESSAGE)."""
        self.count = self.size = 0
        self.longest = longest or LONGEST_MESSAGE

    def accept(self, size: int) -> None:
        """Count a message. Raises BrokenServer beyond the limits."""
        self.count += 1
        self.size += size
        if size > self.longest:
            self.refuse(too_long(self.longest))
        if self.count > MOST_MESSAGES or self.size > MOST_BYTES:
            self.refuse(f"sent {self.count:,} messages or {self.size:,} bytes to one request")

    async def accept_values(self, line: bytes) -> None:
        """Raise BrokenServer if a message has too many values; large ones are counted in a thread."""
        if signs(line) > MOST_VALUES and await asyncio.to_thread(too_many, line):
            self.refuse(TOO_MANY)

    def refuse(self, why: str) -> None:
        self.reason = why
        raise BrokenServer(why)

    def look_at_status(self, request: httpx2.Request, response: httpx2.Response) -> None:
        self.unauthorized = response.status_code == 401
        self.forbidden = lacks_scope(response)
        self.lost = response.status_code == 404 and SESSION in request.headers

    def check_status(self, name: str) -> None:
        """Raise SignInNeeded or BrokenServer if the server's last answer had the status 401, 403 or 404."""
        if self.unauthorized or self.forbidden:
            raise SignInNeeded(name, forbidden=self.forbidden, why=self.why()) from None
        if self.lost:
            raise BrokenServer(
                f"{name} does not know this session any more, so nothing was done. Try again."
            ) from None

    def look(self, message: SessionMessage) -> None:
        """Raise BrokenServer if a message has lists too long for the SDK."""
        told = message.message
        method = getattr(told, "method", "")
        if entries(getattr(told, "result", None) or getattr(told, "params", None)) > MOST_ENTRIES:
            self.refuse(f"sent a message whose lists have more than {MOST_ENTRIES:,} entries")
        result = getattr(told, "result", None)
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            # Checked one by one: to the SDK a wrong one spoils all.
            self.tools += result.pop("tools")
            result["tools"] = []
        if method == "notifications/tools/list_changed":
            self.changed = True
        elif method in ASKED and ASKED[method] not in self.asked:
            self.asked.append(ASKED[method])


def descriptor(tool: Any) -> dict[str, Any]:
    """A tool with its description, or its name alone if that is malformed."""
    try:
        known = types.Tool.model_validate(tool, by_name=False)
    except ValidationError:
        return {"name": str(tool.get("name", "")) if isinstance(tool, dict) else ""}
    return known.model_dump(by_alias=True, mode="json", exclude_none=True)


@dataclass
class ServerConnection:
    """A session that has begun. What `screen` has in `asked` is told to the model, each once."""

    name: str
    session: ClientSession
    screen: Screen

    async def descriptors(self) -> list[dict[str, Any]]:
        self.screen.changed, self.screen.tools = False, []
        await self._pages(types.ListToolsRequest, types.ListToolsResult, "tools")
        return [descriptor(tool) for tool in self.screen.tools]

    async def call(
        self, tool: str, arguments: dict[str, Any], progress: OnToolProgress
    ) -> dict[str, Any]:
        params = types.CallToolRequestParams(name=tool, arguments=arguments)
        return await self._ask(types.CallToolRequest(params=params), types.CallToolResult, progress)

    async def resources(self) -> list[dict[str, Any]]:
        return await self._pages(types.ListResourcesRequest, types.ListResourcesResult, "resources")

    async def read(self, uri: str) -> dict[str, Any]:
        params = types.ReadResourceRequestParams(uri=uri)
        return await self._ask(types.ReadResourceRequest(params=params), types.ReadResourceResult)

    async def prompts(self) -> list[dict[str, Any]]:
        return await self._pages(types.ListPromptsRequest, types.ListPromptsResult, "prompts")

    async def prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        params = types.GetPromptRequestParams(name=name, arguments=arguments)
        return await self._ask(types.GetPromptRequest(params=params), types.GetPromptResult)

    @property
    def offers(self) -> list[str]:
        """Which of tools, resources and prompts the server says that it has."""
        said = self.session.server_capabilities
        kinds = ("tools", "resources", "prompts")
        return [kind for kind in kinds if said and getattr(said, kind, None) is not None]

    async def _pages(self, request: type[Any], result: type[Any], key: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = None
        for _ in range(MOST_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await self._ask(request(params=params), result, longest=LONGEST_LIST)
            found += page[key]
            cursor = page.get("nextCursor")
            if not cursor:
                return found
        raise BrokenServer(f"{self.name} lists its {key} without an end, so it is not used.")

    async def _ask(
        self,
        request: Any,
        kind: type[Any],
        told: OnToolProgress | None = None,
        longest: int = 0,
    ) -> dict[str, Any]:
        """The result of a request. Raises BrokenServer if the server hangs, is gone or answers nonsense, and ToolError
        with an error that it answers."""
        loop = asyncio.get_running_loop()
        self.screen.renew(longest)

        async def lives(
            progress: float, total: float | None = None, message: str | None = None
        ) -> None:
            limit.reschedule(loop.time() + CALL_SECONDS)
            if told:
                told(progress, total, message)

        try:
            async with asyncio.timeout(CALL_SECONDS) as limit:
                result = await self.session.send_request(request, kind, progress_callback=lives)
        except MCPError as error:
            self.screen.check_status(self.name)
            if error.code == types.CONNECTION_CLOSED:
                raise BrokenServer(self._gone()) from None
            said = visible(error.message[:LONGEST_SAID])
            raise ToolError(f"{self.name} answered with an error: {said}") from None
        except TimeoutError:
            raise BrokenServer(
                f"{self.name} gave no sign of life for {CALL_SECONDS} s, so it was ended."
            ) from None
        except (ValidationError, RecursionError):
            raise BrokenServer(
                f"{self.name} answered with what is no answer, so it was ended."
            ) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, RuntimeError):
            raise BrokenServer(self._gone()) from None
        answer: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return answer

    def _gone(self) -> str:
        if self.screen.reason:
            return f"{self.name} {self.screen.reason}, so it was ended."
        return f"{self.name} ended in the middle. It was not asked twice: what it did is not known."


ReceivedMessages = MemoryObjectSendStream[SessionMessage | Exception]


@asynccontextmanager
async def over_pipes(name: str, process: LongRunningProcess) -> AsyncIterator[ServerConnection]:
    """Open a session with a program over its pipes."""
    screen = Screen()
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with BackgroundTasks() as tasks:
        tasks.start(receive(process, incoming, screen), f"reading from the server {name}")
        tasks.start(send(outgoing, process), f"writing to the server {name}")
        try:
            async with ClientSession(read, write) as session:
                yield await initialized(name, session, screen)
        finally:
            for stream in (incoming, read, write, outgoing):
                stream.close()


async def receive(process: LongRunningProcess, incoming: ReceivedMessages, screen: Screen) -> None:
    """Pass on the messages of a program until its output ends or is too much."""
    try:
        async with incoming:
            while line := await process.reader.readuntil(b"\n"):
                screen.accept(len(line))
                await screen.accept_values(line)
                for message in parse_messages(line):
                    screen.look(message)
                    await incoming.send(message)
    except (BrokenServer, asyncio.IncompleteReadError, OSError):
        pass
    except asyncio.LimitOverrunError:
        screen.reason = too_long(LONGEST_MESSAGE)
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        return
    process.process.end(screen.reason)


def too_long(most: int) -> str:
    return f"sent a message of more than {most >> 20} MiB"


TOO_MANY = f"sent a message of more than {MOST_VALUES:,} values"


def signs(text: bytes) -> int:
    """Count the punctuation in JSON, an upper bound of the number of its values."""
    return sum(map(text.count, (b",", b":", b"[", b"{")))


@dataclass
class ValueCount:
    """Counts the values of JSON that comes in pieces, roughly; a string is one, however long."""

    count: int = 0
    open: bytes = b""  # the beginning of a string that goes on in the next piece

    def add(self, piece: bytes) -> bool:
        """Count the values in a piece; True once there are too many."""
        text, last = self.open + piece, None

        def found(string: re.Match[bytes]) -> bytes:
            nonlocal last
            last = string
            return b""

        self.count += signs(STRING.sub(found, text))
        self.open = b""
        if last is not None and not last[1] and text[last.end() :] in (b"", b"\\"):
            self.open = b'"' + text[last.end() :]
        return self.count > MOST_VALUES


def too_many(line: bytes) -> bool:
    values = ValueCount()
    return any(values.add(line[at : at + PIECE]) for at in range(0, len(line), PIECE))


def entries(value: object) -> int:
    """Count the entries of all lists in a message, without those in FREE_FORM fields."""
    if isinstance(value, dict):
        return sum(entries(each) for name, each in value.items() if name not in FREE_FORM)
    return len(value) + sum(map(entries, value)) if isinstance(value, list) else 0


def parse_messages(line: bytes) -> list[SessionMessage]:
    """Parse the messages of a line; none if the server printed it beside the protocol."""
    try:
        return [SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))]
    except ValueError:
        values = [value for value in leading_values(line) if "jsonrpc" in value]
    if not values and (begun := BEGUN.match(line)):
        values = [{"id": int(begun[1]), "result": "broken"}]
    return [SessionMessage(found) for value in values if (found := validate_message(value))]


def validate_message(value: dict[str, Any]) -> types.JSONRPCMessage | None:
    """Validate an object as a message; a broken answer, or one nested too deep, becomes an error, anything else None."""
    accept = types.jsonrpc_message_adapter.validate_json
    with suppress(ValueError, RecursionError):
        return accept(repaired(value), by_name=False)
    if "method" in value or not isinstance(value.get("id"), int | float | str):
        return None
    with suppress(ValueError):
        return accept(repaired({"id": value["id"], "error": "no message of MCP"}), by_name=False)
    return None


def leading_values(line: bytes) -> list[dict[str, Any]]:
    """Parse the JSON objects, or batch, that a line begins with, after a byte order mark or a colour code. A line
    with text in front has none: a log that quotes messages must not be taken for them."""
    text = MARK.sub("", line.decode("utf-8", "replace")).rstrip()
    found: list[Any] = []
    end = 0
    try:
        while end < len(text) and len(found) < MOST_OF_LINE:
            value, end = json.JSONDecoder().raw_decode(text, end)
            found += value[:MOST_OF_LINE] if isinstance(value, list) else [value]
            if space := SPACE.match(text, end):
                end = space.end()
    except (ValueError, RecursionError):
        pass
    return [value for value in found if isinstance(value, dict)]


def repaired(value: dict[str, Any]) -> bytes:
    """Write a message as JSON, and correct what servers get wrong in it: its version, an id such as 1.0, no result,
    an error without code, half an emoji."""
    value = {**value, "jsonrpc": "2.0"}
    if isinstance(id := value.get("id"), float) and id.is_integer():
        value["id"] = int(id)
    error = value.get("error")
    if isinstance(error, str) or (isinstance(error, dict) and "code" not in error):
        said = error if isinstance(error, str) else str(error.get("message") or error)
        value["error"] = {"code": types.INTERNAL_ERROR, "message": said}
    elif value.get("result", ...) is None:
        value["result"] = {}
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


async def send(
    outgoing: MemoryObjectReceiveStream[SessionMessage], process: LongRunningProcess
) -> None:
    try:
        async for each in outgoing:
            text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.writer.write(text.encode("utf-8", "replace") + b"\n")
            await process.writer.drain()
    except OSError:
        process.process.end("")


async def initialized(name: str, session: ClientSession, screen: Screen) -> ServerConnection:
    try:
        async with asyncio.timeout(START_SECONDS):
            await session.initialize()
    except TimeoutError:
        raise BrokenServer(
            f"{name} did not begin within {START_SECONDS} s, so it was ended."
        ) from None
    except (MCPError, ValidationError, RuntimeError, RecursionError) as error:
        screen.check_status(name)
        why = screen.reason or "did not begin as MCP servers do"
        said = visible(str(getattr(error, "message", "")))[:LONGEST_SAID]
        raise BrokenServer(f"{name} {why}{f' ({said})' if said else ''}.") from None
    return ServerConnection(name, session, screen)


# -- streamable HTTP --------------------------------------------------------------


@asynccontextmanager
async def over_http(
    name: str,
    url: str,
    headers: Mapping[str, str],
    auth: httpx2.Auth | None = None,
    why: Callable[[], str] = str,
) -> AsyncIterator[ServerConnection]:
    """A session over streamable HTTP, which is never redirected to another host. `why` tells why `auth` wants a sign-in."""
    screen = Screen(why=why)
    timeout = httpx2.Timeout(30, read=300)
    async with (
        httpx2.AsyncClient(
            headers={**headers, "accept-encoding": "identity"},
            timeout=timeout,
            transport=BoundedTransport(screen, url),
            auth=auth,
        ) as client,
        streamable_http_client(url, http_client=client) as (read, write),
        BackgroundTasks() as tasks,
    ):
        incoming, screened = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        tasks.start(pass_on(read, incoming, screen), f"reading from the server {name}")
        async with screened, ClientSession(screened, write) as session:
            yield await initialized(name, session, screen)


async def pass_on(
    read: AsyncIterable[SessionMessage | Exception], incoming: ReceivedMessages, screen: Screen
) -> None:
    """Pass on messages until they end, or one is too much: the session then ends as if its server had ended it."""
    with suppress(BrokenServer, anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with incoming:
            async for message in read:
                if isinstance(message, SessionMessage):
                    screen.look(message)
                await incoming.send(message)


def lacks_scope(response: httpx2.Response) -> bool:
    """Whether a token of a wider scope is wanted (RFC 6750, 3.1)."""
    challenge = response.headers.get("www-authenticate", "")
    return response.status_code == 403 and "insufficient_scope" in challenge


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """Counts what comes, and does not decompress it: a small answer could become a large one. Hosts other than the
    server's are where its owner signs in: they must be public, and are asked over HTTPS."""

    def __init__(self, screen: Screen, url: str) -> None:
        super().__init__(trust_env=True)
        self.screen = screen
        self.host, self.path = httpx2.URL(url).host, httpx2.URL(url).path

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if (host := request.url.host) != self.host:
            if request.url.scheme != "https":
                raise httpx2.UnsupportedProtocol(f"{host} is not asked without HTTPS")
            try:
                await resolved(host, request.url.port or 443, is_public)
            except HostRefused as error:
                raise httpx2.ConnectError(str(error)) from None
        response = await super().handle_async_request(request)
        if (host, request.url.path) == (self.host, self.path):
            self.screen.look_at_status(request, response)
        response.headers.pop("content-encoding", None)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = CountedStream(response.stream, self.screen)
        return response


@dataclass
class CountedStream(httpx2.AsyncByteStream):
    stream: httpx2.AsyncByteStream
    screen: Screen
    size: int = 0
    values: ValueCount = field(default_factory=ValueCount)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self.stream:
            self.size += len(piece)
            if self.size > self.screen.longest:
                self.screen.reason = too_long(self.screen.longest)
                raise httpx2.ReadError(self.screen.reason)
            if self.values.add(piece):
                self.screen.reason = TOO_MANY
                raise httpx2.ReadError(TOO_MANY)
            yield piece

    async def aclose(self) -> None:
        await self.stream.aclose()
