"""`python -m pocket.evaluation.newcomer`: the wishes of a newcomer, through the whole demo.

Unlike the cases of the model alone, what the program answers itself counts here: a message goes from a
phone's chat through bot, agent, sandbox and Pocket, each wish in a chat of its own.

    right       what was asked for was said and done
    declined    a plain no, and nothing was changed
    wrong       anything else
"""

import asyncio
import json
import re
import signal
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from platform import node
from struct import pack
from typing import Literal
from zoneinfo import ZoneInfo

import click
from pydantic import BaseModel, ConfigDict, SecretStr

from agent.chats.assignment import Assignment
from agent.events import Event, ToolCalled, TurnFinished
from agent.sandbox.sandbox import folder_name
from bot.cli.bot import serve_until
from bot.cli.connect import running_backend
from bot.cli.demo import own_state, phone
from bot.localgram import Person
from bot.settings import AgentSection, BackendSection, Settings, StateSection, TelegramSection

WISHES = Path(__file__).with_name("newcomer.toml")
RIGHT = 0.80  # of the wishes within it
WRONG = 0.05  # of all
ZONE = "Europe/Paris"
SECONDS = 120.0  # for one answer
AT_ONCE = 2
FIRST_PERSON = 100
LONG = "The harbour office opens at eight and closes at noon. " * 70

# What a plain no says: that it cannot, does not know, or that a better model is needed.
NO = r"(?i)\b(?:can(?:no|')t|cannot|can not|could not|couldn't|unable|beyond|have no tool|do not (?:know|have|understand)|don't (?:know|have|understand)|did not understand|no such|not able|too (?:hard|difficult) for me|real model)\b"
CHANGES = r"write_file|edit_file|git_commit|remember|schedule|send_file|bash.*\b(?:rm|mv|cp|tee|sed -i|touch|mkdir|kill)\b|bash.*>"
Outcome = Literal["right", "declined", "wrong"]


class Wish(BaseModel):
    """What is said, and how a right answer is known; patterns are searched in any case of letters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    within: bool
    say: tuple[str, ...]
    answer: tuple[str, ...] = ()  # all must be in the last answer
    not_answer: tuple[str, ...] = ()
    call: str = ""  # in some call of the last turn: "name {arguments}"
    never: str = ""  # in no call of any turn
    files: Mapping[str, str] = {}  # in the workspace before
    after: Mapping[str, str] = {}  # a file, and a pattern of it when all is done; "": it is gone
    attach: Mapping[str, str] = {}  # a file that comes with the last message
    git: bool = False  # the workspace is a repository with two commits and one change


@dataclass
class Tried:
    """One wish as it went: the calls of every turn, and the last answer."""

    wish: Wish
    calls: list[list[str]] = field(default_factory=list)
    answer: str = ""
    files: dict[str, str] = field(default_factory=dict)

    def outcome(self, now: datetime) -> Outcome:
        wish, last = self.wish, self.calls[-1] if self.calls else []
        asks_something = wish.answer or wish.call or wish.after or wish.never
        right = (
            bool(asks_something)
            and all(found(pattern, self.answer, now) for pattern in wish.answer)
            and not any(found(pattern, self.answer, now) for pattern in wish.not_answer)
            and (not wish.call or any(found(wish.call, call, now) for call in last))
            and all(self.as_wanted(name, pattern) for name, pattern in wish.after.items())
        )
        forbidden = wish.never and any(
            found(wish.never, c, now) for turn in self.calls for c in turn
        )
        if right and not forbidden:
            return "right"
        changed = any(re.search(CHANGES, call) for call in last)
        return "wrong" if changed or forbidden or not re.search(NO, self.answer) else "declined"

    def as_wanted(self, name: str, pattern: str) -> bool:
        if not pattern:
            return name not in self.files
        return name in self.files and re.search(pattern, self.files[name]) is not None


def found(pattern: str, text: str, now: datetime) -> bool:
    """Whether it is there, once what only this moment knows is filled in."""
    known = {
        "hostname": re.escape(node()),
        "today": day(now.date()),
        "tomorrow": day(now.date() + timedelta(days=1)),
        "tokyo": f"{now.astimezone(ZoneInfo('Asia/Tokyo')):%H:}",
        "christmas": str((date(now.year, 12, 25) - now.date()).days),
    }
    for name, value in known.items():
        pattern = pattern.replace(f"{{{name}}}", value)
    return re.search(pattern, text.replace("’", "'"), re.IGNORECASE) is not None


def day(when: date) -> str:
    """Its weekday or its date, in the usual ways to write them."""
    return f"(?:{when:%A}|{when:%a}|{when:%Y-%m-%d}|{when.day} {when:%b}|{when:%b}[a-z]* +{when.day}\\b)"


@dataclass
class Turns:
    """A listener: what each chat's turn calls, and how it ends. Alerts and notices are no answers."""

    calls: dict[str, list[str]] = field(default_factory=dict)
    ended: dict[str, asyncio.Future[str]] = field(default_factory=dict)

    def begin(self, chat: str) -> None:
        self.calls[chat], self.ended[chat] = [], asyncio.get_running_loop().create_future()

    async def event(self, assignment: Assignment, event: Event) -> None:
        match event:
            case ToolCalled(_, name, arguments):
                line = f"{name} {json.dumps(arguments, ensure_ascii=False)}"
                self.calls[assignment.chat].append(line)
            case TurnFinished(text) if not self.ended[assignment.chat].done():
                self.ended[assignment.chat].set_result(text)

    async def waiting(self, chat: str, why: str) -> None:
        """What waits is only late."""


