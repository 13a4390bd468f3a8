"""Calls that a small model wrote as text, and text that a person should not see.

known.py      the tools by name, with the kinds of their arguments
repair.py     broken JSON to a value, but never one that was cut off
calls.py      a parsed value to the calls in it
forms.py      one recogniser per way of writing a call
reader.py     the stream: shows what is safe to show, keeps calls and thoughts back
"""

from agent.llm.tool_call_parser.calls import ParsedCall
from agent.llm.tool_call_parser.known import KnownTools
from agent.llm.tool_call_parser.reader import ToolCallParser
from agent.llm.tool_call_parser.repair import arguments_of

__all__ = ["KnownTools", "ParsedCall", "ToolCallParser", "arguments_of"]
