"""Every command and every button, and the function that handles it; what commands say is in bot.texts."""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from agent.errors import AgentError
from agent.language import speaking, translate_phrase, translated
from backend.client import BackendUnavailable
from backend.protocol import Phrase
from bot import intake
from bot.approval_question import APPROVAL
from bot.channel import ChannelError
from bot.commands import (
    approvals,
    changes,
    conversations,
    jobs,
    model,
    people,
    settings,
    status,
    trust,
)
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult
from bot.commands.trust import TRUST
from bot.delivery import CHANGES, CONTINUE, RESEND
from bot.live_replies import ANSWER_NOW
from bot.texts import TEXTS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Command:
    """A command and its handler.

    `level` is needed to use it; `menu` says where the app lists it; a `slow` one runs in the background.
    """

    name: str
    run: Callable[[HandlerContext, CommandCall], Awaitable[None]]
    level: Literal["member", "owner"] = "member"
    menu: Literal["everywhere", "private", "nowhere"] = "private"
    slow: bool = False


async def help_(context: HandlerContext, call: CommandCall) -> None:
    """The commands that this person may use, in groups."""
    allowed = {c.name for c in COMMANDS if call.level == "owner" or c.level == "member"}
    groups = [
        "\n".join(
            [f"**{translated(head)}**", *(f"/{name}: {TEXTS.commands[name]}" for name in names)]
        )
        for head, all_names in TEXTS.help_groups.items()
        if (names := [name for name in all_names if name in allowed])
    ]
    await context.send(call.chat, TEXTS.help.format(commands="\n\n".join(groups)))


async def press_resend(context: HandlerContext, press: ButtonPress) -> PressResult:
    """[Show again] under the notice of an uncertain text."""
    if not await context.delivery.resend(int(press.argument)):
        return PressResult(TEXTS.not_in_doubt)
    return PressResult("", TEXTS.shown_again)


COMMANDS: Sequence[Command] = (
    Command("start", people.start, menu="nowhere"),
    Command("help", help_, menu="everywhere"),
    Command("new", conversations.new, menu="everywhere"),
    Command("resume", conversations.resume),
    Command("stop", conversations.stop, menu="everywhere"),
    Command("retry", conversations.retry, menu="everywhere"),
    Command("undo", changes.undo),
    Command("changes", changes.changes, slow=True),
    Command("plan", conversations.plan),
    Command("status", status.status, menu="everywhere", slow=True),
    Command("gpu", status.gpu, slow=True),
    Command("model", model.model, slow=True),
    Command("context", status.tokens, slow=True),
    Command("memory", conversations.memory),
    Command("forget", conversations.forget),
    Command("jobs", jobs.jobs),
    Command("schedule", jobs.schedule),
    Command("tonight", jobs.tonight),
    Command("repos", jobs.repos),
    Command("skills", jobs.skills),
    Command("mcp", jobs.mcp, level="owner"),
    Command("summary", jobs.summary),
    Command("link", people.link, level="owner"),
    Command("trust", trust.trust, level="owner"),
    Command("approve", approvals.approve, level="owner"),
    Command("freeze", approvals.freeze, level="owner"),
    Command("thaw", approvals.thaw, level="owner"),
    Command("export", conversations.export, slow=True),
    Command("settings", settings.settings),
    Command("timezone", settings.timezone),
)
HIDDEN: Sequence[Command] = (
    Command("pair", people.pair, menu="nowhere"),
    Command("urgent", status.urgent, menu="nowhere", slow=True),
)
NAMES = frozenset(command.name for command in (*COMMANDS, *HIDDEN))
OF_NO_SENTENCE = frozenset(
    "help status gpu model context memory jobs repos skills settings export resume changes plan forget trust approve thaw timezone mcp link".split()
)
SENTENCE = re.compile(r"(?is)(?!\d|(?:pin|unpin|lend|add|done|end)\b)(.*[?？]|\S+(\s+\S+){3}.*)\s*")

