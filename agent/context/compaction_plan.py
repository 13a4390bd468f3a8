"""Decides what leaves a full prompt: pure functions from the transcript's entries to those that stay.

By priority: the person's current instructions, the skills read for them and the newest tool results stay.
Old tool output is shortened to one line first; then old exchanges leave, for a summary; a message that is
too large by itself is cut with a clear mark.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.messages import Assistant, Message, ToolCall, ToolResult, User
from agent.sandbox.bubblewrap import SKILLS
from agent.store.transcript import Entry

NEWEST = 2  # groups with tool results that are never shortened
SHORT = 300  # characters of output or of an argument that are not worth shortening
_SAVED = re.compile(r"/workspace/\.voltaire/out/[\w.-]+")

Measure = Callable[[Message], int]  # tokens of a message


@dataclass(frozen=True, slots=True)
class WindowBudget:
    """Tokens. `limit` is the window, or the profile's useful context where that is smaller;
    `prefix` is what system text and tools take of it."""

    limit: int
    prefix: int

    @property
    def low(self) -> int:
        """The size after a compaction: 40 % of the window, in a small one the prefix and a quarter of the rest."""
        return max(self.limit * 4 // 10, self.prefix + (self.limit - self.prefix) // 4)

    @property
    def high(self) -> int:
        """The size beyond which a compaction is due between turns."""
        return self.limit * 8 // 10

    @property
    def hard(self) -> int:
        """The size beyond which a model call might not have room to finish its answer."""
        return self.limit * 9 // 10

    @property
    def summary(self) -> int:
        return min(1_000, max(128, self.limit // 16))

    @property
    def least(self) -> int:
        """The smallest window in which this prefix leaves enough for a conversation."""
        return self.prefix + 2_560


@dataclass(frozen=True, slots=True)
class _Group:
    """A user message, or a model's message with the results of its calls: they leave together."""

    entries: tuple[Entry, ...]
    size: int
    instruction: bool


def plan(
    entries: Sequence[Entry], room: int, summary: int, measure: Measure, saved: Mapping[int, str]
) -> list[Entry]:
    """The transcript reduced to `room` tokens, `summary` of them left free for the summary. `saved` is
    {row id: the file that holds a tool's whole output}."""
    lean = shrink_old(entries, saved)
    if sum(measure(entry.message) for entry in lean) <= room:
        return lean
    kept = keep_newest(_groups(lean, measure), room - summary)
    return _cut(kept, room - summary, measure)


def shrink_old(entries: Sequence[Entry], saved: Mapping[int, str]) -> list[Entry]:
    """Entries with all but the newest tool outputs and long arguments shortened, and without old thoughts."""
    groups = _groups(entries, lambda message: 0)
    whole = [group for group in groups if len(group.entries) > 1][-NEWEST:]
    whole += [group for group in groups if reads_skill(group.entries[0].message)]
    ids = {entry.id for group in whole for entry in group.entries}
    return [e if e.id in ids else shrunk(e, saved.get(e.id, "")) for e in entries]


def to_save(entries: Sequence[Entry]) -> list[Entry]:
    """Tool results that will be shortened and whose whole output is in no file yet."""
    after = {entry.id: entry.message for entry in shrink_old(entries, {})}
    return [
        entry
        for entry in entries
        if after[entry.id] != entry.message
        and isinstance(entry.message, ToolResult)
        and not _SAVED.search(entry.message.text)
    ]


def shrunk(entry: Entry, saved: str) -> Entry:
    match entry.message:
        case ToolResult(call, name, text) if len(text) > SHORT:
            return replace(entry, message=ToolResult(call, name, one_line(name, text, saved)))
        case Assistant(text, calls, raw):  # without its thought
            raw = clip(raw, 2 * SHORT) if calls else raw
            return replace(entry, message=Assistant(text, slim_calls(calls), raw))
    return entry


def one_line(name: str, text: str, saved: str = "") -> str:
    """The line that stands for an old tool output."""
    found = _SAVED.search(text)
    where = found.group() if found else saved
    lines, first = text.count("\n") + 1, " ".join(text.split())[:80].strip()
    tail = f"; whole in {where}" if where else ""
    return f"[{name} gave {lines:,} lines, {len(text):,} characters: {first} ...{tail}]"


