"""Streamed chunks to pieces; tool calls are joined whole and parsed by nobody before that."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent.llm.openai.figures import figures
from agent.llm.openai.values import mapping, sequence, text, whole
from agent.messages import ToolCall
from agent.model import CallPiece, Completion, Piece, Reading, ReasoningPiece, TextPiece

FinishReason = Literal["stop", "tool_calls", "length", "cut"]
_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
}


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class Chunks:
    """Feed it each chunk; it yields pieces and keeps what the completion needs."""

    def __init__(self) -> None:
        self.finish_reason: FinishReason | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._usage: Mapping[str, Any] = {}
        self._timings: Mapping[str, Any] = {}

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[Piece]:
        self._usage = mapping(chunk.get("usage")) or self._usage
        self._timings = mapping(chunk.get("timings")) or self._timings
        if chunk.get("done") is True:
            self.finish_reason = self.finish_reason or "stop"
        if progress := mapping(chunk.get("prompt_progress")):
            yield from _reading(progress)
        for choice in map(mapping, sequence(chunk.get("choices"))[:1]):
            yield from self._delta(mapping(choice.get("delta") or choice.get("message")))
            if reason := text(choice.get("finish_reason")):
                self.finish_reason = _REASONS.get(reason, "stop")

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Piece]:
        thought = text(delta.get("reasoning_content")) or text(delta.get("reasoning"))
        if thought:
            self._reasoning.append(thought)
            yield ReasoningPiece(thought)
        if words := text(delta.get("content")):
            self._text.append(words)
            yield TextPiece(words)
        for place, call in enumerate(map(mapping, sequence(delta.get("tool_calls")))):
            yield self._call(place, call)

    def _call(self, place: int, delta: Mapping[str, Any]) -> CallPiece:
        call = self._calls.setdefault(self._index(place, delta), _Call())
        function = mapping(delta.get("function"))
        call.id = call.id or text(delta.get("id"))
        name = text(function.get("name"))
        if name != call.name:  # some servers repeat the name in every chunk, some split it
            call.name += name
        call.arguments.append(_arguments(function.get("arguments")))
        return CallPiece(call.name)

    def _index(self, place: int, delta: Mapping[str, Any]) -> int:
        """A server that leaves the index out begins each call with an id of its own."""
        index = whole(delta.get("index"))
        if index is not None:
            return index
        id = text(delta.get("id"))
        known = [key for key, call in self._calls.items() if id and call.id == id]
        if known:
            return known[0]
        last = max(self._calls, default=place)
        return last + 1 if id and self._calls else last

    def completion(self, finish_reason: FinishReason, ttft_ms: int | None) -> Completion:
        return Completion(
            text="".join(self._text),
            calls=tuple(self._joined()),
            reasoning="".join(self._reasoning),
            finish_reason=finish_reason,
            ttft_ms=ttft_ms,
            **figures(self._usage, self._timings),
        )

    def _joined(self) -> Iterator[ToolCall]:
        for _, call in sorted(self._calls.items()):
            yield ToolCall(call.id, call.name, "".join(call.arguments))


def _reading(progress: Mapping[str, Any]) -> Iterator[Reading]:
    processed, total = whole(progress.get("processed")), whole(progress.get("total"))
    if processed is not None and total is not None:
        yield Reading(processed, total, whole(progress.get("cache")) or 0)


def _arguments(value: Any) -> str:
    """Some servers give the arguments as an object instead of its JSON text."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
    return text(value)
