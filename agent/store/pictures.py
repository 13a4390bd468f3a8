"""The pictures of prompts: their bytes, stored once per conversation; the transcript names them by hash.

In memory a picture is the data URL that the model is sent. The same bytes give the same URL in each turn
and after each restart.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent.messages import Message, User
from agent.store.database import Database, Transaction

REFERENCE = "picture:"


def data_url(kind: str, content: bytes) -> str:
    """Make the data URL of a picture; `kind` is its MIME type."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def parts(url: str) -> tuple[str, bytes]:
    """Divide a data URL into MIME type and bytes."""
    head, _, body = url.partition(",")
    return head.removeprefix("data:").removesuffix(";base64"), base64.b64decode(body)


def reference(url: str) -> str:
    """What stands for a picture in the transcript."""
    if not url.startswith("data:"):
        return url
    return REFERENCE + hashlib.sha256(parts(url)[1]).hexdigest()


async def keep(tx: Transaction, conversation: int, urls: Iterable[str]) -> None:
    for url in urls:
        kind, content = parts(url)
        digest = reference(url).removeprefix(REFERENCE)
        sql = "INSERT INTO pictures VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        await tx.run(sql, conversation, digest, kind, content)


async def resolved(database: Database, messages: Sequence[Message]) -> list[Message]:
    """The messages with data URLs in place of references; pictures that were deleted are left out."""
    found = list(messages)
    for place, message in enumerate(found):
        if isinstance(message, User) and message.images:
            urls = [await _url(database, each) for each in message.images]
            found[place] = replace(message, images=tuple(filter(None, urls)))
    return found


async def _url(database: Database, image: str) -> str:
    sql = "SELECT kind, content FROM pictures WHERE sha256 = ?"
    row = await database.one(sql, image.removeprefix(REFERENCE))
    return data_url(*row) if row else ""


async def forget_hidden(tx: Transaction, conversation: int) -> None:
    """Delete pictures that no message of the prompt shows any more."""
    sql = (
        "DELETE FROM pictures WHERE conversation = ?1 AND NOT EXISTS (SELECT 1 FROM transcript"
        " WHERE conversation = ?1 AND live = 1 AND role = 'user'"
        " AND instr(coalesce(short, extra), pictures.sha256) > 0)"
    )
    await tx.run(sql, conversation)
