"""A person's waiting messages as the one that the model gets, behind what varies (time, notes, quote, files).

Notes enter here and nowhere else, each once per conversation and wording.
"""

from collections.abc import Awaitable, Callable, Sequence

from agent import prompt
from agent.messages import User
from agent.plan import Plan, plan_lines
from agent.store import Store
from agent.store.inbox import InboxRow
from agent.store.notes import SavedNote
from agent.store.turns import RenderedMessage
from agent.timezones import local_time

NOTES_CHARACTERS = 2_400  # of notes in one conversation, about 700 tokens; the rest by recall

Enter = Callable[[str, str, str], Awaitable[str]]
"""(chat, text, where text of strangers in it comes from) to the text, cut if it is too large."""

Fetch = Callable[[Sequence[InboxRow]], Awaitable[Sequence[InboxRow]]]
"""Brings what came along with messages (files, pictures, speech) when their turn begins;
the rows again, with it named in them."""


async def as_they_are(rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
    """The fetch of messages with which nothing comes along."""
    return rows


async def render(
    store: Store, rows: Sequence[InboxRow], zone: str, enter: Enter, plan: Plan = ()
) -> RenderedMessage:
    """Waiting rows of one chat as the one message that the model gets. `zone` is an IANA name, `plan` that
    of a task which the rows may go on with."""
    chat = rows[0].incoming.chat
    saved, shown = await store.notes.to_show(chat)
    # What strangers may have dictated is found by recall, which tells so; it never comes by itself.
    notes = choose([note for note in saved if not note.stranger], shown, zone)
    more = [f"no longer true: {shown[id][2:]}" for id, _ in notes if id in shown]
    for incoming in (row.incoming for row in rows):
        if incoming.kind == "edit":
            earlier = " ".join((await store.inbox.text_before_edit(incoming)).split())[:120]
            which = f'"{earlier}"' if earlier else "an earlier message"
            more.append(f"correction: this replaces {which}")
        more += incoming.context_lines
    head = prompt.context_block(
        local_time(store.clock(), zone),
        zone,
        sender=rows[-1].incoming.sender,
        notes=[line for _, line in notes],
        plan=plan_lines(plan),
        quote="; ".join(row.incoming.quote for row in rows if row.incoming.quote),
        files=[file for row in rows for file in row.incoming.files],
        more=more,
    )
    strangers = "; ".join(row.incoming.stranger for row in rows if row.incoming.stranger)
    said = "\n".join(row.incoming.text for row in rows if row.incoming.text)
    words = await enter(chat, said, strangers)
    images = tuple(image for row in rows for image in row.incoming.images)
    return RenderedMessage(head, User(head + words, images), tuple(notes))


def choose(notes: Sequence[SavedNote], shown: dict[int, str], zone: str) -> list[tuple[int, str]]:
    """Notes to show now, as lines, oldest first: not shown yet in this wording; pinned and newest win."""
    room = NOTES_CHARACTERS - sum(map(len, shown.values()))
    chosen: dict[int, str] = {}
    for note in sorted(notes, key=lambda note: (not note.pinned, -note.id)):
        saved = local_time(note.changed_at, zone)
        line = prompt.note_line(note.text, saved)
        if shown.get(note.id) != line and len(line) <= room:
            chosen[note.id] = line
            room -= len(line)
    return [(note.id, chosen[note.id]) for note in notes if note.id in chosen]
