"""/settings: thinking, tool lines, voice messages, language. /timezone: the chat's own time zone."""

from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from typing import Any, get_args
from zoneinfo import available_timezones

from agent.errors import AgentError
from agent.language import languages, local, name_of, speaking
from agent.model import UNBOUNDED
from backend.client import BackendUnavailable
from bot.attachments import VOICE, VoiceSetting, voice_setting
from bot.channel import Button, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult
from bot.live_replies import TOOL_LINES, ToolLines, tool_lines
from bot.texts import TEXTS

SETTING = "set"
LANGUAGE = "language"  # of a chat; what agent.store.chats.Chat.chosen_language reads
THINKING = (None, 0, 512, 2048, 8192, UNBOUNDED)  # agent.model.Request.thinking
SUGGESTED_ZONES = 4


async def settings(context: HandlerContext, call: CommandCall) -> None:
    await context.send(call.chat, *await setting_list(context, call.chat))


async def press_setting(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Act on `NAME:VALUE` of `setting_values`; `thinking:` is the model's default, `language:` the app's."""
    name, _, value = press.argument.partition(":")
    values = setting_values()
    if value not in values.get(name, {}):
        return PressResult(TEXTS.expired)
    await context.store.chats.set(press.chat, press.sender.name, **{name: values[name][value]})
    with (
        context.speaking_to(press.sender.language),
        speaking(await context.chosen_language(press.chat)),
    ):
        return PressResult("", *await setting_list(context, press.chat))


def setting_values() -> Mapping[str, Mapping[str, str | int | None]]:
    """The values of each setting, by the word in a button's key."""
    return {
        "thinking": {str("" if tokens is None else tokens): tokens for tokens in THINKING},
        TOOL_LINES: {lines: lines for lines in get_args(ToolLines)},
        VOICE: {each: each for each in get_args(VoiceSetting)},
        LANGUAGE: {"": None, **{code: code for code in languages()}},
    }


async def setting_list(context: HandlerContext, chat: str) -> tuple[str, Keyboard]:
    services = context.services
    known = await context.store.chats.get(chat)
    thinking = known.settings.get("thinking") if known else None
    shown, spoken = tool_lines(known), voice_setting(known.settings if known else {})
    chosen = known.chosen_language if known else ""
    words = {None: TEXTS.thinking_default, 0: TEXTS.off, UNBOUNDED: TEXTS.thinking_unbounded}
    budgets = {n: words.get(n) or local("{n:,}").format(n=n) for n in THINKING}
    named = {"": TEXTS.as_app, **{code: name_of(code) for code in languages()}}

    lines = [TEXTS.settings.format(thinking=budgets.get(thinking, str(thinking)))]
    with suppress(BackendUnavailable):  # then nobody knows what the model server takes
        if not (await services.backend.endpoint()).extras:
            lines.append(TEXTS.no_thinking)
    lines.append(TEXTS.settings_tools.format(lines=TEXTS.tool_lines[shown]))
    lines.append(TEXTS.settings_voice.format(voice=TEXTS.voice_settings[spoken]))
    if services.voice and spoken != "off" and (command := services.voice.missing()):
        lines.append(TEXTS.voice_missing.format(command=command))
    zone = str((await context.local_time(chat)).tzinfo)
    lines.append(TEXTS.settings_search.format(engine=services.search or TEXTS.off))
    lines.append(TEXTS.settings_timezone.format(zone=zone))
    lines.append(TEXTS.settings_language.format(language=named.get(chosen, chosen)))

    tokens = choices("thinking", budgets, thinking)
    codes = choices(LANGUAGE, named, chosen)
    keyboard = [
        tokens[:3],
        tokens[3:],
        choices(TOOL_LINES, TEXTS.tool_lines, shown),
        choices(VOICE, TEXTS.voice_settings, spoken),
        *(codes[start : start + 4] for start in range(0, len(codes), 4)),
    ]
    return "\n".join(lines), keyboard


def choices(name: str, labels: Mapping[Any, str], now: str | int | None) -> list[Button]:
    """A button for each value of a setting, that of `now` marked."""
    return [
        Button(f"{SETTING}:{name}:{'' if n is None else n}", f"{'• ' if n == now else ''}{label}")
        for n, label in labels.items()
    ]


async def timezone(context: HandlerContext, call: CommandCall) -> None:
    """/timezone tells the zone; /timezone Europe/Berlin changes it, and jobs at times of day move to it.

    A city or another spelling is enough where it names one zone.
    """
    chat = call.chat
    if not call.argument:
        now = await context.local_time(chat)
        text = TEXTS.timezone.format(zone=now.tzinfo, at=f"{now:%H:%M}")
        await context.send(chat, f"{text}\n{TEXTS.timezone_how}")
        return
    zone = find_timezone(call.argument)
    if zone is None:
        near = nearest_timezones(call.argument)
        hint = TEXTS.timezone_near.format(zones=", ".join(near)) if near else TEXTS.timezone_how
        raise AgentError(f"{TEXTS.timezone_unknown.format(zone=call.argument)} {hint}")
    await context.store.chats.set_timezone(chat, zone, call.sender.name)
    text = TEXTS.timezone.format(zone=zone, at=f"{await context.local_time(chat):%H:%M}")
    planner = await context.services.planner(chat)
    if moved := await planner.move_to_zone():
        lines = [f"{job.id}. {planner.describe(job, 1)}" for job in moved]
        text = "\n".join([text, TEXTS.timezone_jobs, *lines])
    await context.send(chat, text)


def find_timezone(text: str) -> str | None:
    """The IANA name that a text means: a zone's name in any case and spacing, or its city."""
    found = zones_by_name().get(normalized(text), [])
    exact = [zone for zone in found if normalized(zone) == normalized(text)]
    return (exact or found)[0] if exact or len(found) == 1 else None


def nearest_timezones(text: str) -> list[str]:
    """The zones whose name or city is spelt most like the text."""
    names = zones_by_name()
    near = get_close_matches(normalized(text), names, SUGGESTED_ZONES, 0.7)
    return [*dict.fromkeys(zone for name in near for zone in names[name])][:SUGGESTED_ZONES]


@cache
def zones_by_name() -> dict[str, list[str]]:
    """Zones by their normalized name, and by that of their city."""
    names: dict[str, list[str]] = {}
    for zone in sorted(available_timezones()):
        for name in {normalized(zone), normalized(zone.rpartition("/")[2])}:
            names.setdefault(name, []).append(zone)
    return names


def normalized(text: str) -> str:
    """Write a name in lower case, with single spaces in place of slashes and underscores."""
    return " ".join(text.replace("_", " ").replace("/", " ").split()).lower()
