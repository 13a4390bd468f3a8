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
from bot.texts import Texts

MODEL = "mod"  # the kind of its buttons
DOWNLOAD = "get"
REHEARSAL = "reh"
NAME_BYTES = 56  # a button's key holds 64
OFFERED = 3


async def model(context: HandlerContext, call: CommandCall) -> None:
    """/model: the model, its speed and its self-test, with a button for each other profile whose model is here."""
    backend, texts = context.services.backend, context.texts
    if backend is None:
        await context.send(call.chat, texts.no_backend)
        return
    report, profiles = await backend.status(), await backend.profiles()
    server, speed = report.backend, report.speed
    lines = [texts.model.format(now=server.profile or server.model or "?")]
    for profile in profiles:
        if profile.name == server.profile:
            lines += map(translated, filter(None, [profile.title, profile.good, profile.bad]))
    if server.n_ctx:
        lines.append(texts.model_window.format(tokens=server.n_ctx))
    if measured := speed.median_decode_tok_s or speed.decode_tok_s:
        lines.append(texts.model_speed.format(speed=measured))
    selftests = context.services.selftests
    if selftests and (known := await selftests.known(server)):
        lines.append(sentence(known))
    rehearses = call.level == "owner" and context.services.models is not None
    keyboard = [
        [Button(f"{MODEL}:{profile.name}", profile.name)]
        + [Button(f"{REHEARSAL}:{profile.name}", texts.rehearse)] * rehearses
        for profile in profiles
        if profile.here and profile.name != server.profile and fits_key(profile.name)
    ]
    more, offered = await offers(context, report, call.level)
    text = "\n\n".join(["\n".join(lines), *more])
    await context.send(call.chat, text, [*keyboard, *offered])


async def press_model(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Switch in the background; a message tells the chat how it ended."""
    if context.services.backend is None:
        return PressResult(context.texts.expired)
    facts = {"act": "model", "to": press.argument, "by": press.sender.name}
    await context.store.ledger.record("admin", press.chat, **facts)
    context.start(switch(context, context.services.backend, press.chat, press.argument))
    return PressResult("", context.texts.switching.format(name=press.argument))


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
    text = context.texts.switched.format(name=profile, seconds=monotonic() - began)
    if server.warm:
        text += " " + context.texts.switched_warm.format(tokens=server.warm.tokens)
    await context.send(chat, text)
    selftests = context.services.selftests
    if selftests is None or await selftests.known(server) is not None:
        return
    try:
        result = sentence(await selftests.of((await backend.status()).backend))
    except (AgentError, ModelRefused, BackendUnavailable) as error:
        result = translate_phrase(Phrase.of(error))
    await context.send(chat, result)


# -- rehearsals ---------------------------------------------------------------


async def press_rehearsal(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Rehearse in the background: a message has the outcome, with buttons to use the model or to leave it."""
    models, texts = context.services.models, context.texts
    if not press.argument:
        return PressResult("", texts.left)
    if models is None:
        return PressResult(texts.expired)
    if press.argument in models.running:
        return PressResult(texts.rehearsing.format(name=press.argument))
    models.running.add(press.argument)
    facts = {"act": "rehearse", "model": press.argument, "by": press.sender.name}
    await context.store.ledger.record("admin", press.chat, **facts)
    context.start(rehearse(context, models, press))
    return PressResult("", texts.rehearsing.format(name=press.argument))


async def rehearse(context: HandlerContext, models: ModelSource, press: ButtonPress) -> None:
    texts, name = context.texts, press.argument
    try:
        found = await models.rehearse(name)
    except AgentError as error:
        await context.send(press.chat, texts.not_rehearsed.format(name=name, why=str(error)))
        return
    finally:
        models.running.discard(name)
    lines = [texts.rehearsed.format(name=name, **asdict(found))]
    if found.decode_tok_s:
        lines.append(texts.model_speed.format(speed=found.decode_tok_s))
    if found.first_word_s:
        lines.append(texts.first_word.format(seconds=found.first_word_s))
    choices = [
        Button(f"{MODEL}:{name}", texts.use.format(name=name)),
        Button(f"{REHEARSAL}:", texts.leave),
    ]
    await context.send(press.chat, "\n".join(lines), [choices])


# -- downloads ----------------------------------------------------------------


async def offers(
    context: HandlerContext, report: Status, level: AccessLevel
) -> tuple[list[str], Keyboard]:
    """For an owner, lines and buttons for models that fit; while the toy serves, for anybody, how to get a real model."""
    texts, toy = context.texts, report.backend.model == TOY
    hint = texts.toy_hint_demo if context.demo else texts.toy_hint
    lines = [hint] if toy else []
    if level != "owner" or context.services.models is None or report.backend.kind != "managed":
        return lines, []
    found = await context.services.models.offers(report)
    here = [offer for offer in found if offer.command]
    if toy and here:
        lines.append(texts.lie_here)
        lines += [f"`{offer.command}`\n{translate_phrase(offer.line)}" for offer in here[:OFFERED]]
    wanted = [offer for offer in found if not offer.command and fits_key(offer.name)][:OFFERED]
    if wanted:
        lines += [texts.would_fit, *(translate_phrase(offer.line) for offer in wanted)]
    elif toy and not here and not report.gpus:
        lines.append(texts.none_fits)
    keyboard = []
    for offer in wanted:
        size = f" ({offer.size / 2**30:.1f} GiB)" if offer.size else ""
        label = texts.download.format(name=offer.name) + size
        keyboard.append([Button(f"{DOWNLOAD}:{offer.name}", label)])
    return lines, keyboard


def fits_key(name: str) -> bool:
    return len(name.encode()) <= NAME_BYTES


async def press_download(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Download in the background: the message shows progress, a new one the outcome with a button to use it."""
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
    shown = ""

    async def show(text: str) -> None:
        with suppress(ChannelError):  # the outcome is a message of its own
            await context.channel.edit(press.chat, press.message, text)

    try:
        async for done, size in models.download(name):
            if (text := progress(texts, name, done, size)) != shown:
                shown = text
                await show(text)
    except AgentError as error:
        why = str(error).removeprefix("error: ")
        told = texts.not_downloaded.format(name=name, why=why)
        button = Button(f"{DOWNLOAD}:{name}", texts.download.format(name=name))
    else:
        told = texts.downloaded.format(name=name)
        button = Button(f"{MODEL}:{name}", texts.use.format(name=name))
    await show(told)
    await context.send(press.chat, told, [[button]])


def progress(texts: Texts, name: str, done: int, size: int | None) -> str:
    of = texts.of_size.format(size=size / 2**30) if size else ""
    return texts.downloading.format(name=name, done=done / 2**30, of=of)
