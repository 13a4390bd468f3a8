"""send_file: files of the workspace, or of a repository, to the person."""

import os
import posixpath
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import BinaryIO

from agent.errors import ToolError
from agent.sandbox.files import Files
from agent.tools.context import ALBUM
from agent.tools.glob import is_wild
from agent.tools.tool import Call, Output, tool


@tool
async def send_file(call: Call, path: str, caption: str = "") -> Output:
    """Send a file to the person."""
    if call.context.file_sender is None:
        raise ToolError("Files cannot be sent in this chat.")
    files = call.context.sandbox.files
    with ExitStack() as stack:
        try:
            opened = [(stack.enter_context(await files.open(path)), path)]
        except ToolError:
            if not is_wild(path):
                raise
            paths = await _matching(files, path)
            opened = [(stack.enter_context(await files.open(each)), each) for each in paths]
        return await _send(call, opened, caption)


async def _send(call: Call, opened: list[tuple[BinaryIO, str]], caption: str) -> Output:
    assert call.context.file_sender
    spots = [call.context.sandbox.files.resolve(path) for _, path in opened]
    size = sum(file.seek(0, os.SEEK_END) for file, _ in opened)
    for file, _ in opened:
        file.seek(0)
    what = ", ".join(spot.name for spot in spots)
    if repo := spots[0].repo:
        await call.approve(f"Send {what} ({size:,} bytes)", scope=f"send:{repo}")
    named = [
        (file, posixpath.basename(spot.path)) for (file, _), spot in zip(opened, spots, strict=True)
    ]
    if len(named) == 1:
        await call.context.file_sender.send_file(*named[0], caption)
    else:
        await call.context.file_sender.send_album(named, caption)
    return Output(f"sent {what}, {size:,} bytes")


async def _matching(files: Files, pattern: str) -> list[str]:
    """The files of one folder that a pattern names: several are sent as an album."""
    folder, name = posixpath.split(pattern)
    names = [each for each in await files.names(folder or ".") if not each.endswith("/")]
    found = [each for each in names if fnmatchcase(each, name)]
    if not found:
        raise ToolError(f"There is no file {pattern}.")
    if len(found) > ALBUM:
        raise ToolError(f"{pattern} names {len(found)} files; {ALBUM} at most are sent at once.")
    return [posixpath.join(folder, each) for each in sorted(found)]