PressHandler = Callable[[HandlerContext, ButtonPress], Awaitable[PressResult]]
OWNERS_ONLY: Mapping[str, PressHandler] = {
    APPROVAL: approvals.press_approval,
    approvals.REVOKE: approvals.press_revoke,
    TRUST: trust.press_trust,
    people.LET_IN: people.press_let_in,
    people.REFUSE: people.press_refuse,
    model.MODEL: model.press_model,
    model.DOWNLOAD: model.press_download,
    model.REHEARSAL: model.press_rehearsal,
    status.LEND: status.press_lend,
}
BUTTONS: Mapping[str, PressHandler] = {
    **OWNERS_ONLY,
    conversations.NOTE: conversations.press_note,
    conversations.FORGET: conversations.press_forget,
    conversations.RESUME: conversations.press_resume,
    CONTINUE: conversations.press_continue,
    CHANGES: changes.press_undo,
    ANSWER_NOW: conversations.press_answer_now,
    jobs.JOB: jobs.press_job,
    status.STATUS: status.press_status,
    settings.SETTING: settings.press_setting,
    intake.BACKLOG_BUTTON: intake.press_backlog,
    people.WISH: people.press_wish,
    RESEND: press_resend,
}


def is_known(name: str, argument: str) -> bool:
    """Whether /name is a command, and not the first word of a sentence behind a command that reads none."""
    return name in NAMES and not (name in OF_NO_SENTENCE and SENTENCE.fullmatch(argument))


def command_named(name: str) -> Command:
    """The command of that name (without its slash); /help where there is none."""
    known = {command.name: command for command in (*COMMANDS, *HIDDEN)}
    return known.get(name, known["help"])


async def run_command(context: HandlerContext, command: Command, call: CommandCall) -> bool:
    """Run a command for whoever may use it; an AgentError is sent to the chat as its sentence. Return whether what
    follows the command is a message: "/new what is the time?"."""
    chat, sender, language = call.chat, call.sender, ""

    async def run() -> None:
        try:
            await command.run(context, call)
        except (AgentError, BackendUnavailable) as error:
            await context.send(chat, translate_phrase(Phrase.of(error)))

    pairs = command.name == "pair" or (command.name == "start" and call.argument)
    if pairs and call.level == "stranger" and sender.group is None:
        if not await intake.is_bearable(context, chat, sender):  # a guess costs a write and a reply
            return False
    elif await intake.may_write(context, chat, sender, call.level):
        language = await unblock(context, chat)
    else:
        return False
    with speaking(language):
        if command.level == "owner" and call.level != "owner":
            await context.send(chat, TEXTS.only_owners)
        elif command.slow:
            context.start(run())
        else:
            await run()
    return command.name == "new" and bool(call.argument)


async def handle_press(context: HandlerContext, kind: str, press: ButtonPress) -> PressResult:
    """The result of a press; what must last is committed when this returns."""
    with speaking(await context.chosen_language(press.chat)):
        if kind not in BUTTONS or (kind == APPROVAL and not await approvals.asked(context, press)):
            return PressResult(TEXTS.expired)
        if press.level == "stranger":
            return PressResult(TEXTS.not_yours)
        if kind in OWNERS_ONLY and press.level != "owner":
            return PressResult(TEXTS.only_owners)
        try:
            return await BUTTONS[kind](context, press)
        except AgentError as error:
            return PressResult(translate_phrase(Phrase.of(error)))
        except (ValueError, OverflowError) as error:  # a key that an app made up
            log.warning("a press on a button of ours with another key: %s", error)
            return PressResult(TEXTS.expired)


async def show_press_result(
    context: HandlerContext, press: ButtonPress, result: PressResult
) -> None:
    """Change the message whose button was pressed. The app has shown the toast before."""
    text, keyboard = result.text, result.keyboard
    if result.later:
        with speaking(await context.chosen_language(press.chat)):
            text, keyboard = await result.later()
    if text is not None:
        with suppress(ChannelError):  # the decision stands; only its message is as it was
            await context.channel.edit(press.chat, press.message, text, keyboard)


async def unblock(context: HandlerContext, chat: str) -> str:
    """Unblock the chat of a command, so that waiting messages go out; return its chosen language ("": none).

    The inbox unblocks the chat of a message.
    """
    known = await context.store.chats.get(chat)
    if known is not None and known.blocked:
        await context.store.chats.set_blocked(chat, blocked=False)
        context.store.outbox.wake()
    return known.chosen_language if known else ""
