"""Conversations (/new, /resume, /stop, /retry, /export, [Continue]) and notes (/memory, /forget)."""

import asyncio
import secrets
from io import BytesIO

from agent.memory.notes import ChatMemory, as_json, markdown
from agent.plan import Plan, WrongPlan, plan_lines, with_done, with_steps, with_text
from agent.store import Incoming
from bot.channel import Button, ChannelError, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult, whole_number
from bot.delivery import CONTINUE
from bot.texts import TEXTS

RESUME = "conv"
RESUMABLE = 8  # conversations that are offered
TITLE_CHARACTERS = 60
NOTE = "note"
FORGET = "wipe"
SHOWN_NOTES = 20
BUTTONS_PER_ROW = 6


async def new(context: HandlerContext, call: CommandCall) -> None:
    await context.services.chats.stop(call.chat)
    await context.store.chats.new_conversation(call.chat)
    await context.send(call.chat, TEXTS.new)


async def stop(context: HandlerContext, call: CommandCall) -> None:
    voice = context.services.voice
    silenced = voice is not None and voice.stop(call.chat)
    if not await context.services.chats.stop(call.chat) and not silenced:
        await context.send(call.chat, TEXTS.nothing_runs)


async def press_answer_now(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Handle [Answer now]: stop the model's thinking."""
    heard = context.services.chats.answer_now(press.chat)
    return PressResult(TEXTS.answers_now if heard else TEXTS.expired)


async def retry(context: HandlerContext, call: CommandCall) -> None:
    if not await context.services.chats.retry(call.chat):
        await context.send(call.chat, TEXTS.nothing_to_retry)


async def resume(context: HandlerContext, call: CommandCall) -> None:
    """/resume offers the conversations that were used last."""
    found = await context.store.chats.conversations(call.chat, RESUMABLE + 1)
    keyboard = []
    for one in [c for c in found if not c.current][:RESUMABLE]:
        day = f"{await context.local_time(call.chat, one.active_at):%Y-%m-%d}"
        label = f"{day} · {one.title or '…'}"[:TITLE_CHARACTERS]
        keyboard.append([Button(f"{RESUME}:{one.id}", label)])
    text = TEXTS.resume if keyboard else TEXTS.no_conversations
    await context.send(call.chat, text, keyboard)


async def press_resume(context: HandlerContext, press: ButtonPress) -> PressResult:
    chosen = int(press.argument)
    if not await context.store.chats.resume(press.chat, chosen):
        return PressResult(TEXTS.expired)
    conversations = await context.store.chats.conversations(press.chat, 100)
    title = next((c.title for c in conversations if c.id == chosen), "")
    return PressResult("", TEXTS.resumed.format(title=title or "…"))


async def export(context: HandlerContext, call: CommandCall) -> None:
    """Notes and conversations of this chat, as Markdown to read and as JSON."""
    chat, now = call.chat, await context.local_time(call.chat)
    exported = await ChatMemory(context.store, chat, str(now.tzinfo)).export()
    if not (exported["notes"] or exported["conversations"]):
        await context.send(chat, TEXTS.nothing_said)
        return
    try:
        for suffix, form in ((".md", markdown), (".json", as_json)):
            text = await asyncio.to_thread(form, exported)
            file = BytesIO(text.encode("utf-8", "replace"))
            await context.channel.send_files(chat, [(file, f"chat-{now:%Y-%m-%d}{suffix}")], "")
    except ChannelError as error:
        await context.send(chat, TEXTS.undeliverable.format(why=error))


async def press_continue(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Start the next turn as if the person had said so: once, and only while that turn is the last."""
    turns = context.store.turns
    last = await turns.last(press.chat)
    if last is None or last[0].id != press.argument or await turns.unfinished(press.chat):
        return PressResult(TEXTS.expired)
    incoming = Incoming(
        press.chat,
        context.channel.source,
        f"{CONTINUE}:{press.argument}",
        TEXTS.go_on,
        sender=press.sender.name if press.sender.group else "",
    )
    fresh = await context.services.chats.submit(incoming)
    return PressResult(TEXTS.goes_on if fresh else TEXTS.expired)


# -- notes --------------------------------------------------------------------


async def memory(context: HandlerContext, call: CommandCall) -> None:
    """/memory lists the notes; /memory 3 WORDS corrects one; /memory pin 3 and unpin 3 pin and unpin it."""
    chat = call.chat
    first, _, rest = call.argument.partition(" ")
    if first.lower() in ("pin", "unpin") and (id := note_number(rest.strip())):
        pinned = first.lower() == "pin"
        done = await context.store.notes.pin(chat, id, pinned)
        told = TEXTS.pinned if pinned else TEXTS.unpinned
        await context.send(chat, told if done else TEXTS.no_such_note)
    elif rest and (id := note_number(first)):
        done = await context.store.notes.correct(chat, id, rest)
        await context.send(chat, TEXTS.corrected if done else TEXTS.no_such_note)
    else:
        await context.send(chat, *await note_list(context, chat))


async def forget(context: HandlerContext, call: CommandCall) -> None:
    """/forget lists the notes, with a button for all; /forget 3 deletes one, /forget all the whole chat."""
    chat = call.chat
    if id := note_number(call.argument):
        if await context.store.notes.delete(chat, id):
            await context.send(chat, TEXTS.forgotten, [[Button(f"{NOTE}:undo:{id}", TEXTS.undo)]])
        else:
            await context.send(chat, TEXTS.no_such_note)
    elif call.argument.lower() in ("all", "everything"):
        await context.send(chat, *forget_question())
    else:
        told, keyboard = await note_list(context, chat)
        everything = Button(f"{FORGET}:all", TEXTS.forget_yes)
        await context.send(chat, told, [*keyboard, [everything]])


def forget_question() -> tuple[str, Keyboard]:
    yes, no = Button(f"{FORGET}:yes", TEXTS.forget_yes), Button(f"{FORGET}:no", TEXTS.no)
    return TEXTS.forget_all, [[yes, no]]


async def press_note(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Act on `del:ID`, `undo:ID`, `pin:ID` or `unpin:ID`; show the new list, with [Undo] after a deletion."""
    action, _, argument = press.argument.partition(":")
    notes, id = context.store.notes, int(argument)
    undo: Keyboard = ()
    match action:
        case "undo":
            await notes.restore(press.chat, id)
            toast = TEXTS.restored
        case "pin" | "unpin":
            done = await notes.pin(press.chat, id, action == "pin")
            told = TEXTS.pinned if action == "pin" else TEXTS.unpinned
            toast = told if done else TEXTS.no_such_note
        case _:
            gone = await notes.delete(press.chat, id)
            undo = [[Button(f"{NOTE}:undo:{id}", TEXTS.undo)]] if gone else ()
            toast = TEXTS.forgotten if gone else TEXTS.no_such_note
    text, keyboard = await note_list(context, press.chat)
    return PressResult(toast, text, [*keyboard, *undo])


async def press_forget(context: HandlerContext, press: ButtonPress) -> PressResult:
    if press.argument == "all":
        return PressResult("", *forget_question())
    if press.argument != "yes":
        return PressResult("", TEXTS.kept)

    async def forget_chat() -> tuple[str, Keyboard]:
        """Delete all that is stored of the chat, after its running turn has ended."""
        await context.services.chats.forget(press.chat, press.sender.name)
        return TEXTS.all_forgotten, []

    return PressResult(later=forget_chat)


async def note_list(context: HandlerContext, chat: str) -> tuple[str, Keyboard]:
    """The pinned and the newest notes, oldest first, each with buttons to delete and to pin it."""
    notes = await context.store.notes.all(chat)
    if not notes:
        return TEXTS.no_notes, []
    shown = sorted(notes, key=lambda note: (not note.pinned, -note.id))[:SHOWN_NOTES]
    shown.sort(key=lambda note: note.id)
    lines, buttons = [], []
    for note in shown:
        day = f"{await context.local_time(chat, note.saved_at):%Y-%m-%d}"
        lines.append(f"{note.id}. {'📌 ' if note.pinned else ''}{note.text} ({day})")
        action, label = ("unpin", TEXTS.unpin) if note.pinned else ("pin", "📌")
        buttons.append(Button(f"{NOTE}:del:{note.id}", f"✕ {note.id}"))
        buttons.append(Button(f"{NOTE}:{action}:{note.id}", f"{label} {note.id}"))
    rows = range(0, len(buttons), BUTTONS_PER_ROW)
    keyboard = [buttons[start : start + BUTTONS_PER_ROW] for start in rows]
    return TEXTS.notes.format(notes="\n".join(lines)), keyboard


def note_number(text: str) -> int:
    """Parse a note's number; 0 if the text is no number."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0


# -- the plan of a task -------------------------------------------------------


async def plan(context: HandlerContext, call: CommandCall) -> None:
    """/plan shows it; /plan add WORDS, /plan 2 WORDS, /plan done 2 and /plan end change it."""
    plans = context.store.plans
    known = await plans.of_chat(call.chat)
    try:
        changed = corrected(known, call.argument)
        if changed != known:
            changed = await plans.change(call.chat, lambda plan: corrected(plan, call.argument))
    except WrongPlan as error:
        await context.send(call.chat, str(error))
        return
    shown = "\n".join(plan_lines(changed)) or TEXTS.no_plan
    if changed != known:
        await tell_model(context, call, shown)
    how = f"\n\n{TEXTS.plan_usage}" if changed else ""
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
    words = TEXTS.plan_corrected.format(plan=shown)
    update = f"plan:{secrets.token_hex(8)}"
    await context.services.chats.submit(
        Incoming(call.chat, context.channel.source, update, words, sender=call.sender.name)
    )
