"""Which parts of a stream are one call, and which ends are ends."""

import json
from typing import Any

import pytest

from agent.llm.openai.chunks import Chunks
from agent.messages import ToolCall
from agent.model import Completion

ONE, TWO = '{"command": "ls"}', '{"command": "df -h"}'


def part(*sent: Any) -> dict[str, Any]:
    """Index, id, name, arguments; None for what the server leaves out."""
    index, id, name, arguments = sent
    function = {"name": name, "arguments": arguments}
    told = {
        "index": index,
        "id": id,
        "function": {k: v for k, v in function.items() if v is not None},
    }
    return {key: value for key, value in told.items() if value is not None}


def completed(*deltas: dict[str, Any], reason: str = "tool_calls") -> Completion:
    chunks = Chunks()
    for delta in deltas:
        for _ in chunks.feed({"choices": [{"index": 0, "delta": delta}]}):
            pass
    for _ in chunks.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}):
        pass
    assert chunks.finish_reason
    return chunks.completion(chunks.finish_reason, None)


def streamed(*parts: Any) -> list[tuple[str, str]]:
    """Names and arguments of the calls; a list of parts stands for several in one chunk."""
    lists = [each if isinstance(each, list) else [each] for each in parts]
    done = completed(*({"tool_calls": [part(*each) for each in several]} for several in lists))
    return [(call.name, call.arguments) for call in done.calls]


BOTH = [("bash", ONE), ("bash", TWO)]
OTHER = [("bash", ONE), ("grep", TWO)]


