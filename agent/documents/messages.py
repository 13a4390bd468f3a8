"""Mail messages to text and attachments: a program of its own, for the Python of a sandbox; standard library only.

    message.py index FILE           prints a JSON line for each message of FILE, where each follows a line with its length
    message.py read FILE            prints a JSON line for the message that FILE is
    message.py part FILE NUMBER AT END  prints the bytes of an attachment from AT to END

What a message says of its encodings and its structure may be wrong: then it is read for what it looks like.
"""

import binascii
import json
import mimetypes
import quopri
import re
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.parser import BytesHeaderParser
from email.policy import Compat32
from email.utils import collapse_rfc2231_value
from pathlib import Path

from agent.documents.encodings import decoded
from agent.sandbox.output_buffer import clean
from agent.web.html_text import WIDER, MainText, PageText, decode_page, scanned

INDEXED = 6000  # characters of a message's text that are searched
MOST_TEXT = 1 << 20  # characters that are read
MOST_HTML = 4 << 20
MOST_IDS = 50
PLAIN_ENOUGH = 200  # characters of a plain version that is no mere hint at the other one
DEEPEST = 20
TNEF = b"\x78\x9f\x3e\x22"
LONG = 80  # bytes of text that is base64 by no chance
WITHIN = ("message/rfc822", "message/global", "message/news")
BROKEN = (ValueError, TypeError, LookupError)  # what the standard library makes of some parameters
BASE64 = re.compile(rb"\s*(?:[A-Za-z0-9+/]{60,}\s+)*[A-Za-z0-9+/]+={0,2}\s*")
QUOTED = re.compile(rb"=[C-F][0-9A-F]=[89AB][0-9A-F]")  # a letter beyond ASCII, of UTF-8
UUENCODED = re.compile(
    r"^begin [0-7]{3} (.{1,200})\r?\n((?:[ -`]{1,90}\r?\n)+?)[ `]?\r?\n?end\r?$", re.MULTILINE
)
BEGINS_FILE, FILE_NAME, FILE_CONTENT = 0x9002, 0x8010, 0x800F  # attributes of TNEF
BODY, PROPERTIES, UTF_16, HTML = 0x800C, 0x9003, b"\x1f\0\0", b"\x02\1\x13"
BODIES = re.compile(
    rb"(\x1e\0\0|\x1f\0\0|\x02\x01\x13)\x10\x01\0\0\0(.{4})", re.DOTALL
)  # and its length


class WholeText(MainText):
    """The whole text with its links: what stands beside the main part of a page belongs to a mail."""

    def _kind(self, name: str, tag: str, attributes: dict[str, str]) -> str:
        return PageText._kind(self, name, tag, attributes)


class AsItCame(Compat32):
    """Bytes beyond ASCII in a header stay what they are, as surrogates."""

    def header_fetch_parse(self, name: str, value: str) -> str:
        return value


AS_IT_CAME = AsItCame()


