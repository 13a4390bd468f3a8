"""Calls as text: found, and kept from view, however the stream is split."""

import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.llm.tool_call_parser import KnownTools, ParsedCall, ToolCallParser, arguments_of
from fakes.cases import cases

TOOLS = json.loads(files("agent").joinpath("prefix/tools.json").read_text("utf-8"))
KNOWN = KnownTools.of(TOOLS)
LS = ParsedCall("bash", {"command": "ls"})
BROKEN = ParsedCall("", None)


def read(text: str, size: int = 10**9) -> tuple[str, str, list[ParsedCall], str]:
    """(shown as it came, visible, calls, generated)"""
    reader = ToolCallParser(KNOWN)
    shown = [reader.feed(text[start : start + size]) for start in range(0, len(text), size)]
    shown.append(reader.close())
    return "".join(shown), reader.visible, reader.calls, reader.generated


FORMS = {
    "hermes": '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>',
    "unclosed": '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}',
    "upper case": '<TOOL_CALL>{"name": "bash", "arguments": {"command": "ls"}}</TOOL_CALL>',
    "missing brace": '<tool_call>{"name": "bash", "arguments": {"command": "ls"}</tool_call>',
    "one brace too many": '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}}</tool_call>',
    "tools": '<tools>{"name": "bash", "arguments": {"command": "ls"}}</tools>',
    "tool": "<tool>\n{'name': 'bash', 'arguments': {'command': 'ls'}}\n</tool>",
    "function_call": '<function_call>{"name": "bash", "arguments": {"command": "ls"}}</function_call>',
    "json fence": '```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```',
    "plain fence": '```\n{"name": "bash", "arguments": {"command": "ls"}}\n```',
    "unclosed fence": '```json\n{"name": "bash", "arguments": {"command": "ls"}}',
    "tag in a fence": '```xml\n<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>\n```',
    "tool_code fence": '```tool_code\nprint(default_api.bash(command="ls"))\n```',
    "bare": '{"name": "bash", "arguments": {"command": "ls"}}',
    "bare in a list": '[{"name": "bash", "arguments": {"command": "ls"}}]',
    "doubled braces": '{{"name": "bash", "arguments": {{"command": "ls"}}}}',
    "doubled brace, closed once": '{{"name": "bash", "arguments": {"command": "ls"}}',
    "parameters": '{"name": "bash", "parameters": {"command": "ls"}}',
    "arguments as text": '{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}',
    "flat": '{"tool": "bash", "command": "ls"}',
    "openai": '{"type": "function", "function": {"name": "bash", "arguments": {"command": "ls"}}}',
    "tool_calls": '{"tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]}',
    "name as key": '<tool_call>{"bash": {"command": "ls"}}</tool_call>',
    "name before": '<tool_call>bash\n{"command": "ls"}</tool_call>',
    "function=": '<function=bash>{"command": "ls"}</function>',
    "function= in a tag": '<tool_call>\n<function=bash>{"command": "ls"}</function>\n</tool_call>',
    "coder": "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
    "coder without end": "<function=bash>\n<parameter=command>\nls\n</parameter>",
    "invoke": '<invoke name="bash"><parameter name="command">ls</parameter></invoke>',
    "python": 'bash(command="ls")',
    "python by place": "bash('ls')",
    "python list": '[bash(command="ls")]',
    "gpt-oss": '<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command":"ls"}<|call|>',
    "gpt-oss start": '<|start|>assistant<|channel|>commentary to=bash<|message|>{"command":"ls"}',
    "mistral": '[TOOL_CALLS][{"name": "bash", "arguments": {"command": "ls"}}]',
    "mistral args": '[TOOL_CALLS]bash[ARGS]{"command": "ls"}',
    "gemma": '<|tool_call>call:bash{command:<|"|>ls<|"|>}<tool_call|>',
    "glm": "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    "gpt-oss without its tokens": 'assistantcommentary to=functions.bash json{"command":"ls"}',
    "react": 'Action: bash\nAction Input: {"command": "ls"}',
    "named tags": "<bash>\n<command>ls</command>\n</bash>",
    "apertus": '<|tools_prefix|>[{"bash": {"command": "ls"}}]<|tools_suffix|>',
    "seed": "<seed:tool_call>\n<function=bash>\n<parameter=command>ls</parameter>\n</function>\n</seed:tool_call>",
    "command r7b": '<|START_ACTION|>[\n {"tool_call_id": "0", "tool_name": "bash", "parameters": {"command": "ls"}}\n]<|END_ACTION|>',
    "command r+": 'Action:\n```json\n[\n {"tool_name": "bash", "parameters": {"command": "ls"}}\n]\n```',
    "gigachat": '<|function_call|>{"name": "bash", "arguments": {"command": "ls"}}',
    "gigachat 3": '<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "bash", "arguments": {"command": "ls"}}',
    "kimi k2": '<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command": "ls"}<|tool_call_end|><|tool_calls_section_end|>',
    "kimi k3": '<|open|>tools<|sep|><|open|>call tool="bash" index="1"<|sep|><|open|>argument key="command" type="string"<|sep|>ls<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
    "lfm2": '<|tool_call_start|>[bash(command="ls")]<|tool_call_end|>',
    "minimax m2": '<minimax:tool_call>\n<invoke name="bash">\n<parameter name="command">ls</parameter>\n</invoke>\n</minimax:tool_call>',
    "minimax m3": ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="bash">]<]minimax[>[<command>ls]<]minimax[>[</command>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>',
    "nemotron v2": '<TOOLCALL>[{"name": "bash", "arguments": {"command": "ls"}}]</TOOLCALL>',
    "deepseek r1": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n{"command": "ls"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek v3.1": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "ls"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek v3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="bash">\n<｜DSML｜parameter name="command" string="true">ls</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "firefunction": 'functools[{"name": "bash", "arguments": {"command": "ls"}}]',
    "granite": '<|tool_call|>[{"name": "bash", "arguments": {"command": "ls"}}]',
    "functionary 3.2, behind words": '>>>bash\n{"command": "ls"}',
    "minicpm": '<function name="bash"><param name="command"><![CDATA[ls]]></param></function>',
    "hunyuan": "<tool_calls:opensource>\n<tool_call:opensource>bash<tool_sep:opensource>\n<arg_key:opensource>command</arg_key:opensource>\n<arg_value:opensource>ls</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
    "solar": '<|tool_calls|><|tool_call:begin|>abcdefghi<|tool_call:name|>bash<|tool_call:args|>{"command": "ls"}<|tool_call:end|>',
    "llama": '<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}',
}


# The generation prompt holds what begins these, so they stand at the beginning alone.
BEGINNINGS = {
    "gpt-oss, the speaker in the prompt": ' to=functions.bash<|channel|>commentary json<|message|>{"command": "ls"}',
    "muse": ' to=bash<|message|><atem:function_calls>\n<atem:invoke name="bash">\n<atem:parameter name="command">ls</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
    "functionary 3.2": 'bash\n{"command": "ls"}',
}


@pytest.mark.parametrize("form", BEGINNINGS, ids=str)
def test_a_form_that_the_prompt_began(form: str) -> None:
    for size in (1, 2, 3, 7, 10**9):
        assert read(BEGINNINGS[form], size) == ("", "", [LS], BEGINNINGS[form])


@cases("form", FORMS)
def test_every_form_is_a_call_and_nothing_of_it_is_shown(form: str) -> None:
    text = FORMS[form]
    for size in (1, 2, 3, 7, 10**9):
        assert read(text, size) == ("", "", [LS], text)
        assert read(f"Let me look.\n\n{text}", size)[:3] == ("Let me look.", "Let me look.", [LS])


def test_a_call_that_the_model_named_keeps_its_name() -> None:
    """Under another one the next prompt would not repeat what was said."""
    for named in ("[CALL_ID]f93c44621", ""):
        _, _, calls, _ = read(f'[TOOL_CALLS]bash{named}[ARGS]{{"command": "ls"}}')
        assert [call.id for call in calls] == [named.removeprefix("[CALL_ID]")]
    solar = '<|tool_call:begin|>f93c44621<|tool_call:name|>bash<|tool_call:args|>{"command": "ls"}<|tool_call:end|>'
    _, _, calls, _ = read(solar)
    assert (calls, calls[0].id) == ([LS], "f93c44621")


@cases("form", [f for f in FORMS if "unclosed" not in f and "without" not in f])
def test_words_behind_a_call_are_shown(form: str) -> None:
    for size in (1, 10**9):
        shown, visible, calls, _ = read(f"{FORMS[form]}\nDone that.", size)
        assert (shown, visible, calls) == ("Done that.", "Done that.", [LS])


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (
            '<tool_call>{"name": "bash", "arguments": {"command": "rm -rf /workspace/buil',
            [BROKEN],
        ),
        ('{"name": "bash", "arguments": {"command": "rm -rf /workspace/buil', [BROKEN]),
        ("<function=bash><parameter=command>rm -rf /workspace/buil", [ParsedCall("bash", None)]),
        ('bash(command="rm -rf /workspace/buil', [ParsedCall("bash", None)]),
        ('<function=bash>{"command": "rm -rf /workspace/buil', [ParsedCall("bash", None)]),
        ("<tool_call>\nI think I should\n</tool_call>", [BROKEN]),
        ("<tool_call>", [BROKEN]),
        (
            '<tool_call>{"name": "fly", "arguments": {"to": "x"}}</tool_call>',
            [ParsedCall("fly", {"to": "x"})],
        ),
        ('[TOOL_CALLS][{"name": "ba', [BROKEN]),
        ('{"name": "disk_free", "arguments": {"pa', [BROKEN]),
        ('```json\n{"name": "disk_free", "arguments": {', [BROKEN]),
        ("```tool_code\nresult = disk_free(path='/')\nprint(result)\n```", [BROKEN]),
        ("```tool_code\nprint(disk_free(", [BROKEN]),
    ],
)
def test_what_is_no_complete_call_is_hidden_and_not_completed(
    text: str, calls: list[ParsedCall]
) -> None:
    for size in (1, 10**9):
        assert read(text, size) == ("", "", calls, text)


