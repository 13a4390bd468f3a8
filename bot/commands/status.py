"""/status, /gpu and /context. What is not known is left out."""

from collections.abc import Mapping
from io import BytesIO

from agent.budgets import WORDS
from agent.language import local, translate_phrase, translated
from agent.store.outbox import OutboxState
from agent.trust import told
from backend.client import BackendRefused, BackendUnavailable
from backend.protocol import Gpu, Phrase, Status
from bot.approval_question import code
from bot.channel import Button, ChannelError, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult, whole_number
from bot.texts import Texts

STATUS = "st"
GPU_HOURS = 3
MOST_HOURS = 7 * 24


async def status(context: HandlerContext, call: CommandCall) -> None:
    await context.send(call.chat, *await status_report(context, call))


async def press_status(context: HandlerContext, press: ButtonPress) -> PressResult:
    return PressResult(later=lambda: status_report(context, press))


async def status_report(
    context: HandlerContext, asked: CommandCall | ButtonPress
) -> tuple[str, Keyboard]:
    chat, texts, report = asked.chat, context.texts, await backend_status(context)
    lines = backend_lines(texts, report) if isinstance(report, Status) else [f"**{report}**"]
    running = len(context.services.chats.running())
    waiting = await context.store.inbox.count_waiting()
    outbox = await context.store.outbox.counts()
    set_aside = await context.store.set_aside.count()
    lines.append(queue_line(texts, running, waiting, outbox, set_aside))
    if (since := await context.store.freeze.since()) is not None:
        at = f"{await context.local_time(chat, since):%Y-%m-%d %H:%M}"
        lines.insert(0, f"**{texts.frozen_since.format(at=at)}**")
    if context.services.budgets and (used := await context.services.budgets.half_used(chat)):
        told_used = [f"{translated(WORDS[u.kind])} {u.used:,} / {most:,}" for u, most in used]
        lines.append(texts.used_today.format(used=", ".join(told_used)))
    if sources := await context.store.taints.of_chat(chat):
        zone = str((await context.local_time(chat)).tzinfo)
        lines.append(texts.touched_status.format(sources=code(told(sources, zone))))
    if context.services.servers and (count := len(context.services.servers.running)):
        lines.append(texts.servers_running.format(count=count))
    if problem := context.problem():
        lines.append(texts.polling.format(problem=translate_phrase(problem)))
    at = f"{await context.local_time(chat):%H:%M}"
    lines.append(uptime_line(texts, context.store.clock() - context.started_at, at))
    buttons = [Button(f"{STATUS}:", texts.refresh)]
    # Telegram opens mini apps from private chats alone.
    if context.page is not None and asked.level == "owner" and asked.sender.group is None:
        if context.page:
            buttons.append(Button(f"{STATUS}:", texts.open_page, context.page))
        else:
            lines.append(texts.page_how)
    return "\n".join(lines), [buttons]


async def backend_status(context: HandlerContext) -> Status | str:
    """The status, or a sentence on why there is none."""
    if context.services.backend is None:
        return context.texts.no_backend
    try:
        return await context.services.backend.status()
    except BackendUnavailable as error:
        return translate_phrase(Phrase.of(error))


async def gpu(context: HandlerContext, call: CommandCall) -> None:
    """/gpu, /gpu 12 (hours), /gpu dark: a picture; where there is none, the same in words."""
    words = call.argument.lower().split()
    hours = next((whole_number(word) for word in words if word.isdecimal()), GPU_HOURS)
    theme = "dark" if "dark" in words else "light"
    report = await backend_status(context)
    if isinstance(report, str):
        await context.send(call.chat, report)
        return
    assert context.services.backend
    lines = [gpu_line(context.texts, gpu) for gpu in report.gpus]
    caption = "\n".join(lines) or context.texts.no_gpu_speed
    zone = str((await context.local_time(call.chat)).tzinfo)
    try:
        picture = await context.services.backend.gpu_picture(
            min(max(hours, 1), MOST_HOURS), theme=theme, zone=zone, words=context.texts.gpu_picture
        )
        await context.channel.send_files(call.chat, [(BytesIO(picture), "gpu.png")], caption)
    except (BackendUnavailable, BackendRefused, ChannelError):
        await context.send(call.chat, caption if lines else context.texts.no_gpu)


