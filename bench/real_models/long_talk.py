"""A long talk in a small window, notes over three conversations, and summaries of a repository, by a real model.

Forty messages of a person, of which twenty tell a fact; then each fact is asked for. A fact that is not answered was
either lost by compaction or overlooked by the model: the first is seen in what the conversation still holds.
"""

import asyncio
import re
import time
from dataclasses import dataclass, field
from statistics import median

from agent.agent import Agent
from agent.channels import Assignment, NoChannels
from agent.chats.chats import Chats
from agent.context.compaction_plan import sent
from agent.events import Event, ModelFinished, TextDelta, TurnFinished
from agent.store import Incoming
from agent.store.inbox import CLI
from bench.real_models.trial import Bench
from bot.job_actions import repo_summaries
from fakes.answer_faults import faults_of

CONTEXT = 4096
# What is told, what is asked afterwards, and the word of a right answer.
FACTS = (
    ("My sister is called Clara.", "What is my sister called?", "clara"),
    ("I was born in Porto.", "Where was I born?", "porto"),
    ("My locker has the number 4471.", "Which number does my locker have?", "4471"),
    ("Our dog is called Bruno.", "What is our dog called?", "bruno"),
    ("I take the train at 7:42 every morning.", "When does my train leave in the morning?", "7:42"),
    ("My favourite tea is jasmine.", "Which tea is my favourite?", "jasmine"),
    ("I am allergic to walnuts.", "What am I allergic to?", "walnut"),
    ("The wifi at the cabin is called heron.", "What is the wifi at the cabin called?", "heron"),
    ("My dentist is Doctor Okafor.", "Who is my dentist?", "okafor"),
    ("We meet on Thursdays for chess.", "On which day do we meet for chess?", "thursday"),
    ("My car is a yellow Fiat.", "Which colour has my car?", "yellow"),
    ("The spare key lies under the fig tree.", "Where does the spare key lie?", "fig"),
    ("My thesis is about lichens.", "What is my thesis about?", "lichen"),
    ("I play the cello.", "Which instrument do I play?", "cello"),
    ("Grandmother turns 90 in May.", "In which month does grandmother turn 90?", "may"),
    ("The meter reading was 20815.", "What was the meter reading?", "20815"),
    ("My boss is called Ines.", "What is my boss called?", "ines"),
    ("We want to travel to Norway.", "Where do we want to travel?", "norway"),
    ("My shoe size is 43.", "What is my shoe size?", "43"),
    ("The printer is on the third floor.", "On which floor is the printer?", "third|3"),
)  # fmt: skip
SUBJECTS = (
    "tea", "bridges", "swallows", "salt", "clouds", "paper", "violins", "maps", "bees", "glass",
    "rivers", "bread", "clocks", "wool", "lighthouses", "chess", "rice", "owls", "ink", "snow",
)  # fmt: skip
TALK = "Tell me in three sentences something about {subject}."
NOTES = 3  # facts that are to be remembered in each of two conversations; the third asks for them
COMMITS = (
    ("orders.py", "Orders are paid by invoice as well"),
    ("mail.py", "Mails go out in the customer's language"),
    ("search.py", "Search ignores accents"),
    ("orders.py", "Fix rounding of discounts"),
    ("README.md", "Describe the nightly backup"),
    ("search.py", "Search results are cached for a minute"),
    ("login.py", "Log in with a passkey"),
    ("login.py", "Lock an account after ten wrong passwords"),
)
REPOSITORY = (
    "git init -q -b main . && git config user.name Ada && git config user.email ada@localhost"
)
COMMIT = "echo '# {subject}' >> {file} && git add . && git commit -qm '{subject}' --date='{days} days ago'"


@dataclass
class Person:
    """Writes in one chat and waits for each answer. Seconds to the first word, and to the end."""

    chat: str
    chats: Chats | None = None
    first: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    not_done: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    read: int = 0
    lines: list[str] = field(default_factory=list)
    _finished: "asyncio.Queue[TurnFinished]" = field(default_factory=asyncio.Queue)
    _began: float = 0.0
    _words: bool = True

    async def event(self, _: Assignment, event: Event) -> None:
        match event:
            case TextDelta() if not self._words:
                self._words = True
                self.first.append(time.monotonic() - self._began)
            case ModelFinished(prompt_tokens=int(prompt), cached_tokens=int(cached)):
                self.read += prompt - cached
            case TurnFinished():
                self._finished.put_nowait(event)

    async def waiting(self, chat: str, why: str) -> None:
        self.lines.append(f"waiting {chat}: {why}")

    async def ask(self, text: str) -> str:
        assert self.chats
        self._began, self._words = time.monotonic(), False
        await self.chats.submit(Incoming(self.chat, CLI, str(time.time_ns()), text, origin="owner"))  # fmt: skip
        finished = await self._finished.get()
        self.whole.append(time.monotonic() - self._began)
        self.lines += [f"> {text}", finished.text]
        self.faults += faults_of(finished.text)
        if finished.reason != "done":
            self.not_done.append(finished.reason)
        print(f"{self.whole[-1]:6.1f} s  {text}  -> {' '.join(finished.text.split())[:90]}", flush=True)  # fmt: skip
        return finished.text


