"""One call, from its name to its answer, through faults and flood control."""

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from typing import cast

from bot.localgram.faults import Fault
from bot.localgram.methods import Method, gestures, identity, media, places, receiving, texts
from bot.localgram.wire import ApiError, Call, Json, bad_request, flooded
from bot.localgram.world import Made, World

FAMILIES = (texts, media, places, gestures, identity, receiving)
TABLE: dict[str, tuple[str, Method]] = {
    name.lower(): (name, method) for family in FAMILIES for name, method in family.METHODS.items()
}
WELL_FORMED = re.compile(r"\d+:\S+")
BAD_GATEWAY = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` None: the connection is cut instead."""

    status: int
    body: str | None
    mime: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


CUT = Answer(0, None)


def refused(error: ApiError) -> Answer:
    body: Json = {"ok": False, "error_code": error.code, "description": error.description}
    parameters = error.parameters or {}
    if parameters:
        body["parameters"] = parameters
    retry = parameters.get("retry_after")
    headers = {} if retry is None else {"Retry-After": str(retry)}
    return Answer(error.code, json.dumps(body), headers=headers)


def check_token(given: str, token: str) -> None:
    """Raises: ApiError 404 for what is no token, 401 for another's."""
    if not WELL_FORMED.fullmatch(given):
        raise ApiError(404)
    if given != token:
        raise ApiError(401)


async def answer(world: World, call: Call) -> Answer:
    """What the server says to one call with the right token."""
    if call.method.lower() not in TABLE:
        return refused(ApiError(404, "method not found"))
    name, method = TABLE[call.method.lower()]
    call = replace(call, method=name)
    fault = world.faults.take(call)
    await world.faults.pause(call, executed=False)
    if (early := _instead(world, fault)) is not None:
        return early
    said = await _carried_out(world, call, method)
    await world.faults.pause(call, executed=True)
    return await _spoiled(world, fault, said)


def _instead(world: World, fault: Fault | None) -> Answer | None:
    """What a fault says in place of the method."""
    match fault:
        case Fault(kind="drop"):
            return CUT
        case Fault(kind="bad_gateway"):
            return Answer(502, BAD_GATEWAY, "text/html")
        case Fault(kind="unauthorized"):
            return refused(ApiError(401))
        case Fault(kind="voice_forbidden"):
            return refused(bad_request("VOICE_MESSAGES_FORBIDDEN"))
        case Fault(kind="flood", seconds=seconds, chat=chat):
            if chat is not None:
                world.flood.punish(chat, int(seconds))
            return refused(flooded(int(seconds)))
    return None


async def _carried_out(world: World, call: Call, method: Method) -> Answer:
    try:
        if wait := world.flood.check(call.method, call.integer("chat_id")):
            raise flooded(wait)
        result = method(world, call)
        if inspect.isawaitable(result):
            result = await cast(Awaitable[object], result)
    except ApiError as error:
        _note(world, call, error.description)
        return refused(error)
    _note(world, call)
    return Answer(200, json.dumps({"ok": True, "result": result}))


def _note(world: World, call: Call, error: str = "") -> None:
    if call.method != "getUpdates":
        world.calls.append(Made(call.method, call.fields, error))
        world.feed.wake()


async def _spoiled(world: World, fault: Fault | None, said: Answer) -> Answer:
    """What a fault makes of a method's answer."""
    match fault:
        case Fault(kind="execute_then_drop"):
            return CUT
        case Fault(kind="truncate"):
            return replace(said, body=(said.body or "")[: len(said.body or "") // 2])
        case Fault(kind="delay", seconds=seconds):
            await asyncio.sleep(seconds)
        case Fault(kind="duplicate"):
            for update in json.loads(said.body or "{}").get("result") or []:
                world.updates.repeat(update["update_id"])
        case Fault(kind="stale_link"):
            world.files.expire_links()
    return said