@pytest.mark.parametrize(
    ("parts", "calls"),
    [
        # Each call complete, all of them index 0 (Ollama's older parsers, Gemini's endpoint).
        ([(0, "a", "bash", ONE), (0, "b", "bash", TWO)], BOTH),
        ([(0, "a", "bash", ONE), (0, "b", "grep", TWO)], OTHER),
        ([[(0, "a", "bash", ONE), (0, "b", "grep", TWO)]], OTHER),
        ([(0, None, "bash", ONE), (0, None, "bash", TWO)], BOTH),
        ([(0, "", "bash", ONE), (0, "", "grep", TWO)], OTHER),
        ([(0, "a", "bash", ONE), (0, "b", "now", ""), (0, "c", "grep", TWO)],
         [("bash", ONE), ("now", ""), ("grep", TWO)]),
        ([(0, "a", "now", "{}"), (0, "b", "bash", ONE)], [("now", "{}"), ("bash", ONE)]),
        # Ids alone, and the parts of two calls in turn.
        ([(None, "a", "bash", ONE[:5]), (None, "b", "bash", TWO[:9]), (None, "a", None, ONE[5:]), (None, "b", None, TWO[9:])], BOTH),
        ([(None, "a", "bash", ONE[:5]), (None, "b", "grep", TWO[:9]), (None, "a", None, ONE[5:]), (None, "b", None, TWO[9:])], OTHER),
        # Each part has all that came before it.
        ([(0, "a", "bash", ONE[:5]), (0, "a", "bash", ONE[:14]), (0, "a", "bash", ONE), (1, "b", "bash", TWO)], BOTH),
        ([(0, "a", "bash", ONE[:5]), (0, "a", None, ONE[:14]), (0, "a", None, ONE), (1, "b", "grep", TWO)], OTHER),
        ([(None, "a", "bash", ONE[:1]), (None, None, None, ONE[:14]), (None, None, None, ONE)], BOTH[:1]),
        # The same, in parts.
        ([(0, "a", "bash", ""), (0, None, None, ONE), (0, "b", "bash", ""), (0, None, None, TWO)], BOTH),
        ([(0, "a", "bash", ONE[:4]), (0, "a", "bash", ONE[4:]), (0, "b", "grep", TWO[:4]),
          (0, "b", "grep", TWO[4:])], OTHER),
        # One id for every call.
        ([(0, "x", "bash", ONE), (1, "x", "bash", TWO)], BOTH),
        ([(0, "x", "bash", ONE), (0, "x", "grep", TWO)], OTHER),
        ([(None, "x", "bash", ONE), (None, "x", "bash", TWO)], BOTH),
        # Neither index nor id.
        ([(None, None, "bash", ONE), (None, None, "bash", TWO)], BOTH),
        ([[(None, None, "bash", ONE), (None, None, "grep", TWO)]], OTHER),
        ([[(None, None, "bash", ""), (None, None, "grep", "")],
          [(None, None, None, ONE), (None, None, None, TWO)]], OTHER),
        # Interleaved, by id alone or by index alone.
        ([(0, "a", "bash", ""), (0, "b", "bash", ""), (0, "b", None, TWO), (0, "a", None, ONE)], BOTH),
        ([(None, "a", "bash", ONE[:5]), (None, "b", "grep", TWO[:5]), (None, "a", None, ONE[5:]),
          (None, "b", None, TWO[5:])], OTHER),
        ([(1, "b", "grep", ""), (0, "a", "bash", ""), (1, None, None, TWO), (0, None, None, ONE)], OTHER),
        # A new id for each part of one call.
        ([(0, "a", "bash", ""), (0, "b", "bash", ONE[:5]), (0, "c", "bash", ONE[5:])], BOTH[:1]),
        ([(None, "a", "bash", ""), (None, "b", None, ONE[:5]), (None, "c", None, ONE[5:])], BOTH[:1]),
        ([(None, "a", "bash", ONE[:5]), (None, "b", "bash", ONE[5:]), (None, "c", "bash", "")], BOTH[:1]),
        ([(0, "a", "bash", ONE[:5]), (0, "b", None, ONE[5:]), (0, "c", None, "")], BOTH[:1]),
        # A new index for each part.
        ([(0, "a", "bash", ONE[:5]), (1, "a", "bash", ONE[5:])], BOTH[:1]),
        ([(0, "a", "bash", ONE[:5]), (1, None, None, ONE[5:])], BOTH[:1]),
        # Repeated as a whole at the end.
        ([(0, "a", "bash", ONE[:5]), (0, "a", None, ONE[5:]), (0, "a", "bash", ONE)], BOTH[:1]),
        ([(0, "a", "bash", ONE), (0, "b", "bash", ONE)], BOTH[:1]),
        ([(0, "a", "bash", ONE), (1, "b", "grep", TWO),
          [(0, "a", "bash", ONE), (1, "b", "grep", TWO)]], OTHER),
        ([(None, "a", "bash", ONE), (None, "a", "bash", json.dumps(json.loads(ONE), indent=1))], BOTH[:1]),
        ([(0, "a", "bash", ONE), (None, None, None, ONE)], BOTH[:1]),
        # The name in parts, or in every part; an empty object ahead of the arguments.
        ([(0, "a", "ba", None), (0, None, "sh", ""), (0, None, None, ONE)], BOTH[:1]),
        ([(0, "a", "ba", ""), (0, None, "sh", ONE)], BOTH[:1]),
        ([(0, "a", "b", None), (0, None, "a", None), (0, None, "sh", ONE)], BOTH[:1]),
        ([(None, "a", "ba", ""), (None, None, "sh", ONE)], BOTH[:1]),
        ([(0, "a", "ba", ONE[:5]), (0, None, "sh", ONE[5:])], BOTH[:1]),
        ([(0, "a", "ba", ""), (1, "b", "gr", ""), (0, None, "sh", ONE), (1, None, "ep", TWO)], OTHER),
        ([(0, "a", "bash", ONE), (1, "b", "gr", ""), (1, None, "ep", TWO)], OTHER),
        ([(0, "a", "bash", ONE), (0, "b", "gr", ""), (0, "", "ep", TWO)], OTHER),
        ([(0, "a", "bash", ""), (0, "a", "bash", ONE[:5]), (0, "a", "bash", ONE[5:])], BOTH[:1]),
        ([(0, "a", "bash", "{}"), (0, None, None, ONE[:5]), (0, None, None, ONE[5:])], BOTH[:1]),
        ([(0, "a", "bash", ONE), (0, None, "", "")], BOTH[:1]),
        # Braces and quotes within the arguments, cut behind a backslash.
        ([(0, "a", "bash", '{"x": "}\\'), (0, "a", "bash", '"{"}'), (0, "b", "bash", ONE)],
         [("bash", '{"x": "}\\"{"}'), ("bash", ONE)]),
        ([(0, "a", "bash", '{"x": '), (0, "a", "bash", '{"y": 1}'), (0, "a", "bash", "}")],
         [("bash", '{"x": {"y": 1}}')]),
    ],
)  # fmt: skip
def test_parts_of_calls(parts: list[Any], calls: list[tuple[str, str]]) -> None:
    assert streamed(*parts) == calls


