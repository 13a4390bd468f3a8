"""/model: which model serves and how well, and switching it by a button."""

from time import monotonic

from agent.errors import AgentError
from agent.llm.selftest import sentence
from agent.model import ModelRefused
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from backend.protocol import ProfileSummary, Status
from bot.channel import Choice, Rows
from bot.telegram.buttons import Outcome, Press
from bot.telegram.handler_context import HandlerContext, Heard

MODEL = "mod"
LONGEST_NAME = 56  # a button carries 64 bytes


async def model(room: HandlerContext, said: Heard) -> None:
    room.spawn(_model(room, said.chat))


async def _model(room: HandlerContext, chat: str) -> None:
    backend = room.services.backend
    if backend is None:
        await room.say(chat, room.texts.no_backend)
        return
    try:
        report, cards = await backend.status(), await backend.profiles()
    except BackendUnavailable as error:
        await room.say(chat, str(error))
        return
    await room.say(chat, "\n".join(await _lines(room, report, cards)), _buttons(report, cards))


async def _lines(room: HandlerContext, report: Status, cards: list[ProfileSummary]) -> list[str]:
    server, speed = report.backend, report.speed
    lines = [room.texts.model.format(now=server.profile or server.model or "?")]
    lines += [text for card in cards if card.name == server.profile for text in _about(card)]
    if server.n_ctx:
        lines.append(room.texts.model_window.format(tokens=server.n_ctx))
    if measured := speed.median_decode_tok_s or speed.decode_tok_s:
        lines.append(room.texts.model_speed.format(speed=measured))
    if room.services.trials and (known := await room.services.trials.known(server)):
        lines.append(sentence(known))
    return lines


def _about(card: ProfileSummary) -> list[str]:
    return [text for text in (card.title, card.good, card.bad) if text]


def _buttons(report: Status, cards: list[ProfileSummary]) -> Rows:
    """The profiles that can start now: their models are here."""
    others = [card.name for card in cards if card.here and card.name != report.backend.profile]
    short = [name for name in others if len(name.encode()) <= LONGEST_NAME]
    return [[Choice(f"{MODEL}:{name}", name)] for name in short]


async def press_model(room: HandlerContext, press: Press) -> Outcome:
    """Switching goes on beside; who asked hears how it ended."""
    if press.standing != "owner":
        return Outcome(room.texts.only_owners)
    if room.services.backend is None:
        return Outcome(room.texts.expired)
    switching = _switch(room, room.services.backend, press.chat, press.argument)
    room.spawn(switching)
    return Outcome("", room.texts.switching.format(name=press.argument))


async def _switch(room: HandlerContext, backend: BackendClient, chat: str, name: str) -> None:
    began = monotonic()
    try:
        async for _ in backend.use_profile(name):
            pass
        server = (await backend.status()).backend
    except (BackendRefused, BackendUnavailable) as error:
        await room.say(chat, str(error))
        return
    said = room.texts.switched.format(name=name, seconds=monotonic() - began)
    if server.warm:
        said += " " + room.texts.switched_warm.format(tokens=server.warm.tokens)
    await room.say(chat, said)
    if room.services.trials and await room.services.trials.known(server) is None:
        await room.say(chat, await _first_use(room))


async def _first_use(room: HandlerContext) -> str:
    """What the self-test of a model that serves for the first time says."""
    assert room.services.backend and room.services.trials
    try:
        server = (await room.services.backend.status()).backend
        return sentence(await room.services.trials.of(server))
    except (AgentError, ModelRefused, BackendUnavailable) as error:
        return str(error)
