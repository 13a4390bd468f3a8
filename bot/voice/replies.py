"""Answers as voice messages: each sentence is spoken, in the chat's sandbox, while the next is written.

The recordings are kept in memory only: after a restart they are made again from the text in the outbox.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from agent.aio import BackgroundTasks, move_on_when
from agent.channels import Assignment, TurnListener
from agent.errors import ToolError
from agent.events import Event, Notice, TextDelta, ToolCalled, TurnFinished
from agent.sandbox.sandbox import Sandbox
from agent.store.outbox import OutboxRow
from bot.attachments import is_spoken
from bot.channel import OutgoingMessage, VoiceSound
from bot.texts import TEXTS

if TYPE_CHECKING:  # loaded when something is said
    from agent.voice.speech import Speech
import re
import unicodedata
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from markdown_it.token import Token

from bot.markdown_dialect import parser

log = logging.getLogger(__name__)

SECONDS = 180.0  # for the rest of the recording once the answer is complete; else it comes as text
PAUSE_SECONDS = 0.25  # between two sentences
MOST_KEPT = 8  # turns


@dataclass
class SpokenTurn:
    """The speech of one turn, as far as it is written.

    `text` is what was written so far; `said` has the samples of each sentence.
    """

    chat: str
    text: str = ""
    said: dict[str, bytes] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class SpokenReplies(TurnListener):
    """Speaks the answers of turns, whose events it listens to. `models` is the folder of downloaded voices. The context must be open while
    turns run."""

    def __init__(self, sandbox: Callable[[str], Awaitable[Sandbox]], models: Path) -> None:
        self._sandbox = sandbox
        self._models = models
        self._turns: dict[str, SpokenTurn] = {}
        self._speaking: dict[str, asyncio.Event] = {}  # by chat; set to stop it
        self._tasks = BackgroundTasks()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.stop()

    @cached_property
    def _speech(self) -> "Speech":
        from agent.voice.speech import Speech

        return Speech(self._models)

    def missing(self) -> str:
        """The command that installs what speech needs; "" where nothing is missing."""
        return self._speech.missing()

    async def event(self, assignment: Assignment, event: Event) -> None:
        known = assignment.known
        if known is None or not is_spoken(known.settings, assignment.answers):
            return
        id = assignment.turn.id
        turn = self._turns.get(id)
        match event:
            case TextDelta(text):
                if turn is None:
                    turn = self._turns[id] = SpokenTurn(assignment.chat)
                    while len(self._turns) > MOST_KEPT:
                        self._turns.pop(next(iter(self._turns))).ended.set()
                    self._tasks.start(self._say_meanwhile(turn), "speech")
                turn.text += text
                turn.changed.set()
            case ToolCalled() | Notice() if turn:  # what was written before is no answer
                turn.text = ""
            case TurnFinished(reason=reason) if turn:
                turn.ended.set()
                if reason != "done":
                    del self._turns[id]

    async def _say_meanwhile(self, turn: SpokenTurn) -> None:
        """Speak each sentence once the next one has begun."""
        async with move_on_when(turn.ended):
            while True:
                await turn.changed.wait()
                turn.changed.clear()
                whole = sentences(turn.text)[:-1]
                new = next((each for each in whole if each not in turn.said), "")
                if new:
                    try:
                        turn.said[new] = await self._say(turn.chat, new, turn.text)
                    except ToolError as error:
                        log.warning("%s: nothing is said: %s", turn.chat, error)
                        return
                    turn.changed.set()

    async def _say(self, chat: str, sentence: str, text: str) -> bytes:
        from agent.voice.speech import language_of

        language = language_of(sentence, language_of(text))
        return await self._speech.say(await self._sandbox(chat), sentence, language)

    def stop(self, chat: str) -> bool:
        """Stop speaking: the answer comes as text. False where none is being spoken."""
        speaking = self._speaking.get(chat)
        if speaking:
            speaking.set()
        return speaking is not None

    async def sound(self, row: OutboxRow, message: OutgoingMessage) -> VoiceSound | None:
        """The recording of an answer; None where it fails, takes too long or is stopped."""
        stop = self._speaking[row.chat] = asyncio.Event()
        try:
            async with asyncio.timeout(SECONDS), move_on_when(stop):
                return await self._sound(row, message.text)
        except TimeoutError:
            log.warning("%s: an answer took too long to say", row.chat)
        except ToolError as error:
            log.warning("%s: an answer is not said: %s", row.chat, error)
        finally:
            del self._speaking[row.chat]
        return None

    async def _sound(self, row: OutboxRow, text: str) -> VoiceSound | None:
        from agent.voice.sound import SPOKEN_RATE, WIDTH, duration, voice_message

        turn = self._turns.get(row.turn or "") or SpokenTurn(row.chat)
        samples: list[bytes] = []
        for sentence in sentences(text):
            if sentence not in turn.said:
                turn.said[sentence] = await self._say(row.chat, sentence, text)
            samples.append(turn.said[sentence])
        if not samples:
            return None
        whole = bytes(int(PAUSE_SECONDS * SPOKEN_RATE) * WIDTH).join(samples)
        ogg = await voice_message(await self._sandbox(row.chat), whole)
        return VoiceSound(ogg, duration(whole, SPOKEN_RATE))


# -- what is read out ---------------------------------------------------------


MOST_CHARACTERS = 3000  # about four minutes
LONGEST = 300  # characters of a sentence; a longer one is cut at a pause
ADDRESS = re.compile(r"https?://[^\s<>()]+")
ENDS = re.compile(r"(?<=[.!?…:;])[\"'”’)]*\s+|(?<=[。！？])")


def sentences(markdown: str) -> list[str]:
    """The sentences; after MOST_CHARACTERS, one that says that the rest is in the text."""
    said: list[str] = []
    for block in blocks(parser().parse(markdown)):
        for sentence in filter(str.strip, ENDS.split(speakable(block))):
            said += cut(sentence.strip())
        if sum(map(len, said)) > MOST_CHARACTERS:
            length = 0
            for number, sentence in enumerate(said):
                length += len(sentence)
                if length > MOST_CHARACTERS:
                    return [*said[: max(1, number)], TEXTS.voice_rest]
    return said


def blocks(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the words of each paragraph, heading and item, and a sentence in place of code, tables and formulas."""
    rows, in_table = 0, False
    for token in tokens:
        match token.type:
            case "fence" | "code_block":
                yield TEXTS.voice_code.format(lines=len(token.content.rstrip("\n").split("\n")))
            case "maths":
                yield TEXTS.voice_formula
            case "table_open":
                rows, in_table = -1, True  # without the head
            case "tr_open":
                rows += 1
            case "table_close":
                in_table = False
                yield TEXTS.voice_table.format(rows=rows)
            case "inline" if not in_table:
                yield inline(token.children or ())


