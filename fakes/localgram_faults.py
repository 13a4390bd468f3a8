"""Connection faults of the local Bot API server, switched on by a test."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal, get_args

from aiohttp import web

from bot.localgram.feed import SECONDS
from bot.localgram.methods import Method
from bot.localgram.server import BotApi
from bot.localgram.wire import ApiError, Call, bad_request, integer

BAD_GATEWAY = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


def flooded(seconds: int) -> ApiError:
    return ApiError(429, f"retry after {seconds}", retry_after=seconds)


Kind = Literal[
    "drop",  # the connection ends before the call is carried out
    "execute_then_drop",  # it is carried out, and its answer is lost
    "bad_gateway",  # 502 with an HTML page, not carried out
    "delay",  # carried out, answered `seconds` late
    "flood",  # 429 with retry_after = `seconds`
    "truncate",  # carried out, answered with half a JSON text
    "unauthorized",  # 401, as after a revoked token
    "voice_forbidden",  # 400: the person takes no voice messages
    "stale_link",  # getFile: the link it answers is dead already
]


@dataclass(slots=True)
class Fault:
    """Makes calls of `method` ("*": any) fail with probability `rate`, `times` of them (None: all)."""

    method: str
    kind: Kind
    times: int | None = 1
    seconds: float = 0.0
    chat: int | None = None
    rate: float = 1.0
    chance: Random = field(default_factory=Random)
    struck: int = 0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"unknown fault {self.kind!r}; there are {', '.join(get_args(Kind))}")

    def strikes(self, call: Call) -> bool:
        if self.times is not None and self.struck >= self.times:
            return False
        if self.method != "*" and self.method.lower() != call.method.lower():
            return False
        if self.chat is not None and call.integer("chat_id") != self.chat:
            return False
        if self.rate < 1.0 and self.chance.random() >= self.rate:
            return False
        self.struck += 1
        return True


class Hold:
    """Holds back calls of one method: before they are carried out, or with `executed`
    after, their answer still unsent. Used as a context manager; leaving lets them go on."""

    def __init__(self, method: str, *, executed: bool = False, chat: int | None = None) -> None:
        self.method = method.lower()
        self.executed = executed
        self.chat = chat
        self.calls: list[Call] = []
        self._reached = asyncio.Event()
        self._released = asyncio.Event()

    def matches(self, call: Call, *, executed: bool) -> bool:
        return (
            executed == self.executed
            and call.method.lower() == self.method
            and (self.chat is None or self.chat == call.integer("chat_id"))
        )

    async def keep(self, call: Call) -> None:
        self.calls.append(call)
        self._reached.set()
        await self._released.wait()

    async def reached(self, seconds: float = SECONDS) -> Call:
        """Wait for the first call that is held back.

        Raises TimeoutError.
        """
        async with asyncio.timeout(seconds):
            await self._reached.wait()
        return self.calls[0]

    def release(self) -> None:
        self._released.set()


class Faults:
    def __init__(self) -> None:
        self.list: list[Fault] = []
        self.holds: list[Hold] = []
        self._punished: dict[int, float] = {}  # chats, until when

    def punish(self, chat: int, seconds: float) -> None:
        """Answer every call to this chat with 429 for `seconds`, as flood control does."""
        self._punished[chat] = time.time() + seconds

    def punished(self, chat: int) -> int:
        """Seconds until calls to this chat are accepted again; 0: now."""
        return max(0, math.ceil(self._punished.get(chat, 0.0) - time.time()))

    def take(self, call: Call) -> Fault | None:
        return next((fault for fault in self.list if fault.strikes(call)), None)

    async def pause(self, call: Call, *, executed: bool) -> None:
        for hold in [hold for hold in self.holds if hold.matches(call, executed=executed)]:
            await hold.keep(call)

    def release(self) -> None:
        for hold in self.holds:
            hold.release()


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was answered; `error` is empty if it succeeded."""

    method: str
    fields: Mapping[str, str]
    error: str = ""

    @property
    def chat(self) -> int:
        """The chat's id; 0 if the call has none."""
        return integer(self.fields.get("chat_id"))


class FaultyApi(BotApi):
    """The Bot API through faults; `made` are its calls, oldest first, without getUpdates."""

    faults: Faults
    made: deque[Made]

    async def answered(self, request: web.Request, call: Call, method: Method) -> web.Response:
        fault = self.faults.take(call)
        await self.faults.pause(call, executed=False)
        match fault:
            case Fault(kind="drop"):
                return cut(request)
            case Fault(kind="bad_gateway"):
                return web.Response(status=502, text=BAD_GATEWAY, content_type="text/html")
            case Fault(kind="unauthorized"):
                raise ApiError(401)
            case Fault(kind="voice_forbidden"):
                raise bad_request("VOICE_MESSAGES_FORBIDDEN")
            case Fault(kind="flood", seconds=seconds, chat=chat):
                if chat is not None:
                    self.faults.punish(chat, seconds)
                raise flooded(int(seconds))
        answer = await super().answered(request, call, method)
        await self.faults.pause(call, executed=True)
        match fault:
            case Fault(kind="execute_then_drop"):
                return cut(request)
            case Fault(kind="truncate"):
                assert answer.text
                answer.text = answer.text[: len(answer.text) // 2]
            case Fault(kind="delay", seconds=seconds):
                await asyncio.sleep(seconds)
            case Fault(kind="stale_link"):
                self._world.files.links.clear()
        return answer

    async def carried_out(self, call: Call, method: Method) -> object:
        wait = self.faults.punished(call.integer("chat_id"))

        def refuse(*_: object) -> object:
            raise flooded(wait)

        error = ""
        try:
            return await super().carried_out(call, refuse if wait else method)
        except ApiError as refusal:
            error = refusal.description
            raise
        finally:
            if call.method != "getUpdates":
                self.made.append(Made(call.method, call.fields, error))
                self._world.feed.wake()


def cut(request: web.Request) -> web.Response:
    """Close the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)
