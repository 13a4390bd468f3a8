"""/freeze: no tool runs and no job starts until an owner thaws, by a code or in the terminal."""

from bot import totp
from bot.commands.context import CommandCall, HandlerContext


async def freeze(context: HandlerContext, call: CommandCall) -> None:
    turns, grants = await context.store.freeze.freeze(call.sender.name)
    how = context.texts.thaw_by_code if secret(context) else context.texts.thaw_in_terminal
    text = context.texts.frozen_now.format(turns=turns, grants=grants)
    await context.send(call.chat, f"{text} {how}")


async def thaw(context: HandlerContext, call: CommandCall) -> None:
    """/thaw 123456; in a chat only a code thaws."""
    texts, key = context.texts, secret(context)
    if await context.store.freeze.since() is None:
        text = texts.not_frozen
    elif key is None:
        text = texts.thaw_in_terminal
    elif not call.argument:
        text = texts.thaw_by_code
    else:
        step = totp.matching_step(key, call.argument, context.store.clock())
        text = texts.thaw_outcomes[await context.store.freeze.thaw_by_code(call.sender.name, step)]
    await context.send(call.chat, text)


def secret(context: HandlerContext) -> bytes | None:
    """The secret of the codes, where one is set up."""
    state = context.services.state
    return totp.read_secret(state) if state else None
