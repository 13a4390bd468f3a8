"""What templates of the known kinds make of a growing conversation, on the real server's rendering.

Each is our own shortest form of a kind that models are given: only what decides
whether a longer conversation is rendered with the shorter one at its beginning.
"""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.llm.openai import OpenAIModel
from agent.llm.openai.prompt_form import PromptForm, messages_json
from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Completion, ModelRefused, Request
from backend.protocol import Endpoint
from backend.server.launch import free_port
from fakes.gguf_maker import TEMPLATE, make
from fakes.llama_embedded import serve

TOOLS = tuple(json.loads(files("agent").joinpath("prefix/tools.json").read_text("utf-8")))

_TURN = "{{ '<|im_start|>' + m.role + '\n' + (m.content or '') }}"
_CALLS = """\
{%- for call in m.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}"""
_HEAD = """\
<|im_start|>system
{{ messages[0].content }}
{% for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}<tool_call></tool_call><|im_end|>
"""
_SETTLED = (
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
)


def _chatml(thought: str = "", settled: str = "") -> str:
    """`thought` stands before a past answer, `settled` before one to come."""
    return f"""{_HEAD}{{%- for m in messages if m.role != 'system' %}}
{{%- if m.role == 'assistant' %}}<|im_start|>assistant
{thought}{{{{ m.content or '' }}}}{_CALLS}
{{%- else %}}{_TURN}{{%- endif %}}<|im_end|>
{{% endfor %}}
{{%- if add_generation_prompt %}}<|im_start|>assistant
{settled}{{% endif %}}"""


# Qwen's: no thought is asked of it, and past answers have no empty one.
QWEN = _chatml(settled=_SETTLED)
QWEN_KEEPING = _chatml(thought=_SETTLED, settled=_SETTLED)

# Gemma's: no system role, so that its words and the tools stand in the first message.
GEMMA = """\
{%- for m in messages if m.role != 'system' %}
{%- if m.role == 'assistant' %}<start_of_turn>model
{{ m.content or '' }}{% for call in m.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}<end_of_turn>
{% else %}<start_of_turn>user
{% if loop.first %}{{ messages[0].content }}
{% for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}{% endif %}{{ m.content }}<end_of_turn>
{% endif %}{%- endfor %}
{%- if add_generation_prompt %}<start_of_turn>model
{% endif %}"""

# Mistral's older ones: the tools stand before the newest question.
MISTRAL = """\
{%- set ns = namespace(last=0) %}
{%- for m in messages if m.role == 'user' %}{% set ns.last = loop.index %}{% endfor %}
{%- set ns.at = 0 %}
{%- for m in messages if m.role != 'system' %}
{%- if m.role == 'user' %}{% set ns.at = ns.at + 1 %}{% if ns.at == ns.last %}[AVAILABLE_TOOLS]{{ (tools or []) | tojson }}[/AVAILABLE_TOOLS]{% endif %}[INST]{{ m.content }}[/INST]
{%- elif m.role == 'tool' %}[TOOL_RESULTS]{{ m.content }}[/TOOL_RESULTS]
{%- else %}{{ m.content or '' }}{% if m.tool_calls %}[TOOL_CALLS]{{ m.tool_calls | tojson }}{% endif %}</s>{% endif %}
{%- endfor %}"""

# Llama's: tools in the system message, results from a role of their own.
LLAMA = """\
{%- for m in messages %}<|start_header_id|>{{ 'ipython' if m.role == 'tool' else m.role }}<|end_header_id|>

{{ m.content or '' }}{% if loop.first %}{% for tool in tools or [] %}
{{ tool | tojson }}{% endfor %}{% endif %}{% for call in m.tool_calls or [] %}{"name": "{{ call.function.name }}", "parameters": {{ call.function.arguments | tojson }}}{% endfor %}<|eot_id|>
{%- endfor %}
{%- if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}"""

