"""/start: what this is, where it runs, who can read along, which model serves, and six wishes to try, in the model's language."""

import socket
from urllib.parse import urlsplit

from agent.language import ENGLISH, speaking, spoken
from agent.store import Incoming
from backend.client import BackendUnavailable
from bot.access import AccessLevel
from bot.channel import Button, Keyboard
from bot.commands.context import ButtonPress, HandlerContext, PressResult

WISH = "try"
TOY, TOY_PROFILE = "pocket.gguf", "pocket"  # the model that ships along


async def hello(context: HandlerContext, chat: str, level: AccessLevel) -> None:
    """The first screen; in a group one line."""
    if context.channel.user_of(chat) is None:
        await context.send(chat, context.texts.hello)
    else:
        await context.store.chats.open(chat, language=spoken())  # of what is said there unasked
        await context.send(chat, *await first_screen(context, level))


async def first_screen(context: HandlerContext, level: AccessLevel) -> tuple[str, Keyboard]:
    texts = context.texts
    host = socket.gethostname() if level == "owner" else texts.owners_machine
    runs_at = texts.runs_at.get(context.channel.source, texts.runs_at["other"])
    place = texts.runs_here if context.demo else runs_at
    model = await model_words(context)
    parts = [texts.what_i_am, place.format(host=host), model, texts.try_these]
    with speaking(ENGLISH if model in (texts.toy_serves, texts.toy_serves_demo) else spoken()):
        wishes = enumerate(texts.wishes)
        keyboard = [[Button(f"{WISH}:{n}:{spoken()}", wish)] for n, wish in wishes]
    return "\n\n".join(filter(None, parts)), keyboard


async def model_words(context: HandlerContext) -> str:
    """Which model serves, and the host of an external one; "" where there is no backend."""
    texts, backend = context.texts, context.services.backend
    if backend is None:
        return ""
    try:
        server = (await backend.status()).backend
        if server.model == TOY or (not server.model and server.profile == TOY_PROFILE):  # it starts
            return texts.toy_serves_demo if context.demo else texts.toy_serves
        where = ""
        if server.kind == "external":
            where = texts.model_at.format(host=urlsplit((await backend.endpoint()).url).hostname)
        return texts.model_serves.format(name=server.profile or server.model or "?", where=where)
    except BackendUnavailable:
        return texts.no_model_yet


async def press_wish(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Start a turn as if the person had written the wish, and show the wish in the chat."""
    number, _, language = press.argument.partition(":")
    with speaking(language):
        wishes = {str(n): wish for n, wish in enumerate(context.texts.wishes)}
    if number not in wishes:
        return PressResult(context.texts.expired)
    wish = wishes[number]
    incoming = Incoming(
        press.chat,
        context.channel.source,
        f"{WISH}:{press.message}:{press.argument}:{context.store.clock():.0f}",
        wish,
        sender=press.sender.name if press.sender.group else "",
        origin="owner" if press.level == "owner" else "person",
    )
    await context.send(press.chat, f"› *{wish}*", silent=True)
    await context.services.chats.submit(incoming)
    return PressResult(wish)
