"""Canary conversations: do two conversations on this server stay separate?

Servers were reported whose chats read each other's text, from the cache of prompts in RAM or from a common KV cache
(llama.cpp #27148, #27422, #28056). Two conversations, each with a random name, take turns here as two chats do. An
answer that holds the other's name is a leak. So is, twice, a name of the other that has become far more probable than
every one of some random names that nobody ever said.
"""

import asyncio
import json
import logging
import random
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from backend.aio import first_of
from backend.control.gpu_queue import GpuRequestQueue
from backend.files import replace_text
from backend.protocol import IDLE, Phrase, QueueState
from backend.server.llama import LlamaServer, ServerRefused

log = logging.getLogger(__name__)

NIGHT = range(2, 5)  # hours in which the check is repeated
LEAST_PAUSE = 12 * 3600.0  # seconds between two such checks
OPENINGS = ("We talk about a ship.\n", "This is about an old house.\n")
ASKED = "The name is"
FRESH = 6  # names that nobody ever says
TURNS = 2  # of each conversation, once it has a name
REPEATS = 3  # of a check in which only the probabilities told something
WRITTEN = 8  # tokens of an answer: the model repeats the line, and with it the name
LISTED = 200  # probabilities at each token
MARGIN = 6.0  # nats that a name gains on all fresh ones where a conversation has become longer; 4 by chance in one of 500
SAME_MARGIN = 1.0  # where the prompt is the same as before
INITIALS, CONSONANTS, VOWELS = "BDFGKLMNPRSTVZ", "bdfgklmnprstvz", "aeiou"

Sign = Literal["answer", "probability"]


@dataclass(slots=True)
class CanaryRecord:
    """What was checked last and when, and the servers (`Launch.identity`) that were found to leak; in `path`."""

    path: Path
    checked: str = ""
    at: float = 0.0  # seconds since the epoch
    leaking: list[str] = field(default_factory=list)

    def read(self) -> None:
        with suppress(OSError, ValueError, TypeError, KeyError):
            kept = json.loads(self.path.read_text("utf-8"))
            self.checked, self.at = str(kept["checked"]), float(kept["at"])
            self.leaking = [str(each) for each in kept["leaking"]]

    def add(self, checked: str, at: float, leaking: str = "") -> None:
        """Record a check, and the identity of a server that leaks."""
        self.checked, self.at = checked, at
        if leaking and leaking not in self.leaking:
            self.leaking.append(leaking)
        with suppress(OSError):  # on a full disk it is checked again after a restart
            kept = {"checked": self.checked, "at": self.at, "leaking": self.leaking}
            replace_text(self.path, json.dumps(kept))

    def due(self, running: str, now: float, hour: int) -> bool:
        """Whether the `running` server has to be checked, at this local hour."""
        return self.checked != running or (hour in NIGHT and not 0 <= now - self.at <= LEAST_PAUSE)


