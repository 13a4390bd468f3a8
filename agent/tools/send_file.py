"""send_file: sends files of the workspace, or of a repository, to the person."""

import asyncio
import os
import posixpath
from contextlib import ExitStack
from fnmatch import fnmatchcase

from agent.errors import ToolError
from agent.language import translated
from agent.sandbox.files import Files
from agent.tools.context import ALBUM
from agent.tools.search import is_wild
from agent.tools.tool import Call, Output, tool
from backend.protocol import Phrase

SHOWN_BYTES = 100_000  # of a file, to an owner who is asked about it


@tool
async def send_file(call: Call, path: str, caption: str = "") -> Output:
    """Send a file to the person."""
    sender, files = call.context.file_sender, call.sandbox.files
    if sender is None:
        raise ToolError("Files cannot be sent in this chat.")
    with ExitStack() as stack:
        paths = [path]
        try:
            opened = [stack.enter_context(await files.open(path))]
        except ToolError:
            await call.reads(files.place(path))
            if not is_wild(path):
                raise
            paths = await matching(files, path)
            opened = [stack.enter_context(await files.open(each)) for each in paths]
        size = sum(file.seek(0, os.SEEK_END) for file in opened)
        for file in opened:
            file.seek(0)
        places = [files.resolve(each, reading=True) for each in paths]
        what = ", ".join(place.name for place in places)
        if repo := places[0].repo:
            form = translated("Send {what} ({size:,} bytes)")
            await call.approve(form.format(what=what, size=size), scope=f"send:{repo}")
        for file, place in zip(opened, places, strict=True):
            await call.leaves(Phrase("A file's name"), place.name)
            if leak := await asyncio.to_thread(call.context.leaks.find_in_file, file):
                beginning = file.read(SHOWN_BYTES).decode("utf-8", "replace")
                await call.leaves(Phrase("The file {name}", name=place.name), beginning, leak)
        await call.budget.reserve({"bytes": size})
        names = [posixpath.basename(place.path) for place in places]
        await sender.send_files(list(zip(opened, names, strict=True)), caption)
    return Output(f"sent {what}, {size:,} bytes")


async def matching(files: Files, pattern: str) -> list[str]:
    """The files of one folder that match a pattern; several are sent as an album."""
    folder, name = posixpath.split(pattern)
    names = [each for each in await files.names(folder or ".") if not each.endswith("/")]
    found = [each for each in names if fnmatchcase(each, name)]
    if not found:
        raise ToolError(f"There is no file {pattern}.")
    if len(found) > ALBUM:
        raise ToolError(f"{pattern} names {len(found)} files; {ALBUM} at most are sent at once.")
    return [posixpath.join(folder, each) for each in sorted(found)]