@cases(
    "text",
    [
        "Two plus two is 4, as 3 < 5 and a <b>tag</b> shows.",
        'Your file is {"temperature": 5, "name": "x"} and {name} too.',
        '```json\n{"name": "Bob", "age": 5}\n```\nThat is Bob.',
        "```bash\nls -la\n```",
        "```python\nprint('hello')\n```",
        "bash(command) runs a command.",
        "grep is a tool, and so is bash (the shell).",
        "See [the page](https://example.org) or `code`.",
        "A list: [1, 2, 3] and [x].",
        "<tool",
        "a `",
        "```",
        "{",
        "- [ ] a task\n- [x] another",
        '["a", "b"]',
        "x = {'a': 1}",
        "if a < b:\n    bash\n",
        "Action: take a walk.\nAnalysis to be done.",
        "The <bash> element and <command>x</command>.",
        "`<|im_end|>` ends a message, and `</think>` a thought.",
        "Qwen writes a call between `<tool_call>` and `</tool_call>`.",
    ],
)
def test_ordinary_text_is_shown_whole(text: str) -> None:
    for size in (1, 3, 10**9):
        assert read(text, size)[:3] == (text.strip(), text.strip(), [])


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("<think>hm</think>Yes.", "Yes."),
        ("<think>\nhm <tool_call>{}</tool_call>\n</think>\n\nYes.", "Yes."),
        ("<think>for ever", ""),
        ("hm, let me see</think>\n\nYes.", "Yes."),
        (
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
            "Yes.",
        ),
        ("<|channel>thought\nhm\n<channel|>Yes.", "Yes."),
        ("Yes.<|im_end|>", "Yes."),
        ("[THINK]hm[/THINK]Yes.", "Yes."),
        ("<seed:think>hm</seed:think>\nYes.", "Yes."),
        ("hm</think:opensource>Yes.", "Yes."),
        ("hm\n[BEGIN FINAL RESPONSE]\nYes.", "Yes."),
        ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>", "Yes."),
        (" to=self<|message|>hm<|eom|><|start|>assistant to=user<|message|>Yes.", "Yes."),
        (">>>all\nYes.", "Yes."),
    ],
)
def test_reasoning_and_stray_tokens_are_not_the_answer(text: str, visible: str) -> None:
    for size in (1, 10**9):
        _, seen, calls, _ = read(text, size)
        assert (seen, calls) == (visible, [])


