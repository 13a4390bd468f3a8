"""The result of a server's tool as text and files. The text is a stranger's, without what drives terminals."""

import base64
import json
import mimetypes
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.sandbox.output_buffer import clean

PIECE = 1 << 16  # characters cleaned at once: between pieces other threads run
LEAST_SECRET = 6  # characters; shorter values stand in ordinary text
WITHHELD = "[a secret of this server]"


@dataclass(frozen=True)
class ServerResult:
    """`files` are contents by name."""

    text: str
    failed: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)


def result_of(raw: Mapping[str, Any], stem: str, secrets: Sequence[str] = ()) -> ServerResult:
    """The result of tools/call. `stem` begins the names of files, `secrets` are values to take out. Call it in a
    thread: the result may be large."""
    texts, files = content_of(raw.get("content") or [], stem)
    structured = raw.get("structuredContent")
    if structured is not None and not texts:
        texts = [json.dumps(structured, ensure_ascii=False, indent=1)]
    return ServerResult(shown(texts, secrets), bool(raw.get("isError")), files)


def content_of(
    blocks: Sequence[Mapping[str, Any]], stem: str
) -> tuple[list[str], dict[str, bytes]]:
    texts: list[str] = []
    files: dict[str, bytes] = {}
    for block in blocks:
        inner = block.get("resource")
        said = inner if isinstance(inner, dict) else block
        raw = said.get("blob") or (said.get("data") if block.get("type") != "text" else None)
        if isinstance(raw, str):
            name = f"{stem}-{len(files) + 1}{ending(str(said.get('mimeType') or ''))}"
            files[name] = decoded(raw)
        elif isinstance(said.get("text"), str):
            texts.append(said["text"])
        elif block.get("type") == "resource_link":
            texts.append(f"{said.get('uri')}  {said.get('title') or said.get('name') or ''}")
    return texts, files


def shown(texts: Sequence[str], secrets: Sequence[str]) -> str:
    """The texts in lines, cleaned and without the secrets. Call it in a thread where they may be large."""
    text = "".join(map(clean, pieces("\n".join(texts))))
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= LEAST_SECRET:
            text = text.replace(secret, WITHHELD)
    return text if not text or text.endswith("\n") else f"{text}\n"


def pieces(text: str) -> Iterator[str]:
    """The text in pieces, cut where a line ends if there is such a place."""
    at = 0
    while at < len(text):
        end = text.rfind("\n", at, at + PIECE) + 1 or at + PIECE
        yield text[at:end]
        at = end


def ending(kind: str) -> str:
    found = mimetypes.guess_extension(kind.partition(";")[0].strip()) or ".bin"
    return found if re.fullmatch(r"\.[a-z0-9]{1,8}", found) else ".bin"


def decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=False)
    except ValueError:
        return b""