def test_ids_and_order_are_the_servers() -> None:
    done = completed(
        {"tool_calls": [part(1, "b", "grep", TWO)]}, {"tool_calls": [part(0, "a", "bash", ONE)]}
    )
    assert done.calls == (ToolCall("a", "bash", ONE), ToolCall("b", "grep", TWO))


def test_a_message_that_repeats_the_stream_is_read_once() -> None:
    chunks = Chunks()
    message = {"content": "Hi.", "tool_calls": [part(0, "a", "bash", ONE)]}
    for choice in ({"delta": message}, {"message": message, "finish_reason": "stop"}):
        list(chunks.feed({"choices": [choice]}))
    done = chunks.completion("stop", None)
    assert (done.text, len(done.calls)) == ("Hi.", 1)


@pytest.mark.parametrize(
    ("reason", "understood", "told"),
    [
        ("stop", "stop", ""),
        ("STOP", "stop", ""),
        ("eos", "stop", ""),
        ("end_turn", "stop", ""),
        ("tool_use", "tool_calls", ""),
        ("MAX_TOKENS", "length", ""),
        ("model_length", "length", ""),
        ("max_output_tokens", "length", ""),
        ("max_completion_tokens", "length", ""),
        ("model_context_window_exceeded", "length", ""),
        ("incomplete", "length", ""),
        ("abort", "cut", ""),
        ("error", "cut", ""),
        ("cancelled", "cut", ""),
        ("network_error", "cut", ""),
        ("insufficient_system_resource", "cut", ""),
        ("content_filter", "stop", "content_filter"),
        ("SAFETY", "stop", "SAFETY"),
        ("recitation", "stop", "recitation"),
        ("a\u202eword\n" * 40, "stop", "aword" * 12),
    ],
)
def test_ends(reason: str, understood: str, told: str) -> None:
    done = completed({"content": "Half an"}, reason=reason)
    assert (done.finish_reason, done.ended) == (understood, told)


FLAT = {"index": 0, "id": "a", "name": "bash", "arguments": ONE}
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
TEXT = {"type": "text", "text": "Hi."}
DETAILS = [{"type": "reasoning.text", "text": "Hm."}]