def test_reasoning_is_not_replayed() -> None:
    assert read("<think>hm</think>\n\nYes.\n")[3] == "Yes.\n"
    assert read("hm</think>\nYes.")[3] == "Yes."


@pytest.mark.parametrize(
    "text",
    [
        "<think>\nhm, <b> or [so]</think>Yes.",
        "<|channel>thought\nhm, <b> or [so]<channel|>Yes.",
        "[THINK]hm, <b> or [so][/THINK]Yes.",
        "<|open|>think<|sep|>hm, <b> or [so]<|close|>think<|sep|>Yes.",
        "<|channel|>analysis<|message|>hm, <b> or [so]<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 10**9])
def test_a_thought_is_told_while_it_comes_without_its_marks(text: str, size: int) -> None:
    reader, told = ToolCallParser(KNOWN), list[str]()
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
        told.append(reader.new_thought())
    reader.close()
    told.append(reader.new_thought())
    assert "".join(told).strip() == reader.thought.strip() == "hm, <b> or [so]"
    assert size > 1 or sum(map(bool, told)) > 10
    assert reader.visible == "Yes."


def test_a_thought_that_never_ends_is_told_to_its_end() -> None:
    reader, told = ToolCallParser(KNOWN), list[str]()
    for letter in "<think>İstanbul, then </thi":
        reader.feed(letter)
        told.append(reader.new_thought())
    assert "".join(told) == "İstanbul, then "
    reader.close()
    assert "".join([*told, reader.new_thought()]) == reader.thought == "İstanbul, then </thi"
    assert reader.visible == ""


def test_letters_that_grow_in_lower_case_move_no_end_of_a_thought() -> None:
    reader = ToolCallParser(KNOWN)
    reader.feed("<think>İİİ</think>Evet.")
    reader.close()
    assert (reader.thought, reader.visible) == ("İİİ", "Evet.")


def test_all_before_a_lone_end_was_thought() -> None:
    reader = ToolCallParser(KNOWN)
    reader.feed("hm\n</think>\nYes.")
    reader.close()
    assert (reader.thought, reader.new_thought(), reader.visible) == ("hm\n", "", "Yes.")


def test_text_is_shown_while_it_comes() -> None:
    reader = ToolCallParser(KNOWN)
    assert [reader.feed(part) for part in ("Hel", "lo ", "there", "\n", "{na", "me}")] == [
        "Hel",
        "lo",
        " there",
        "",
        "\n{na",
        "me}",
    ]


def test_ordinary_text_is_never_held_back_by_more_than_a_word() -> None:
    text = "Here is how it works, {step} by [step]: first `ls`, then <b>bold</b>.\nGood.\n" * 5
    reader = ToolCallParser(KNOWN)
    shown = 0
    for place, letter in enumerate(text):
        shown += len(reader.feed(letter))
        assert place + 1 - shown <= 12
    assert len(reader.calls) == 0


@pytest.mark.parametrize("name", ["write_file", "edit_file"])
def test_a_closing_tag_inside_an_argument_is_part_of_it(name: str) -> None:
    arguments = {"path": "a", "content": 'x</tool_call>y "z" } ] \\ '}
    text = f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"
    for size in (1, 10**9):
        assert read(text, size)[:3] == ("", "", [ParsedCall(name, arguments)])


def test_typed_arguments_of_the_tag_form() -> None:
    text = (
        "<function=git_commit><parameter=repo>\n.\n</parameter><parameter=message>\n[1]\n"
        '</parameter><parameter=files>\n["a", "b"]\n</parameter></function>'
    )
    [call] = read(text)[2]
    assert call == ParsedCall("git_commit", {"repo": ".", "message": "[1]", "files": ["a", "b"]})


@pytest.mark.parametrize(
    "text",
    [
        '<|tool_call>call:bash{command:<|"|>a, b: "c" {<|"|>,seconds:30}<tool_call|>',
        '<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>a, b: "c" {</arg_value>\n'
        "<arg_key>seconds</arg_key>\n<arg_value>30</arg_value>\n</tool_call>",
        "<|tool_call_start|>[bash(command='a, b: \"c\" {', seconds=30)]<|tool_call_end|>",
    ],
)
def test_numbers_stay_numbers_and_strings_are_as_written(text: str) -> None:
    for size in (1, 10**9):
        assert read(text, size)[2] == [
            ParsedCall("bash", {"command": 'a, b: "c" {', "seconds": 30})
        ]


def test_strings_that_lfm_writes_without_escapes() -> None:
    text = "<|tool_call_start|>[bash(command='a \"b\" 'c'\nd, e=1', seconds=5)]<|tool_call_end|>"
    [call] = read(text)[2]
    assert call == ParsedCall("bash", {"command": "a \"b\" 'c'\nd, e=1", "seconds": 5})


def test_a_megabyte_costs_little_even_in_small_pieces() -> None:
    content = "x" * 1_000_000
    arguments = {"path": "a", "content": content}
    call = {"name": "write_file", "arguments": arguments}
    shown, _, calls, _ = read(f"<tool_call>{json.dumps(call)}</tool_call>", 1000)
    assert (shown, calls) == ("", [ParsedCall("write_file", arguments)])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1,}', {"a": 1}),
        ("{a: 'x'}", {"a": "x"}),
        ("{'a': True, 'b': None}", {"a": True, "b": None}),
        ('{{"a": {"b": 1}}}', {"a": {"b": 1}}),
        ('{"a": "\\ud800"}', {"a": "?"}),
        ('{"a": "x', None),
        ('{"a": 12', None),
        ('{"a":', None),
        ("[1]", None),
        ("null", None),
        ("ls -la", None),
        ("[" * 100_000, None),
        ('{"a": ' * 50_000, None),
    ],
)
def test_arguments(text: str, value: dict[str, Any] | None) -> None:
    assert arguments_of(text) == value