def inline(tokens: Sequence[Token]) -> str:
    words: list[str] = []
    for token in tokens:
        match token.type:
            case "text":
                words.append(ADDRESS.sub(lambda found: address(found[0]), token.content))
            case "code_inline" | "image":
                words.append(token.content)
            case "softbreak" | "hardbreak":
                words.append(" ")
    return "".join(words)


def address(url: str) -> str:
    host = urlsplit(url).hostname or ""
    return TEXTS.voice_link.format(host=host.removeprefix("www."))


def speakable(text: str) -> str:
    """Remove emoji and other signs that a speech engine would describe."""
    kept = (
        " " if unicodedata.category(sign) in ("So", "Sk", "Cf", "Cs", "Co", "Cc") else sign
        for sign in text
    )
    return " ".join("".join(kept).replace("\ufe0f", "").split())


def cut(sentence: str) -> list[str]:
    """A long sentence in pieces that end at a pause."""
    found = []
    while len(sentence) > LONGEST:
        head = sentence[:LONGEST]
        at = max(head.rfind(", "), head.rfind(" – ")) + 1 or head.rfind(" ") + 1 or LONGEST
        found.append(sentence[:at].strip())
        sentence = sentence[at:].strip()
    return [*found, sentence] if any(map(str.isalnum, sentence)) else found
