"""The tail of the prompt: a person's waiting words, behind what varies (time, notes, quote, files).

Notes enter here and nowhere else, each once per conversation and wording.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from agent import prompt
from agent.messages import User
from agent.store import Store
from agent.store.inbox import InboxRow, Incoming
from agent.store.notes import SavedNote
from agent.store.turns import RenderedMessage

NOTES_CHARACTERS = 2_400  # of notes in one conversation, about 700 tokens; the rest by recall


Enter = Callable[[str, str], Awaitable[str]]  # (chat, text): the text, cut if it is too large


Fetch = Callable[[Sequence[InboxRow]], Awaitable[Sequence[InboxRow]]]
"""Brings what came along with messages (files, pictures, speech) when their turn begins;
the rows again, with it named in them."""


async def as_they_are(rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
    """The fetch of messages with which nothing comes along."""
    return rows


async def render(
    store: Store, rows: Sequence[InboxRow], zone: str, enter: Enter
) -> RenderedMessage:
    """Waiting rows of one chat as the one message that the model gets. `zone` is an IANA name."""
    chat = rows[0].incoming.chat
    notes, shown = await store.notes.to_show(chat)
    new = choose(notes, shown, zone)
    outdated = [shown[id][2:] for id, _ in new if id in shown]
    tail = prompt.ContextBlock(
        datetime.fromtimestamp(store.clock(), ZoneInfo(zone)),
        zone,
        [note for _, note in new],
        "; ".join(row.incoming.quote for row in rows if row.incoming.quote),
        [file for row in rows for file in row.incoming.files],
        rows[-1].incoming.sender,
        [
            *(f"no longer true: {line}" for line in outdated),
            *[line for row in rows for line in await _more(store, row.incoming)],
        ],
    )
    head = prompt.render_head(tail)
    words = await enter(chat, "\n".join(r.incoming.text for r in rows if r.incoming.text))
    images = tuple(image for row in rows for image in row.incoming.images)
    lines = tuple((id, prompt.note_line(note)) for id, note in new)
    return RenderedMessage(head, User(head + words, images), lines)


def choose(
    notes: Sequence[SavedNote], shown: dict[int, str], zone: str
) -> list[tuple[int, prompt.ShownNote]]:
    """The notes to show now, oldest first: not shown yet in this wording; pinned and newest win."""
    room = NOTES_CHARACTERS - sum(map(len, shown.values()))
    chosen: dict[int, prompt.ShownNote] = {}
    for note in sorted(notes, key=lambda note: (not note.pinned, -note.id)):
        form = as_shown(note, zone)
        line = prompt.note_line(form)
        if shown.get(note.id) != line and len(line) <= room:
            chosen[note.id] = form
            room -= len(line)
    return [(note.id, chosen[note.id]) for note in notes if note.id in chosen]


def as_shown(note: SavedNote, zone: str) -> prompt.ShownNote:
    saved = datetime.fromtimestamp(note.changed_at, ZoneInfo(zone))
    return prompt.ShownNote(note.text, f"{saved:%Y-%m-%d}")


async def _more(store: Store, incoming: Incoming) -> list[str]:
    if incoming.kind != "edit":
        return list(incoming.context_lines)
    earlier = " ".join((await store.inbox.text_before_edit(incoming)).split())[:120]
    which = f'"{earlier}"' if earlier else "an earlier message"
    return [f"correction: this replaces {which}", *incoming.context_lines]
