"""What a server says of its tools: bounded, shown whole to an owner, and pinned by its hash.

Each part of a descriptor can carry an attack, names of parameters too (full-schema poisoning), and it can be
changed after somebody has agreed to it (a rug pull). So no part of it reaches a model before an owner has
seen all of it, and a tool that changed is out of use until an owner has seen the change.
"""

import base64
import hashlib
import json
import mimetypes
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from math import isfinite
from typing import Any

from agent.errors import ToolError, UsageError
from agent.language import translated
from agent.nearest import nearest
from agent.sandbox.output_buffer import clean, visible

MOST_TOOLS = 500
MOST_LEFT_OUT = 5  # of which is told why
MOST_CHARACTERS = 64 << 10  # of one descriptor
MOST_TOGETHER = 1 << 20
DEEPEST = 32  # levels of a schema
MOST_KINDS = 20  # types of one argument that are told apart
MOST_WORDS = 1000  # key=value
LINE = 160
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}")
ALL_OF_THEM = (
    "What follows is all that it says about them. A model will read it: refuse it if it gives orders, or speaks"
    " of anything but its own work."
)
OPTIONS = ("allOf", "anyOf", "oneOf")
TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0")


@dataclass(frozen=True)
class ServerTool:
    """A tool of an MCP server. `descriptor` is all that the server says of it, as JSON."""

    server: str
    name: str
    descriptor: str

    @cached_property
    def _said(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.descriptor)
        return said

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self._said, sort_keys=True).encode()).hexdigest()

    @property
    def description(self) -> str:
        return visible(str(self._said.get("description") or self._said.get("title") or ""))

    @property
    def destructive(self) -> bool:
        """Whether the server itself calls the tool destructive, which can only add a question to the owner."""
        hints = self._said.get("annotations")
        return isinstance(hints, dict) and hints.get("destructiveHint") is True

    @cached_property
    def schema(self) -> dict[str, Any]:
        schema = self._said.get("inputSchema")
        return with_parts(schema, schema)

    @cached_property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Schemas of the arguments by name, also of those that only an option (`anyOf` and the like) has; references
        within the schema are followed once."""
        options = (o for word in OPTIONS if isinstance(o := self.schema.get(word), list))
        found: dict[str, list[Any]] = {}
        for part in (self.schema, *chain.from_iterable(options)):
            properties = part.get("properties")
            for name, each in properties.items() if isinstance(properties, dict) else ():
                if each not in found.setdefault(str(name), []):
                    found[str(name)].append(each)
        return {
            name: with_parts({"anyOf": each} if each[1:] else each[0], self.schema)
            for name, each in found.items()
        }

    @cached_property
    def required(self) -> dict[str, None]:
        """The names of the arguments that a call must have, in the schema's order."""
        names = self.schema.get("required")
        wanted = {n for n in names if isinstance(n, str)} if isinstance(names, list) else set()
        return dict.fromkeys(name for name in self.parameters if name in wanted)

    @property
    def line(self) -> str:
        """The tool in a list: name, arguments ([optional]) and description, cut to LINE characters."""
        shown = islice(self.parameters, LINE)  # no line has room for more
        names = [visible(n) if n in self.required else f"[{visible(n)}]" for n in shown]
        about = " ".join(self.description.split())
        line = f"{' '.join([self.name, *names])}  {about}"
        return line if len(line) <= LINE else f"{line[: LINE - 1]}…"

    @property
    def help(self) -> str:
        usage = [
            f"{visible(n)}=" if n in self.required else f"[{visible(n)}=]" for n in self.parameters
        ]
        lines = [f"usage: mcp {self.server} {self.name} {' '.join(usage)}".rstrip()]
        lines += ["       or all arguments as JSON on standard input", "", self.description]
        left = MOST_CHARACTERS  # many may refer to one that is long
        for name, schema in self.parameters.items():
            if left < 0:
                lines.append("  ...")
                break
            facts = [type_text(schema), *limits(schema)]
            facts += ["required"] if name in self.required else []
            about = " ".join(str(schema.get("description") or "").split())
            lines.append(visible(f"  {name}  ({', '.join(facts)}) {about}".rstrip()))
            left -= len(lines[-1])
        return "\n".join(lines) + "\n"