@pytest.mark.parametrize(
    ("deltas", "read"),
    [
        # Calls: the form before `tools`, one that is no list, without the level `function`, with Llama's key.
        ([{"function_call": {"name": "bash", "arguments": ""}},
          {"function_call": {"arguments": ONE}}], (BOTH[:1], "", "")),
        ([{"tool_calls": part(0, "a", "bash", ONE)}], (BOTH[:1], "", "")),
        ([{"tool_calls": [FLAT]}], (BOTH[:1], "", "")),
        ([{"tool_calls": [{"function": {"name": "bash", "parameters": json.loads(ONE)}}]}],
         (BOTH[:1], "", "")),
        ([{"content": "Hi.", "tool_calls": None, "function_call": None}], ([], "Hi.", "")),
        ([{"content": "Hi.", "tool_calls": {}, "function_call": {}}], ([], "Hi.", "")),
        # Thoughts: Mistral's parts, OpenRouter's details, once where two keys hold the same.
        ([{"content": [THOUGHT]}, {"content": [TEXT]}], ([], "Hi.", "Hm.")),
        ([{"content": [{"type": "thinking", "thinking": "Hm."}, TEXT]}], ([], "Hi.", "Hm.")),
        ([{"content": "", "reasoning_details": DETAILS}, {"content": "Hi."}], ([], "Hi.", "Hm.")),
        ([{"reasoning": "Hm.", "reasoning_details": DETAILS}], ([], "", "Hm.")),
        ([{"thinking": "Hm."}, {"content": "Hi."}], ([], "Hi.", "Hm.")),
        ([{"reasoning_content": None, "reasoning": "Hm."}], ([], "", "Hm.")),
        ([{"refusal": "I cannot"}, {"refusal": " do that."}], ([], "I cannot do that.", "")),
        # A sign that is cut between its UTF-16 units, a half that is never whole.
        ([{"content": "a \ud83d"}, {"content": "\ude00 b"}], ([], "a 😀 b", "")),
        ([{"content": "\ud83d"}, {"reasoning": "\ud83d"}, {"reasoning": "\ude00"}, {"content": "\ude00"}],
         ([], "😀", "😀")),
        ([{"content": "a \ud83d"}, {"content": " b"}, {"content": "\ude00"}], ([], "a  b?", "")),
        ([{"tool_calls": part(0, "a", "say", '{"x": "\ud83d')}, {"tool_calls": part(0, None, None, '\ude00"}')}],
         ([("say", '{"x": "😀"}')], "", "")),
    ],
)  # fmt: skip
def test_other_servers_forms(deltas: list[Any], read: tuple[list[Any], str, str]) -> None:
    done = completed(*deltas)
    calls = [(call.name, json.loads(call.arguments)) for call in done.calls]
    expected = [(name, json.loads(arguments)) for name, arguments in read[0]]
    assert (calls, done.text, done.reasoning) == (expected, *read[1:])


def test_thoughts_that_a_message_repeats_are_read_once() -> None:
    chunks = Chunks()
    list(chunks.feed({"choices": [{"delta": {"reasoning_content": "Hm."}}]}))
    message = {"content": "Hi.", "reasoning_content": "Hm."}
    list(chunks.feed({"choices": [{"message": message}], "stop": True}))
    done = chunks.completion("stop", None)
    assert (done.text, done.reasoning) == ("Hi.", "Hm.")


COUNTED = {"prompt_tokens": 9, "completion_tokens": 3}
USAGE: dict[str, tuple[list[dict[str, Any]], tuple[int | None, ...]]] = {
    "OpenAI": ([{"choices": [], "usage": {**COUNTED, "prompt_tokens_details": {"cached_tokens": 5}}}], (9, 5, 3)),
    "without choices": ([{"usage": COUNTED}], (9, None, 3)),
    "Groq": ([{"choices": [{"delta": {}}], "x_groq": {"id": "r", "usage": COUNTED}}], (9, None, 3)),
    "Moonshot": ([{"choices": [{"delta": {}, "finish_reason": "stop", "usage": COUNTED}]}], (9, None, 3)),
    "floats": ([{"usage": {"prompt_tokens": 9.0, "completion_tokens": 3.0}}], (9, None, 3)),
    "names of the newer API": ([{"usage": {"input_tokens": 9, "output_tokens": 3}}], (9, None, 3)),
    "in each chunk": ([{"usage": {**COUNTED, "completion_tokens": n}} for n in (1, 2, 3)], (9, None, 3)),
    "null at the end": ([{"usage": COUNTED}, {"usage": None, "choices": []}], (9, None, 3)),
    "half a token": ([{"usage": {"prompt_tokens": 9.5, "completion_tokens": 3}}], (None, None, 3)),
    "no numbers": ([{"usage": {"prompt_tokens": "9", "completion_tokens": True}}], (None, None, None)),
    "not a number": ([{"usage": {"prompt_tokens": float("nan"), "completion_tokens": float("inf")}}], (None, None, None)),
    "other types": ([{"usage": [9], "x_groq": 7, "choices": [{"usage": "9"}, 3]}], (None, None, None)),
}  # fmt: skip


@pytest.mark.parametrize(("sent", "read"), USAGE.values(), ids=USAGE)
def test_forms_of_usage(sent: list[dict[str, Any]], read: tuple[int | None, ...]) -> None:
    chunks = Chunks()
    for chunk in sent:
        list(chunks.feed(chunk))
    done = chunks.completion("stop", None)
    assert (done.prompt_tokens, done.cached_tokens, done.completion_tokens) == read
