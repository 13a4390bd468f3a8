"""/changes: what the last turns changed in the workspace; /undo and [Undo]: taking it back."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from agent.aio import complete
from agent.sandbox.history import Change, Record, WorkspaceHistory
from agent.sandbox.output_buffer import visible
from agent.sandbox.sandbox import Sandbox
from agent.timezones import local_time
from agent.tools.files import changed_lines
from bot.approval_question import code, fenced
from bot.channel import Button, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult, whole_number
from bot.delivery import CHANGES
from bot.texts import TEXTS

TURNS = 5
NAMED = 8  # files of a turn, or conflicts
LINES = 60  # of differences
LINE_CHARACTERS = 200
ANYWAY, LEAVE = ":anyway", ":leave"


@dataclass(frozen=True, slots=True)
class ChatChanges:
    """What turns changed in a chat's workspace. `zone` is an IANA name."""

    sandbox: Sandbox
    zone: str

    async def report(self, argument: str = "") -> tuple[str, Keyboard]:
        """List the last turns, the newest with its differences, or describe the turn of that number."""
        records = await asyncio.to_thread(self.sandbox.history.ended)
        if argument.isdecimal():
            records = [each for each in records if each.number == whole_number(argument)]
        if not records:
            return TEXTS.no_changes, ()
        newest = records[0]
        parts = [self._described(record) for record in records[:TURNS]]
        if lines := await asyncio.to_thread(differences, self.sandbox.history, newest):
            parts.insert(1, fenced("\n".join(lines)))
        undo = Button(f"{CHANGES}:{newest.number}", f"{TEXTS.undo} {newest.number}")
        return "\n\n".join(parts), () if newest.undone else [[undo]]

    async def undo(self, argument: str = "", *, anyway: bool = False) -> tuple[str, Keyboard]:
        """Take back the changes of that turn, or of the last one; where something stands against it, buttons decide.

        The last one is the same until another turn changes something, so that a command that comes twice does not
        take back two.
        """
        history = self.sandbox.history
        records = await asyncio.to_thread(history.ended)
        if not records:
            return TEXTS.no_changes, ()
        if argument and not argument.isdecimal():  # of a name, say: not the last turn
            return await self.report()
        number = whole_number(argument) if argument else records[0].number
        if any(each.number == number and each.undone for each in records):
            return TEXTS.undone_already.format(number=number), ()
        result = await complete(asyncio.to_thread(history.undo, number, anyway=anyway))
        await self.sandbox.quota.measure()
        if not result.done:
            told = [
                TEXTS.conflicts[why].format(path=code(path))
                for path, why in islice(result.conflicts.items(), NAMED)
            ]
            yes = Button(f"{CHANGES}:{number}{ANYWAY}", TEXTS.undo_anyway)
            no = Button(f"{CHANGES}:{number}{LEAVE}", TEXTS.kept_touched)
            shown = listed(told, len(result.conflicts))
            return TEXTS.undo_conflicts.format(conflicts=shown), [[yes, no]]
        count = TEXTS.files.format(count=len(result.record.changes))
        text = TEXTS.undone.format(number=number, files=count)
        older = [each.number for each in records if each.number < number and not each.undone]
        more = TEXTS.undo_older.format(number=older[0]) if older else ""
        return f"{text} {more}".strip(), ()

    def _described(self, record: Record) -> str:
        count = TEXTS.files.format(count=len(record.changes))
        head = f"**{record.number}** · {local_time(record.at, self.zone):%m-%d %H:%M} · {count}"
        if record.undone:
            head += f" · {TEXTS.taken_back}"
        names = [code(f"{mark(change)} {path}") for path, change in record.changes.items()][:NAMED]
        return f"{head}\n{listed(names, len(record.changes))}"


def differences(history: WorkspaceHistory, record: Record) -> list[str]:
    """The differences of a turn's text files as hunks, each below its file's name; LINES of them."""

    def all_lines() -> Iterator[str]:
        for path, change in record.changes.items():
            contents = history.contents(change)
            try:
                before, after = (each.decode() for each in contents or ())
            except ValueError:  # binary, or nothing to compare
                continue
            if "\0" not in before + after and before != after:
                yield visible(f"{mark(change)} {path}").replace("\n", "⟨U+000A⟩")
                yield from difference(before, after)

    lines = [*islice(all_lines(), LINES + 1)]
    return [*lines[:LINES], "…"] if len(lines) > LINES else lines


def difference(before: str, after: str) -> Iterator[str]:
    """Hunks of a unified diff of two texts."""
    at = same_at_start(before.splitlines(keepends=True), after.splitlines(keepends=True))
    old, new = before[at:].splitlines(keepends=True), after[at:].splitlines(keepends=True)
    end = same_at_start(old[::-1], new[::-1])
    old_end, new_end = len(before) - end, len(after) - end
    for line in changed_lines(before, at, before[at:old_end], after[at:new_end]):
        yield visible(line[:LINE_CHARACTERS]).replace("\n", "")


def same_at_start(one: Sequence[str], other: Sequence[str]) -> int:
    """How many characters the lines have that both begin with."""
    pairs = zip(one, other, strict=False)
    return sum(len(line) for line, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def mark(change: Change) -> str:
    return "+" if change.before is None else "−" if change.after is None else "~"


def listed(lines: Sequence[str], count: int) -> str:
    """Lines as a list that says how many of `count` it leaves out."""
    more = [f"- … {count - len(lines)}"] if count > len(lines) else []
    return "\n".join([*(f"- {line}" for line in lines), *more])


async def changes(context: HandlerContext, call: CommandCall) -> None:
    """/changes lists the last turns; /changes 7 shows that one."""
    await context.send(call.chat, *await (await of_chat(context, call.chat)).report(call.argument))


async def undo(context: HandlerContext, call: CommandCall) -> None:
    """/undo takes back the last turn's changes; /undo 7 those of that one."""
    await context.send(call.chat, *await (await of_chat(context, call.chat)).undo(call.argument))


async def press_undo(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Take back a turn's changes: NUMBER, or NUMBER:anyway and NUMBER:leave where something stood against it."""
    number, _, decided = press.argument.partition(":")
    if f":{decided}" == LEAVE:
        return PressResult("", TEXTS.not_undone)
    chat = await of_chat(context, press.chat)
    text, keyboard = await chat.undo(number, anyway=f":{decided}" == ANYWAY)
    if decided:
        return PressResult("", text, keyboard)
    await context.send(press.chat, text, keyboard)  # the answer stays above it
    return PressResult()


async def of_chat(context: HandlerContext, chat: str) -> ChatChanges:
    zone = str((await context.local_time(chat)).tzinfo)
    return ChatChanges(await context.services.sandbox(chat), zone)
