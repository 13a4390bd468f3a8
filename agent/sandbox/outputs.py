"""Whole outputs that were too long to show, kept in the workspace where they can be searched."""

from agent.errors import ToolError
from agent.sandbox.files import Files
from agent.sandbox.layout import WORKSPACE

FOLDER = ".voltaire/out"
KEPT = 20


async def save(files: Files, raw: bytes) -> str:
    """The sandbox's path of the new file; empty when it could not be kept."""
    try:
        numbers = await _numbers(files)
        path = f"{FOLDER}/{max(numbers, default=0) + 1}.txt"
        await files.write(".voltaire/.gitignore", b"*\n")
        await files.write(path, raw)
        for old in sorted(numbers)[: 1 - KEPT]:
            await files.remove(f"{FOLDER}/{old}.txt")
    except ToolError:  # the workspace is full, or what is there is not ours
        return ""
    return f"{WORKSPACE}/{path}"


async def _numbers(files: Files) -> list[int]:
    try:
        names = await files.names(FOLDER)
    except ToolError:
        return []
    return [int(name[:-4]) for name in names if name.endswith(".txt") and name[:-4].isdigit()]
