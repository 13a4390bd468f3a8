"""/plan: the steps of a chat's task, and corrections of them by a person."""

import secrets

from agent.plan import Plan, WrongPlan, plan_lines, with_done, with_steps, with_text
from agent.store.inbox import Incoming
from bot.commands.context import CommandCall, HandlerContext, whole_number


async def plan(context: HandlerContext, call: CommandCall) -> None:
    """/plan shows it; /plan add WORDS, /plan 2 WORDS, /plan done 2 and /plan end change it."""
    texts, plans = context.texts, context.store.plans
    known = await plans.of_chat(call.chat)
    try:
        changed = corrected(known, call.argument)
        if changed != known:
            changed = await plans.change(call.chat, lambda plan: corrected(plan, call.argument))
    except WrongPlan as error:
        await context.send(call.chat, str(error))
        return
    shown = "\n".join(plan_lines(changed)) or texts.no_plan
    if changed != known:
        await tell_model(context, call, shown)
    how = f"\n\n{texts.plan_usage}" if changed else ""
    await context.send(call.chat, f"{shown}{how}")


def corrected(known: Plan, argument: str) -> Plan:
    first, _, rest = argument.partition(" ")
    match first.lower():
        case "add" if rest:
            return with_steps(known, [rest])
        case "done" if rest.strip().isdecimal():
            return with_done(known, whole_number(rest.strip()))
        case "end":
            return ()
        case number if number.isdecimal() and rest:
            return with_text(known, whole_number(number), rest)
    return known


async def tell_model(context: HandlerContext, call: CommandCall, shown: str) -> None:
    """Tell a running turn of the change, before its next step; a later one begins with the plan."""
    if call.chat not in context.services.chats.running():
        return
    words = context.texts.plan_corrected.format(plan=shown)
    update = f"plan:{secrets.token_hex(8)}"
    await context.services.chats.submit(
        Incoming(call.chat, context.channel.source, update, words, sender=call.sender.name)
    )
