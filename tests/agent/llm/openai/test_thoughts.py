"""What is thought goes back where the template repeats it, and thinking is set in each family's words."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.llm.openai import OpenAIModel
from agent.llm.openai.wire import thinking_values
from agent.messages import Assistant, Message, ToolCall, ToolResult, User
from agent.model import UNBOUNDED, Request
from fakes.model_scripted import ModelServer, says
from tests.agent.llm.openai.test_templates import GEMMA, Kind, conversations, model_with

# Qwen's newer ones: thoughts behind the newest question are repeated, older ones where they are
# to be kept (llama-server's --reasoning-preserve).
QWEN = """\
{%- set ns = namespace(last=0) %}
{%- for m in messages if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endfor %}
{%- set ns.asked = -1 %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.asked = ns.asked + 1 %}{% endif -%}
<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and m.reasoning_content and (preserve_reasoning or ns.asked >= ns.last) %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content or '' }}
{%- for call in m.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
EFFORT = "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'medium' %}{% endif %}Reasoning: {{ reasoning_effort }}\n"
STRICT_EFFORT = "{% if reasoning_effort is defined and reasoning_effort not in ['none', 'high'] %}{{ raise_exception('unknown effort') }}{% endif %}{{ reasoning_effort }}\n"


def thoughtful() -> list[tuple[Message, ...]]:
    """The conversations of test_templates with a thought before each step."""
    return [
        tuple(
            replace(m, thought=f"thought {place}") if isinstance(m, Assistant) else m
            for place, m in enumerate(messages)
        )
        for messages in conversations()
    ]


async def prompts(model: OpenAIModel) -> list[str]:
    return [await model.rendered(Request(sent)) or "" for sent in thoughtful()]


async def test_prompts_grow_over_thoughts_within_a_turn_and_beyond_it(tmp_path: Path) -> None:
    """The embedded server keeps thoughts of earlier turns by default, as llama-server does."""
    async with model_with(tmp_path, Kind(QWEN)) as model:
        texts = await prompts(model)
    assert all(
        after.startswith(before.removesuffix("<|im_start|>assistant\n"))
        for before, after in pairwise(texts)
    )
    assert all(f"<think>thought {place}</think>" in texts[-1] for place in (2, 4, 6, 8))


async def test_a_template_may_drop_the_thoughts_of_earlier_turns(tmp_path: Path) -> None:
    async with model_with(tmp_path, Kind(QWEN, values={"preserve_reasoning": False})) as model:
        texts = await prompts(model)
    assert ["thought 4" in text for text in texts] == [False, False, True, False, False]


async def test_thoughts_stay_here_where_the_template_has_no_place_for_them(tmp_path: Path) -> None:
    async with model_with(tmp_path, Kind(GEMMA)) as model:
        assert not any("thought" in text for text in await prompts(model))
        found = {what: value for (*_, what), value in model.probes.found.items()}
        assert found["thoughts"] == "none"


async def test_a_line_break_that_the_template_adds_is_not_doubled(tmp_path: Path) -> None:
    adding = QWEN.replace("m.reasoning_content }}", "m.reasoning_content }}\n")
    messages = thoughtful()[1]
    ending = [
        replace(m, thought=f"{m.thought}\n") if isinstance(m, Assistant) else m for m in messages
    ]
    for template, shown in ((QWEN, "2\n</think>"), (adding, "2\n</think>")):
        async with model_with(tmp_path, Kind(template)) as model:
            assert f"<think>thought {shown}" in (await model.rendered(Request(tuple(ending))) or "")


@pytest.mark.parametrize(
    ("template", "taken"),
    [
        (EFFORT + QWEN, {"low", "medium", "high"}),
        (STRICT_EFFORT + QWEN, {"none", "high"}),
        (QWEN, set()),
    ],
)
async def test_the_efforts_that_a_template_takes(
    tmp_path: Path, template: str, taken: set[str]
) -> None:
    async with model_with(tmp_path, Kind(template)) as model:
        shown = await model.rendered(Request((User("u"),), thinking=512)) or ""
        found = {what: value for (*_, what), value in model.probes.found.items()}
        assert found["efforts"] == taken
    assert ("Reasoning: low" in shown) == ("low" in taken)


@pytest.mark.parametrize(
    ("tokens", "efforts", "values"),
    [
        (None, {"low", "high"}, {}),
        (0, {"low", "medium", "high"}, {"enable_thinking": False, "thinking": False, "reasoning_effort": "low"}),
        (0, {"none", "high"}, {"enable_thinking": False, "thinking": False, "reasoning_effort": "none"}),
        (0, {"no_think", "low", "high"}, {"enable_thinking": False, "thinking": False, "reasoning_effort": "no_think"}),
        (512, {"none", "high"}, {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}),
        (2048, {"low", "medium", "high"}, {"enable_thinking": True, "thinking": True, "reasoning_effort": "medium"}),
        (UNBOUNDED, {"low", "medium", "high"}, {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}),
        (8192, set(), {"enable_thinking": True, "thinking": True}),
    ],
)  # fmt: skip
def test_thinking_in_the_words_of_the_families(
    tokens: int | None, efforts: set[str], values: Mapping[str, Any]
) -> None:
    assert thinking_values(Request((), thinking=tokens), frozenset(efforts)) == values


def test_one_call_without_thought_leaves_what_stands_ahead_of_everything() -> None:
    efforts, off = (
        frozenset({"low", "medium", "high"}),
        {"enable_thinking": False, "thinking": False},
    )
    assert thinking_values(Request((), brief=True), efforts) == off
    brief = thinking_values(Request((), thinking=2048, brief=True), efforts)
    assert brief == {**off, "reasoning_effort": "medium"}


@pytest.mark.parametrize(
    ("tokens", "budget", "room"), [(0, 0, 50), (512, 512, 562), (UNBOUNDED, None, 16434)]
)
async def test_a_budget_is_the_servers_and_comes_on_top_of_the_answers_room(
    tokens: int, budget: int | None, room: int
) -> None:
    async with (
        ModelServer(says("Hello"), extras=True) as server,
        OpenAIModel(server.endpoint) as model,
    ):
        async for _ in model.stream(Request((User("u"),), max_tokens=50, thinking=tokens)):
            pass
    [sent] = server.requests
    budgets = [sent.get(f"{name}_budget_tokens") for name in ("thinking", "reasoning")]
    assert (budgets, sent["max_tokens"]) == ([budget, budget], room)


@pytest.mark.parametrize("extras", [True, False])
async def test_a_server_that_cannot_show_prompts_gets_them_if_it_is_a_llama_server(
    extras: bool,
) -> None:
    call = ToolCall("c1", "bash", "{}")
    messages = (User("u"), Assistant("", (call,), thought="Hm."), ToolResult("c1", "bash", "ok"))
    async with (
        ModelServer(says("Hello"), extras=extras) as server,
        OpenAIModel(server.endpoint) as model,
    ):
        async for _ in model.stream(Request(messages)):
            pass
    [sent] = server.requests
    assert sent["messages"][1].get("reasoning_content") == ("Hm." if extras else None)
