"""remember and recall: the chat's notes and past conversations."""

from agent.errors import ToolError
from agent.language import translated
from agent.tools.context import Notes
from agent.tools.tool import Call, Output, tool

MOST_MATCHES = 8


@tool
async def remember(call: Call, note: str) -> Output:
    """Save a lasting note about the person or their wishes."""
    if not note.strip():
        raise ToolError("note is empty.")
    notes = notes_of(call)
    await call.approve(translated("Remember: {note}").format(note=note.strip()), scope="remember")
    return Output(await notes.remember(note.strip(), call.turn, await call.touched_by()))


@tool
async def recall(call: Call, query: str) -> Output:
    """Search notes and past conversations."""
    matches = await notes_of(call).recall(query, MOST_MATCHES)
    call.strangers.extend(match.stranger for match in matches if match.stranger)
    found = "\n".join(f"{m.when} {m.text}" for m in matches)
    return Output(found or "nothing found", found=bool(found))


def notes_of(call: Call) -> Notes:
    if call.context.notes is None:
        raise ToolError("There is no memory in this chat.")
    return call.context.notes
