"""remember and recall: the chat's notes and past conversations."""

from agent.errors import ToolError
from agent.tools.context import Notes
from agent.tools.tool import Call, Output, tool

MOST_FOUND = 8


@tool
async def remember(call: Call, note: str) -> Output:
    """Save a lasting note about the person or their wishes."""
    if not note.strip():
        raise ToolError("note is empty.")
    return Output(await _notes(call).remember(note.strip(), call.turn))


@tool
async def recall(call: Call, query: str) -> Output:
    """Search notes and past conversations."""
    found = await _notes(call).recall(query, MOST_FOUND)
    lines = [f"{memory.when} {memory.text}" for memory in found]
    return Output("\n".join(lines) or "nothing found")


def _notes(call: Call) -> Notes:
    if call.context.notes is None:
        raise ToolError("There is no memory in this chat.")
    return call.context.notes