@dataclass(frozen=True, slots=True)
class Answer:
    """A text, and the highest log probability of each name at any of its tokens, empty where the server gives none."""

    text: str
    names: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Canary:
    """Checks one server, between the requests of others; its prompts begin with the tokens of the fixed prefix."""

    server: LlamaServer
    queue: GpuRequestQueue
    prefix: Sequence[int]
    slots: int = 1

    async def leaks(self) -> bool:
        """Whether one conversation's prompt got into another's. Raises ServerAway and ServerRefused."""
        suspected = False
        for _ in range(1 + REPEATS):
            sign = await self.compare(random_names(2 + FRESH))
            if sign == "answer" or (sign and suspected):
                return True
            suspected = suspected or sign is not None
            if not suspected:
                break
        return False

    async def compare(self, names: Sequence[str]) -> Sign | None:
        """Let two conversations take turns, each with a name; return the sign that one saw the other's, None for none.

        After each turn their openings, in which nobody has a name yet, are asked for it once more: what has got into
        them has no name of their own to compete with.
        """
        asked, firsts = await self._question(names)
        said, fresh = names[:2], names[2:]
        before = await self._turn(OPENINGS, asked, firsts)
        able = False
        for turn in range(1, TURNS + 1):
            lines = [f"{ASKED} {name}.\n" * (turn + 2) for name in said]
            texts = [opening + line for opening, line in zip(OPENINGS, lines, strict=True)]
            answers = [
                *await self._turn(texts, asked, firsts),
                *await self._turn(OPENINGS, asked, firsts),
            ]
            for i, answer in enumerate(answers):
                unheard, margin = ([said[1 - i]], MARGIN) if i < len(said) else (said, SAME_MARGIN)
                if any(name.lower() in answer.text.lower() for name in unheard):
                    return "answer"
                rise = compute_rises(before[i % 2], answer)
                able = able or (i < len(said) and rise.get(said[i], 0.0) > MARGIN / 2)
                highest = max((rise[name] for name in fresh if name in rise), default=0.0)
                if any(rise.get(name, 0.0) > highest + margin for name in unheard):
                    return "probability"
        if not able:
            log.info("this model does not repeat a name: a leak may not show")
        return None

    async def _question(self, names: Sequence[str]) -> tuple[list[int], dict[str, int]]:
        """The tokens that ask for a name, and the token with which each name then begins."""
        tokens = [await self.server.tokenize(f"{ASKED} {name}", special=False) for name in names]
        same = takewhile(lambda column: len(set(column)) == 1, zip(*tokens, strict=False))
        asked = [column[0] for column in same]
        return asked, dict(zip(names, (each[len(asked)] for each in tokens), strict=True))

    async def _turn(
        self, texts: Sequence[str], asked: Sequence[int], firsts: Mapping[str, int]
    ) -> list[Answer]:
        """Ask both conversations, at once where the server has slots for both."""
        together = asyncio.Semaphore(min(self.slots, len(texts)))

        async def ask(text: str) -> Answer:
            tokens = await self.server.tokenize(text, special=False)
            async with together:
                return await self._ask([*self.prefix, *tokens, *asked], firsts)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask(text)) for text in texts]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _ask(self, tokens: Sequence[int], firsts: Mapping[str, int]) -> Answer:
        """Ask as idle work; again, where somebody wanted the GPU meanwhile."""
        while True:
            wanted = asyncio.Event()

            def changed(state: QueueState, wanted: asyncio.Event = wanted) -> None:
                if state.state == "wanted":
                    wanted.set()

            async with self.queue.acquire("canary", IDLE, changed):
                asked, _ = await first_of(self._complete(tokens, firsts), wanted.wait())
            if not asked.cancelled():
                answer: Answer = asked.result()
                return answer

    async def _complete(self, tokens: Sequence[int], firsts: Mapping[str, int]) -> Answer:
        text, names = "", dict[str, float]()
        body = {
            "prompt": list(tokens),
            "n_predict": WRITTEN,
            "temperature": 0,
            "n_probs": LISTED,
        }
        async with aclosing(self.server.completion(body)) as events:
            async for event in events:
                if "error" in event:
                    raise ServerRefused(500, Phrase(str(event["error"])[:500]))
                text += str(event.get("content") or "")
                for token in event.get("completion_probabilities") or []:
                    for name, probability in listed(token, firsts).items():
                        names[name] = max(names.get(name, probability), probability)
        return Answer(text, names)


def compute_rises(before: Answer, after: Answer) -> dict[str, float]:
    """Compute by how much each name has become more probable; empty where the server gives no probabilities."""
    return {name: after.names[name] - was for name, was in before.names.items() if after.names}


def listed(token: Mapping[str, Any], firsts: Mapping[str, int]) -> dict[str, float]:
    """The log probability of each name at this token: of one that the server does not list, the lowest that it lists."""
    found = {int(row["id"]): float(row["logprob"]) for row in token.get("top_logprobs") or []}
    least = min(found.values(), default=0.0)
    return {name: found.get(first, least) for name, first in firsts.items()} if found else {}


def random_names(count: int) -> list[str]:
    """Names such as Zokavi, each with another initial, so that the first token tells them apart."""
    return [
        initial
        + random.choice(VOWELS)
        + "".join(random.choice(CONSONANTS) + random.choice(VOWELS) for _ in range(2))
        for initial in random.sample(INITIALS, count)
    ]