async def tokens(context: HandlerContext, call: CommandCall) -> None:
    """/context: a chat's tokens by part."""
    if context.services.tokens is None:
        await context.send(call.chat, context.texts.not_here)
        return
    parts = await context.services.tokens(call.chat)
    rows = {**parts, f"**{context.texts.context_window}**": sum(parts.values())}
    amount = local("{count:,}")
    lines = "\n".join(
        f"| {part_name(context.texts, name)} | {amount.format(count=count)} |"
        for name, count in rows.items()
    )
    await context.send(call.chat, f"{context.texts.context_head}\n|---|---|\n{lines}")


def part_name(texts: Texts, part: str) -> str:
    """A part of the context, named by `voltaire context`, in the reader's language."""
    if part.startswith("tool "):
        return texts.context_tool.format(name=part.removeprefix("tool "))
    return texts.context_parts.get(part, part)


def backend_lines(texts: Texts, report: Status) -> list[str]:
    server, speed = report.backend, report.speed
    lines = [
        f"**{translated(server.state)}**"
        + (f": {translate_phrase(server.reason)}" if server.reason else ""),
        joined(server.profile or "", server.model or ""),
        joined(
            texts.window.format(tokens=server.n_ctx) if server.n_ctx else "",
            texts.restarts.format(count=server.restarts) if server.restarts else "",
        ),
        translate_phrase(server.held or ""),
        joined(
            texts.prefill.format(speed=speed.prefill_tok_s) if speed.prefill_tok_s else "",
            texts.decode.format(speed=speed.decode_tok_s) if speed.decode_tok_s else "",
            texts.cache.format(hit=speed.cache_hit) if speed.cache_hit is not None else "",
        ),
        texts.from_disk.format(**server.restored.model_dump()) if server.restored else "",
        *(gpu_line(texts, gpu) for gpu in report.gpus),
    ]
    return [line for line in lines if line]


def gpu_line(texts: Texts, gpu: Gpu) -> str:
    used, total = gpu.memory_used_mib, gpu.memory_total_mib
    return joined(
        gpu.name,
        f"{gpu.temperature_c:.0f} °C" if gpu.temperature_c is not None else "",
        f"{gpu.power_w:.0f} W" if gpu.power_w is not None else "",
        texts.gpu_memory.format(used=used / 1024, total=total / 1024) if used and total else "",
        texts.gpu_slowed.format(why=", ".join(map(translated, gpu.throttle)))
        if gpu.throttle
        else "",
    )


def queue_line(
    texts: Texts, running: int, waiting: int, outbox: Mapping[OutboxState, int], set_aside: int = 0
) -> str:
    """Running turns, waiting messages, the outbox by state, and what is set aside."""
    to_send = outbox.get("waiting", 0) + outbox.get("sending", 0)
    doubtful, failed = outbox.get("uncertain", 0), outbox.get("failed", 0)
    return joined(
        texts.running.format(count=running) if running else "",
        texts.waiting.format(count=waiting),
        texts.to_send.format(count=to_send),
        texts.doubtful.format(count=doubtful) if doubtful else "",
        texts.failed.format(count=failed) if failed else "",
        texts.set_aside.format(count=set_aside) if set_aside else "",
    )


def uptime_line(texts: Texts, seconds: float, at: str) -> str:
    minutes, hours = int(seconds) // 60, int(seconds) // 3600
    if hours >= 48:
        span = texts.days.format(count=hours // 24)
    elif hours:
        span = texts.hours.format(hours=hours, minutes=minutes % 60)
    else:
        span = texts.minutes.format(minutes=minutes)
    return texts.up.format(span=span, at=at)


def joined(*parts: str) -> str:
    return " · ".join(filter(None, parts))
