"""/model: which model serves, switching to another, rehearsals, and downloads of models that fit this machine."""

from contextlib import suppress
from dataclasses import asdict
from time import monotonic

from agent.errors import AgentError
from agent.language import translate_phrase, translated
from agent.llm.selftest import sentence
from agent.model import ModelRefused
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from backend.protocol import Phrase, Status
from bot.access import AccessLevel
from bot.channel import Button, ChannelError, Keyboard
from bot.commands.context import (
    ButtonPress,
    CommandCall,
    HandlerContext,
    ModelSource,
    PressResult,
)
from bot.commands.people import TOY
from bot.texts import TEXTS

MODEL = "mod"  # the kind of its buttons
DOWNLOAD = "get"
REHEARSAL = "reh"
NAME_BYTES = 56  # a button's key holds 64
OFFERED = 3


async def model(context: HandlerContext, call: CommandCall) -> None:
    """/model: the model, its speed and its self-test, with a button for each other profile whose model is here."""
    backend = context.services.backend
    report, profiles = await backend.status(), await backend.profiles()
    server, speed = report.backend, report.speed
    lines = [TEXTS.model.format(now=server.profile or server.model or "?")]
    for profile in profiles:
        if profile.name == server.profile:
            lines += map(translated, filter(None, [profile.title, profile.good, profile.bad]))
    if server.n_ctx:
        lines.append(TEXTS.model_window.format(tokens=server.n_ctx))
    if measured := speed.median_decode_tok_s or speed.decode_tok_s:
        lines.append(TEXTS.model_speed.format(speed=measured))
    if known := await context.services.selftests.known(server):
        lines.append(sentence(known))
    rehearses = call.level == "owner" and context.services.models is not None
    keyboard = [
        [Button(f"{MODEL}:{profile.name}", profile.name)]
        + [Button(f"{REHEARSAL}:{profile.name}", TEXTS.rehearse)] * rehearses
        for profile in profiles
        if profile.here and profile.name != server.profile and fits_key(profile.name)
    ]
    more, offered = await offers(context, report, call.level)
    text = "\n\n".join(["\n".join(lines), *more])
    await context.send(call.chat, text, [*keyboard, *offered])