async def long_talk(bench: Bench, transcript: str) -> list[tuple[str, str]]:
    """What was measured, by name; all that was said goes to the file `transcript`."""
    agent = bench.agent
    found: list[tuple[str, str]] = []
    for chat, part in (("talk", talk), ("notes", notes)):
        person = Person(chat)
        async with Chats(
            agent.store, agent.run, agent.window, NoChannels(), person, agent.config.zone
        ) as chats:
            person.chats = chats
            found += await part(agent, person)
        found += [
            (f"{chat}: turns that failed", ", ".join(person.not_done) or "0"),
            (f"{chat}: answers with call text, marks or repetition", str(len(person.faults))),
            (f"{chat}: seconds to the first word, median and most", spread(person.first)),
            (f"{chat}: seconds to the end, median and most", spread(person.whole)),
            (f"{chat}: tokens read", str(person.read)),
        ]
        with open(transcript, "a", encoding="utf-8") as file:
            file.write("\n".join([f"== {chat}", *person.lines, ""]))
    return found + await summary(agent, transcript)


async def talk(agent: Agent, person: Person) -> list[tuple[str, str]]:
    """Forty messages, then twenty questions."""
    compactions = before = 0
    for (fact, _, _), subject in zip(FACTS, SUBJECTS, strict=True):
        for text in (fact, TALK.format(subject=subject)):
            await person.ask(text)
            _, entries = await agent.store.transcript.current(person.chat)
            compactions += len(entries) < before
            before = len(entries)
    held = " ".join(str(message) for message in sent(entries))
    kept = [stands(words, held) for _, _, words in FACTS]
    right = [await knows(person, question, words) for _, question, words in FACTS]
    both = sum(k and r for k, r in zip(kept, right, strict=True))
    return [
        ("talk: messages, window", f"{2 * len(FACTS)}, {CONTEXT}"),
        ("talk: compactions", str(compactions)),
        ("talk: facts that the conversation still held", f"{sum(kept)} of {len(FACTS)}"),
        ("talk: facts answered", f"{sum(right)} of {len(FACTS)}, {both} of those held"),
    ]


async def notes(agent: Agent, person: Person) -> list[tuple[str, str]]:
    """What two conversations were to remember, asked for in a third."""
    for fact, _, _ in FACTS[: 2 * NOTES]:
        if fact == FACTS[NOTES][0]:
            await agent.store.chats.new_conversation(person.chat)
        await person.ask(f"Remember: {fact}")
    stored = len(await agent.store.notes.all(person.chat))
    await agent.store.chats.new_conversation(person.chat)
    right = [await knows(person, question, words) for _, question, words in FACTS[: 2 * NOTES]]
    return [
        ("notes: stored", f"{stored} of {2 * NOTES}"),
        ("notes: answered in a third conversation", f"{sum(right)} of {2 * NOTES}"),
    ]


async def knows(person: Person, question: str, words: str) -> bool:
    return stands(words, await person.ask(question))


def stands(words: str, text: str) -> bool:
    return re.search(rf"\b(?:{words})", text, re.IGNORECASE) is not None


async def summary(agent: Agent, transcript: str) -> list[tuple[str, str]]:
    """Of a repository that is made here: how many of its commits' subjects the prose is about."""
    sandbox = await agent.sandboxes.of("summary")
    days = [COMMIT.format(file=f, subject=s.replace("'", "'\\''"), days=6 - number // 2) for number, (f, s) in enumerate(COMMITS)]  # fmt: skip
    made = await sandbox.run(" && ".join([REPOSITORY, *days]))
    assert not made.exit_code, made.output
    began = time.monotonic()
    text = await repo_summaries(agent).make("summary", ".", 1)
    seconds = time.monotonic() - began
    with open(transcript, "a", encoding="utf-8") as file:
        file.write(f"== summary\n{text}\n")
    told = sum(any(word in text.lower() for word in topic(subject)) for _, subject in COMMITS)
    return [
        ("summary: seconds", f"{seconds:.0f}"),
        ("summary: commits that it speaks of", f"{told} of {len(COMMITS)}"),
        ("summary: faults", ", ".join(faults_of(text)) or "0"),
    ]


def topic(subject: str) -> list[str]:
    """Its long words."""
    return [word.lower().strip("'s") for word in subject.split() if len(word) > 6]


def spread(seconds: list[float]) -> str:
    return f"{median(seconds):.1f}, {max(seconds):.1f}" if seconds else ""
