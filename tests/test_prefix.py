"""The fixed prefix is a budget: it is what a person waits for when nothing is cached."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from rs_bpe.bpe import openai

from agent.context.compaction_plan import WindowBudget
from agent.prompt import system_text
from agent.tools.registry import chosen, offered

TOOLS = json.loads(files("agent").joinpath("prefix/tools.json").read_text())
COMPACT = json.dumps(TOOLS, separators=(",", ":"), ensure_ascii=False)


def o200k(text: str) -> int:
    return len(openai.o200k_base().encode(text))


def hermes() -> str:
    """System text and tools as a Hermes template writes them."""
    tools = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in TOOLS)
    return (
        f"<|im_start|>system\n{system_text()}\n\n# Tools\n\nYou may call one or more functions to"
        " assist with the user query.\n\nYou are provided with function signatures within"
        f" <tools></tools> XML tags:\n<tools>\n{tools}\n</tools>\n\nFor each function call, return"
        " a json object with function name and arguments within <tool_call></tool_call> XML"
        ' tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
        "</tool_call><|im_end|>\n"
    )


def test_prefix_is_within_its_budget_of_tokens_and_bytes() -> None:
    assert o200k(system_text()) + o200k(COMPACT) <= 1300
    assert len((system_text() + COMPACT).encode()) <= 6000
    assert o200k(hermes()) <= 1700
    assert WindowBudget(4096, o200k(hermes())).least <= 4096  # what small cards are given


def test_readme_has_the_size_of_the_prefix() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    fewer = offered(chosen([]), with_repositories=False)
    compact = json.dumps(fewer, separators=(",", ":"), ensure_ascii=False)
    small = o200k(system_text()) + o200k(compact)
    assert f"about {round(o200k(system_text()) + o200k(COMPACT), -2):,} tokens" in readme
    assert f"{round(small, -1):,} where no repository is configured" in readme


def test_all_commands_of_the_shell_cost_one_line_of_it() -> None:
    (line,) = [line for line in system_text().splitlines() if "/commands.txt" in line]
    assert o200k(system_text()) - o200k(system_text().replace(f"{line}\n", "")) <= 60


def test_prefix_says_nothing_that_varies() -> None:
    assert "{" not in system_text()  # no placeholder: the same bytes for every chat


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool["function"]["name"])
def test_arguments_are_flat(tool: dict[str, Any]) -> None:
    kinds = {"string", "integer", "boolean"}
    for argument in tool["function"]["parameters"]["properties"].values():
        flat = argument["type"] in kinds or argument.get("items") == {"type": "string"}
        assert flat and not set(argument) - {"type", "items", "enum", "description"}
