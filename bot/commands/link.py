"""/link: chats of one owner in several apps share notes and jobs."""

from bot.commands.context import CommandCall, HandlerContext

CODE_SECONDS = 900.0


async def link(context: HandlerContext, call: CommandCall) -> None:
    """/link makes a code, and /link CODE in the other app uses it; /link alerts brings alerts to this chat;
    /link end separates it from the others."""
    texts, links, argument = context.texts, context.store.links, call.argument.strip()
    alerts = context.channel.private_chat(call.sender.user)
    if call.sender.group is not None:
        await context.send(call.chat, texts.link_private)
    elif argument.lower() == "end":
        ended = await links.end(call.chat, alerts, call.sender.name)
        await context.send(call.chat, texts.link_ended if ended else texts.not_linked)
    elif argument.lower() == "alerts":
        here = await links.alert_here(alerts)
        await context.send(call.chat, texts.alerts_here if here else texts.not_linked)
    elif argument:
        other = await links.use_code(call.chat, alerts, argument, call.sender.name)
        await context.send(call.chat, texts.linked if other else texts.bad_link_code)
        if other:  # told in both, in case it was not the owner
            await context.send(other, texts.linked)
    else:
        code = await links.make_code(call.chat, alerts, CODE_SECONDS)
        known = texts.linked_now if await links.of(call.chat) else ""
        minutes = round(CODE_SECONDS / 60)
        told = texts.link_code.format(code=code, minutes=minutes)
        await context.send(call.chat, f"{known}\n\n{told}".strip())
