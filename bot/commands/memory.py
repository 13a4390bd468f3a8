"""What a chat remembers: /memory lists, corrects and pins notes, /forget deletes them or the whole chat."""

from bot.channel import Button, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult

NOTE = "note"
FORGET = "wipe"
SHOWN = 20
BUTTONS_PER_ROW = 6


async def memory(context: HandlerContext, call: CommandCall) -> None:
    """/memory lists the notes; /memory 3 WORDS corrects one, /memory pin 3 and unpin 3 say what stays."""
    chat, texts = call.chat, context.texts
    first, _, rest = call.argument.partition(" ")
    if first.lower() in ("pin", "unpin") and (id := note_number(rest.strip())):
        pinned = first.lower() == "pin"
        done = await context.store.notes.pin(chat, id, pinned)
        told = texts.pinned if pinned else texts.unpinned
        await context.send(chat, told if done else texts.no_such_note)
    elif rest and (id := note_number(first)):
        done = await context.store.notes.correct(chat, id, rest)
        await context.send(chat, texts.corrected if done else texts.no_such_note)
    else:
        await context.send(chat, *await note_list(context, chat))


async def forget(context: HandlerContext, call: CommandCall) -> None:
    """/forget 3 deletes that note, /forget all the whole chat, /forget alone lists the notes."""
    chat, texts = call.chat, context.texts
    if id := note_number(call.argument):
        if await context.store.notes.delete(chat, id):
            await context.send(chat, texts.forgotten, [[Button(f"{NOTE}:undo:{id}", texts.undo)]])
        else:
            await context.send(chat, texts.no_such_note)
    elif call.argument.lower() in ("all", "everything"):
        yes, no = Button(f"{FORGET}:yes", texts.forget_yes), Button(f"{FORGET}:no", texts.no)
        await context.send(chat, texts.forget_all, [[yes, no]])
    else:
        await context.send(chat, *await note_list(context, chat))


async def press_note(context: HandlerContext, press: ButtonPress) -> PressResult:
    """`del:ID`, `undo:ID`, `pin:ID` or `unpin:ID`; then the list as it is now, with an undo for a deletion."""
    action, _, argument = press.argument.partition(":")
    notes, texts, id = context.store.notes, context.texts, int(argument)
    undo: Keyboard = ()
    match action:
        case "undo":
            await notes.restore(press.chat, id)
            toast = texts.restored
        case "pin" | "unpin":
            done = await notes.pin(press.chat, id, action == "pin")
            told = texts.pinned if action == "pin" else texts.unpinned
            toast = told if done else texts.no_such_note
        case _:
            gone = await notes.delete(press.chat, id)
            undo = [[Button(f"{NOTE}:undo:{id}", texts.undo)]] if gone else ()
            toast = texts.forgotten if gone else texts.no_such_note
    text, keyboard = await note_list(context, press.chat)
    return PressResult(toast, text, [*keyboard, *undo])


async def press_forget(context: HandlerContext, press: ButtonPress) -> PressResult:
    if press.argument != "yes":
        return PressResult("", context.texts.kept)

    async def forget_chat() -> tuple[str, Keyboard]:
        """A turn that runs is ended first, which may take a moment."""
        await context.services.chats.forget(press.chat)
        return context.texts.all_forgotten, []

    return PressResult(later=forget_chat)


async def note_list(context: HandlerContext, chat: str) -> tuple[str, Keyboard]:
    """The pinned and the newest notes, oldest first, with buttons to delete and to pin each."""
    notes = await context.store.notes.all(chat)
    if not notes:
        return context.texts.no_notes, []
    shown = sorted(notes, key=lambda note: (not note.pinned, -note.id))[:SHOWN]
    shown.sort(key=lambda note: note.id)
    lines, buttons = [], []
    for note in shown:
        day = f"{await context.local_time(chat, note.saved_at):%Y-%m-%d}"
        lines.append(f"{note.id}. {'📌 ' if note.pinned else ''}{note.text} ({day})")
        action, label = ("unpin", context.texts.unpin) if note.pinned else ("pin", "📌")
        buttons.append(Button(f"{NOTE}:del:{note.id}", f"✕ {note.id}"))
        buttons.append(Button(f"{NOTE}:{action}:{note.id}", f"{label} {note.id}"))
    rows = range(0, len(buttons), BUTTONS_PER_ROW)
    keyboard = [buttons[start : start + BUTTONS_PER_ROW] for start in rows]
    return context.texts.notes.format(notes="\n".join(lines)), keyboard


def note_number(text: str) -> int:
    """The number of a note; 0 where the text is none."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0