async def press_model(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Switch in the background; a message tells the chat how it ended."""
    facts = {"act": "model", "to": press.argument, "by": press.sender.name}
    await context.store.ledger.record("admin", press.chat, **facts)
    context.start(switch(context, context.services.backend, press.chat, press.argument))
    return PressResult("", TEXTS.switching.format(name=press.argument))


async def switch(context: HandlerContext, backend: BackendClient, chat: str, profile: str) -> None:
    """Switch, and run the self-test of a model that serves for the first time."""
    began = monotonic()
    try:
        async for _ in backend.use_profile(profile):
            pass
        server = (await backend.status()).backend
    except (BackendRefused, BackendUnavailable) as error:
        await context.send(chat, translate_phrase(Phrase.of(error)))
        return
    text = TEXTS.switched.format(name=profile, seconds=monotonic() - began)
    if server.warm:
        text += " " + TEXTS.switched_warm.format(tokens=server.warm.tokens)
    await context.send(chat, text)
    selftests = context.services.selftests
    if await selftests.known(server) is not None:
        return
    try:
        result = sentence(await selftests.of((await backend.status()).backend))
    except (AgentError, ModelRefused, BackendUnavailable) as error:
        result = translate_phrase(Phrase.of(error))
    await context.send(chat, result)


# -- rehearsals ---------------------------------------------------------------


async def press_rehearsal(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Rehearse in the background: a message has the outcome, with buttons to use the model or to leave it."""
    models = context.services.models
    if not press.argument:
        return PressResult("", TEXTS.left)
    if models is None:
        return PressResult(TEXTS.expired)
    if press.argument in models.running:
        return PressResult(TEXTS.rehearsing.format(name=press.argument))
    models.running.add(press.argument)
    facts = {"act": "rehearse", "model": press.argument, "by": press.sender.name}
    await context.store.ledger.record("admin", press.chat, **facts)
    context.start(rehearse(context, models, press))
    return PressResult("", TEXTS.rehearsing.format(name=press.argument))


async def rehearse(context: HandlerContext, models: ModelSource, press: ButtonPress) -> None:
    name = press.argument
    try:
        found = await models.rehearse(name)
    except AgentError as error:
        await context.send(press.chat, TEXTS.not_rehearsed.format(name=name, why=str(error)))
        return
    finally:
        models.running.discard(name)
    lines = [TEXTS.rehearsed.format(name=name, **asdict(found))]
    if found.decode_tok_s:
        lines.append(TEXTS.model_speed.format(speed=found.decode_tok_s))
    if found.first_word_s:
        lines.append(TEXTS.first_word.format(seconds=found.first_word_s))
    choices = [
        Button(f"{MODEL}:{name}", TEXTS.use.format(name=name)),
        Button(f"{REHEARSAL}:", TEXTS.leave),
    ]
    await context.send(press.chat, "\n".join(lines), [choices])


# -- downloads ----------------------------------------------------------------


async def offers(
    context: HandlerContext, report: Status, level: AccessLevel
) -> tuple[list[str], Keyboard]:
    """Compose, for an owner, lines and buttons for models that fit; while the toy serves, how to get a real one."""
    toy = report.backend.model == TOY
    hint = TEXTS.toy_hint_demo if context.demo else TEXTS.toy_hint
    lines = [hint] if toy else []
    if level != "owner" or context.services.models is None or report.backend.kind != "managed":
        return lines, []
    found = await context.services.models.offers(report)
    here = [offer for offer in found if offer.command]
    if toy and here:
        lines.append(TEXTS.lie_here)
        lines += [f"`{offer.command}`\n{translate_phrase(offer.line)}" for offer in here[:OFFERED]]
    wanted = [offer for offer in found if not offer.command and fits_key(offer.name)][:OFFERED]
    if wanted:
        lines += [TEXTS.would_fit, *(translate_phrase(offer.line) for offer in wanted)]
    elif toy and not here and not report.gpus:
        lines.append(TEXTS.none_fits)
    keyboard = []
    for offer in wanted:
        size = f" ({offer.size / 2**30:.1f} GiB)" if offer.size else ""
        label = TEXTS.download.format(name=offer.name) + size
        keyboard.append([Button(f"{DOWNLOAD}:{offer.name}", label)])
    return lines, keyboard


def fits_key(name: str) -> bool:
    return len(name.encode()) <= NAME_BYTES


async def press_download(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Download in the background: the message shows progress, a new one the outcome with a button to use it."""
    models = context.services.models
    if models is None:
        return PressResult(TEXTS.expired)
    if press.argument in models.running:
        return PressResult(TEXTS.downloads_already)
    models.running.add(press.argument)  # a second press comes before the download has begun
    facts = {"act": "download", "model": press.argument, "by": press.sender.name}
    await context.store.ledger.record("admin", press.chat, **facts)
    context.start(download(context, press))
    return PressResult("", progress(press.argument, 0, None))


async def download(context: HandlerContext, press: ButtonPress) -> None:
    name, models = press.argument, context.services.models
    assert models
    shown = ""

    async def show(text: str) -> None:
        with suppress(ChannelError):  # the outcome is a message of its own
            await context.channel.edit(press.chat, press.message, text)

    try:
        async for done, size in models.download(name):
            if (text := progress(name, done, size)) != shown:
                shown = text
                await show(text)
    except AgentError as error:
        why = str(error).removeprefix("error: ")
        told = TEXTS.not_downloaded.format(name=name, why=why)
        button = Button(f"{DOWNLOAD}:{name}", TEXTS.download.format(name=name))
    else:
        told = TEXTS.downloaded.format(name=name)
        button = Button(f"{MODEL}:{name}", TEXTS.use.format(name=name))
    await show(told)
    await context.send(press.chat, told, [[button]])


def progress(name: str, done: int, size: int | None) -> str:
    of = TEXTS.of_size.format(size=size / 2**30) if size else ""
    return TEXTS.downloading.format(name=name, done=done / 2**30, of=of)
