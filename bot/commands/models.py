"""/model: which model serves and how well, and switching it by a button."""

from time import monotonic

from agent.errors import AgentError
from agent.llm.selftest import sentence
from agent.model import ModelRefused
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from bot.channel import Button
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult

MODEL = "mod"
NAME_BYTES = 56  # a button's key holds 64


async def model(context: HandlerContext, call: CommandCall) -> None:
    """The model, its speed and its self-test; a button for each profile whose model is here."""
    backend, texts = context.services.backend, context.texts
    if backend is None:
        await context.send(call.chat, texts.no_backend)
        return
    report, profiles = await backend.status(), await backend.profiles()
    server, speed = report.backend, report.speed
    lines = [texts.model.format(now=server.profile or server.model or "?")]
    for profile in profiles:
        if profile.name == server.profile:
            lines += filter(None, [profile.title, profile.good, profile.bad])
    if server.n_ctx:
        lines.append(texts.model_window.format(tokens=server.n_ctx))
    if measured := speed.median_decode_tok_s or speed.decode_tok_s:
        lines.append(texts.model_speed.format(speed=measured))
    selftests = context.services.selftests
    if selftests and (known := await selftests.known(server)):
        lines.append(sentence(known))
    names = [profile.name for profile in profiles if profile.here]
    keyboard = [
        [Button(f"{MODEL}:{name}", name)]
        for name in names
        if name != server.profile and len(name.encode()) <= NAME_BYTES
    ]
    await context.send(call.chat, "\n".join(lines), keyboard)


async def press_model(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Switching goes on in the background; the chat is told how it ended."""
    if press.level != "owner":
        return PressResult(context.texts.only_owners)
    if context.services.backend is None:
        return PressResult(context.texts.expired)
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
        await context.send(chat, str(error))
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
        result = str(error)
    await context.send(chat, result)
