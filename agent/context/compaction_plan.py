"""What leaves a prompt that is full. Pure: the transcript's entries in, those that stay out.

By priority: the person's current instructions, with the skills that were read for them, and the newest tool results stay;
old tool output shrinks to one line first; then old exchanges leave, for a
summary; what alone is too large is cut with a clear mark.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.messages import Assistant, Message, ToolCall, ToolResult, User
from agent.sandbox.bubblewrap import SKILLS
from agent.store.transcript import Entry

NEWEST = 2  # groups with tool results that are never shrunk
SHORT = 300  # characters of output or of an argument that are not worth a line in their place
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
        """What a compaction leaves: 40 % of the window, and in a small one a quarter of what is free."""
        return max(self.limit * 4 // 10, self.prefix + (self.limit - self.prefix) // 4)

    @property
    def high(self) -> int:
        """From here a compaction is due between turns."""
        return self.limit * 8 // 10

    @property
    def hard(self) -> int:
        """From here a model call could not finish its answer."""
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

    @property
    def is_user(self) -> bool:
        return isinstance(self.entries[0].message, User)

    @property
    def has_results(self) -> bool:
        return len(self.entries) > 1


def plan(
    entries: Sequence[Entry], room: int, summary: int, measure: Measure, saved: Mapping[int, str]
) -> list[Entry]:
    """The transcript brought down to `room` tokens, `summary` of them left free for the summary.

    `saved` names, per row, the file that holds a tool's whole output.
    """
    lean = shrink_old(entries, saved)
    if sum(measure(entry.message) for entry in lean) <= room:
        return lean
    kept = keep_newest(_groups(lean, measure), room - summary)
    return _cut(kept, room - summary, measure)


def shrink_old(entries: Sequence[Entry], saved: Mapping[int, str]) -> list[Entry]:
    """Entries with all but the newest tool outputs and long arguments as one line, old thoughts left out."""
    groups = _groups(entries, lambda message: 0)
    with_results = [group for group in groups if group.has_results][-NEWEST:]
    with_results += [group for group in groups if reads_skill(group.entries[0].message)]
    newest = {entry.id for group in with_results for entry in group.entries}
    return [e if e.id in newest else shrunk(e, saved.get(e.id, "")) for e in entries]


def to_save(entries: Sequence[Entry]) -> list[Entry]:
    """Tool results that will shrink and whose whole output no file holds yet."""
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
        case Assistant(text, calls, raw):  # and without its thought
            slim = tuple(ToolCall(c.id, c.name, slim_arguments(c.arguments)) for c in calls)
            return replace(
                entry, message=Assistant(text, slim, clip(raw, 2 * SHORT) if calls else raw)
            )
    return entry


def one_line(name: str, text: str, saved: str = "") -> str:
    """What stands for an old tool output."""
    found = _SAVED.search(text)
    where = found.group() if found else saved
    lines, first = text.count("\n") + 1, " ".join(text.split())[:80].strip()
    tail = f"; whole in {where}" if where else ""
    return f"[{name} gave {lines:,} lines, {len(text):,} characters: {first} ...{tail}]"


def slim_arguments(arguments: str) -> str:
    """Long strings in a call's arguments by their length; still JSON where it was."""
    if len(arguments) <= SHORT:
        return arguments
    try:
        fields = json.loads(arguments)
    except ValueError:
        return "{}"
    if not isinstance(fields, dict):
        return "{}"
    slim = {k: _slim(v) for k, v in fields.items()}
    return json.dumps(slim, ensure_ascii=False, separators=(",", ":"))


def _slim(value: object) -> object:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"[{len(text):,} characters left out]" if len(text) > SHORT else value


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
    """What the person asked in the newest turn, and the skills that were read for it."""
    users = [e for e in entries if isinstance(e.message, User) and not e.own]
    asked = {entry.id for entry in users if entry.turn == users[-1].turn}
    return asked | {
        e.id for e in entries if asked and e.turn == users[-1].turn and reads_skill(e.message)
    }


def reads_skill(message: Message) -> bool:
    """Whether a call reads instructions that the owner has added."""
    calls = message.calls if isinstance(message, Assistant) else ()
    return any(f"{SKILLS}/" in call.arguments for call in calls)


def keep_newest(groups: Sequence[_Group], room: int) -> list[Entry]:
    """The instructions, the newest group, and as much before it as has room."""
    room -= sum(group.size for group in groups if group.instruction)
    first = len(groups) - 1
    room -= 0 if groups[first].instruction else groups[first].size
    while first > 0 and (groups[first - 1].instruction or groups[first - 1].size <= room):
        first -= 1
        room -= 0 if groups[first].instruction else groups[first].size
    if not any(group.instruction for group in groups[:first]):
        # Templates want a person's words before the model's.
        first = next((i for i in range(first, len(groups)) if groups[i].is_user), first)
    kept = [g for i, g in enumerate(groups) if i >= first or g.instruction]
    return [entry for group in kept for entry in group.entries]


def _cut(entries: Sequence[Entry], room: int, measure: Measure) -> list[Entry]:
    """Cut the largest messages until all have room, or none is large."""
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
            slim = tuple(ToolCall(c.id, c.name, slim_arguments(c.arguments)) for c in calls)
            text, raw = clip(text, int(len(text) * share)), clip(raw, int(len(raw) * share))
            return replace(entry, message=Assistant(text, slim, raw))
    return entry
