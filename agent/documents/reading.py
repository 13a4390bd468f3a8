"""Reads a document's passages by extraction.py inside a sandbox: no parser runs on it outside.

The sandbox is that of the document's chat, or one that sees the owner's folder as a repository. It has
no network, is read-only, and has less memory than a command gets. A document that takes its parser over
can return any text for itself, and read what this chat or this folder may read anyway.
"""

import asyncio
import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from agent.errors import NoSandbox, ToolError
from agent.sandbox.bubblewrap import REPOS
from agent.sandbox.limits import HostRepo
from agent.sandbox.sandbox import Sandbox, Sandboxes

SECONDS = 180.0  # of one document; scans take a second or two a page
SPARE_SECONDS = 20.0  # beyond SECONDS, before a program that overruns them is killed
MEMORY_MIB = 768
MAIL_SECONDS = 60.0  # for a message, or some hundred beginnings
AT_ONCE = 2  # one in the background, one for which somebody waits
MAIL = (
    "agent.sandbox.output_buffer",
    "agent.web.html_text",
    "agent.documents.encodings",
    "agent.documents.messages",
)
MODULES = (*MAIL, "agent.documents.office", "agent.documents.extraction")
START = """\
import base64, json, sys, types, zlib
for name, text in json.loads(zlib.decompress(base64.b64decode({packed!r}))):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
module.main(*sys.argv[1:])
"""


class Passage(BaseModel, frozen=True):
    """Text of a document; `heading` is the headings above it, such as "Terms › Refunds"; `page` counts from 1."""

    page: int
    heading: str
    text: str


class DocumentFacts(BaseModel, frozen=True):
    """A document that was read: `pages` counts in `unit` (page, chapter, else part); `notes` say what is missing."""

    unit: str
    pages: int
    notes: list[str] = []


class DocumentError(BaseModel, frozen=True):
    error: str


LINE: TypeAdapter[Passage | DocumentFacts | DocumentError] = TypeAdapter(
    Passage | DocumentFacts | DocumentError
)


class Attachment(BaseModel, frozen=True):
    name: str
    kind: str
    size: int


class MailMessage(BaseModel, frozen=True):
    """What messages.py tells of a message; `ids` are those of the messages that it answers, its own last."""

    sender: str = ""
    recipients: str = ""
    subject: str = ""
    sent: str = ""
    ids: list[str] = []
    parts: list[Attachment] = []
    text: str = ""


class UnreadableDocument(Exception):
    """A document cannot be read; `str` says why, in one sentence."""


@dataclass(frozen=True)
class DocumentReader:
    """Reads documents of chats and of folders; `folders` are the owner's, by name."""

    sandboxes: Sandboxes
    folders: Mapping[str, Path]
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def read(
        self, chat: str, folder: str, path: str
    ) -> tuple[Sequence[Passage], DocumentFacts]:
        """The passages of a file of the chat's workspace, or of a folder where one is named.

        Raises UnreadableDocument, or NoSandbox when nothing can be read now.
        """
        box = await self.sandboxes.of(f"folder:{folder}" if folder else chat)
        limits = replace(
            box.config.limits, memory_mib=min(MEMORY_MIB, box.config.limits.memory_mib)
        )
        repos = {folder: HostRepo(folder, self.folders[folder])} if folder else {}
        config = replace(
            box.config, limits=limits, repos=repos, hosts=None, guards={}, slots=self.slots
        )
        inside = f"{REPOS}/{folder}/{path}" if folder else path
        command = [
            "nice",
            "-n",
            "19",
            "python3",
            "-I",
            "-S",
            "-c",
            program(MODULES),
            inside,
            str(SECONDS),
        ]
        try:
            raw = await Sandbox(config, box.chat, box.workspace).read_internal(
                command, seconds=SECONDS + SPARE_SECONDS
            )
        except NoSandbox:
            raise
        except ToolError as error:
            raise UnreadableDocument(f"It could not be read. {error}") from None
        return await asyncio.to_thread(parsed, raw)


async def parsed_mail(box: Sandbox, raw: bytes, act: str, *words: str) -> bytes:
    """What messages.py prints of mail, in a sandbox that sees nothing else. Raises ToolError."""
    config = replace(box.config, repos={}, hosts=None, guards={})
    command = ["python3", "-I", "-S", "-c", program(MAIL), act, "/tmp/mail", *words]  # noqa: S108
    return await Sandbox(config, box.chat, box.workspace).read_internal(
        command, seconds=MAIL_SECONDS, inputs={"mail": raw}, inner=True
    )


@cache
def program(modules: Sequence[str]) -> str:
    """The last of these modules, which import no others of ours, as one program, short enough for an argument."""
    paths = ((name, f"{name.replace('.', '/')}.py".removeprefix("agent/")) for name in modules)
    texts = [(name, files("agent").joinpath(path).read_text("utf-8")) for name, path in paths]
    return START.format(packed=b64encode(zlib.compress(json.dumps(texts).encode())))


def parsed(raw: bytes) -> tuple[Sequence[Passage], DocumentFacts]:
    cut_short = UnreadableDocument("It could not be read: its parser stopped halfway.")
    try:
        *found, facts = [LINE.validate_json(line) for line in raw.split(b"\n") if line]
    except ValueError:
        raise cut_short from None
    if isinstance(facts, DocumentError):
        raise UnreadableDocument(facts.error)
    passages = [each for each in found if isinstance(each, Passage)]
    if not isinstance(facts, DocumentFacts) or len(passages) < len(found):
        raise cut_short
    return passages, facts
