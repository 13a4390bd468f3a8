"""remember, recall: notes and past conversations, where a search that finds nothing goes on elsewhere."""

import re

from agent.errors import ToolError
from agent.language import translated
from agent.tools.context import Notes
from agent.tools.tool import Call, Output, tool

MOST_MATCHES = 8
MOST_PASSAGES = 3


@tool
async def remember(call: Call, note: str) -> Output:
    """Save a lasting note about the person or their wishes."""
    if not note.strip():
        raise ToolError("note is empty.")
    notes = notes_of(call)
    await call.approve(translated("Remember: {note}").format(note=note.strip()), scope="remember")
    told = await notes.remember(note.strip(), call.turn, await call.touched_by())
    return Output(told, shown=translated("Noted: {note}").format(note=note.strip()))


@tool
async def recall(call: Call, query: str) -> Output:
    """Search notes and past conversations."""
    if found := await remembered(notes_of(call), call, query):
        return Output(found)
    if found := await passages_with(call, query):
        return Output(f"nothing found in notes; in documents that were sent:\n{found}")
    return Output("nothing found", found=False)


async def remembered(notes: Notes, call: Call, query: str) -> str:
    """The notes and past words that match, a line each; "" where none does."""
    matches = await notes.recall(query, MOST_MATCHES)
    call.strangers.extend(match.stranger for match in matches if match.stranger)
    return "\n".join(f"{m.when} {m.text}" for m in matches)


async def passages_with(call: Call, query: str) -> str:
    """The best passages of documents; where they are found by meaning as well, those that hold a word of the query."""
    if call.context.documents is None:
        return ""
    library, words = call.context.documents(), set(re.findall(r"\w{3,}", query.lower()))
    try:
        found = await library.search(query, MOST_PASSAGES)
    except ToolError:
        return ""
    told = []
    for one in found:
        if library.meaning is None or words & set(re.findall(r"\w+", one.passage.text.lower())):
            title = one.document.title
            call.strangers.append(f"document {title}")
            told.append(f"{title}, {one.document.unit} {one.passage.page}:\n{one.passage.text}")
    return "\n\n".join(told)


async def elsewhere(call: Call, query: str) -> str:
    """What a search in files has missed: passages of documents, else notes; "" where there is nothing."""
    if found := await passages_with(call, query):
        return f"In documents that were sent:\n{found}"
    found = await remembered(call.context.notes, call, query) if call.context.notes else ""
    return f"In notes and past conversations:\n{found}" if found else ""


def notes_of(call: Call) -> Notes:
    if call.context.notes is None:
        raise ToolError("There is no memory in this chat.")
    return call.context.notes
