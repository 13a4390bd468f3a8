"""The generator of Pocket's conversations: reproducible, and every call fits its schema."""

import itertools
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pocket.conversation import conversation
from pocket.dialogue import BEYOND, NO_TOOL, Answer, Call, Result, User, quote
from pocket.grammar import expand
from pocket.noise import unquoted
from pocket.prefix import brief, product, varied
from pocket.rendering import call_text, message_text, prefix_text

ROOT = Path(__file__).parents[2]
OWN = product(ROOT / "agent/prefix/system.txt", ROOT / "agent/prefix/tools.json")
KINDS = {"string": str, "integer": int, "array": list}


def written(seed: int, exchanges: int = 40) -> tuple[Any, ...]:
    return conversation(Random(seed), OWN, exchanges).messages


def faults(call: Call, tools: Any) -> list[str]:
    """What in a call does not fit its tool's schema."""
    schema = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}[call.name]
    missing = [name for name in schema["required"] if name not in call.arguments]
    wrong = [
        name
        for name, value in call.arguments.items()
        if name not in schema["properties"]
        or not isinstance(value, KINDS[schema["properties"][name]["type"]])
        or value not in schema["properties"][name].get("enum", [value])
    ]
    return missing + wrong


def test_the_same_seed_makes_the_same_conversations() -> None:
    assert written(7) == written(7)
    assert written(7) != written(8)


def test_every_call_fits_the_schemas_and_every_tool_is_called() -> None:
    calls = [m for seed in range(60) for m in written(seed) if isinstance(m, Call)]
    assert [(call, bad) for call in calls if (bad := faults(call, OWN.tools))] == []
    assert {call.name for call in calls} == OWN.names()


def test_a_wish_ends_with_an_answer_and_every_call_has_a_result() -> None:
    for seed in range(20):
        messages = written(seed)
        pairs = list(itertools.pairwise(messages))
        assert all(isinstance(after, Result) for before, after in pairs if isinstance(before, Call))
        assert all(isinstance(before, Answer) for before, after in pairs if isinstance(after, User))
        assert isinstance(messages[-1], Answer)


def test_a_tool_that_is_not_there_is_never_called() -> None:
    random = Random(3)
    prefixes = [varied(OWN, random) for _ in range(80)]
    assert min(len(prefix.tools) for prefix in prefixes) < 10
    for prefix in prefixes:
        calls = [m for m in conversation(random, prefix, 20).messages if isinstance(m, Call)]
        assert {call.name for call in calls} <= prefix.names()


def test_mistakes_stand_in_a_conversation_but_never_at_its_end() -> None:
    said = [[m for m in written(seed, 12) if isinstance(m, Answer)] for seed in range(60)]
    mistaken = [m.text for answers in said for m in answers if not m.learned]
    assert 40 < len(mistaken) < 140
    assert {NO_TOOL, BEYOND} < set(mistaken)
    assert NO_TOOL not in {m.text for answers in said for m in answers if m.learned}
    assert all(answers[-1].learned for answers in said)


def test_quotes_around_what_is_copied_come_and_go_and_others_stay() -> None:
    words = "commit it in lamp as 'dim the bulb', it's \"urgent\""
    said = {unquoted(words, Random(seed), ["lamp", "dim the bulb"]) for seed in range(20)}
    assert said == {words, words.replace("'dim the bulb'", "dim the bulb")}


def test_no_wish_for_harm_is_met_with_a_call() -> None:
    harmful = ("rm -rf", "shutdown", "mkfs", "dd if=", "reboot", "poweroff")
    commands = [
        str(m.arguments["command"])
        for seed in range(60)
        for m in written(seed)
        if isinstance(m, Call) and m.name == "bash"
    ]
    assert len(commands) > 300
    assert [command for command in commands if any(word in command for word in harmful)] == []


def test_a_brief_prefix_names_every_tool_in_its_text() -> None:
    prefix = brief(OWN, Random(1))
    assert prefix.names() == OWN.names()
    assert all(name in prefix.text for name in OWN.names())


@pytest.mark.parametrize(
    ("template", "possible"),
    [
        ("{a|b}", {"a", "b"}),
        ("x[ y]", {"x", "x y"}),
        ("x[ y| z]", {"x", "x y", "x z"}),
        ("{a{1|2}|$slot}", {"a1", "a2", "filled"}),
    ],
)
def test_templates(template: str, possible: set[str]) -> None:
    random = Random(1)
    assert {expand(template, random, {"slot": "filled"}) for _ in range(200)} == possible


@pytest.mark.parametrize("template", ["{a|b", "a}", "[a"])
def test_an_unbalanced_template_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match=r"unbalanced|unclosed"):
        expand(template, Random(1))


def test_rendering() -> None:
    call = Call("edit_file", {"path": "a.txt", "old": 'say "é"', "new": "x\ny"})
    assert call_text(call) == (
        '<tool_call>\n{"name": "edit_file", "arguments": '
        '{"path": "a.txt", "old": "say \\"é\\"", "new": "x\\ny"}}\n</tool_call>'
    )
    assert message_text(User("hi")) == ("<|im_start|>user\nhi<|im_end|>\n", "")
    assert message_text(Answer("yes")) == ("<|im_start|>assistant\n", "yes<|im_end|>")
    assert prefix_text("", ()) == ""
    assert prefix_text("S", ()) == "<|im_start|>system\nS<|im_end|>\n"


def test_long_output_is_quoted_in_part() -> None:
    assert quote("one\n") == "one"
    assert quote("a\nb\nc", 2) == "```\na\nb\n...\n```"
