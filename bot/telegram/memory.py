"""What a chat remembers: its notes, its conversations, and taking them away."""

import asyncio
from datetime import datetime
from functools import partial
from io import BytesIO
from typing import Any
from zoneinfo import ZoneInfo

from agent.memory.notes import ChatMemory, as_json, markdown
from agent.store.notes import SavedNote
from bot.channel import ChannelError, Choice, Rows
from bot.telegram.buttons import Outcome, Press
from bot.telegram.handler_context import HandlerContext, Heard

NOTE = "note"
RESUME = "conv"
FORGET = "wipe"
SHOWN = 20
PER_ROW = 5


async def notes(room: HandlerContext, said: Heard) -> None:
    """/memory lists the notes; /memory NUMBER WORDS corrects one."""
    number, _, words = said.argument.partition(" ")
    if words and (id := _number(number)):
        done = await room.store.notes.correct(said.chat, id, words)
        await room.say(said.chat, room.texts.corrected if done else room.texts.no_such_note)
        return
    text, rows = await _notes(room, said.chat)
    await room.say(said.chat, text, rows)


async def forget(room: HandlerContext, said: Heard) -> None:
    """/forget NUMBER deletes that note, /forget all the whole chat, /forget alone asks which."""
    if id := _number(said.argument):
        gone = await room.store.notes.delete(said.chat, id)
        text = room.texts.forgotten if gone else room.texts.no_such_note
        await room.say(said.chat, text, [_undo(room, id)] if gone else ())
    elif said.argument.lower() in ("all", "everything"):
        buttons = [
            [Choice(f"{FORGET}:yes", room.texts.forget_yes), Choice(f"{FORGET}:no", room.texts.no)]
        ]
        await room.say(said.chat, room.texts.forget_all, buttons)
    else:
        await notes(room, said)


async def press_note(room: HandlerContext, press: Press) -> Outcome:
    """`del:ID` or `undo:ID`; the list is shown anew with an undo for what went last."""
    action, _, id = press.argument.partition(":")
    if action == "undo":
        await room.store.notes.restore(press.chat, int(id))
        text, rows = await _notes(room, press.chat)
        return Outcome(room.texts.restored, text, rows)
    gone = await room.store.notes.delete(press.chat, int(id))
    text, rows = await _notes(room, press.chat)
    undo = [_undo(room, int(id))] if gone else []
    return Outcome(room.texts.forgotten if gone else room.texts.no_such_note, text, [*rows, *undo])


async def press_forget(room: HandlerContext, press: Press) -> Outcome:
    if press.argument != "yes":
        return Outcome("", room.texts.kept)
    return Outcome(later=partial(_forget_all, room, press.chat))


async def _forget_all(room: HandlerContext, chat: str) -> tuple[str, Rows]:
    """A turn that runs is ended first, which may take a moment."""
    await room.services.chats.forget(chat)
    return room.texts.all_forgotten, []


async def resume(room: HandlerContext, said: Heard) -> None:
    """/resume"""
    found = [c for c in await room.store.chats.conversations(said.chat, SHOWN) if not c.current]
    rows = [
        [Choice(f"{RESUME}:{c.id}", f"{_day(room, c.active_at)} · {c.title or '…'}"[:60])]
        for c in found[:8]
    ]
    await room.say(said.chat, room.texts.resume if rows else room.texts.no_conversations, rows)


async def press_resume(room: HandlerContext, press: Press) -> Outcome:
    if not await room.services.chats.resume(press.chat, int(press.argument)):
        return Outcome(room.texts.expired)
    conversations = await room.store.chats.conversations(press.chat, 100)
    title = next((c.title for c in conversations if c.id == int(press.argument)), "")
    return Outcome("", room.texts.resumed.format(title=title or "…"))


async def export(room: HandlerContext, said: Heard) -> None:
    """/export: notes and conversations of this chat, as Markdown to read and as JSON."""
    kept = await ChatMemory(room.store, said.chat, room.config.timezone).export()
    if kept["notes"] or kept["conversations"]:
        room.spawn(_send(room, said.chat, kept))
    else:
        await room.say(said.chat, room.texts.nothing_said)


async def _send(room: HandlerContext, chat: str, kept: dict[str, Any]) -> None:
    name = f"chat-{_day(room, room.store.clock())}"
    try:
        for suffix, form in ((".md", markdown), (".json", as_json)):
            text = await asyncio.to_thread(form, kept)
            content = BytesIO(text.encode("utf-8", "replace"))
            await room.post.file(chat, content, name + suffix, "")
    except ChannelError as error:
        await room.say(chat, room.texts.undeliverable.format(why=error))


async def _notes(room: HandlerContext, chat: str) -> tuple[str, Rows]:
    found = await room.store.notes.all(chat)
    if not found:
        return room.texts.no_notes, []
    lines = "\n".join(f"{n.id}. {n.text} ({_day(room, n.saved_at)})" for n in found[-SHOWN:])
    return room.texts.notes.format(notes=lines), _buttons(found[-SHOWN:])


def _buttons(found: list[SavedNote]) -> list[list[Choice]]:
    choices = [Choice(f"{NOTE}:del:{note.id}", f"✕ {note.id}") for note in found]
    return [choices[i : i + PER_ROW] for i in range(0, len(choices), PER_ROW)]


def _undo(room: HandlerContext, id: int) -> list[Choice]:
    return [Choice(f"{NOTE}:undo:{id}", room.texts.undo)]


def _number(text: str) -> int:
    """The number of a note; 0 where it is none."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _day(room: HandlerContext, at: float) -> str:
    return f"{datetime.fromtimestamp(at, ZoneInfo(room.config.timezone)):%Y-%m-%d}"