# gpt-oss's: every message names its channel.
HARMONY = """\
{%- for m in messages %}
{%- if m.role == 'assistant' and m.tool_calls %}<|start|>assistant<|channel|>commentary to=functions.{{ m.tool_calls[0].function.name }} <|constrain|>json<|message|>{{ m.tool_calls[0].function.arguments | tojson }}<|call|>
{%- elif m.role == 'assistant' %}<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>
{%- elif m.role == 'tool' %}<|start|>functions.bash to=assistant<|channel|>commentary<|message|>{{ m.content }}<|end|>
{%- else %}<|start|>{{ 'developer' if m.role == 'system' else m.role }}<|message|>{{ m.content }}{% if loop.first %}{% for tool in tools or [] %}
{{ tool | tojson }}{% endfor %}{% endif %}<|end|>{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|start|>assistant{% endif %}"""

# Those that refuse any system message but the first.
STRICT = "{%- for m in messages if m.role == 'system' and not loop.first %}{{ raise_exception('System message must be at the beginning') }}{%- endfor %}"


@dataclass(frozen=True)
class Kind:
    """`keeps`: each longer conversation begins with the shorter one as it was rendered."""

    template: str
    keeps: bool = True
    values: Mapping[str, Any] = field(default_factory=dict)


UNTHINKING = {"enable_thinking": False}
KINDS = {
    "hermes": Kind(TEMPLATE),
    "strict": Kind(STRICT + TEMPLATE),
    "qwen that thinks": Kind(QWEN, True, {"enable_thinking": True}),
    "qwen that does not": Kind(QWEN, False, UNTHINKING),
    "qwen that keeps its empty thoughts": Kind(QWEN_KEEPING, True, UNTHINKING),
    "gemma": Kind(GEMMA),
    "mistral": Kind(MISTRAL, False),
    "llama": Kind(LLAMA),
    "harmony": Kind(HARMONY),
}


@asynccontextmanager
async def model_with(folder: Path, kind: Kind) -> AsyncIterator[OpenAIModel]:
    async with serve(make(folder / "m.gguf", template=kind.template)) as endpoint:

        async def source() -> Endpoint:
            return endpoint.model_copy(update={"template": dict(kind.values)})

        async with OpenAIModel(source) as model:
            yield model


def conversations() -> list[tuple[Message, ...]]:
    """As the loop sends them: a question, two steps of calls, the answer, a question, the answer."""
    talk: list[Message] = [System("You help."), User("What is here?")]
    requests = [tuple(talk)]
    for number, command in enumerate(("ls", "cat a.txt")):
        call = ToolCall(f"call{number:05}", "bash", json.dumps({"command": command}))
        talk += [Assistant("", (call,)), ToolResult(call.id, "bash", f"output {number}")]
        requests.append(tuple(talk))
    for question in ("And now?", "What else?"):
        talk += [Assistant("There is one file."), User(question)]
        requests.append(tuple(talk))
    return requests


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
async def test_a_longer_conversation_begins_with_the_shorter_one(
    tmp_path: Path, kind: Kind
) -> None:
    async with model_with(tmp_path, kind) as model:
        prompts = [await model.rendered(Request(sent, TOOLS)) for sent in conversations()]
    texts = [prompt or "" for prompt in prompts]
    assert all("bash" in text and "What is here?" in text for text in texts)
    grows = [after.startswith(before) for before, after in pairwise(texts)]
    assert all(grows) == kind.keeps, grows


async def test_tools_that_a_template_cannot_write_stand_in_the_system_text(tmp_path: Path) -> None:
    """Command R+'s way: an argument that is a list ends its rendering."""
    listless = "{%- for tool in tools or [] %}{% for spec in tool.function.parameters.properties.values() if spec.type == 'array' %}{{ raise_exception('no lists') }}{% endfor %}{% endfor %}"
    async with model_with(tmp_path, Kind(listless + TEMPLATE)) as model:
        prompt = await model.rendered(Request((System("words"), User("hello")), TOOLS)) or ""
    assert all(f'"name": "{tool["function"]["name"]}"' in prompt for tool in TOOLS)


