"""Decides what leaves a full prompt: pure functions from the transcript's entries to those that stay.

By priority: the person's current instructions, the skills read for them and the newest tool results stay.
Old tool output is shortened to one line first; then old exchanges leave, for a summary; a message that is
too large by itself is cut with a clear mark.
"""

import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from agent import prompt
from agent.messages import PICTURE_TOKENS, Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Completion
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
        return self.prefix + 2_048


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
    """The line that replaces an old tool output."""
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


MARK_TOKENS = 8  # a message's role and end marks in most templates
_BLOCK = re.compile(r"\A<context>\nsummary of what was said before:\n.*?</context>\n", re.DOTALL)


def sent(entries: Sequence[Entry]) -> tuple[Message, ...]:
    """The prompt's messages as the model gets them."""
    return (System(prompt.system_text()), *(entry.message for entry in entries))


def estimate_bytes(message: Message) -> int:
    """Bytes of a message, which is nearly always an upper bound of its tokens."""
    match message:
        case Assistant(text, calls, raw, thought):
            body = raw or text + "".join(c.name + c.arguments + " " * 24 for c in calls)
            return len((thought + body).encode("utf-8", "replace")) + MARK_TOKENS
        case User(text, images):
            return len(text.encode("utf-8", "replace")) + PICTURE_TOKENS * len(images) + MARK_TOKENS
        case _:
            return len(message.text.encode("utf-8", "replace")) + MARK_TOKENS


def measure(entries: Sequence[Entry], tokens: int) -> Measure:
    """Estimates a message's tokens by its share of the transcript's weight; `tokens` is the exact total."""
    share = tokens / max(1, sum(estimate_bytes(entry.message) for entry in entries))
    return lambda message: int(estimate_bytes(message) * share) + 1


def without_newest(
    entries: Sequence[Entry], size: int, budget: WindowBudget, tokens: Measure
) -> list[Entry]:
    """The oldest entries that leave room for the request for a summary and its answer."""
    kept, excess = list(entries), size + budget.summary - budget.limit
    while excess > 0 and kept:
        excess -= tokens(kept.pop().message)
    while kept and isinstance(kept[-1].message, Assistant) and kept[-1].message.calls:
        kept.pop()
    return kept


def is_usable(completion: Completion) -> bool:
    """Whether a summary reads as notes: no tool call, not broken off, not one word repeated."""
    text = completion.text.strip()
    if completion.finish_reason == "cut" or completion.calls or len(text) < 20:
        return False
    dense = len(zlib.compress(text.encode("utf-8", "replace"))) * 5 > len(text)
    return dense and not re.search(r"<tool_call|<function=|</?tool", text)


def summary_by_rule(before: str, leaving: Sequence[Message], characters: int) -> str:
    """An extract in place of a summary: the end of the older summary, and a line for each leaving message;
    the newest take precedence."""
    lines: list[str] = []
    room = characters
    for message in reversed(leaving):
        line = extract_line(message)
        if not line:
            continue
        if len(line) > room:
            break
        lines.append(line)
        room -= len(line) + 1
    return "\n".join([*last_lines(before, room), *reversed(lines)])


def last_lines(text: str, room: int) -> list[str]:
    kept: list[str] = []
    for line in reversed(text.splitlines()):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def extract_line(message: Message) -> str:
    match message:
        case User(text):
            return f"person: {shortened(text.rpartition('</context>')[2], 160)}"
        case Assistant(text, calls):
            called = ", ".join(f"{call.name}({shortened(call.arguments, 80)})" for call in calls)
            said = shortened(text, 160)
            parts = (said and f"I said: {said}", called and f"I called {called}")
            return " ".join(filter(None, parts))
        case ToolResult(_, name, text):
            return f"{name} gave: {shortened(text, 100)}"
    return ""


def shortened(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 4]} ..."


def with_summary(message: User, summary: str, notes: Sequence[str]) -> User:
    """A person's message with the summary of what came before it, in place of an older summary."""
    words = map(str.strip, summary.replace("</context>", "").splitlines())
    lines = [f"  {line}" for line in words if line]
    block = ["<context>", "summary of what was said before:", *lines]
    if notes:
        block += ["notes:", *notes]
    text = "\n".join([*block, "</context>", without_summary(message.text)])
    return User(text, message.images)


def without_summary(text: str) -> str:
    return _BLOCK.sub("", text)