def followed(schema: Any, whole: Any) -> dict[str, Any]:
    """Return a schema of JSON with its `$ref` resolved in the whole one, without following further references."""
    found = schema if isinstance(schema, dict) else {}
    if (place := str(found.get("$ref", ""))).startswith("#/"):
        for part in place[2:].split("/"):
            whole = whole.get(part) if isinstance(whole, dict) else None
        found = {**(whole if isinstance(whole, dict) else {}), **found}
    return found


def with_parts(schema: Any, whole: Any) -> dict[str, Any]:
    """Return a schema with the references of its options (`anyOf` and the like) and items resolved, too."""
    found = followed(schema, whole)
    for word in OPTIONS:
        if isinstance(options := found.get(word), list):
            parts = [followed(each, whole) for each in options[:MOST_KINDS]]
            found = {**(parts[0] if word == "allOf" and parts else {}), **found, word: parts}
    return {**found, "items": followed(found["items"], whole)} if "items" in found else found


def type_text(schema: Mapping[str, Any]) -> str:
    if "enum" in schema or "const" in schema:
        return "one of " + ", ".join(map(plain, choices(schema)))
    kinds = types(schema)
    if kinds == ["array"] and isinstance(schema.get("items"), dict):
        return f"list of {type_text(schema['items'])}"
    return " or ".join(kinds) or "any"


def types(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    kinds = kind[:MOST_KINDS] if isinstance(kind, list) else [kind] if kind else []
    for word in ("anyOf", "oneOf"):
        options = schema.get(word)
        if isinstance(options, list):
            kinds = [*kinds, *(o.get("type") for o in options[:MOST_KINDS] if isinstance(o, dict))]
    return [str(kind) for kind in kinds if isinstance(kind, str)]


def choices(schema: Mapping[str, Any]) -> list[Any]:
    found = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return found if isinstance(found, list) else []


def limits(schema: Mapping[str, Any]) -> list[str]:
    named = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "more than",
        "exclusiveMaximum": "less than",
        "minLength": "characters at least",
        "maxLength": "characters at most",
        "pattern": "pattern",
        "format": "format",
        "default": "default",
    }
    return [f"{words} {plain(schema[key])}" for key, words in named.items() if key in schema]


def plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tools_of(
    server: str, descriptors: Sequence[Mapping[str, Any]]
) -> tuple[list[ServerTool], list[str]]:
    """The tools of a server that an owner can look through, and why others are left out; ToolError where none is
    left, or too many are."""
    found: dict[str, ServerTool] = {}
    left_out: list[str] = []
    names = Counter(str(said.get("name", "")) for said in descriptors)
    for said in descriptors:
        name = str(said.get("name", ""))
        if not NAME.fullmatch(name):
            left_out.append(
                f"{server} names a tool in a way that no tool is named: {visible(name)[:80]!r}."
            )
            continue
        if names[name] > 1:
            left_out.append(f"{server} has two tools named {name}, so none of them is used.")
            continue
        if "inputSchema" not in said:
            left_out.append(f"{server} does not describe {name} as MCP does, so it is not used.")
            continue
        if deeper(said, DEEPEST):
            left_out.append(
                f"{server} describes {name} in more than {DEEPEST} levels, so it is not used."
            )
            continue
        text = json.dumps(said, ensure_ascii=False)
        text = text.encode("utf-8", "backslashreplace").decode()
        if len(text) > MOST_CHARACTERS:
            left_out.append(
                f"{server} describes {name} in {len(text):,} characters, which nobody can look through, so it is "
                "not used."
            )
            continue
        found[name] = ServerTool(server, name, text)
    together = sum(len(tool.descriptor) for tool in found.values())
    if len(found) > MOST_TOOLS or together > MOST_TOGETHER:
        raise ToolError(
            f"{server} offers {len(found):,} tools in {together:,} characters, which nobody can look through, so it "
            "is not used."
        )
    left_out = list(dict.fromkeys(left_out))
    if left_out and not found:
        raise ToolError(left_out[0])
    if len(left_out) > MOST_LEFT_OUT:
        left_out[MOST_LEFT_OUT:] = [f"{server}: {len(left_out) - MOST_LEFT_OUT} more are not used."]
    return list(found.values()), left_out


def deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(deeper(each, levels - 1) for each in inner)


# -- what an owner has allowed ---------------------------------------------------


@dataclass(frozen=True)
class Pins:
    """What owners have seen of a server. `source` is what was started or connected to; `tools` are hashes of
    descriptors by name, `lines` what a list says of them, `descriptors` those that prompts list."""

    source: str = ""
    tools: dict[str, str] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)
    descriptors: dict[str, str] = field(default_factory=dict)

    def seen(self, tool: ServerTool) -> bool:
        return self.tools.get(tool.name) == tool.digest

    def with_tools(self, tools: Sequence[ServerTool], listed: Sequence[str] = ()) -> "Pins":
        """Add these tools to the pins. `listed` names those whose descriptors are stored, too."""
        return Pins(
            self.source,
            self.tools | {tool.name: tool.digest for tool in tools},
            self.lines | {tool.name: tool.line for tool in tools},
            self.descriptors | {t.name: t.descriptor for t in tools if t.name in listed},
        )


def question(source: str, pins: Pins, tools: Sequence[ServerTool]) -> str:
    """What an owner is asked before tools are used for the first time, or after they changed."""
    server = tools[0].server
    changed = [tool.name for tool in tools if tool.name in pins.tools]
    form = translated("Use {count} tools of the MCP server {server} ({source}).")
    head = form.format(count=len(tools), server=server, source=source)
    if changed:
        form = translated("CHANGED since they were allowed: {names}.")
        head += " " + form.format(names=", ".join(changed))
    said = "\n\n".join(
        json.dumps(json.loads(t.descriptor), ensure_ascii=False, indent=1) for t in tools
    )
    return f"{head} {translated(ALL_OF_THEM)}\n\n{said}"


# -- arguments ------------------------------------------------------------------


def arguments(tool: ServerTool, words: Sequence[str]) -> dict[str, Any]:
    """Parse arguments given as key=value. Raises UsageError with what is wrong."""
    if len(words) > MOST_WORDS:
        raise UsageError(f"more than {MOST_WORDS:,} words: give JSON on standard input, behind -")
    given: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"{visible(word)[:80]!r} is no key=value")
        schema = schema_of(tool, name)
        value = convert(name, schema, text)
        if "array" in types(schema) and name in given and isinstance(value, list):
            value = given[name] + value
        elif name in given:
            raise UsageError(f"{name} is given twice")
        given[name] = value
    return require_all(tool, given)


def from_json(tool: ServerTool, text: str) -> dict[str, Any]:
    """Parse arguments given as JSON. Raises UsageError unless it is an object with the tool's arguments."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"standard input is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise UsageError("standard input must be a JSON object with the arguments")
    for name in given:
        schema_of(tool, name)
    return require_all(tool, given)


def require_all(tool: ServerTool, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments. Raises UsageError if a required one is missing."""
    missing = [visible(name) for name in tool.required if name not in given]
    if missing:
        raise UsageError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return given


def schema_of(tool: ServerTool, name: str) -> dict[str, Any]:
    """The schema of an argument, {} if any is allowed. Raises UsageError, with the nearest name, where it is unknown."""
    if name in tool.parameters:
        return tool.parameters[name]
    if tool.schema.get("additionalProperties") not in (None, False):
        return {}
    near = nearest(name, tool.parameters, 1, 0.5)
    hint = (
        f"did you mean {near[0]}?" if near else f"it takes {', '.join(tool.parameters) or 'none'}"
    )
    raise UsageError(f"{visible(name)[:80]} is no argument of {tool.name}; {visible(hint)}")


