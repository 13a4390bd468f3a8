"""What must stand in no answer to a person: the text of a call, marks of a chat template, a sentence said twice.

It judges the turn from outside and shares nothing with its own parser.
"""

import re
from collections.abc import Collection, Iterator
from typing import Literal

AnswerFault = Literal["call text", "template mark", "repeated sentence"]

LEAST_WORDS = 5  # of a sentence that counts when it comes twice
CALL_TAG = re.compile(
    r"</?(?:tool_?calls?|function_?calls?|tools|invoke|parameter)\b[^<>]*>|<function=|\[TOOL_CALLS\]"
    r"|```tool_(?:call|code)"
)
CALL_JSON = re.compile(
    r'\{\{?\s*"(?:name|function|tool(?:_name)?|action)"\s*:\s*(?:"[\w.-]+"|\{)'
    r'[^`]{0,400}?"(?:arguments|parameters|args|input)"\s*:'
)
TEMPLATE_MARK = re.compile(
    r"<[|｜][^<>\n]{1,40}[|｜]?>|</s>\s*\Z|<</?SYS>>|\[/?(?:INST|TOOL_RESULTS|AVAILABLE_TOOLS|SYSTEM_PROMPT)\]"
    r"|</?(?:tool_response|tool_result|response|think|start_of_turn|end_of_turn|im_start|im_end)>"
)
FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")


def faults_of(answer: str, tools: Collection[str] = ()) -> tuple[AnswerFault, ...]:
    """The faults of one answer; `tools` are names whose calls count when they are written as code."""
    found: list[AnswerFault] = []
    if has_call_text(answer, tools):
        found.append("call text")
    if TEMPLATE_MARK.search(answer):
        found.append("template mark")
    if any(repeated_sentences(answer)):
        found.append("repeated sentence")
    return tuple(found)


def has_call_text(answer: str, tools: Collection[str]) -> bool:
    if CALL_TAG.search(answer) or CALL_JSON.search(answer):
        return True
    names = "|".join(map(re.escape, tools))
    # read_file(path="a"), bash("ls"), bash {"command": ...}, <bash>ls
    written = rf"""\b(?:{names})\s*(?:\(\s*(?:\w+\s*=|['"{{])|\{{\s*")|</?(?:{names})\b"""
    return bool(names) and re.search(written, answer) is not None


def repeated_sentences(answer: str) -> Iterator[str]:
    """Sentences and lines that come twice, outside of fenced blocks, where files and output are quoted."""
    seen: set[str] = set()
    for sentence in SENTENCE_END.split(FENCE.sub("\n", answer)):
        words = re.findall(r"\w+", sentence.lower())
        if len(words) >= LEAST_WORDS:
            if (said := " ".join(words)) in seen:
                yield sentence.strip()
            seen.add(said)
