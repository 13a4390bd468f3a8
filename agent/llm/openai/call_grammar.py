"""Grammars that keep a small model's calls readable, for a server that decodes under one (llama-server).

A model that was trained on another form of calls than its template's writes them in its own: a
fenced block, XML, a tool that does not exist, arguments in the wrong place. The server's parser
then sees text. Under `calls` it writes what it likes until a call begins, and from there only a
call to a tool of the request, with arguments of the right names and types; generation ends with
it. With `required` it can only call. Under `words` an answer can hold no call. (llama.cpp, tools/server/README.md: `grammar`;
`grammar_lazy` and `grammar_triggers` are the fields of its own chat templates.)
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.llm.openai.prompt_form import Json
from agent.model import Request

# The type of a trigger that is a regular expression; decoding is bound from its group on.
PATTERN = 2
# A JSON object with a name, wherever it stands; or a tag at the very beginning, but no end of the answer (<|im_end|>).
TRIGGERS = (r'(\{\s*"(?:name|tool|function)")', r"^\s*(<)$")
_RULES = r"""
ws ::= [ \n\t]{0,20}
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
integer ::= "-"? [0-9]{1,6}
boolean ::= "true" | "false"
strings ::= "[" ws (string (ws "," ws string)*)? ws "]"
"""
_TYPES = {"integer": "integer", "boolean": "boolean", "array": "strings"}


def calls(schemas: Sequence[Mapping[str, Any]], *, required: bool = False) -> Json:
    """The fields of a completion request in which each call is one to these tools."""
    functions = [schema["function"] for schema in schemas]
    rules = [f"call{n} ::= {_call(function)}" for n, function in enumerate(functions)]
    any_call = " | ".join(f"call{n}" for n in range(len(functions)))
    root = f'root ::= "<tool_call>\\n" call "\\n</tool_call>" | call\ncall ::= {any_call}'
    triggers = [{"type": PATTERN, "value": trigger} for trigger in TRIGGERS]
    lazy = {} if required else {"grammar_lazy": True, "grammar_triggers": triggers}
    return {"grammar": "\n".join([root, *rules, _RULES]), **lazy}


def fields(request: Request) -> Json:
    """The fields that bind a completion to what the request may be answered with."""
    if request.tool_choice == "none":
        return words()
    named = [t for t in request.tools if t["function"]["name"] in request.only] or request.tools
    return calls(named, required=request.tool_choice == "required")


def words() -> Json:
    """The fields of a completion request whose text holds no call: no brace, and no fence."""
    return {"grammar": r"""root ::= [^{}<>`\[\] \n\r\t] ("`"? "`"? [^`{])*"""}


def _call(function: Mapping[str, Any]) -> str:
    """The rule of a call: its required arguments, then any others, each in the order of the schema."""
    parameters = function["parameters"]
    required = parameters.get("required", [])
    properties = parameters["properties"]
    given = [_argument(name, properties[name]) for name in required]
    more = [_argument(name, properties[name]) for name in properties if name not in required]
    further = [f' (ws "," ws {argument})?' for argument in more]
    starts = [each + "".join(further[n + 1 :]) for n, each in enumerate(more)]
    body = ' ws "," ws '.join(given) + "".join(further)
    if more and not given:
        body = f"({' | '.join(starts)})?"
    name = _literal(f"{json.dumps(function['name'])}")
    head = f'"{{" ws "\\"" ("name" | "tool" | "function") "\\"" ws ":" ws {name} ws "," ws'
    return f'{head} "\\"arguments\\"" ws ":" ws "{{" ws {body} ws "}}" ws "}}"'


def _argument(name: str, schema: Mapping[str, Any]) -> str:
    if choices := schema.get("enum"):
        value = f"({' | '.join(_literal(json.dumps(choice)) for choice in choices)})"
    else:
        value = _TYPES.get(schema.get("type", "string"), "string")
    return f'{_literal(json.dumps(name))} ws ":" ws {value}'


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