async def tried(person: Person, wish: Wish, state: Path, turns: Turns) -> Tried:
    """The person says it all, each message when the one before is answered."""
    chat = f"tg:{person.id}"
    workspace = state / "chats" / folder_name(chat) / "work"
    await asyncio.to_thread(lay, workspace, wish)
    outcome = Tried(wish)
    for number, words in enumerate(wish.say, 1):
        words = words.replace("{long}", LONG)
        turns.begin(chat)
        if wish.attach and number == len(wish.say):
            await send_file(person, wish.attach, words)
        else:
            await person.send(words)
        try:
            async with asyncio.timeout(SECONDS):
                outcome.answer = await turns.ended[chat]
        except TimeoutError:
            outcome.answer = f"(no answer in {SECONDS:.0f} s)"
        outcome.calls.append(turns.calls[chat])
    outcome.files = await asyncio.to_thread(contents, workspace)
    return outcome


async def send_file(person: Person, attach: Mapping[str, str], caption: str) -> None:
    ((name, content),) = attach.items()
    if content == "{png}":
        await person.send_file("photo", png(), name, caption=caption)
    elif content == "{ogg}":
        await person.send_file("voice", b"OggS" + bytes(64), name, seconds=2)
    else:
        await person.send_file("document", content.encode(), name, caption=caption)