def convert(name: str, schema: Mapping[str, Any], text: str) -> Any:
    """Convert an argument's text to the first type of its schema that takes it. Raises UsageError where none does."""
    if options := choices(schema):
        for option in options:
            if plain(option) == text:
                return option
        raise UsageError(visible(f"{name} is {type_text(schema)}"))
    kinds = types(schema)
    if not kinds:
        return as_json(text, text)
    for kind in kinds:
        value = as_type(kind, schema, name, text)
        if value is not None:
            return value
    if "null" in kinds and text in ("", "null"):
        return None
    raise UsageError(f"{visible(name)} must be {type_text(schema)}, and is {visible(text)[:80]!r}")


def as_type(kind: str, schema: Mapping[str, Any], name: str, text: str) -> Any:
    """Parse a text as a value of that JSON type; None if it is not one."""
    if kind == "string":
        return text
    if kind == "boolean":
        return {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}.get(text.lower())
    if kind in ("integer", "number"):
        try:
            if kind == "integer" or text.lstrip("-").isdigit():
                return int(text)
            return float(text) if isfinite(float(text)) else None
        except ValueError:
            return None
    value = as_json(text, None)
    if kind == "object":
        return value if isinstance(value, dict) else None
    if kind == "array":
        items = schema.get("items")
        items = items if isinstance(items, dict) else {}
        return value if isinstance(value, list) else [convert(name, items, text)]
    return None


def as_json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise


PIECE = 1 << 16  # characters cleaned at once: between pieces other threads run
LEAST_SECRET = 6  # characters; shorter values stand in ordinary text
WITHHELD = "[a secret of this server]"


@dataclass(frozen=True)
class ServerResult:
    """What a tool of a server returned; `files` are contents by name."""

    text: str
    failed: bool = False
    files: Mapping[str, bytes] = field(default_factory=dict)


def result_of(raw: Mapping[str, Any], stem: str, secrets: Sequence[str] = ()) -> ServerResult:
    """The result of tools/call. `stem` begins the names of files, `secrets` are values to take out. Call it in a
    thread: the result may be large."""
    texts, files = content_of(raw.get("content") or [], stem)
    structured = raw.get("structuredContent")
    if structured is not None and not texts:
        texts = [json.dumps(structured, ensure_ascii=False, indent=1)]
    return ServerResult(shown(texts, secrets), bool(raw.get("isError")), files)


def content_of(
    blocks: Sequence[Mapping[str, Any]], stem: str
) -> tuple[list[str], dict[str, bytes]]:
    texts: list[str] = []
    files: dict[str, bytes] = {}
    for block in blocks:
        inner = block.get("resource")
        said = inner if isinstance(inner, dict) else block
        raw = said.get("blob") or (said.get("data") if block.get("type") != "text" else None)
        if isinstance(raw, str):
            name = f"{stem}-{len(files) + 1}{ending(str(said.get('mimeType') or ''))}"
            files[name] = decode_base64(raw)
        elif isinstance(said.get("text"), str):
            texts.append(said["text"])
        elif block.get("type") == "resource_link":
            texts.append(f"{said.get('uri')}  {said.get('title') or said.get('name') or ''}")
    return texts, files


def shown(texts: Sequence[str], secrets: Sequence[str]) -> str:
    """Join texts to lines without control characters and secrets. Call it in a thread where they may be large."""
    text = "".join(map(clean, pieces("\n".join(texts))))
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= LEAST_SECRET:
            text = text.replace(secret, WITHHELD)
    return text if not text or text.endswith("\n") else f"{text}\n"


def pieces(text: str) -> Iterator[str]:
    """The text in pieces, cut where a line ends if there is such a place."""
    at = 0
    while at < len(text):
        end = text.rfind("\n", at, at + PIECE) + 1 or at + PIECE
        yield text[at:end]
        at = end


def ending(kind: str) -> str:
    kind = kind.partition(";")[0].strip().lower()
    found = mimetypes.guess_extension(kind) or f".{kind.partition('/')[2]}"  # image/jpg is no type
    return found if re.fullmatch(r"\.[a-z0-9]{1,8}", found) else ".bin"


def decode_base64(text: str) -> bytes:
    """Decode base64, also with "-" and "_", without "=" or as a data: address; b"" for what is none."""
    try:
        return base64.urlsafe_b64decode(f"{text.rpartition(',')[2]}==")
    except ValueError:
        return b""