async def test_another_template_at_the_same_address_is_probed_when_it_refuses(
    tmp_path: Path,
) -> None:
    """Somebody ends a llama-server of their own and starts it with another model."""
    alternating = "{%- for m in messages if m.role not in ['user', 'assistant'] %}{{ raise_exception('Only user and assistant') }}{% endfor %}"
    asked = Request((System("words"), User("hello")), TOOLS, max_tokens=1)
    port = free_port()

    async def source() -> Endpoint:
        return Endpoint(url=f"http://127.0.0.1:{port}", api_key="secret", n_ctx=8192)

    async with OpenAIModel(source) as model:
        for template in (TEMPLATE, alternating + TEMPLATE):
            async with serve(make(tmp_path / "m.gguf", template=template), port=port):
                for _ in range(2):  # as a turn asks again what was refused
                    with suppress(ModelRefused):
                        pieces = [piece async for piece in model.stream(asked)]
                assert isinstance(pieces.pop(), Completion)


async def test_the_prefix_is_registered_in_the_form_that_requests_take(tmp_path: Path) -> None:
    # Mistral-Nemo's way: no system text behind a tool's result.
    seldom = TEMPLATE.replace(
        "== 'system' %}{{", "== 'system' and messages[-1].role == 'user' %}{{"
    )
    async with model_with(tmp_path, Kind(seldom)) as model:
        prefix = await model.prefix(Request((System("words"),), TOOLS))
        prompt = await model.rendered(Request((System("words"), User("hello")), TOOLS))
    assert (prefix.messages, prefix.before, prefix.tools) == ([], "words\n\n", list(TOOLS))
    assert prompt and "words\n\nhello" in prompt


def test_a_calls_id_is_shortened_alike_in_call_and_result_and_a_short_one_stays() -> None:
    short = PromptForm(short_ids=True)
    calls = ToolCall("functions.look:0", "look", "{}"), ToolCall("aB3456789", "look", "{}")
    results = [ToolResult(call.id, "look", "fine") for call in calls]
    request = Request((User("Look."), Assistant("", calls), *results))
    _, called, first, second = messages_json(request, short)
    ids = [call["id"] for call in called["tool_calls"]]
    assert ids == [first["tool_call_id"], second["tool_call_id"]]
    assert len(ids[0]) == 9 and ids[0].isalnum()
    assert ids[1] == "aB3456789"
    assert messages_json(request, PromptForm())[2]["tool_call_id"] == "functions.look:0"


JOINED = _chatml()  # Mistral's and Kimi's way: a call stands right behind the words
APART = JOINED.replace(
    "<tool_call>\n{", "{{ '\\n' }}<tool_call>\n{"
)  # Qwen's and Granite's: in a line of its own
TRIMMED = APART.replace("m.content or ''", "(m.content or '') | trim")


@pytest.mark.parametrize(
    ("template", "written", "shown"),
    [
        (APART, "So.\n\n", "\nSo.\n\n<tool_call>"),
        (APART, "So.\n", "\nSo.\n<tool_call>"),
        (APART, "\n\n", "\n\n\n<tool_call>"),
        (JOINED, "So.\n\n", "\nSo.\n\n<tool_call>"),
        (JOINED, "\nSo. ", "\n\nSo. <tool_call>"),
        (TRIMMED, "So.\n\n", "\nSo.\n<tool_call>"),
    ],
)
async def test_white_space_before_a_call_goes_back_less_what_the_template_writes_itself(
    tmp_path: Path, template: str, written: str, shown: str
) -> None:
    call = ToolCall("call00001", "bash", '{"command": "ls"}')
    step = Assistant(written.strip(), (call,), words=written)
    talk = (step, ToolResult(call.id, "bash", "output 0"))
    async with model_with(tmp_path, Kind(template)) as model:
        prompt = await model.rendered(Request((System("s"), User("u"), *talk), TOOLS)) or ""
    assert f"<|im_start|>assistant{shown}" in prompt


async def test_a_call_that_came_as_text_goes_back_as_a_call(tmp_path: Path) -> None:
    raw = '```json\n{"name": "bash",   "arguments": {"command": "ls"}}\n```'
    call = ToolCall("call00001", "bash", '{"command": "ls"}')
    talk = (Assistant("", (call,), raw), ToolResult(call.id, "bash", "output 0"))
    async with model_with(tmp_path, Kind(TEMPLATE)) as model:
        prompt = await model.rendered(Request((System("s"), User("u"), *talk), TOOLS)) or ""
    assert '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>' in prompt
    assert raw not in prompt and "output 0" in prompt