def png() -> bytes:
    """A grey square of eight pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return pack(">I", len(body)) + kind + body + pack(">I", zlib.crc32(kind + body))

    header = pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * 8) * 8)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def lay(workspace: Path, wish: Wish) -> None:
    workspace.mkdir(mode=0o700, parents=True)
    for name, content in wish.files.items():
        path = workspace / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, "utf-8")
    if wish.git:
        git = partial(subprocess.run, cwd=workspace, check=True, capture_output=True)
        git(["git", "init", "-q", "-b", "main"])
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
            git(["git", "config", key, value])
        for text, message in (("la\n", "First song"), ("la la\n", "Teach the parrot")):
            (workspace / "songs.txt").write_text(text, "utf-8")
            git(["git", "add", "-A"])
            git(["git", "commit", "-q", "-m", message])
        (workspace / "songs.txt").write_text("la la la\n", "utf-8")


def contents(workspace: Path) -> dict[str, str]:
    return {
        str(path.relative_to(workspace)): path.read_text("utf-8", "replace")
        for path in workspace.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


async def measure(wishes: Sequence[Wish], progress: Callable[[int, Tried], None]) -> list[Tried]:
    """All of them, `AT_ONCE` at a time; `progress` is told of each with how many are done."""
    turns, done = Turns(), 0
    async with phone(0) as (gram, _), own_state() as state:
        people = [
            gram.user(f"Newcomer {n}", id=FIRST_PERSON + n, started=True)
            for n in range(len(wishes))
        ]
        settings = Settings.model_construct(
            telegram=TelegramSection(
                token=SecretStr(gram.token), base_url=gram.url, owners=[p.id for p in people]
            ),
            agent=AgentSection(timezone=ZONE),
            backend=BackendSection(),
            state=StateSection(dir=state),
        )
        lanes = asyncio.Semaphore(AT_ONCE)

        async def one(person: Person, wish: Wish) -> Tried:
            nonlocal done
            async with lanes:
                outcome = await tried(person, wish, state, turns)
            done += 1
            progress(done, outcome)
            return outcome

        async def everything() -> list[Tried]:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(*pair)) for pair in zip(people, wishes, strict=True)]
            return [task.result() for task in tasks]

        async with running_backend(settings) as backend:
            results = await serve_until(everything(), settings, backend, [turns])
    return results


def table(results: Sequence[Tried], now: datetime) -> tuple[str, bool]:
    """The counts by kind, and whether both targets are met."""
    outcomes = [(each.wish.within, each.outcome(now)) for each in results]
    lines = [f"{'':<12}{'wishes':>8}{'right':>8}{'declined':>10}{'wrong':>8}"]
    for name, kind in (("within it", True), ("beyond it", False)):
        mine = [outcome for within, outcome in outcomes if within is kind]
        counts = [mine.count(each) for each in ("right", "declined", "wrong")]
        lines.append(f"{name:<12}{len(mine):>8}{counts[0]:>8}{counts[1]:>10}{counts[2]:>8}")
    within = [outcome for is_within, outcome in outcomes if is_within]
    right = within.count("right") / max(len(within), 1)
    wrong = sum(outcome == "wrong" for _, outcome in outcomes) / max(len(outcomes), 1)
    met = right >= RIGHT and wrong <= WRONG
    lines.append(f"right of those within it        {right:6.1%}   at least {RIGHT:.0%}")
    lines.append(f"wrong without a plain no, of all {wrong:5.1%}   at most {WRONG:.0%}")
    return "\n".join(lines), met


def as_lines(tried_one: Tried, now: datetime) -> str:
    wish = tried_one.wish
    kind = "within" if wish.within else "beyond"
    shown = [f"{tried_one.outcome(now):<9}{kind}  {' / '.join(wish.say)[:200]}"]
    shown += [f"    → {call[:200]}" for turn in tried_one.calls for call in turn]
    shown += [f"    {line[:300]}" for line in tried_one.answer.splitlines()[:12]]
    return "\n".join(shown)


@click.command()
@click.option("--only", default="", help="Only the wishes in which these words occur.")
@click.option("--show", is_flag=True, help="Print each wish with its calls and its answer.")
def main(only: str, show: bool) -> None:
    """Try what a newcomer asks, through the whole demo; exit 1 below a target."""
    with WISHES.open("rb") as file:
        wishes = [Wish.model_validate(each) for each in tomllib.load(file)["wish"]]
    chosen = [each for each in wishes if only.lower() in " / ".join(each.say).lower()]
    if not chosen:
        raise click.UsageError(f"there is no wish with {only!r}")

    def progress(done: int, outcome: Tried) -> None:
        print(f"\r{done} of {len(chosen)}", end="", file=sys.stderr, flush=True)
        if show:
            print(as_lines(outcome, datetime.now(ZoneInfo(ZONE))), flush=True)

    results = asyncio.run(measure(chosen, progress))
    print(file=sys.stderr)
    now = datetime.now(ZoneInfo(ZONE))
    text, met = table(results, now)
    print(text)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the state's folder goes too
    main()
