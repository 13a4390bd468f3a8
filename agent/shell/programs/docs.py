"""docs: the documents that were sent to the chat, and those of the owner's folders."""

import json
import re
from typing import TYPE_CHECKING, Annotated

from agent.errors import ToolError
from agent.shell.command import ShellCall, UsageError, command
from agent.store.documents import SavedDocument

if TYPE_CHECKING:  # not needed for /commands.txt
    from agent.documents.library import Library

MOST_FOUND = 50
PAGES = re.compile(r"([1-9]\d{0,5})(?:-([1-9]\d{0,5}))?")

AsJson = Annotated[bool, "print JSON"]


@command
async def list_(call: ShellCall, *, json_: AsJson = False) -> None:
    """List the documents of this chat and of the owner's folders."""
    with call.questions.waiting():
        documents = await library(call).documents()
    for folder in sorted({one.folder for one in documents if one.folder is not None}):
        await call.stranger(f"folder {folder}")
    if any(one.folder is None for one in documents):
        await call.stranger("names of documents")
    for one in documents:
        if json_:
            fields = {"document": one.title, "state": one.state, "unit": one.unit}
            await call.write(as_json(**fields, pages=one.pages, note=one.note))
        else:
            states = {"waiting": "is being read", "failed": "could not be read"}
            said = [states.get(one.state) or one.length, *filter(None, [one.note])]
            await call.write(f"{one.title}: {'. '.join(said)}\n")
    for sentence in library(call).full(documents):
        await call.warn(f"{sentence}\n")
    if not documents:
        await call.warn("There are no documents. docs add PATH takes in a file of /workspace.\n")


@command
async def search(
    call: ShellCall,
    *words: str,
    in_: Annotated[str, "in this document alone"] = "",
    limit: Annotated[int, "how many passages (5)"] = 5,
    json_: AsJson = False,
) -> None:
    """Find passages by words and meaning: document, page, score, text. Cite document and page."""
    if not words or not 1 <= limit <= MOST_FOUND:
        raise UsageError(f"give words to look for, and a limit of 1 to {MOST_FOUND}")
    with call.questions.waiting():
        found = await library(call).search(" ".join(words), limit, in_)
    if not found:
        raise ToolError("Nothing was found. Try other words; docs list shows what there is.")
    for number, one in enumerate(found, 1):
        name, passage = one.document.title, one.passage
        await call.stranger(f"document {name}")
        if json_:
            fields = {"document": name, "unit": one.document.unit, "page": passage.page}
            await call.write(
                as_json(**fields, score=one.score, heading=passage.heading, text=passage.text)
            )
        else:
            place = f"{name}, {one.document.unit} {passage.page}"
            heading = f" › {passage.heading}" if passage.heading else ""
            await call.write(f"{number}. {place} (score {one.score}){heading}\n{passage.text}\n\n")


@command
async def show(
    call: ShellCall,
    name: str,
    *,
    pages: Annotated[str, "such as 3 or 3-5"] = "",
    question: Annotated[str, "to get its answer alone"] = "",
    json_: AsJson = False,
) -> None:
    """Print the text of a document, or of some of its pages."""
    wanted = PAGES.fullmatch(pages or "1-999999")
    if wanted is None:
        raise UsageError("--pages takes a number or a range, such as 3 or 3-5")
    first, last = int(wanted[1]), int(wanted[2] or wanted[1])
    if last < first:
        raise UsageError(f"--pages {pages} ends before it begins")
    with call.questions.waiting():
        document, passages = await library(call).show(name, first, last)
    await call.stranger(f"document {document.title}")
    if extract := await call.extract(question, "\n".join(one.text for one in passages)):
        await call.write(f"{extract}\n")
        return
    page, heading = 0, ""
    for one in passages:
        if json_:
            await call.write(as_json(page=one.page, heading=one.heading, text=one.text))
            continue
        if one.page != page:
            page = one.page
            await call.write(f"[{document.title}, {document.unit} {page} of {document.pages}]\n")
        if one.heading != heading:
            heading = one.heading
            await call.write(f"# {heading}\n" if heading else "")
        await call.write(f"{one.text}\n")
    if document.note:
        await call.warn(f"{document.note}\n")


@command
async def add(call: ShellCall, path: str, *, json_: AsJson = False) -> None:
    """Take in a file of /workspace, or take it in anew."""
    with call.questions.waiting():
        document = await library(call).add(call.path(path))
    await told(call, "added", document, json_=json_)


@command
async def forget(call: ShellCall, name: str, *, json_: AsJson = False) -> None:
    """Drop a document of this chat from the search; its file stays."""
    await told(call, "forgotten", await library(call).forget(name), json_=json_)


async def told(call: ShellCall, done: str, document: SavedDocument, *, json_: bool) -> None:
    if json_:
        fields = {"document": document.title, "done": done, "unit": document.unit}
        await call.write(as_json(**fields, pages=document.pages, note=document.note))
    else:
        note = f". {document.note}" if document.note else ""
        await call.write(f"{done} {document.title}: {document.length}{note}\n")


def library(call: ShellCall) -> "Library":
    if call.context.documents is None:
        raise ToolError("There are no documents in this chat.")
    return call.context.documents()


def as_json(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"
