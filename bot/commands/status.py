"""/status, /gpu and /context. What is not known is left out."""

import re
from collections.abc import Mapping
from io import BytesIO

from agent.budgets import WORDS
from agent.language import local, translate_phrase, translated
from agent.store.outbox import OutboxState
from agent.trust import told
from backend.client import BackendRefused, BackendUnavailable
from backend.protocol import MOST_LENT, Gpu, Phrase, Status
from bot.approval_question import code
from bot.channel import Button, ChannelError, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult, whole_number
from bot.texts import TEXTS

STATUS, LEND = "st", "lnd"  # kinds of buttons
LEND_HOURS = (1, 2, 8)
GPU_HOURS = 3
MOST_HOURS = 7 * 24


async def status(context: HandlerContext, call: CommandCall) -> None:
    await context.send(call.chat, *await status_report(context, call))


async def press_status(context: HandlerContext, press: ButtonPress) -> PressResult:
    return PressResult(later=lambda: status_report(context, press))


async def status_report(
    context: HandlerContext, asked: CommandCall | ButtonPress
) -> tuple[str, Keyboard]:
    chat, report = asked.chat, await backend_status(context)
    lines = backend_lines(report) if isinstance(report, Status) else [f"**{report}**"]
    running = len(context.services.chats.running())
    waiting = await context.store.inbox.count_waiting()
    outbox = await context.store.outbox.counts()
    set_aside = await context.store.set_aside.count()
    lines.append(queue_line(running, waiting, outbox, set_aside))
    if (since := await context.store.freeze.since()) is not None:
        at = f"{await context.local_time(chat, since):%Y-%m-%d %H:%M}"
        lines.insert(0, f"**{TEXTS.frozen_since.format(at=at)}**")
    if used := await context.services.budgets.half_used(chat):
        told_used = [f"{translated(WORDS[u.kind])} {u.used:,} / {most:,}" for u, most in used]
        lines.append(TEXTS.used_today.format(used=", ".join(told_used)))
    if sources := await context.store.taints.of_chat(chat):
        zone = str((await context.local_time(chat)).tzinfo)
        lines.append(TEXTS.touched_status.format(sources=code(told(sources, zone))))
    if context.services.servers and (count := len(context.services.servers.running)):
        lines.append(TEXTS.servers_running.format(count=count))
    if problem := context.problem():
        lines.append(TEXTS.polling.format(problem=translate_phrase(problem)))
    at = f"{await context.local_time(chat):%H:%M}"
    lines.append(uptime_line(context.store.clock() - context.started_at, at))
    buttons = [Button(f"{STATUS}:", TEXTS.refresh)]
    if asked.level == "owner" and isinstance(report, Status) and report.gpus:
        lent = report.backend.lent_until
        buttons.append(
            Button(f"{LEND}:0", TEXTS.take_back) if lent else Button(f"{LEND}:", TEXTS.lend)
        )
    # Telegram opens mini apps from private chats alone.
    if context.page is not None and asked.level == "owner" and asked.sender.group is None:
        if context.page:
            buttons.append(Button(f"{STATUS}:", TEXTS.open_page, context.page))
        else:
            lines.append(TEXTS.page_how)
    return "\n".join(lines), [buttons]


async def backend_status(context: HandlerContext) -> Status | str:
    """The status, or a sentence on why there is none."""
    try:
        return await context.services.backend.status()
    except BackendUnavailable as error:
        return translate_phrase(Phrase.of(error))


async def gpu(context: HandlerContext, call: CommandCall) -> None:
    """/gpu, /gpu 12 (hours) and /gpu dark draw the GPUs' figures, or tell them in words; /gpu lend 2h and /gpu back."""
    act, _, span = call.argument.lower().partition(" ")
    if act in ("lend", "back"):
        seconds = 0 if act == "back" else lent_seconds(span)
        await context.send(call.chat, *await lend(context, call, seconds))
        return
    words = call.argument.lower().split()
    hours = next((whole_number(word) for word in words if word.isdecimal()), GPU_HOURS)
    theme = "dark" if "dark" in words else "light"
    report = await backend_status(context)
    if isinstance(report, str):
        await context.send(call.chat, report)
        return
    lines = [gpu_line(gpu) for gpu in report.gpus]
    caption = "\n".join(lines) or TEXTS.no_gpu_speed
    zone = str((await context.local_time(call.chat)).tzinfo)
    try:
        picture = await context.services.backend.gpu_picture(
            min(max(hours, 1), MOST_HOURS), theme=theme, zone=zone, words=TEXTS.gpu_picture
        )
        await context.channel.send_files(call.chat, [(BytesIO(picture), "gpu.png")], caption)
    except (BackendUnavailable, BackendRefused, ChannelError):
        await context.send(call.chat, caption if lines else TEXTS.no_gpu)


def lent_seconds(span: str) -> int | None:
    """The seconds of "2h", "90m" or "30 min"; None for anything else, and for more than a day."""
    found = re.fullmatch(r"([1-9]\d{0,3}) *(h|m|min)", span.strip().lower())
    seconds = int(found[1]) * (3600 if found[2] == "h" else 60) if found else 0
    return seconds if 0 < seconds <= MOST_LENT else None


