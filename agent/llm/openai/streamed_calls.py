"""Joins the parts of tool calls as they are streamed.

Servers disagree about what names a call. Ollama's older parsers and Gemini's endpoint give every call the
index 0, others leave out the index or the id, give each part a new id, repeat id and name in each part, or repeat
the whole call at the end. So id, name, index, and whether the arguments so far are a whole object decide together.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.llm.openai.values import TextStream, mapping, text, whole
from agent.messages import ToolCall

MOST_COMPARED = 32  # calls that a repetition is looked for among
_MARKS = re.compile(r'\\.?|["{}]', re.DOTALL)


@dataclass(slots=True)
class _Call:
    id: str
    index: int | None  # None: the server gave none
    order: int
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    size: int = 0  # of the arguments, in characters
    blank: bool = True
    complete: bool = False  # whether the arguments so far are a whole object, by their braces
    _depth: int = 0  # of braces
    _quoted: bool = False
    _escaped: bool = False

    @property
    def empty_object(self) -> bool:
        return self.size < 9 and "".join(self.arguments).strip() == "{}"

    def add(self, piece: str) -> None:
        if self.blank:
            piece = piece.lstrip()
        self.arguments.append(piece)
        self.size += len(piece)
        if not piece:
            return
        self.blank = False
        marks = _MARKS.findall(piece[1:] if self._escaped else piece)
        for mark in marks:
            if mark == '"':
                self._quoted = not self._quoted
            elif mark[0] != "\\" and not self._quoted:
                self._depth += 1 if mark == "{" else -1
        if marks or self._escaped:
            self._escaped = bool(marks) and marks[-1] == "\\"
        self.complete = self._depth == 0 and not self._quoted

    def same_arguments(self, piece: str) -> bool:
        """Whether `piece` is the same object, perhaps in another form."""
        if self.size > 2 * len(piece):  # a long text is not parsed for a short one
            return False
        before = "".join(self.arguments)
        if before.strip() == piece.strip():
            return True
        try:
            return bool(json.loads(before) == json.loads(piece))
        except (ValueError, RecursionError):
            return False

    def restart(self) -> None:
        self.arguments.clear()
        self.size = self._depth = 0
        self._quoted = self._escaped = self.complete = False
        self.blank = True


class StreamedCalls:
    """Takes each chunk's `tool_calls` in order."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._last: _Call | None = None  # that a part was added to
        self._arguments = TextStream()

    def __len__(self) -> int:
        return len(self._calls)

    def feed(self, delta: Mapping[str, Any], place: int | None) -> tuple[str, str]:
        """Take a part; the name of its call, and the arguments that are new.

        `place` is the part's place among several of one chunk, None for a part that came alone.
        """
        function = mapping(delta.get("function")) or delta  # some servers leave that level out
        id, name = text(delta.get("id")), text(function.get("name"))
        index = whole(delta.get("index"))
        arguments = function.get("arguments", function.get("parameters"))
        if isinstance(arguments, dict):  # some servers give the object instead of its JSON text
            arguments = json.dumps(arguments, ensure_ascii=False)
        piece = self._arguments.read(arguments)
        last = self._last
        same = last and (not id or id == last.id) and (not name or name == last.name)
        if last and same and (index is None or index == last.index) and is_middle(last, piece):
            last.add(piece)
            return last.name, piece
        if not id and index is None:
            index = place
        call = self._candidate(id, name, index, piece)
        goes_on = call is not None and not call.blank and not call.complete
        if not (goes_on and call and name in ("", call.name)) and (
            repeated := self._repeated(id, name, index, piece)
        ):
            return repeated.name, ""
        if call is None or begins_new(call, id, name, piece):
            order = max((c.order for c in self._calls), default=-1) + 1 if index is None else index
            call = _Call(id, index, order)
            self._calls.append(call)
        elif call.complete and begins_object(piece) and call.empty_object:
            call.restart()  # it stood for arguments that come only now
        elif goes_on and begins_object(piece) and piece.startswith("".join(call.arguments)):
            call.restart()  # each part has all arguments so far
        call.id = call.id or id
        if name.startswith(call.name):
            call.name = name
        elif name:  # some servers split the name
            call.name += name
        call.add(piece)
        self._last = call
        return call.name, piece

    def _repeated(self, id: str, name: str, index: int | None, piece: str) -> _Call | None:
        """The complete call that this part repeats as a whole."""
        if not begins_object(piece):
            return None
        for call in self._calls[-MOST_COMPARED:]:
            if not call.complete or name not in ("", call.name):
                continue
            if id and id == call.id:
                same = True
            elif index is not None and call.index is not None:
                same = index == call.index
            else:
                same = not (id and call.id)
            if same and call.same_arguments(piece):
                return call
        return None

    def _candidate(self, id: str, name: str, index: int | None, piece: str) -> _Call | None:
        """The call that this part belongs to, unless it begins a new one."""
        latest = self._calls[::-1]
        with_id = [call for call in latest if id and call.id == id]
        at_index = [call for call in latest if index is not None and call.index == index]
        for call in (*with_id, *at_index):
            if call.id == id and (index is None or call.index in (None, index)):
                return call
        if at_index:
            return at_index[0]
        if index is None:
            return self._last
        if with_id and (not name or is_middle(with_id[0], piece)):
            return with_id[0]
        nameless = self._last is not None and not name and not id
        return self._last if nameless and not begins_object(piece) else None

    def finished(self) -> Iterator[ToolCall]:
        """The calls by their index. Empty parts that turned out to begin nothing are left out."""
        full = {(call.index, call.name) for call in self._calls if not call.blank}
        for call in sorted(self._calls, key=lambda call: call.order):
            if call.blank and (not call.name or (call.index, call.name) in full):
                continue
            yield ToolCall(call.id, call.name, "".join(call.arguments))


def begins_object(piece: str) -> bool:
    return "{" in piece and piece.lstrip()[0] == "{"


def is_middle(call: _Call, piece: str) -> bool:
    """Whether `piece` continues the arguments of `call`: they are begun and not whole, and it begins no object."""
    return not call.blank and not call.complete and not begins_object(piece)


def begins_new(call: _Call, id: str, name: str, piece: str) -> bool:
    """Whether a part begins a new call, though its id or index would put it to `call`."""
    other_id = bool(id and call.id and id != call.id)
    same_id = bool(id) and id == call.id
    if call.complete:
        if not piece.strip():
            return other_id or bool(name and not same_id)
        if call.empty_object and not other_id and (same_id or not name) and name in ("", call.name):
            return False
        return other_id or bool(name)
    if not name or not call.name:
        return False
    if name == call.name and call.index is None and begins_object(piece):
        return other_id
    if name == call.name:
        return other_id and call.blank and not piece
    # The rest of a split name: a call that has an id is not followed by one without.
    if call.id and not id and (call.blank or not begins_object(piece)):
        return False
    if other_id or not call.blank:
        return True
    # The rest of a split name, or the next call after one without arguments.
    return begins_object(piece) and piece.rstrip().endswith("}") and not same_id
