"""Turns an answer's bytes into JSON values, and these chunks into pieces.

The parts of a tool call are joined, and not parsed.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent.llm.openai.values import mapping, number, sequence, text, whole
from agent.messages import ToolCall
from agent.model import Completion, Piece, PrefillProgress, ReasoningPiece, TextPiece, ToolCallPiece

DONE = "[DONE]"
LONGEST_EVENT = 4 << 20  # bytes; a server may repeat the prompt in one
MOST_LINES = 1000  # of one event
MOST_VALUES = 200_000  # in one JSON text; more would block the event loop for 0.1 s
MOST_TEXT = 4 << 20  # characters of one completion, ten times the longest that models generate
MOST_CALLS = 500  # of one completion
FinishReason = Literal["stop", "tool_calls", "length", "cut"]
_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
}


class StreamTooLong(Exception):
    """An event exceeded `LONGEST_EVENT` or `MOST_LINES`, or a completion `MOST_TEXT` or `MOST_CALLS`."""


class Events:
    """Takes bytes as they arrive, split anywhere, and yields each event's JSON value, or `DONE`.

    Only `data:` lines (and `error:`, an old form of llama-server) are read: comments
    are keep-alives, other fields mean nothing here. Events that are no JSON are skipped. Raises
    StreamTooLong.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[str] = []  # lines of an event, none of which is JSON by itself
        self._size = 0  # of these lines, in bytes

    def feed(self, chunk: bytes) -> Iterator[Any]:
        first, *lines = chunk.split(b"\n")
        self._line += first
        for line in lines:
            yield from self._take(self._line.rstrip(b"\r"))
            self._line = bytearray(line)
        if len(self._line) > LONGEST_EVENT:
            raise StreamTooLong

    def close(self) -> Iterator[Any]:
        """The event that the end of the stream completes."""
        line, self._line = bytes(self._line), bytearray()
        yield from self._take(line)
        yield from self._dispatch()

    def _take(self, line: bytes | bytearray) -> Iterator[Any]:
        if not line:
            yield from self._dispatch()
            return
        name, _, value = bytes(line).partition(b":")
        if name not in (b"data", b"error"):
            return
        self._size += len(line)
        if self._size > LONGEST_EVENT or len(self._data) > MOST_LINES:
            raise StreamTooLong
        text = value.decode("utf-8", "replace").strip()
        # Most events have one line, and some servers leave out the blank lines between them.
        if (found := parse(text)) is None:
            self._data.append(text)
        else:
            self._size = 0
            yield found

    def _dispatch(self) -> Iterator[Any]:
        lines, self._data, self._size = self._data, [], 0
        if len(lines) > 1 and (whole := parse("\n".join(lines))) is not None:
            yield whole


def parse(text: str) -> Any:
    """A JSON value or `DONE`; None for anything else, and for JSON with more than MOST_VALUES."""
    if text == DONE:
        return DONE
    if sum(map(text.count, ",:[{")) > MOST_VALUES:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def native_choice(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """A chunk of llama-server's own /completion as a choice in OpenAI's form."""
    reason = "length" if chunk.get("stop_type") == "limit" else "stop"
    ended = chunk.get("stop") is True
    return {"text": chunk.get("content"), "finish_reason": reason if ended else None}


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class Chunks:
    """Takes the chunks in order, yields their pieces, and keeps what the completion needs."""

    def __init__(self) -> None:
        self.finish_reason: FinishReason | None = None
        self._size = 0  # characters
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
        progress = mapping(chunk.get("prompt_progress"))
        processed, total = whole(progress.get("processed")), whole(progress.get("total"))
        if processed is not None and total is not None:
            yield PrefillProgress(processed, total, whole(progress.get("cache")) or 0)
        choices = sequence(chunk.get("choices"))[:1]
        if "stop" in chunk:  # llama-server's own form
            choices = [native_choice(chunk)]
        for choice in map(mapping, choices):
            plain = {"content": choice.get("text")}  # a completion of a plain prompt
            yield from self._delta(mapping(choice.get("delta") or choice.get("message") or plain))
            if reason := text(choice.get("finish_reason")):
                self.finish_reason = _REASONS.get(reason, "stop")

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Piece]:
        """Raises StreamTooLong."""
        thought = text(delta.get("reasoning_content")) or text(delta.get("reasoning"))
        if thought:
            self._reasoning.append(self._counted(thought))
            yield ReasoningPiece(thought)
        if words := text(delta.get("content")):
            self._text.append(self._counted(words))
            yield TextPiece(words)
        calls = sequence(delta.get("tool_calls"))
        if len(calls) + len(self._calls) > MOST_CALLS:
            raise StreamTooLong
        for place, call in enumerate(map(mapping, calls)):
            yield self._call(place, call)

    def _call(self, place: int, delta: Mapping[str, Any]) -> ToolCallPiece:
        call = self._calls.setdefault(self._index(place, delta), _Call())
        function = mapping(delta.get("function"))
        call.id = call.id or text(delta.get("id"))
        name = text(function.get("name"))
        if name != call.name:  # some servers repeat the name in every chunk, some split it
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # some servers give the object instead of its JSON text
            arguments = json.dumps(arguments, ensure_ascii=False)
        call.arguments.append(self._counted(text(arguments)))
        return ToolCallPiece(call.name)

    def _counted(self, piece: str) -> str:
        self._size += len(piece)
        if self._size > MOST_TEXT:
            raise StreamTooLong
        return piece

    def _index(self, place: int, delta: Mapping[str, Any]) -> int:
        """The call's number. Servers that leave the index out begin each call with a new id."""
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
        """The end of the stream, with figures from OpenAI's `usage` and llama-server's `timings`."""
        usage, timings = self._usage, self._timings
        fresh, cached = whole(timings.get("prompt_n")), whole(timings.get("cache_n"))
        prompt, generated = whole(usage.get("prompt_tokens")), whole(usage.get("completion_tokens"))
        if prompt is None and fresh is not None:
            prompt = fresh + (cached or 0)
        if cached is None:
            cached = whole(mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
        if cached is None and prompt is not None and fresh is not None and usage:
            cached = max(0, prompt - fresh)  # ik_llama.cpp counts only tokens that it has read
        return Completion(
            text="".join(self._text),
            calls=tuple(
                ToolCall(call.id, call.name, "".join(call.arguments))
                for _, call in sorted(self._calls.items())
            ),
            reasoning="".join(self._reasoning),
            finish_reason=finish_reason,
            prompt_tokens=prompt,
            cached_tokens=cached,
            completion_tokens=whole(timings.get("predicted_n")) if generated is None else generated,
            ttft_ms=ttft_ms,
            prefill_tok_s=number(timings.get("prompt_per_second")),
            decode_tok_s=number(timings.get("predicted_per_second")),
            draft_tokens=whole(timings.get("draft_n")),
            draft_accepted=whole(timings.get("draft_n_accepted")),
        )
