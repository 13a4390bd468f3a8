"""send_file: sends files of the workspace, or of a repository, to the person."""

import asyncio
import os
import posixpath
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from agent.errors import ToolError
from agent.language import translated
from agent.sandbox.files import Files, unquoted
from agent.sandbox.output_buffer import plain_name
from agent.tools.context import ALBUM
from agent.tools.files import in_received
from agent.tools.search import is_wild
from agent.tools.tool import Call, Output, tool
from backend.protocol import Phrase

CHUNK = 1 << 20
SHOWN_BYTES = 100_000  # of a file, to an owner who is asked about it


@tool
async def send_file(call: Call, path: str, caption: str = "") -> Output:
    """Send a file to the person."""
    sender, files, path = call.context.file_sender, call.sandbox.files, unquoted(path)
    if sender is None:
        raise ToolError(
            "Error: files cannot be sent here; voltaire chat and messaging apps take them."
        )
    path = await in_received(files, path)
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
        sizes = [file.seek(0, os.SEEK_END) for file in opened]
        for size, name in zip(sizes, paths, strict=True):
            if size > sender.upload_limit:
                most = f"at most {sender.upload_limit:,} can be sent here. Split or compress it."
                raise ToolError(f"{name} has {size:,} bytes; {most}")
        kept = call.sandbox.workspace.parent
        opened = [
            stack.enter_context(await asyncio.to_thread(private_copy, file, size, kept))
            for file, size in zip(opened, sizes, strict=True)
        ]
        size = sum(os.fstat(file.fileno()).st_size for file in opened)
        places = [files.resolve(each, reading=True) for each in paths]
        what = ", ".join(place.name for place in places)
        if repo := places[0].repo:
            form = translated("Send {what} ({size:,} bytes)")
            await call.approve(form.format(what=what, size=size), scope=f"send:{repo}")
        for file, place in zip(opened, places, strict=True):
            await call.leaves(Phrase("A file's name"), place.name)
            if leak := await asyncio.to_thread(call.context.leaks.find_in_file, file):
                beginning = file.read(SHOWN_BYTES).decode("utf-8", "replace")
                file.seek(0)
                await call.leaves(Phrase("The file {name}", name=place.name), beginning, leak)
        await call.budget.reserve({"bytes": size})
        names = [plain_name(place.path) for place in places]
        await sender.send_files(list(zip(opened, names, strict=True)), caption)
    return Output(f"sent {what}, {size:,} bytes")


def private_copy(file: BinaryIO, left: int, folder: Path) -> BinaryIO:
    """A nameless copy of the first `left` bytes in a folder that no sandbox sees: a job that still writes the file cannot
    change what was searched and allowed, nor let the copy grow beyond what may be sent. Raises ToolError."""
    file.seek(0)
    try:
        copy = TemporaryFile(dir=folder)  # noqa: SIM115 - closed by the caller
        while chunk := file.read(min(left, CHUNK)):
            copy.write(chunk)
            left -= len(chunk)
        copy.seek(0)
    except OSError as error:
        raise ToolError(f"There is no room to prepare the file: {error.strerror}.") from None
    return copy


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
