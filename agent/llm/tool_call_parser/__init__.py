"""Tool calls that a model wrote as text, and text that a person should not see.

parser.py          ToolCallParser, the stream: shows what is safe to show, keeps calls and thoughts back
view.py            what a recogniser of one format gets, and what it answers
tags.py            formats in tags: Hermes and its relatives, <function=NAME>, GLM, Gemma
special_tokens.py  formats in special tokens: gpt-oss, Mistral; thoughts
untagged.py        formats without: bare JSON, fences, Python calls, lines of words
calls.py           the known tools, and a parsed value to the calls in it
repair.py          broken JSON to a value, but never one that was cut off
"""

from agent.llm.tool_call_parser.calls import KnownTools, ParsedCall
from agent.llm.tool_call_parser.parser import SPECIAL_TOKENS, ToolCallParser
from agent.llm.tool_call_parser.repair import arguments_of
from agent.llm.tool_call_parser.special_tokens import opened_thought

__all__ = [
    "SPECIAL_TOKENS",
    "KnownTools",
    "ParsedCall",
    "ToolCallParser",
    "arguments_of",
    "opened_thought",
]
