"""What a chat remembers: its notes, its conversations, and taking them away."""

from datetime import datetime
from io import BytesIO
from zoneinfo import ZoneInfo

from agent.store.notes import Note
from bot.channel import ChannelError, Choice, Rows
from bot.telegram.presses import Outcome, Press
from bot.telegram.room import Heard, Room

NOTE = "note"
RESUME = "conv"
FORGET = "wipe"
SHOWN = 20
PER_ROW = 5


async def notes(room: Room, said: Heard) -> None:
    """/memory"""
    text, rows = await _notes(room, said.chat)
    await room.say(said.chat, text, rows)


async def forget(room: Room, said: Heard) -> None:
    """/forget NUMBER deletes that note, /forget all the whole chat, /forget alone asks which."""
    if said.argument.isdigit():
        gone = await room.store.notes.delete(said.chat, int(said.argument))
        await room.say(said.chat, room.texts.forgotten if gone else room.texts.no_such_note)
    elif said.argument.lower() in ("all", "everything"):
        buttons = [
            [Choice(f"{FORGET}:yes", room.texts.forget_yes), Choice(f"{FORGET}:no", room.texts.no)]
        ]
        await room.say(said.chat, room.texts.forget_all, buttons)
    else:
        await notes(room, said)


async def press_note(room: Room, press: Press) -> Outcome:
    """`del:ID` or `undo:ID`; the list is shown anew with an undo for what went last."""
    action, _, id = press.argument.partition(":")
    if action == "undo":
        await room.store.notes.restore(press.chat, int(id))
        text, rows = await _notes(room, press.chat)
        return Outcome(room.texts.restored, text, rows)
    gone = await room.store.notes.delete(press.chat, int(id))
    text, rows = await _notes(room, press.chat)
    undo = [Choice(f"{NOTE}:undo:{id}", room.texts.undo)] if gone else []
    return Outcome(room.texts.forgotten if gone else room.texts.no_such_note, text, [*rows, undo])


async def press_forget(room: Room, press: Press) -> Outcome:
    if press.argument != "yes":
        return Outcome("", room.texts.kept)
    await room.services.chats.stop(press.chat)
    await room.store.chats.forget(press.chat)
    return Outcome("", room.texts.all_forgotten)


async def resume(room: Room, said: Heard) -> None:
    """/resume"""
    found = [c for c in await room.store.chats.conversations(said.chat, SHOWN) if not c.current]
    rows = [
        [Choice(f"{RESUME}:{c.id}", f"{_day(room, c.active_at)} · {c.title or '…'}"[:60])]
        for c in found[:8]
    ]
    await room.say(said.chat, room.texts.resume if rows else room.texts.no_conversations, rows)


async def press_resume(room: Room, press: Press) -> Outcome:
    if not await room.services.chats.resume(press.chat, int(press.argument)):
        return Outcome(room.texts.expired)
    conversations = await room.store.chats.conversations(press.chat, 100)
    title = next((c.title for c in conversations if c.id == int(press.argument)), "")
    return Outcome("", room.texts.resumed.format(title=title or "…"))


async def export(room: Room, said: Heard) -> None:
    """/export: what was said in this conversation, as Markdown."""
    chat = await room.store.chats.get(said.chat)
    if chat is None or chat.conversation is None:
        await room.say(said.chat, room.texts.nothing_said)
        return
    entries = await room.store.transcript.said(chat.conversation)
    text = "\n\n".join(
        f"**{entry.role}** ({_day(room, entry.at)})\n\n{entry.text}" for entry in entries
    )
    room.spawn(_send(room, said.chat, text))


async def _send(room: Room, chat: str, text: str) -> None:
    name = f"conversation-{_day(room, room.store.clock())}.md"
    try:
        await room.post.file(chat, BytesIO(text.encode()), name, "")
    except ChannelError as error:
        await room.say(chat, room.texts.undeliverable.format(why=error))


async def _notes(room: Room, chat: str) -> tuple[str, Rows]:
    found = await room.store.notes.all(chat)
    if not found:
        return room.texts.no_notes, []
    lines = "\n".join(f"{note.id}. {note.text}" for note in found[-SHOWN:])
    return room.texts.notes.format(notes=lines), _buttons(found[-SHOWN:])


def _buttons(found: list[Note]) -> list[list[Choice]]:
    choices = [Choice(f"{NOTE}:del:{note.id}", f"✕ {note.id}") for note in found]
    return [choices[i : i + PER_ROW] for i in range(0, len(choices), PER_ROW)]


def _day(room: Room, at: float) -> str:
    return f"{datetime.fromtimestamp(at, ZoneInfo(room.config.timezone)):%Y-%m-%d}"
