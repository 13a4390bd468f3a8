"""What /model offers where a better model could run here: files that lie here, and downloads."""

from collections.abc import Sequence

from agent.errors import AgentError
from agent.retelling import retold
from backend.protocol import Status
from bot.access import AccessLevel
from bot.channel import Button, ChannelError, Keyboard
from bot.commands.context import ButtonPress, HandlerContext, ModelOffer, PressResult
from bot.commands.first_screen import TOY
from bot.texts import Texts

DOWNLOAD = "get"
USE = "mod"  # the kind of /model's own buttons (status.MODEL)
NAME_BYTES = 56  # a button's key holds 64
OFFERED = 3


async def offers(
    context: HandlerContext, report: Status, level: AccessLevel
) -> tuple[list[str], list[list[Button]]]:
    """Lines and buttons for an owner; while the toy serves, how to get a real model, for anybody."""
    texts, toy = context.texts, report.backend.model == TOY
    hint = texts.toy_hint_demo if context.demo else texts.toy_hint
    lines = [hint] if toy else []
    if level != "owner" or context.services.models is None or report.backend.kind != "managed":
        return lines, []
    found = await context.services.models.offers(report)
    here = [offer for offer in found if offer.command]
    if toy and here:
        lines += [
            texts.lie_here,
            *(f"`{offer.command}`\n{retold(offer.line)}" for offer in here[:OFFERED]),
        ]
    wanted = [offer for offer in found if not offer.command and fits_key(offer)][:OFFERED]
    if wanted:
        lines += [texts.would_fit, *(retold(offer.line) for offer in wanted)]
    elif toy and not here and not report.gpus:
        lines.append(texts.none_fits)
    return lines, [[Button(f"{DOWNLOAD}:{offer.name}", label(texts, offer))] for offer in wanted]


def fits_key(offer: ModelOffer) -> bool:
    return len(offer.name.encode()) <= NAME_BYTES


def label(texts: Texts, offer: ModelOffer) -> str:
    size = f" ({offer.size / 2**30:.1f} GiB)" if offer.size else ""
    return texts.download.format(name=offer.name) + size


async def press_download(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Downloads in the background, in the message; the end is told anew, with a button to use it."""
    models = context.services.models
    if models is None:
        return PressResult(context.texts.expired)
    if press.argument in models.running:
        return PressResult(context.texts.downloads_already)
    models.running.add(press.argument)  # a second press comes before the download has begun
    facts = {"act": "download", "model": press.argument, "by": press.sender.name}
    await context.store.ledger.record("admin", press.chat, **facts)
    context.start(download(context, press))
    return PressResult("", progress(context.texts, press.argument, 0, None))


async def download(context: HandlerContext, press: ButtonPress) -> None:
    texts, name, models = context.texts, press.argument, context.services.models
    assert models
    keyboard: Sequence[Sequence[Button]] = ()
    shown = ""
    try:
        async for done, size in models.download(name):
            if (text := progress(texts, name, done, size)) != shown:
                shown = text
                await show(context, press, text)
    except AgentError as error:
        told = texts.not_downloaded.format(
            name=name, why=retold(str(error).removeprefix("error: "))
        )
        keyboard = [[Button(f"{DOWNLOAD}:{name}", texts.download.format(name=name))]]
    else:
        told = texts.downloaded.format(name=name)
        keyboard = [[Button(f"{USE}:{name}", texts.use.format(name=name))]]
    await show(context, press, told)
    await context.send(press.chat, told, keyboard)


async def show(
    context: HandlerContext, press: ButtonPress, text: str, keyboard: Keyboard = ()
) -> None:
    try:
        await context.channel.edit(press.chat, press.message, text, keyboard)
    except ChannelError:
        return  # the end is told anew


def progress(texts: Texts, name: str, done: int, size: int | None) -> str:
    of = texts.of_size.format(size=size / 2**30) if size else ""
    return texts.downloading.format(name=name, done=done / 2**30, of=of)
