"""Answers to approval questions, of which the first counts, and /approve."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress

from agent.language import speaking
from agent.sandbox.output_buffer import visible
from agent.store.approvals import WITHDRAWN, Grant
from bot import totp
from bot.approval_question import (
    approval_keyboard,
    asked_in,
    code,
    decision,
    excerpt,
    fenced,
    question,
    send_whole,
)
from bot.channel import Button, ChannelError, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult
from bot.texts import TEXTS

REVOKE = "rev"
LABEL_CHARACTERS = 60
SHOWN_GRANTS = 20


async def press_approval(context: HandlerContext, press: ButtonPress) -> PressResult:
    id, decided = decision(press.argument)
    approvals, by = context.services.approvals, press.sender.name
    if decided is None or await approvals.decide(id, decided, by) is None:
        return PressResult(TEXTS.expired)
    context.start(show_decision(context, id))
    return PressResult(TEXTS.decided[decided])


async def asked(context: HandlerContext, press: ButtonPress) -> bool:
    """Whether the button's question still waits for an answer."""
    id, _ = decision(press.argument)
    request = await context.store.approvals.get(id)
    if request is None or request.expires <= context.store.clock():
        return False
    return await context.store.approvals.decided(id) is None


async def show_decision(context: HandlerContext, id: str) -> None:
    """Replace the buttons of a question's messages by the decision.

    Both the press and the turn that asked call this; each message is changed once.
    """
    table = context.store.approvals
    decided, request = await table.decided(id), await table.get(id)
    if decided is None or request is None:
        return
    state, by, at = decided
    for shown in (await table.message_of(id)).split():
        if (id, shown) in context.decisions_shown:
            continue
        context.decisions_shown.add((id, shown))
        chat, _, message = shown.rpartition("/")
        time = await context.local_time(chat, at)
        with speaking(await context.store.chats.spoken(chat)):
            form = TEXTS.decisions[by if by in ("expired", WITHDRAWN) else state]
            told = form.format(by=visible(by), at=f"{time:%H:%M}")
            text = f"{fenced(excerpt(request.what))}\n\n{told}"
        try:
            await context.channel.edit(chat, message, text)
        except ChannelError:
            context.decisions_shown.discard((id, shown))


async def show_withdrawn(context: HandlerContext, turn: str) -> None:
    """Show as decided what a turn had asked before it was stopped."""
    for id in await context.store.approvals.withdrawn(turn):
        await show_decision(context, id)


async def approve(context: HandlerContext, call: CommandCall) -> None:
    """/approve: open questions are asked again; standing permissions can be taken back."""
    for request in await context.store.approvals.open_requests():
        with suppress(ChannelError):  # without the whole of it the question is not asked again
            await send_whole(context.channel, call.chat, request)
            where = await asked_in(context.channel, request, call.chat)
            text = question(request, where)
            await context.send(call.chat, text, approval_keyboard(request))
    grants = await context.store.approvals.grants(call.chat)
    await context.send(call.chat, *grant_list(grants))


async def press_revoke(context: HandlerContext, press: ButtonPress) -> PressResult:
    for grant in await context.store.approvals.grants(press.chat):
        if scope_digest(grant.scope) == press.argument:
            await context.store.approvals.revoke(press.chat, grant.scope, press.sender.name)
    left = await context.store.approvals.grants(press.chat)
    return PressResult("", *grant_list(left))


def grant_list(grants: Sequence[Grant]) -> tuple[str, Keyboard]:
    if not grants:
        return TEXTS.no_grants, []
    lines = "\n".join(f"- {code(grant.scope)} ({visible(grant.granted_by)})" for grant in grants)
    keyboard = [
        [Button(f"{REVOKE}:{scope_digest(g.scope)}", f"✕ {g.scope}"[:LABEL_CHARACTERS])]
        for g in grants[:SHOWN_GRANTS]
    ]
    return TEXTS.grants.format(grants=lines), keyboard


def scope_digest(scope: str) -> str:
    """A digest of a scope, short enough for a button's key."""
    return hashlib.sha256(scope.encode()).hexdigest()[:12]


# -- freezing -----------------------------------------------------------------


async def freeze(context: HandlerContext, call: CommandCall) -> None:
    turns, grants = await context.store.freeze.freeze(call.sender.name)
    how = TEXTS.thaw_by_code if totp.read_secret(context.services.state) else TEXTS.thaw_in_terminal
    text = TEXTS.frozen_now.format(turns=turns, grants=grants)
    await context.send(call.chat, f"{text} {how}")


async def thaw(context: HandlerContext, call: CommandCall) -> None:
    """/thaw 123456; in a chat only a code thaws."""
    key = totp.read_secret(context.services.state)
    if await context.store.freeze.since() is None:
        text = TEXTS.not_frozen
    elif key is None:
        text = TEXTS.thaw_in_terminal
    elif not call.argument:
        text = TEXTS.thaw_by_code
    else:
        step = totp.matching_step(key, call.argument, context.store.clock())
        text = TEXTS.thaw_outcomes[await context.store.freeze.thaw_by_code(call.sender.name, step)]
    await context.send(call.chat, text)
