"""What a model of a family says: derived from its chat template, by letting a real server render it.

A template writes past calls, answers and thoughts as its model generates them, so
the text between the generation prompt and the end of the turn is what the model
said. Where a template does not write calls at all, the family's documented form
stands in (`FORMS`).
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / ".cache/chat-templates"

# The most used families, one template each.
COMMON = (
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "Qwen3-Coder",
    "Qwen3.5-4B",
    "Qwen-QwQ-32B",
    "google-gemma-2-2b-it",
    "google-gemma-4-31B-it",
    "openai-gpt-oss-120b",
    "meta-llama-Llama-3.1-8B-Instruct",
    "meta-llama-Llama-3.2-3B-Instruct",
    "mistralai-Mistral-Nemo-Instruct-2407",
    "mistralai-Ministral-3-14B-Reasoning-2512",
    "Mistral-Small-3.2-24B-Instruct-2506",
    "microsoft-Phi-3.5-mini-instruct",
    "deepseek-ai-DeepSeek-V3.1",
    "deepseek-ai-DeepSeek-V3.2",
    "GLM-4.7-Flash",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "LFM2.5-Instruct",
    "ibm-granite-granite-4.0",
)

SYSTEM, ASKED, WORDS, RESULT, THOUGHT = "#system#", "#asked#", "#words#", "#result#", "#thought#"
Json = dict[str, Any]
Render = Callable[[Sequence[Json]], Awaitable[str]]

ENDS = re.compile(
    "|".join(
        map(
            re.escape,
            (
                "<|im_end|>",
                "<|eot_id|>",
                "<|eom_id|>",
                "<|eot|>",
                "<|end|>",
                "<|call|>",
                "<|calls|>",
                "<|return|>",
                "</s>",
                "<turn|>",
                "<|tool_response>",
                "<end_of_turn>",
                "<｜end▁of▁sentence｜>",
                "<｜hy_eos:opensource｜>",
                "<|observation|>",
                "<|user|>",
                "<|END_OF_TURN_TOKEN|>",
                "<|end_of_text|>",
                "<|assistant_end|>",
                "<|message_sep|>",
                "<|end_of_msg|>",
                "<|role_end|>",
                "<end_of_sentence>",
                "</assistant>",
                "<seed:eos>",
                "[e~[",
                "\n<SPECIAL_12>",
                "\n\n<sep>",
                "\n</assistant>",
                "\n<|end|>",
                "\n\nUser:",
                "[" + RESULT,
            ),
        )
    )
)
# What a generation prompt opens for thoughts, and what the model closes it with.
OPENERS = {
    "<think>\n": "\n</think>\n\n",
    "<think>": "</think>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "Here are my reasoning steps:\n": "\n[BEGIN FINAL RESPONSE]\n",
}


# Where a family counts the calls of a conversation.
COUNTED = re.compile(r'(functions\.\w+:|"tool_call_id": ")0')


def as_written(value: Any) -> str:
    """JSON as models write it: letters of any script as they are."""
    return json.dumps(value, ensure_ascii=False)


def hermes(name: str, arguments: Mapping[str, Any]) -> str:
    return f"<tool_call>\n{as_written({'name': name, 'arguments': arguments})}\n</tool_call>"


def lfm2(name: str, arguments: Mapping[str, Any]) -> str:
    given = ", ".join(f"{key}={as_written(value)}" for key, value in arguments.items())
    return f"<|tool_call_start|>[{name}({given})]<|tool_call_end|>"


def granite(name: str, arguments: Mapping[str, Any]) -> str:
    return f"<|tool_call|>{as_written([{'name': name, 'arguments': arguments}])}"


def deepseek_r1(name: str, arguments: Mapping[str, Any]) -> str:
    return (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n"
        f"```json\n{as_written(arguments)}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    )


FORMS: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "LFM2": lfm2,
    "granite-3": granite,
    "DeepSeek-R1": deepseek_r1,
    "deepseek-r1": deepseek_r1,
}
# Formats that a model may fall into under a template of another family.
CROSSED = {"hermes": hermes, "lfm2": lfm2, "granite": granite, "deepseek-r1": deepseek_r1}


@dataclass(frozen=True)
class Speaker:
    """Texts of one template's model. `render` is the server's rendering; `thinks` as it was asked to."""

    name: str
    render: Render
    thinks: bool

    async def call(
        self, name: str, arguments: Mapping[str, Any], words: str = "", number: int = 0
    ) -> str:
        """A call, behind `words`, behind a thought where the model thinks; `number` calls came before it."""
        said = await self._call(name, arguments, words)
        return COUNTED.sub(rf"\g<1>{number}", said)

    async def _call(self, name: str, arguments: Mapping[str, Any], words: str) -> str:
        function = {"name": name, "arguments": json.dumps(arguments)}
        # Of each call its own, in Mistral's form.
        id = hashlib.sha256(json.dumps(function).encode()).hexdigest()[:9]
        calls = [{"id": id, "type": "function", "function": function}]
        behind = [{"role": "tool", "tool_call_id": id, "name": name, "content": RESULT}]
        said = await self._said({"content": WORDS if words else "", "tool_calls": calls}, behind)
        if said is None or mark_of(arguments) not in said:
            form = next((f for part, f in FORMS.items() if part in self.name), hermes)
            text = f"{words}\n" * bool(words) + form(name, arguments)
            plain = await self._said({"content": WORDS}, [{"role": "user", "content": "#next#"}])
            return (plain or WORDS).replace(WORDS, text)
        if words and WORDS not in said[: said.index(mark_of(arguments))]:
            if self.thinks and THOUGHT not in said:
                # It shows no thoughts, and loses the words behind one.
                return await replace(self, thinks=False)._call(name, arguments, words)
            # A template that drops or moves words has no place of its own for them.
            said = await self._said({"content": "", "tool_calls": calls}, behind) or ""
            if THOUGHT not in said and (await self.answer(WORDS)).startswith(WORDS):
                said = f"{WORDS}\n{said}"
        return said.replace(WORDS, words)

    async def answer(self, text: str) -> str:
        """A last answer, behind a thought where the model thinks."""
        said = await self._said({"content": WORDS}, [{"role": "user", "content": "#next#"}])
        if said is None or WORDS not in said:
            return text
        if self.thinks and THOUGHT not in said:
            said = await self._with_thought(said)
        return said.replace(WORDS, text)

    async def _with_thought(self, said: str) -> str:
        """Past answers lost their thoughts in the template; those of calls stand in front of these."""
        if "<think></think>" in said:
            return said.replace("<think></think>", f"<think>{THOUGHT}</think>")
        thinking = await self.call("bash", {"command": "ls"})
        plain = await replace(self, thinks=False).call("bash", {"command": "ls"})
        same = len(common_prefix(thinking[::-1], plain[::-1]))
        before = thinking[: len(thinking) - same]
        for closer in ("<|END_THINKING|>", "</think:opensource>"):  # also where nothing was thought
            if thinking[len(before) :].startswith(closer):
                before += closer
        return before + said if THOUGHT in before else said

    async def _said(self, content: Json, behind: Sequence[Json]) -> str | None:
        """What the model generates for a message, up to its end; None where the template refuses."""
        asked = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASKED}]
        thought = {"reasoning_content": THOUGHT} if self.thinks else {}
        message = {"role": "assistant", **content, **thought}
        try:
            prompt = await self.render(asked)
            whole = await self.render([*asked, message, *behind])
        except ValueError:
            return None
        header = prompt[prompt.rindex(ASKED) :]
        rest = whole[whole.index(ASKED) :]
        common = common_prefix(header, rest)
        if common.rfind("<") > common.rfind(">"):  # not in the middle of a tag
            common = common[: common.rfind("<")]
        said = rest[len(common) :]
        mark = max(said.find(WORDS), 0)
        for call in content.get("tool_calls", ()):
            mark = max(said.find(mark_of(json.loads(call["function"]["arguments"]))), mark)
        end = ENDS.search(said, mark)
        said = said[: end.start()] if end else said
        return self._thought(header, said)

    def _thought(self, header: str, said: str) -> str:
        """A prompt that opens a thought is gone on with, although the template drops thoughts."""
        if THOUGHT in said:
            return said
        for opener, closer in OPENERS.items():
            if header.endswith(opener) and closer.strip() not in said:
                return f"{THOUGHT}{closer}{said}"
            if header.endswith(opener):
                return THOUGHT + said
        return said


def common_prefix(a: str, b: str) -> str:
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    return a[:same]


def mark_of(arguments: Mapping[str, Any]) -> str:
    """The first argument as far as every format writes it plainly."""
    found = re.match(r"[\w /.]+", str(next(iter(arguments.values()))))
    assert found
    return found[0]


def templates() -> list[str]:
    """Names of all templates that `make` has fetched."""
    return sorted(path.stem for path in FOLDER.glob("*.jinja"))


def template(name: str) -> str:
    return (FOLDER / f"{name}.jinja").read_text("utf-8")
