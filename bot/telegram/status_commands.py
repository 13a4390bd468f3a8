"""Cards: /status, /gpu, /context, /approve, /settings, with their buttons."""

from collections.abc import Sequence
from io import BytesIO

from agent.store.approvals import Grant
from backend.client import BackendRefused, BackendUnavailable
from backend.protocol import Status
from bot.channel import ChannelError, Choice, Rows
from bot.telegram.approvals import buttons, question
from bot.telegram.buttons import Outcome, Press
from bot.telegram.handler_context import HandlerContext, Heard
from bot.telegram.status_lines import Queues, backend_lines, gpu_line, queue_line, up_line

STATUS = "st"
SETTING = "set"
REVOKE = "rev"
THINKING = (0, 512, 2048, 8192)  # tokens of thought; 0 is off
GPU_HOURS = 3
MOST_HOURS = 7 * 24


async def status(room: HandlerContext, said: Heard) -> None:
    room.spawn(_status(room, said.chat))


async def _status(room: HandlerContext, chat: str) -> None:
    await room.say(chat, await status_card(room), _refresh(room))


async def press_status(room: HandlerContext, _: Press) -> Outcome:
    async def fresh() -> tuple[str, Rows]:
        return await status_card(room), _refresh(room)

    return Outcome(later=fresh)


def _refresh(room: HandlerContext) -> Rows:
    return [[Choice(f"{STATUS}:", room.texts.refresh)]]


async def status_card(room: HandlerContext) -> str:
    report = await _report(room)
    lines = backend_lines(room.texts, report) if isinstance(report, Status) else [f"**{report}**"]
    return "\n".join([*lines, *await _bot_lines(room)])


async def _report(room: HandlerContext) -> Status | str:
    if room.services.backend is None:
        return room.texts.no_backend
    try:
        return await room.services.backend.status()
    except BackendUnavailable as error:
        return str(error)


async def _bot_lines(room: HandlerContext) -> list[str]:
    problem = room.problem()
    queues = Queues(
        len(room.services.chats.running()),
        await room.store.inbox.count_waiting(),
        await room.store.outbox.counts(),
    )
    return [
        queue_line(room.texts, queues),
        *([room.texts.polling.format(problem=problem)] if problem else []),
        up_line(room.texts, room.store.clock() - room.started_at, room.clock()),
    ]


async def gpu(room: HandlerContext, said: Heard) -> None:
    """/gpu, /gpu 12 for as many hours, /gpu dark."""
    words = said.argument.lower().split()
    hours = next((int(word) for word in words if word.isdigit()), GPU_HOURS)
    theme = "dark" if "dark" in words else "light"
    room.spawn(_gpu(room, said.chat, min(max(hours, 1), MOST_HOURS), theme))


async def _gpu(room: HandlerContext, chat: str, hours: int, theme: str) -> None:
    """A picture of the last hours, or in words why there is none."""
    report = await _report(room)
    if isinstance(report, str) or not report.gpus:
        await room.say(chat, report if isinstance(report, str) else room.texts.no_gpu)
        return
    assert room.services.backend
    caption = "\n".join(gpu_line(room.texts, card) for card in report.gpus)
    try:
        drawn = await room.services.backend.gpu_picture(
            hours, theme=theme, zone=room.config.timezone
        )
        await room.post.file(chat, BytesIO(drawn), "gpu.png", caption)
    except (BackendUnavailable, BackendRefused, ChannelError):
        await room.say(chat, caption)


async def context(room: HandlerContext, said: Heard) -> None:
    room.spawn(_context(room, said.chat))


async def _context(room: HandlerContext, chat: str) -> None:
    if room.services.context is None:
        await room.say(chat, room.texts.not_here)
        return
    try:
        parts = await room.services.context(chat)
    except BackendUnavailable as error:
        await room.say(chat, str(error))
        return
    lines = "\n".join(f"| {name} | {tokens:,} |" for name, tokens in parts.items())
    await room.say(chat, f"{room.texts.context_head}\n|---|---|\n{lines}")


async def approvals(room: HandlerContext, said: Heard) -> None:
    """Questions without an answer are asked again; standing permissions can be taken back."""
    for request in await room.store.approvals.open_requests():
        asked = question(room.texts, request, elsewhere=request.chat != said.chat)
        await room.say(said.chat, asked, buttons(room.texts, request.id))
    grants = await room.store.approvals.grants(said.chat)
    await room.say(said.chat, *_grants(room, grants))


async def press_revoke(room: HandlerContext, press: Press) -> Outcome:
    if press.standing != "owner":
        return Outcome(room.texts.only_owners)
    grants = await room.store.approvals.grants(press.chat)
    taken = [g for g in grants if _short(g) == press.argument]
    for grant in taken:
        await room.store.approvals.revoke(press.chat, grant.scope)
    return Outcome("", *_grants(room, [g for g in grants if g not in taken]))


def _grants(room: HandlerContext, grants: Sequence[Grant]) -> tuple[str, Rows]:
    if not grants:
        return room.texts.no_grants, []
    lines = "\n".join(f"- `{grant.scope}` ({grant.granted_by})" for grant in grants)
    rows = [[Choice(f"{REVOKE}:{_short(grant)}", f"✕ {grant.scope}"[:60])] for grant in grants[:20]]
    return room.texts.grants.format(grants=lines), rows


def _short(grant: Grant) -> str:
    """A scope as a button can hold it: 64 bytes at most, with its kind."""
    import hashlib

    return hashlib.sha256(grant.scope.encode()).hexdigest()[:12]


async def settings(room: HandlerContext, said: Heard) -> None:
    await room.say(said.chat, *await _settings(room, said.chat))


async def press_setting(room: HandlerContext, press: Press) -> Outcome:
    name, _, value = press.argument.partition(":")
    if name != "thinking" or not value.isdigit() or int(value) not in THINKING:
        return Outcome(room.texts.expired)
    await room.store.chats.set(press.chat, thinking=int(value) or None)
    return Outcome("", *await _settings(room, press.chat))


async def _settings(room: HandlerContext, chat: str) -> tuple[str, Rows]:
    known = await room.store.chats.get(chat)
    now = int(known.settings.get("thinking", 0)) if known else 0
    labels = {n: f"{n:,}" if n else room.texts.off for n in THINKING}
    buttons = [
        Choice(f"{SETTING}:thinking:{n}", f"{'• ' if n == now else ''}{label}")
        for n, label in labels.items()
    ]
    told = room.texts.settings.format(thinking=labels.get(now, str(now)))
    return told if await _thinks(room) else f"{told}\n{room.texts.no_thinking}", [buttons]


async def _thinks(room: HandlerContext) -> bool:
    """Whether the model server can be told how long to think; True while nobody knows."""
    if room.services.backend is None:
        return True
    try:
        return (await room.services.backend.endpoint()).extras
    except BackendUnavailable:
        return True
