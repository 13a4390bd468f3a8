"""Renders a person's waiting messages as one message for the model, behind what varies (time, notes, quote,
files). Notes enter the prompt only here, each once per conversation and wording.
"""

from collections.abc import Sequence

from agent import prompt
from agent.context.window import ModelWindow
from agent.messages import User
from agent.plan import Plan, plan_lines
from agent.store.inbox import InboxRow
from agent.store.notes import SavedNote
from agent.store.turns import RenderedMessage
from agent.timezones import local_time

NOTES_CHARACTERS = 2_400  # of notes in one conversation, about 700 tokens; others by recall


async def render(
    window: ModelWindow, rows: Sequence[InboxRow], zone: str, plan: Plan = ()
) -> RenderedMessage:
    """Waiting rows of one chat as one message for the model. `zone` is an IANA name, `plan` that of the
    current task."""
    store, chat = window.store, rows[0].incoming.chat
    saved, shown = await store.notes.to_show(chat)
    # Notes that strangers may have dictated are only found by recall, which says so.
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
    words = await window.enter(chat, said, strangers)
    images = tuple(image for row in rows for image in row.incoming.images)
    return RenderedMessage(head, User(head + words, images), tuple(notes))


def choose(notes: Sequence[SavedNote], shown: dict[int, str], zone: str) -> list[tuple[int, str]]:
    """(id, line) of the notes to show now, oldest first: those not shown yet in this wording, as far as there
    is room; pinned and newest ones take precedence."""
    room = NOTES_CHARACTERS - sum(map(len, shown.values()))
    chosen: dict[int, str] = {}
    for note in sorted(notes, key=lambda note: (not note.pinned, -note.id)):
        line = prompt.note_line(note.text, local_time(note.changed_at, zone))
        if shown.get(note.id) != line and len(line) <= room:
            chosen[note.id] = line
            room -= len(line)
    return [(note.id, chosen[note.id]) for note in notes if note.id in chosen]
