"""What must stand in no answer is found in every form, and nothing else is taken for it."""

import pytest

from fakes.answer_faults import faults_of

TOOLS = ("bash", "read_file", "git_status")


@pytest.mark.parametrize(
    "answer",
    [
        '```json\n{"name": "disk_free", "arguments": {"path": "/"}}\n```',
        '{"name": "vm", "arguments": {}}',
        '<tools>\n{"name": "bash", "arguments": {"command": "df -h"}}\n</tools>',
        '{{"name": "bash", "parameters": {"command": "df -h"}}}',
        '{"function": {"name": "bash"}, "arguments": "{}"}',
        "Let me look.\n<tool_call>",
        "<function=bash><parameter=command>ls",
        '<invoke name="bash">',
        '[TOOL_CALLS]bash{"command": "ls"}',
        'I will call read_file(path="a.txt").',
        'bash {"command": "ls"}',
        'bash("ls")',
    ],
)
def test_call_text(answer: str) -> None:
    assert faults_of(answer, TOOLS) == ("call text",)


@pytest.mark.parametrize(
    "answer",
    [
        "<tool_response>\n7 files\n</tool_response>",
        "<response>There are 7.</response>",
        "Done.<|im_end|>",
        "<|channel|>final",
        "Done.</s>",
        "[INST] What now? [/INST]",
        "</think>The answer is 7.",
        "<start_of_turn>model",
        "<｜end▁of▁sentence｜>",
    ],
)
def test_template_marks(answer: str) -> None:
    assert faults_of(answer, TOOLS) == ("template mark",)


@pytest.mark.parametrize(
    "answer",
    [
        "The file was written to hello.txt. The file was written to hello.txt.",
        "There are 7 files here.\nAnything else?\nThere are 7 files here.",
    ],
)
def test_repeated_sentences(answer: str) -> None:
    assert faults_of(answer, TOOLS) == ("repeated sentence",)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "80 GB are free (df -h).",
        "Yes. Yes. Yes, the port is 7431.",
        "I ran bash and read_file (both worked); git_status() shows nothing.",
        'package.json has {"name": "site", "version": "1.2"}.',
        "In the page stands <p>Hello</p> and <s>old</s>.",
        "```\nretry in 5 seconds: connection refused\nretry in 5 seconds: connection refused\n```",
        "a | b\n<|> is an operator.",
    ],
)
def test_nothing_is_found_in_good_answers(answer: str) -> None:
    assert faults_of(answer, TOOLS) == ()
