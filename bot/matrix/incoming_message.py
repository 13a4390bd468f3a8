"""A Matrix message as a row of the inbox: text, quote, sender, attachments, the thread as a chat."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Any, Literal

from agent.store import Incoming
from agent.trust import Origin
from bot.attachments import Attachment, safe_name, to_json
from bot.intake import Quotation
from bot.matrix.rooms import SOURCE, RoomKey

FILE_SETTLE = 0.8  # seconds; a file without a caption: the question often follows
MOST_HTML = 60_000  # characters; an event has 65,536 bytes
MOST_LINKS = 100  # of a message, for each of which its text is looked through
FALLBACK = re.compile(r"\A(?:> ?[^\n]*\n)+\n?")  # what older apps put above a reply
COMMAND = re.compile(r"(?i)[/!]([a-z_]+)(?:\s+(.*))?\Z", re.DOTALL)
KINDS: dict[str, Literal["photo", "document", "audio", "video"]] = {
    "m.image": "photo",
    "m.file": "document",
    "m.audio": "audio",
    "m.video": "video",
}
VOICE = "org.matrix.msc3245.voice"
POLL_TEXT = "org.matrix.msc1767.text"  # a poll's question and options


@dataclass(frozen=True, slots=True)
class RoomMessage:
    """An m.room.message that was parsed. `replaces` is the event that it corrects, `thread` the one
    that its thread is about, `answers` the one that it is a reply to; each may be ""."""

    room: str
    id: str
    sender: str
    at: float
    kind: str
    body: str
    content: dict[str, Any]
    replaces: str = ""
    thread: str = ""
    answers: str = ""
    files: Sequence[Attachment] = ()

    @property
    def chat(self) -> str:
        return str(RoomKey(self.room, self.thread))

    @property
    def command(self) -> tuple[str, str] | None:
        """The name and the argument of `!name argument` or `/name argument`."""
        found = COMMAND.fullmatch(self.body.strip()) if self.kind == "m.text" else None
        return (found[1].lower(), (found[2] or "").strip()) if found else None

    def mentions(self, me: str, name: str) -> bool:
        """Whether the message addresses `me`, by a mention or, from apps without mentions, by name."""
        told = self.content.get("m.mentions")
        if isinstance(told, dict) and isinstance(users := told.get("user_ids"), list):
            return me in users
        return me.lower() in self.body.lower() or spoken_to(self.body, name) is not None


def parse_message(room: str, event: dict[str, Any]) -> RoomMessage:
    """Parse an m.room.message. Raises ValueError, TypeError or KeyError for anything else."""
    content = event["content"]
    relation = content.get("m.relates_to") or {}
    kind = relation.get("rel_type")
    replaces = str(relation["event_id"]) if kind == "m.replace" else ""
    if replaces:
        content = content["m.new_content"]
    in_thread = kind == "m.thread"
    reply = (relation.get("m.in_reply_to") or {}).get("event_id", "")
    if in_thread and relation.get("is_falling_back"):
        reply = ""  # the newest of the thread, for apps that know no threads
    body = str(content.get("body") or content.get(POLL_TEXT) or "")
    if reply:
        body = FALLBACK.sub("", body, count=1)
    if content.get("format") == "org.matrix.custom.html":
        body = with_links(body, str(content.get("formatted_body", "")))
    message = RoomMessage(
        room,
        str(event["event_id"]),
        str(event["sender"]),
        float(event["origin_server_ts"]) / 1000,
        str(content.get("msgtype", "")),
        body,
        dict(content),
        replaces,
        str(relation["event_id"]) if in_thread else "",
        str(reply),
    )
    return replace(message, files=attachments(message))


def incoming_message(
    message: RoomMessage,
    *,
    sender: str,
    me: tuple[str, ...],
    quote: Quotation | None,
    origin: Origin,
) -> Incoming:
    """Create the inbox row. `sender` is a name, in a room of several; `me` are the bot's names, removed
    where a message begins with one."""
    whose = quote.name if quote and not quote.ours else ""
    stranger = f"message of {whose} that is answered" if whose else ""
    return Incoming(
        message.chat,
        SOURCE,
        message.id,
        words(message, me),
        "edit" if message.replaces else "message",
        message.replaces or message.id,
        sender,
        quote.line if quote else "",
        body=to_json([*message.files, *(quote.attachments if quote else ())]),
        settle_s=FILE_SETTLE if message.files and not caption(message) else 0.0,
        at=message.at,
        origin=origin,
        stranger=stranger,
        author=message.sender,
    )


def words(message: RoomMessage, me: tuple[str, ...]) -> str:
    match message.kind:
        case "m.location":
            return f"[location {message.content.get('geo_uri', '')}]"
        case kind if kind in KINDS:
            return caption(message)
        case "m.emote":
            return f"* {message.body}"
    for name in me:
        if called := spoken_to(message.body, name):
            return message.body[called.end() :]
    return message.body


def spoken_to(body: str, name: str) -> re.Match[str] | None:
    """Match the bot's name at the beginning of a message, with the punctuation after it; a longer word does not match."""
    form = rf"@?{re.escape(name)}(?![\w'’-]|\.\w)[ ,:]*"
    return re.match(form, body, re.IGNORECASE) if name else None


class Links(HTMLParser):
    """The links of a formatted body, without those of people and of the quoted message: `found` has for each the
    text before it, its words and its address."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self._text = self._before = self._address = ""
        self._quoted = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._quoted |= tag == "mx-reply"
        if tag == "a" and not self._quoted:
            self._before, self._address = self._text, dict(attrs).get("href") or ""

    def handle_data(self, data: str) -> None:
        if not self._quoted:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        self._quoted &= tag != "mx-reply"
        if tag == "a" and self._address:
            if not self._address.startswith(("https://matrix.to/#/@", "matrix:u/")):
                words = self._text[len(self._before) :]
                self.found.append((self._before, " ".join(words.split()), self._address))
            self._address = ""


def with_links(body: str, html: str) -> str:
    """Return the plain body, with each address that only the formatted body has behind its words: which of the
    same words they are is told by how often these come before."""
    links, told = Links(), body
    if len(html) <= MOST_HTML:
        with suppress(AssertionError, ValueError):  # of HTMLParser, at "<![" without its end
            links.feed(html)
    for before, words, address in reversed(links.found[:MOST_LINKS]):
        rest = body.split(words, before.count(words) + 1)[-1] if words else ""
        end = len(body) - (len(rest) if rest != body else 0)
        if not re.search(rf"{re.escape(address.rstrip('/'))}/?(?![/?#&=%~.-]{{0,9}}\w)", body):
            told = f"{told[:end]} ({address}){told[end:]}"
    return told


def caption(message: RoomMessage) -> str:
    name = message.content.get("filename")
    return message.body if name and name != message.body else ""


def attachments(message: RoomMessage) -> list[Attachment]:
    if message.kind not in KINDS:
        return []
    content = message.content
    described = content.get("info") or {}
    sealed = content.get("file")
    address = sealed["url"] if sealed else content["url"]
    kind = "voice" if VOICE in content else KINDS[message.kind]
    seconds = (described.get("duration") or 0) // 1000
    name = str(content.get("filename") or message.body)
    return [
        Attachment(
            kind,
            json.dumps(sealed) if sealed else str(address),
            str(address),
            safe_name(name) or f"{kind}-{message.id[-8:]}",
            str(described.get("mimetype") or ""),
            int(described.get("size") or 0),
            int(seconds),
        )
    ]
