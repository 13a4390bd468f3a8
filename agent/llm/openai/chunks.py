"""Turns an answer's bytes into JSON values, and these chunks into pieces.

The parts of a tool call are joined, and not parsed.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from agent.llm.openai.streamed_calls import StreamedCalls
from agent.llm.openai.values import TextStream, mapping, number, sequence, text, whole
from agent.model import Completion, Piece, PrefillProgress, ReasoningPiece, TextPiece, ToolCallPiece

DONE = "[DONE]"
LONGEST_EVENT = 4 << 20  # bytes; a server may repeat the prompt in one
MOST_LINES = 1000  # of one event
MOST_VALUES = 200_000  # in one JSON text; more would block the event loop for 0.1 s
MOST_TEXT = 4 << 20  # characters of one completion, ten times the longest that models generate
MOST_CALLS = 500  # of one completion
FinishReason = Literal["stop", "tool_calls", "length", "cut"]
_REASONS: dict[str, FinishReason] = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete"), "stop"),
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), "tool_calls"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    **dict.fromkeys(("max_completion_tokens", "model_context_window_exceeded"), "length"),
    "incomplete": "length",
    # The server's own faults: the answer is asked for again.
    **dict.fromkeys(("abort", "aborted", "cancelled", "canceled", "error", "network_error"), "cut"),
    **dict.fromkeys(("timeout", "insufficient_system_resource"), "cut"),
}
# Of llama-server and vLLM; of newer vLLM, Ollama and OpenRouter; of others, and of OpenRouter in parts.
THOUGHTS = ["reasoning_content", "reasoning", "thinking", "reasoning_details"]
LONGEST_REASON = 60  # characters of an unknown one that a person is told


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
        self._size = 0  # of the event's lines, in bytes

    def feed(self, chunk: bytes) -> Iterator[Any]:
        first, *lines = chunk.split(b"\n")
        self._line += first
        for line in lines:
            yield from self._take(self._line.rstrip(b"\r"))
            self._line = bytearray(line)
        if len(self._line) > LONGEST_EVENT:
            raise StreamTooLong

    def close(self) -> Iterator[Any]:
        """Yield the event that ended with the stream, without an empty line behind it."""
        line, self._line = bytes(self._line), bytearray()
        yield from self._take(line)
        yield from self._dispatch()

    def _take(self, line: bytes | bytearray) -> Iterator[Any]:
        if not line:
            yield from self._dispatch()
            return
        name, _, value = bytes(line).partition(b":")
        self._size += len(line) if name else 0  # a comment keeps the connection alive
        if self._size > LONGEST_EVENT or len(self._data) > MOST_LINES:
            raise StreamTooLong
        if name not in (b"data", b"error"):
            return
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


def printable(reason: str) -> str:
    return "".join(filter(str.isprintable, reason))[:LONGEST_REASON]


def native_choice(chunk: Mapping[str, Any]) -> dict[str, Any]:
    """A chunk of llama-server's own /completion as a choice in OpenAI's form."""
    reason = "length" if chunk.get("stop_type") == "limit" else "stop"
    ended = chunk.get("stop") is True
    return {"text": chunk.get("content"), "finish_reason": reason if ended else None}


class Chunks:
    """Takes the chunks in order, yields their pieces, and keeps what the completion needs."""

    def __init__(self) -> None:
        self.finish_reason: FinishReason | None = None
        self._ended = ""
        self._size = 0  # characters
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._words, self._thoughts = TextStream(), TextStream()
        self._calls = StreamedCalls()
        self._usage: Mapping[str, Any] = {}
        self._timings: Mapping[str, Any] = {}

    def feed(self, chunk: Mapping[str, Any]) -> Iterator[Piece]:
        self._timings = mapping(chunk.get("timings")) or self._timings
        if chunk.get("done") is True:
            self.finish_reason = self.finish_reason or "stop"
        if progress := mapping(chunk.get("prompt_progress")):
            processed, total = whole(progress.get("processed")), whole(progress.get("total"))
            if processed is not None and total is not None:
                yield PrefillProgress(processed, total, whole(progress.get("cache")) or 0)
        choices = sequence(chunk.get("choices"))
        choice = mapping(choices[0]) if choices else {}
        if "stop" in chunk and "choices" not in chunk:  # llama-server's own form
            choice = native_choice(chunk)
        groq = mapping(chunk.get("x_groq"))
        for usage in (chunk.get("usage"), groq.get("usage"), choice.get("usage")):  # Moonshot
            if usage:
                self._usage = mapping(usage) or self._usage
        if not (delta := choice.get("delta")):
            message = choice.get("message")
            if isinstance(message, dict):  # perhaps what was streamed, once more as a whole
                told = [*(["content"] * bool(self._text)), *(THOUGHTS * bool(self._reasoning))]
                message = {key: value for key, value in message.items() if key not in told}
            delta = message or {"content": choice.get("text")}  # a completion of a plain prompt
        yield from self._delta(mapping(delta))
        if reason := text(choice.get("finish_reason")):
            known = _REASONS.get(reason.strip().lower())
            self.finish_reason = known or "stop"
            self._ended = "" if known else printable(reason)

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Piece]:
        """Raises StreamTooLong."""
        content, thought = delta.get("content"), ""
        for key in THOUGHTS:
            if key in delta and (thought := self._thoughts.read(delta[key])):
                break
        if isinstance(content, list) and not thought:
            thought = "".join(text(mapping(part).get("thinking")) for part in content)
        if thought:
            self._reasoning.append(self._counted(thought))
            yield ReasoningPiece(thought)
        if words := self._words.read(content) or text(delta.get("refusal")):
            self._text.append(self._counted(words))
            yield TextPiece(words)
        calls = delta.get("tool_calls")
        if not calls and (function := delta.get("function_call")):
            calls = {"function": function}
        calls = [calls] if isinstance(calls, dict) else sequence(calls)
        calls = [call for call in map(mapping, calls) if any(call.values())]
        if len(calls) + len(self._calls) > MOST_CALLS:
            raise StreamTooLong
        for place, call in enumerate(calls):
            name, arguments = self._calls.feed(call, place if len(calls) > 1 else None)
            self._counted(arguments)
            yield ToolCallPiece(name)

    def _counted(self, piece: str) -> str:
        self._size += len(piece)
        if self._size > MOST_TEXT:
            raise StreamTooLong
        return piece

    def completion(self, finish_reason: FinishReason, ttft_ms: int | None) -> Completion:
        """The end of the stream, with figures from OpenAI's `usage` and llama-server's `timings`."""
        usage, timings = self._usage, self._timings
        fresh, cached = whole(timings.get("prompt_n")), whole(timings.get("cache_n"))
        prompt = whole(usage.get("prompt_tokens", usage.get("input_tokens")))
        generated = whole(usage.get("completion_tokens", usage.get("output_tokens")))
        if prompt is None and fresh is not None:
            prompt = fresh + (cached or 0)
        if cached is None:
            cached = whole(mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
        if cached is None and prompt is not None and fresh is not None and usage:
            cached = max(0, prompt - fresh)  # ik_llama.cpp counts only tokens that it has read
        return Completion(
            text="".join(self._text),
            calls=tuple(self._calls.finished()),
            reasoning="".join(self._reasoning),
            finish_reason=finish_reason,
            ended=self._ended,
            prompt_tokens=prompt,
            cached_tokens=cached,
            completion_tokens=whole(timings.get("predicted_n")) if generated is None else generated,
            ttft_ms=ttft_ms,
            prefill_tok_s=number(timings.get("prompt_per_second")),
            decode_tok_s=number(timings.get("predicted_per_second")),
            draft_tokens=whole(timings.get("draft_n")),
            draft_accepted=whole(timings.get("draft_n_accepted")),
        )