PARTS = st.one_of(
    st.sampled_from(sorted(FORMS.values())),
    st.sampled_from(["<tool_call>", "</tool_call>", "```json\n", "```", "{", "}", "[", '"', "\n"]),
    st.sampled_from(
        ["<think>", "</think>", "<|channel|>", "<|message|>", "bash(", "<function=bash>"]
    ),
    st.text(max_size=20),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(PARTS, max_size=8), st.integers(1, 9))
@example(["```json\n", FORMS["minimax m3"]], 1)  # its noise begins like no call
def test_how_a_stream_is_split_changes_nothing(parts: list[str], size: int) -> None:
    text = "".join(parts)
    _, whole, calls, generated = read(text)
    shown, visible, same_calls, same_generated = read(text, size)
    assert (visible, same_calls, same_generated) == (whole, calls, generated)
    if "</think" not in text and "</reasoning" not in text and "</thought" not in text:
        assert shown.strip() == visible
    assert "<tool_call>{" not in visible.lower()


@pytest.mark.parametrize("piece", ['{"name":"bash",', "[{"])
def test_what_begins_calls_without_end_is_read_to_its_end(piece: str) -> None:
    """Each beginning was compared with all that followed: 200 KB took minutes."""
    *_, calls, generated = read(piece * (200_000 // len(piece)), 10_000)
    assert all(call == BROKEN for call in calls)
    assert generated


UNKNOWN = [
    '{"name": "disk_free", "arguments": {}}',
    '{"name": "vm", "arguments": {"command": "df"}}',
    '```json\n{"name": "rename_file", "arguments": {"old": "a", "new": "b"}}\n```',
    '```\n{"name": "disk_usage", "parameters": {"path": "/"}}\n```',
    '[{"name": "rename", "arguments": {"a": "b"}}, {"name": "remind", "arguments": {"at": "9"}}]',
    '{"type": "function", "function": {"name": "create_file", "arguments": {"path": "x"}}}',
    '{"id": "1", "name": "server.ini", "arguments": {"key": "port"}}',
    '<tools>\n{"name": "df", "arguments": {"path": "/"}}\n</tools>',
    '<tool_call>\n{"name": "disk_free", "arguments": {}}\n</tool_call>',
    'Let me look.\n{"name": "disk_free", "arguments": {"path": "/"}}',
    '{"name": "disk_free", "arguments": null}',
    '{"name": "disk_free", "arguments": []}',
    '{"name": "disk_free", "arguments": "{\\"path\\": \\"/\\"}"}',
    '{"tool_call": {"name": "disk_free", "arguments": {"path": "/"}}}',
    '{"tool_calls": [{"type": "function", "function": {"name": "df", "arguments": "{\\"a\\": 1}"}}]}',
    'Action: disk_free\nAction Input: {"path": "/"}',
    '<tool_call name="disk_free">{"path": "/"}</tool_call>',
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_call_of_an_unknown_tool_is_a_call_and_is_never_shown(text: str) -> None:
    for size in (1, 3, 10**9):
        shown, _, found = read(text, size)[:3]
        assert (shown.strip() in ("", "Let me look."), bool(found)) == (True, True)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Anna", "age": 31}',
        '```json\n{"name": "garden", "version": "3.17.2", "private": true}\n```',
        '{"name": "list", "type": "array"}',
        '{"name": "x", "arguments": "text"}',
        '[{"name": "Anna"}, {"name": "Ben"}]',
        '{"function": "sin", "input": 3}',
        'The key "arguments" stands beside "name": {"a": 1}.',
        '{"id": 7, "name": "lamp", "parameters": {"watts": 9}, "room": "hall"}',
        '{"arguments": {"a": 1}}',
        '{"action": "opened", "number": 4}',
    ],
)
def test_json_that_is_no_call_is_shown(text: str) -> None:
    for size in (1, 3, 10**9):
        assert read(text, size)[:3] == (text, text, [])


def test_marks_of_a_template_are_not_shown() -> None:
    shown = read("<tool_response>\n7431\n</tool_response>", 3)[0]
    assert shown.strip() == "7431"


@cases("size", [1, 3, 1000])
@cases(
    ("text", "shown"),
    [
        ("<response>It is 7431.</response>", "It is 7431."),
        ("\n<response>\nIt is 7431.\n</response>\n", "It is 7431."),
        ("<Response> It is 7431.", "It is 7431."),
        ("<response>", ""),
        ("<response><code>200</code></response>", "<response><code>200</code></response>"),
        ("The answer has <response> around it.", "The answer has <response> around it."),
        ("Write <response>a</response>.", "Write <response>a</response>."),
    ],
)
def test_a_response_tag_around_an_answer_is_not_shown(text: str, shown: str, size: int) -> None:
    assert read(text, size)[0].strip() == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Add:\n<tools>\n<list>\n<name>x</name>\n</list>\n</tools>\nDone.",
            "Add:\n\nDone.",
        ),
        ("a <tools> <parameters><a>b</a></parameters> </tools> b", "a  b"),
        ("The tag <tools> lists them.", "The tag  lists them."),
        ("<tools><b>bold</b>", "<b>bold</b>"),
    ],
)
def test_tags_among_the_tags_of_tools_are_not_shown(text: str, shown: str) -> None:
    for size in (1, 3, 10**9):
        assert read(text, size)[0] == shown


@pytest.mark.parametrize(
    ("inside", "call"),
    [
        ("""<function name="bash" arguments='{"command": "ls"}'/>""", LS),
        ("<function>\n<name>python3</name>\n<description>Runs.</description>\n</function>", BROKEN),
    ],
)
def test_a_function_among_them_is_a_call_or_one_that_cannot_be_read(
    inside: str, call: ParsedCall
) -> None:
    for size in (1, 3, 10**9):
        shown, _, calls = read(f"<tools>\n  {inside}\n</tools>", size)[:3]
        assert (shown.strip(), calls) == ("", [call])


@pytest.mark.parametrize("key", ["arguments", "parameters"])
def test_a_call_written_in_tags_is_a_call(key: str) -> None:
    """As Qwen2.5-Coder-1.5B wrote one."""
    call = f"<name>bash</name>\n  <{key}>\n<command>ls -l</command>\n <seconds>9</seconds></{key}>"
    text = f"<tools>\n  <function>\n    {call}\n  </function>\n</tools>"
    for size in (1, 3, 10**9):
        shown, _, calls = read(text, size)[:3]
        assert (shown.strip(), calls) == (
            "",
            [ParsedCall("bash", {"command": "ls -l", "seconds": 9})],
        )
