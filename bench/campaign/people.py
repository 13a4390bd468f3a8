"""Who talks to the bot, one thing after the other, and counts what comes back."""

import asyncio
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from bench.campaign.whole import Whole
from bench.reader import Reader
from bench.service import VOLTAIRE
from bot.localgram import Message
from fakes.localgram import is_final

QUESTIONS = (
    "hello",
    "how much disk space is free?",
    "what time is it?",
    "list the files",
    "which kernel is this?",
    "make a file todo.txt that says milk",
)
RING = re.compile(r"ring-\d+")
NO_ANSWER = ("A message could not be delivered",)
COMMAND_SECONDS = 60.0
ANSWER_SECONDS = 240.0
KILLED_SHARE = 0.25


def answers(message: Message) -> bool:
    """The bot's last word on a message: no progress, no question, no reminder, no file of a tool."""
    text = message.text
    other = message.media or RING.search(text) or text.startswith(NO_ANSWER)
    return message.sender.is_bot and is_final(message) and not other


@dataclass
class Talker:
    """One person in one chat. `silence`: the longest time, in seconds, without any sign while
    they waited."""

    reader: Reader
    chance: Random
    said: list[Message] = field(default_factory=list)
    silence: float = 0.0

    @property
    def name(self) -> str:
        return self.reader.chat.title

    async def talk(self, over: asyncio.Event, patience: float) -> None:
        """Until `over`, and then `patience` seconds for the last answer."""
        while not over.is_set():
            await _pause(over, self.chance.uniform(0.1, 2.0))
            await self._ask(over, patience)

    async def _ask(self, over: asyncio.Event, patience: float) -> None:
        chat = self.reader.chat
        words = self.chance.choice(QUESTIONS)
        words = words if chat.private else f"@voltaire_bot {words}"
        said = await self.reader.person.send(words, chat=chat)
        self.said.append(said)
        watching = asyncio.create_task(self._watch())
        waiting = asyncio.create_task(self.reader.answered(said, self.count, 3600.0))
        try:
            await _first(waiting, over)
            await asyncio.wait([waiting], timeout=patience)
        finally:
            for task in (waiting, watching):
                task.cancel()
            await asyncio.wait([waiting, watching])

    async def _watch(self) -> None:
        last = time.monotonic()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self.reader.chat.feed.changed()
                    last = time.monotonic()
            self.silence = max(self.silence, time.monotonic() - last)

    def count(self, said: Message) -> int:
        """How many answers stand between this message and the person's next."""
        later = [other.id for other in self.said if other.id > said.id]
        end = later[0] if later else sys.maxsize
        messages = self.reader.chat.messages.values()
        return sum(answers(message) for message in messages if said.id < message.id < end)


async def _first(task: "asyncio.Task[bool]", over: asyncio.Event) -> None:
    ending = asyncio.create_task(over.wait())
    await asyncio.wait([task, ending], return_when=asyncio.FIRST_COMPLETED)
    ending.cancel()


async def _pause(over: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(over.wait(), seconds)


@dataclass
class Terminal:
    """Somebody who asks by `voltaire ask`, beside the bot or without it, and sometimes closes the terminal.

    `refused` questions got a sentence (a full disk, a turn given up), `killed` ones nobody waits for.
    """

    whole: Whole
    chance: Random
    asked: int = 0
    answered: int = 0
    refused: int = 0
    killed: int = 0
    wrong: list[str] = field(default_factory=list)

    async def talk(self, over: asyncio.Event) -> None:
        while not over.is_set():
            await self._ask(f"question-{self.asked}")
            await _pause(over, self.chance.uniform(0.5, 3.0))

    async def _ask(self, words: str) -> None:
        self.asked += 1
        process = await asyncio.create_subprocess_exec(
            VOLTAIRE, "ask", "--json", words, env=self.whole.environment,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        reading = asyncio.create_task(process.communicate())
        try:
            if self.chance.random() < KILLED_SHARE:
                await asyncio.wait([reading], timeout=self.chance.uniform(0.2, 4.0))
            else:
                await asyncio.wait([reading], timeout=ANSWER_SECONDS)
                if not reading.done():
                    self.wrong.append(f"{words}: no answer in {ANSWER_SECONDS:.0f} s")
        finally:
            if process.returncode is None:
                process.kill()
                self.killed += 1
            out, err = await reading
        last = out.decode().splitlines()[-1:]
        given_up = last and '"reason": "error"' in last[0]
        if process.returncode == 0 and last and '"turn.finished"' in last[0]:
            self.answered += 1
        elif process.returncode in (1, 3) and (err or given_up) and b"Traceback" not in err:
            self.refused += 1
        elif process.returncode != -9:
            told = err.decode()[-200:]
            self.wrong.append(f"{words}: exit code {process.returncode}, {last}, {told}")


@dataclass
class Jobs:
    """What the command line puts into chats beside the running bot: reminders, texts that are sent, and data for a
    job of the first chat, each with a word of its own."""

    whole: Whole
    talkers: Sequence[Talker]
    chance: Random
    made: list[tuple[Talker, str]] = field(default_factory=list)
    tried: int = 0
    bell: str = ""  # the job that gets data

    async def plan(self, over: asyncio.Event) -> None:
        first = f"tg:{self.talkers[0].reader.chat.id}"
        while not over.is_set():
            self.tried += 1
            talker, word = self.chance.choice(self.talkers), f"ring-{self.tried}"
            chat = f"tg:{talker.reader.chat.id}"
            if not self.bell:
                often = "every Monday at 03:00 remind me: bell"
                told = await self._run("jobs", "add", "--yes", "--chat", first, often)
                self.bell = "".join(re.findall(r"Job (\d+)", told or "")[:1])
            elif self.tried % 3 == 0:
                words = f"in {self.chance.randrange(5, 15)} seconds remind me: {word}"
                if await self._run("jobs", "add", "--yes", "--chat", chat, words) is not None:
                    self.made.append((talker, word))
            elif self.tried % 3 == 1:
                if await self._run("send", "--chat", chat, word) is not None:
                    self.made.append((talker, word))
            elif await self._run("trigger", self.bell, "--data", word) is not None:
                self.made.append((self.talkers[0], word))
            await _pause(over, 2.0)

    async def _run(self, *words: str) -> str | None:
        """What a command printed; None where it failed."""
        async with self.whole.clock.still:
            process = await asyncio.create_subprocess_exec(
                VOLTAIRE, *words, env=self.whole.environment,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                out, _ = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            return None if process.returncode else out.decode()

    def missing(self) -> list[tuple[Talker, str]]:
        return [(talker, word) for talker, word in self.made if not copies(talker, word)]

    async def arrived(self, seconds: float) -> None:
        """Wait for all of them; of those in doubt the person presses the notice's button."""
        deadline = time.monotonic() + seconds
        while (late := self.missing()) and time.monotonic() < deadline:
            for talker in {id(talker): talker for talker, _ in late}.values():
                while talker.reader.loose:
                    await talker.reader.press(talker.reader.loose.pop())
                await talker.reader.answered(talker.said[-1], talker.count, 1.0)
            await asyncio.sleep(0.5)


def copies(talker: Talker, word: str) -> int:
    """How often a reminder stands in its chat."""
    pattern = re.compile(rf"{word}\b")
    messages = talker.reader.chat.messages.values()
    return sum(bool(m.sender.is_bot and pattern.search(m.text)) for m in messages)