def slim_calls(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(call.id, call.name, slim_arguments(call.arguments)) for call in calls)


def slim_arguments(arguments: str) -> str:
    """The JSON of a call's arguments with long values replaced by their length; "{}" for no JSON object."""
    if len(arguments) <= SHORT:
        return arguments
    try:
        fields = json.loads(arguments)
    except ValueError:
        return "{}"
    if not isinstance(fields, dict):
        return "{}"
    for name, value in fields.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) > SHORT:
            fields[name] = f"[{len(text):,} characters left out]"
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def clip(text: str, most: int, where: str = "") -> str:
    """Head and tail of a text that is longer than `most` characters, with a clear mark between."""
    if len(text) <= most:
        return text
    mark = f"\n[... {len(text) - most:,} characters left out{f'; whole in {where}' if where else ''} ...]\n"
    head = max(0, most * 2 // 3)
    return text[:head] + mark + text[len(text) - (most - head) :]


def _groups(entries: Sequence[Entry], measure: Measure) -> list[_Group]:
    asked = instructions(entries)
    groups: list[list[Entry]] = []
    for entry in entries:
        if isinstance(entry.message, ToolResult) and groups:
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return [
        _Group(tuple(group), sum(measure(e.message) for e in group), group[0].id in asked)
        for group in groups
    ]


def instructions(entries: Sequence[Entry]) -> set[int]:
    """Ids of the person's messages in the newest turn, and of the calls that read skills for it."""
    users = [e for e in entries if isinstance(e.message, User) and not e.own]
    asked = {entry.id for entry in users if entry.turn == users[-1].turn}
    return asked | {
        e.id for e in entries if asked and e.turn == users[-1].turn and reads_skill(e.message)
    }


def reads_skill(message: Message) -> bool:
    """Whether one of the message's calls reads a skill, which are instructions of the owner."""
    calls = message.calls if isinstance(message, Assistant) else ()
    return any(f"{SKILLS}/" in call.arguments for call in calls)


def keep_newest(groups: Sequence[_Group], room: int) -> list[Entry]:
    """The instructions, the newest group, and as many groups before it as have room."""
    room -= sum(group.size for group in groups if group.instruction)
    first = len(groups) - 1
    room -= 0 if groups[first].instruction else groups[first].size
    while first > 0 and (groups[first - 1].instruction or groups[first - 1].size <= room):
        first -= 1
        room -= 0 if groups[first].instruction else groups[first].size
    if not any(group.instruction for group in groups[:first]):
        # Templates require a user message before the model's.
        users = (i for i, group in enumerate(groups) if isinstance(group.entries[0].message, User))
        first = next((i for i in users if i >= first), first)
    kept = [g for i, g in enumerate(groups) if i >= first or g.instruction]
    return [entry for group in kept for entry in group.entries]


def _cut(entries: Sequence[Entry], room: int, measure: Measure) -> list[Entry]:
    """Cut the largest messages until all fit, or none is large."""
    cut = list(entries)
    sizes = [measure(entry.message) for entry in cut]
    while sum(sizes) > room and max(sizes) > 200:
        at = sizes.index(max(sizes))
        share = max(200, sizes[at] - (sum(sizes) - room), sizes[at] // 2)
        cut[at] = clipped(cut[at], share / sizes[at])
        shorter = measure(cut[at].message)
        if shorter >= sizes[at]:
            break
        sizes[at] = shorter
    return cut


def clipped(entry: Entry, share: float) -> Entry:
    match entry.message:
        case User(text, images):
            return replace(entry, message=User(clip(text, int(len(text) * share)), images))
        case ToolResult(call, name, text):
            text = clip(text, int(len(text) * share))
            return replace(entry, message=ToolResult(call, name, text))
        case Assistant(text, calls, raw):
            text, raw = clip(text, int(len(text) * share)), clip(raw, int(len(raw) * share))
            return replace(entry, message=Assistant(text, slim_calls(calls), raw))
    return entry