@dataclass
class Content:
    """What a message holds: `texts` in their order, and attachments by name, kind and content."""

    texts: list[str] = field(default_factory=list)
    parts: list[tuple[str, str, bytes]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n\n".join(text for each in self.texts if (text := clean(each).strip()))


def main(act: str, path: str, *place: str) -> None:
    raw = Path(path).read_bytes()
    if act == "index":
        for each in messages(raw):
            show(indexed(each))
    elif act == "read":
        show(read(raw))
    else:
        number, at, end = map(int, place)
        sys.stdout.buffer.write(parsed(raw)[1].parts[number - 1][2][at:end])


def messages(raw: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(raw):
        end = raw.index(b"\n", at) + 1
        at = end + int(raw[at:end])
        yield raw[end:at]


def show(fields: dict[str, object]) -> None:
    line = json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")
    sys.stdout.buffer.write(line + b"\n")


def indexed(raw: bytes) -> dict[str, object]:
    """What is read of a message's beginning."""
    try:
        return {**(found := read(raw)), "text": str(found["text"])[:INDEXED]}
    except Exception as error:  # noqa: BLE001 - the others of its batch are read all the same
        return {"subject": f"(not readable: {type(error).__name__})"}


def read(raw: bytes) -> dict[str, object]:
    """The headers, text and attachments of a message."""
    message, content = parsed(raw)
    text = content.text
    if len(text) > MOST_TEXT:
        text = f"{text[:MOST_TEXT]}\n\n[There is more: {MOST_TEXT:,} characters are read.]"
    parts = [{"name": n, "kind": kind, "size": len(raw)} for n, kind, raw in content.parts]
    return {**summary(message), "text": text, "parts": parts}


def summary(message: Message) -> dict[str, object]:
    wanted = " ".join(header(message, name) for name in ("references", "in-reply-to"))
    own = re.findall(r"<[^<>\s]{1,250}>", header(message, "message-id"))[:1]
    return {
        "sender": header(message, "from")[:300],
        "recipients": ", ".join(filter(None, (header(message, "to"), header(message, "cc"))))[
            :2000
        ],
        "subject": header(message, "subject")[:500],
        "sent": header(message, "date")[:100],
        "ids": [*re.findall(r"<[^<>\s]{1,250}>", wanted)[-MOST_IDS:], *own],
    }


def parsed(raw: bytes) -> tuple[Message, Content]:
    with suppress(RecursionError, *BROKEN):
        return taken_apart(message_from_bytes(raw))
    return taken_apart(BytesHeaderParser().parsebytes(raw))  # its source is its text


def taken_apart(message: Message) -> tuple[Message, Content]:
    content = Content()
    add(message, content, 0)
    return message, content


def header(message: Message, name: str) -> str:
    """A header on one line, whatever its words and bytes are encoded in."""
    found = [str(value) for key, value in message.raw_items() if key.lower() == name]
    return decoded_words(", ".join(found if name in ("to", "cc") else found[:1])[:20_000])


def decoded_words(raw: str) -> str:
    text = text_in(raw.encode("utf-8", "surrogateescape"), "")
    with suppress(MessageError, ValueError):
        text = "".join(
            piece if isinstance(piece, str)
            else text_in(piece, charset) if charset
            else piece.decode("raw-unicode-escape")
            for piece, charset in decode_header(text)
        )  # fmt: skip
    return " ".join(clean(text).split())


def text_in(raw: bytes, charset: str) -> str:
    """Decode bytes by the charset that they are said to be in if they can be, else by what they look like. Bytes
    beyond ASCII that are UTF-8 are that."""
    if raw.isascii() and b"\x1b$" in raw:
        return raw.decode("iso2022_jp_ext", "replace")
    # Of the former Python knows nothing, the latter take it minutes.
    charset = re.sub(r"(?i)(?<=8859-8)-[ie]$|^(?:punycode|idna)$", "", charset)
    name = WIDER.get(charset.lower(), charset)
    for each in (name, "utf-8") if raw.isascii() else ("utf-8", name):
        with suppress(LookupError, ValueError):
            return raw.decode(each)
    return decoded(raw)[0]


def add(part: Message, content: Content, depth: int) -> None:
    """Add the texts and attachments of a part of a message."""
    kind, encoding = part.get_content_type(), header(part, "content-transfer-encoding").lower()
    if encoding:
        part.replace_header("content-transfer-encoding", encoding)
    inner = (
        [each for each in part.get_payload() if isinstance(each, Message)]
        if part.is_multipart()
        else []
    )
    if inner and depth < DEEPEST:
        if kind == "multipart/alternative":
            add_alternative(inner, content, depth)
            return
        if kind in WITHIN:
            if encoding in ("base64", "quoted-printable"):
                inner = [message_from_bytes(decoded_transfer(part, inner[0]))]
            named = ("from", "date", "subject")
            lines = [f"{name.capitalize()}: {header(inner[0], name)}" for name in named]
            content.texts.append("\n".join(["--- a message within this one ---", *lines]))
        elif kind.startswith("message/"):  # of a report: its headers are what it says
            content.texts.append("\n\n".join(text_in(bytes(each), "").strip() for each in inner))
            return
        for each in inner:
            add(each, content, depth + 1)
        return
    raw = part.get_payload(decode=True)
    if not isinstance(raw, bytes):
        raw = part.as_bytes()
    if encoding in ("", "7bit", "8bit", "binary"):
        raw = unpacked(raw)
    name = file_name(part)
    attached = name or part.get_content_disposition() == "attachment"
    if kind == "application/ms-tnef" or raw.startswith(TNEF):
        files, texts = taken_out(raw)
        content.parts += files
        content.texts += [] if content.text else texts[:1]  # the same again
        if files or texts:
            return
    elif kind.startswith(("text/", "multipart/", "message/")) and not attached:
        text = readable(raw, kind, parameter(part, "charset"))
        if kind == "text/plain" and parameter(part, "format") == "flowed":
            text = unflowed(text, stuffed=parameter(part, "delsp") == "yes")
        for match in UUENCODED.finditer(text) if "\nbegin " in f"\n{text}" else ():
            add_uuencoded(match, content)
        content.texts.append(text)
        return
    ending = mimetypes.guess_extension(kind) or ".bin"
    content.parts.append((name or f"part-{len(content.parts) + 1}{ending}", kind, raw))


def file_name(part: Message) -> str:
    as_it_came = Message(AS_IT_CAME)
    for key, value in part.raw_items():
        if key.lower() in ("content-type", "content-disposition"):
            as_it_came[key] = value
    with suppress(*BROKEN):
        return decoded_words(as_it_came.get_filename() or "")
    return ""


def parameter(part: Message, name: str) -> str:
    with suppress(*BROKEN):
        return collapse_rfc2231_value(part.get_param(name, "")).lower()
    return ""


def unflowed(text: str, *, stuffed: bool) -> str:
    """Text of format=flowed (RFC 3676), each paragraph on one line. `stuffed`: the space before a break is no part of it."""
    pieces, open_depth = list[str](), -1
    for line in text.splitlines():
        bare = line.lstrip(">")
        depth, bare = len(line) - len(bare), bare.removeprefix(" ")
        signature = bare == "-- "
        if depth != open_depth or signature:
            pieces.append("\n" + ">" * depth + " " * bool(depth))
        soft = bare.endswith(" ") and not signature
        pieces.append(bare[:-1] if soft and stuffed else bare)
        open_depth = depth if soft else -1
    return "".join(pieces)


def unpacked(raw: bytes) -> bytes:
    """Text that is base64 or quoted-printable, and of which that is not said, decoded."""
    with suppress(ValueError):
        if len(raw) > LONG and BASE64.fullmatch(raw):
            binascii.a2b_base64(raw).decode("utf-8")
            return binascii.a2b_base64(raw)
        if raw.isascii() and len(QUOTED.findall(raw)) > 2:
            quopri.decodestring(raw).decode("utf-8")
            return quopri.decodestring(raw)
    return raw


def decoded_transfer(part: Message, held: Message) -> bytes:
    """The bytes of a message within another one, which its part says is encoded as none may be."""
    text = Message(AS_IT_CAME)
    text["content-transfer-encoding"] = part["content-transfer-encoding"]
    text.set_payload(held.as_string())
    decoded = text.get_payload(decode=True)
    return decoded.lstrip() if isinstance(decoded, bytes) else b""


def add_uuencoded(found: re.Match[str], content: Content) -> None:
    with suppress(ValueError):
        raw = b"".join(binascii.a2b_uu(line) for line in found[2].encode().splitlines())
        name = found[1].strip()
        content.parts.append((name, mimetypes.guess_type(name)[0] or "", raw))


def add_alternative(versions: list[Message], content: Content, depth: int) -> None:
    """Add the plain version, or the longest where that says little; and the attachments and calendar entries of all."""
    read_versions = [Content() for _ in versions]
    for version, found in zip(versions, read_versions, strict=True):
        add(version, found, depth + 1)
        content.parts += found.parts
    best = max(read_versions, key=lambda each: len(each.text), default=Content())
    plain = read_versions[0] if versions and len(read_versions[0].text) > PLAIN_ENOUGH else best
    content.texts += plain.texts
    for version, found in zip(versions, read_versions, strict=True):
        if version.get_content_type() == "text/calendar" and found is not plain:
            content.texts += found.texts


def readable(raw: bytes, kind: str, charset: str) -> str:
    html = kind == "text/html"
    text = text_in(raw, charset) if charset or not html else decode_page(raw, html=True)
    if html or re.match(r"\s*<(?:!doctype html|html)\b", text, re.IGNORECASE):
        cut = "\n\n[There is more: of HTML 4 MiB are read.]" if len(text) > MOST_HTML else ""
        return scanned(text[:MOST_HTML], WholeText("")).text() + cut
    return text


def taken_out(raw: bytes) -> tuple[list[tuple[str, str, bytes]], list[str]]:
    """The files and the body in a winmail.dat ([MS-OXTNEF]): level, attribute, length, data and checksum, again and again."""
    files, texts, at, name = list[tuple[str, str, bytes]](), list[str](), 6, ""
    while at + 9 <= len(raw):
        attribute, length = struct.unpack_from("<HxxI", raw, at + 1)
        value, at = raw[at + 9 : at + 9 + length], at + 11 + length
        if attribute == BEGINS_FILE:
            name = ""
        elif attribute == FILE_NAME:
            name = decoded_words(text_in(value.rstrip(b"\0"), ""))
        elif attribute == FILE_CONTENT:
            files.append((name or "winmail-file", mimetypes.guess_type(name)[0] or "", value))
        elif attribute == BODY:
            texts.append(text_in(value, ""))
        elif attribute == PROPERTIES and (found := BODIES.search(value)):
            body = value[found.end() : found.end() + int.from_bytes(found[2], "little")]
            kind = "text/html" if found[1] == HTML else "text/plain"
            wide = found[1] == UTF_16
            texts.append(body.decode("utf-16-le", "replace") if wide else readable(body, kind, ""))
    return files, [text for text in texts if clean(text).strip("\0 \r\n")]