async def press_lend(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Lend for the seconds of the button, or offer times where it has none."""
    seconds = int(press.argument) if press.argument else None
    return PressResult(later=lambda: lend(context, press, seconds))


async def lend(
    context: HandlerContext, asked: CommandCall | ButtonPress, seconds: int | None
) -> tuple[str, Keyboard]:
    """Lend the card, take it back (0), or offer times (None)."""
    backend = context.services.backend
    if asked.level != "owner":
        return TEXTS.only_owners, []
    if seconds is None:
        hours = [Button(f"{LEND}:{h * 3600}", TEXTS.lend_hours.format(hours=h)) for h in LEND_HOURS]
        return TEXTS.lend_how, [hours]
    facts: dict[str, str | float] = {"act": "lend", "seconds": seconds, "by": asked.sender.name}
    await context.store.ledger.record("admin", asked.chat, **facts)
    try:
        told = translate_phrase(await backend.lend(seconds))
    except BackendUnavailable as error:
        return translate_phrase(Phrase.of(error)), []
    return told, [[Button(f"{LEND}:0", TEXTS.take_back)]] if seconds else []


async def urgent(context: HandlerContext, call: CommandCall) -> None:
    """/urgent WORDS, while the card is lent: what a small model says to these words alone."""
    backend = context.services.backend
    if not call.argument:
        await context.send(call.chat, TEXTS.urgent_how)
        return
    await context.channel.typing(call.chat)
    await context.send(call.chat, translate_phrase(await backend.answer_urgent(call.argument)))


async def tokens(context: HandlerContext, call: CommandCall) -> None:
    """/context: a chat's tokens by part."""
    parts = await context.services.tokens(call.chat)
    rows = {**parts, f"**{TEXTS.context_window}**": sum(parts.values())}
    amount = local("{count:,}")
    lines = "\n".join(
        f"| {part_name(name)} | {amount.format(count=count)} |" for name, count in rows.items()
    )
    await context.send(call.chat, f"{TEXTS.context_head}\n|---|---|\n{lines}")


def part_name(part: str) -> str:
    """A part of the context, named by `voltaire context`, in the reader's language."""
    if part.startswith("tool "):
        return TEXTS.context_tool.format(name=part.removeprefix("tool "))
    return TEXTS.context_parts.get(part, part)


def backend_lines(report: Status) -> list[str]:
    server, speed = report.backend, report.speed
    lines = [
        f"**{translated(server.state)}**"
        + (f": {translate_phrase(server.reason)}" if server.reason else ""),
        joined(server.profile or "", server.model or ""),
        joined(
            TEXTS.window.format(tokens=server.n_ctx) if server.n_ctx else "",
            TEXTS.restarts.format(count=server.restarts) if server.restarts else "",
        ),
        translate_phrase(server.held or ""),
        joined(
            TEXTS.prefill.format(speed=speed.prefill_tok_s) if speed.prefill_tok_s else "",
            TEXTS.decode.format(speed=speed.decode_tok_s) if speed.decode_tok_s else "",
            TEXTS.cache.format(hit=speed.cache_hit) if speed.cache_hit is not None else "",
        ),
        TEXTS.from_disk.format(**server.restored.model_dump()) if server.restored else "",
        *(gpu_line(gpu) for gpu in report.gpus),
    ]
    return [line for line in lines if line]


def gpu_line(gpu: Gpu) -> str:
    used, total = gpu.memory_used_mib, gpu.memory_total_mib
    return joined(
        gpu.name,
        f"{gpu.temperature_c:.0f} °C" if gpu.temperature_c is not None else "",
        f"{gpu.power_w:.0f} W" if gpu.power_w is not None else "",
        TEXTS.gpu_memory.format(used=used / 1024, total=total / 1024) if used and total else "",
        TEXTS.gpu_slowed.format(why=", ".join(map(translated, gpu.throttle)))
        if gpu.throttle
        else "",
    )


def queue_line(
    running: int, waiting: int, outbox: Mapping[OutboxState, int], set_aside: int = 0
) -> str:
    """Running turns, waiting messages, the outbox by state, and what is set aside."""
    to_send = outbox.get("waiting", 0) + outbox.get("sending", 0)
    doubtful, failed = outbox.get("uncertain", 0), outbox.get("failed", 0)
    return joined(
        TEXTS.running.format(count=running) if running else "",
        TEXTS.waiting.format(count=waiting),
        TEXTS.to_send.format(count=to_send),
        TEXTS.doubtful.format(count=doubtful) if doubtful else "",
        TEXTS.failed.format(count=failed) if failed else "",
        TEXTS.set_aside.format(count=set_aside) if set_aside else "",
    )


def uptime_line(seconds: float, at: str) -> str:
    minutes, hours = int(seconds) // 60, int(seconds) // 3600
    if hours >= 48:
        span = TEXTS.days.format(count=hours // 24)
    elif hours:
        span = TEXTS.hours.format(hours=hours, minutes=minutes % 60)
    else:
        span = TEXTS.minutes.format(minutes=minutes)
    return TEXTS.up.format(span=span, at=at)


def joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))
