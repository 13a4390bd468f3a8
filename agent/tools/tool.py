"""A typed async function becomes a tool: its name, docstring and hints are what the model sees.

    async def grep(call: Call, pattern: str,
                   path: Annotated[str, Field(description="file or folder")] = "") -> Output:
        "Search file contents by regular expression."

The first parameter is what the tool works with; the model does not see it. Arguments are flat (str, int, bool,
Literal, list of str), so that every server's grammar accepts them.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from agent.budgets import CallBudget
from agent.errors import AgentError, ToolError
from agent.language import translate_phrase, translated
from agent.leaks import Leak
from agent.plan import Plan
from agent.sandbox.files import SandboxPath
from agent.sandbox.hosts import TUNNEL, HostRequest, Permit
from agent.sandbox.output_buffer import truncate_middle
from agent.sandbox.proxy import FoundLeak, Outflow
from agent.sandbox.sandbox import Sandbox
from agent.tools.context import Approver, ToolContext
from agent.trust import Taint
from backend.protocol import Phrase

READ_SHARE = 3  # times `output_bytes` are read for a question: three eighths of the window
REQUESTED = (
    "{request}\nby {program}, for:\n\n{purpose}\n\nAllowed once, it may be sent as often as this step likes,"
    " until it ends."
)
TUNNELLED = "Connect to {place}. The traffic is encrypted or not HTTP, so it cannot be inspected."
LEAKING = "This was not done: {where} contained {what}, and no secret may leave, in any form. Do it without."
KEY = "{where} contains {what}, which would be sent or kept:\n\n{text}"


@dataclass(frozen=True, slots=True)
class Output:
    """A tool's result: `text` for the model, `shown` for the person where it differs, `images` (data URLs)
    for a model that sees. `found`: False where it was searched for something that is not there."""

    text: str
    ok: bool = True
    shown: str = ""
    images: tuple[str, ...] = ()
    found: bool = True


async def untouched() -> Sequence[Taint]:
    """The `taints` of a call in a chat without a stranger's text."""
    return ()


Withhold = Callable[[str], Awaitable[None]]
"""Takes a description of what was not let out, which does not repeat it."""


async def untold(what: str) -> None:
    """Do nothing: the `withhold` for a call that nobody watches."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call and what it works with.

    `output_bytes` is the share of this model's window that one output may take (an eighth of it).
    `progress` takes the newest output of a running command, in whole lines. `budget` counts what the call
    uses of its chat's daily budgets. `taints` gives the strangers' text in the chat. The call adds to
    `strangers` the sources of strangers' text in its result, also in its errors. `withhold` tells the person
    what was not let out, `planned` shows them the plan of the task. `written` is the command line,
    if a person typed it; `asked` is what the person wrote in this turn, until
    a job was planned from it: a second one has a time of its own.
    """

    id: str
    turn: str
    chat: str
    context: ToolContext
    approve: Approver
    progress: Callable[[str], None] = lambda text: None
    output_bytes: int = 1 << 20
    taints: Callable[[], Awaitable[Sequence[Taint]]] = untouched
    strangers: list[str] = field(default_factory=list)
    withhold: Withhold = untold
    planned: Callable[[Plan], None] = lambda plan: None
    budget: CallBudget = field(default_factory=CallBudget)
    written: str = ""
    asked: str = ""

    @property
    def sandbox(self) -> Sandbox:
        return self.context.sandbox

    @property
    def output_limit(self) -> int:
        """How many bytes an output may have: `output_bytes`, at most the owner's `output_kib`."""
        return min(self.output_bytes, self.sandbox.config.limits.output_kib << 10)

    def host_permit(self, purpose: str, touched: Sequence[Taint] = ()) -> Permit:
        """The permission for a command's requests. `touched`: strangers' text in files, which may act by itself."""

        async def permit(request: HostRequest) -> None:
            leak = self.context.leaks.find(str(request))
            # An owner was asked already about a key in the purpose itself.
            if leak and (leak.secret or not self.context.leaks.find(purpose)):
                await self.leaves(
                    Phrase("A request"), str(request), leak, scope=f"key:{request.place}"
                )
            program = request.program or translated("a program that could not be found")
            wish = str(request)
            if request.method == TUNNEL:
                wish = translated(TUNNELLED).format(place=request.place)
            what = translated(REQUESTED).format(request=wish, program=program, purpose=purpose)
            await self.approve(what, scope=request.scope, touched=touched)
            await self.budget.reserve({"hosts": 1}, host=request.place)

        return permit

    def outflow(self, purpose: str) -> Outflow:
        """The checks on what a command sends with its requests, where that can be seen."""

        async def found(what: FoundLeak) -> None:
            if what.leak.secret or not self.context.leaks.find(purpose):
                where = Phrase("What is sent to {place}", place=what.place)
                await self.leaves(where, what.text, what.leak, scope=f"key:{what.place}")

        return Outflow(self.budget.sends, self.context.leaks, found)

    async def touched_by(self) -> str:
        """The source of the newest text of strangers in the chat, or empty."""
        taints = await self.taints()
        return taints[-1].source if taints else ""

    async def leaves(
        self, where: str, text: str, leak: Leak | None = None, *, scope: str = "key"
    ) -> None:
        """Refuse configured secrets, and ask an owner about likely keys; await it before sending anything out.

        `leak` is what was found already in what `text` describes. Raises ToolError if it may not be sent.
        """
        leak = leak or self.context.leaks.find(text)
        if leak is None:
            return
        try:
            if leak.secret:
                raise ToolError(LEAKING.format(where=where, what=leak.what))
            shown, what = translate_phrase(where), translate_phrase(leak.what)
            question = translated(KEY).format(where=shown, what=what, text=text)
            await self.approve(question, scope=scope)
        except ToolError:
            form = "{where}, which contained {what}"
            await self.withhold(Phrase(form, where=Phrase.from_data(where), what=leak.what))
            raise

    async def extract(self, question: str, text: str) -> str:
        """Answer a question from untrusted text with a model call that has no tools.

        Returns "" if nothing is asked or no such model is there; raises ToolError if the call fails.
        """
        if not question.strip() or not text or self.context.read is None:
            return ""
        shown, _ = truncate_middle(text, READ_SHARE * self.output_bytes)
        try:
            return await self.context.read(question, shown)
        except AgentError as error:
            raise ToolError(f"It could not be read for that: {error}") from None

    async def reads(self, place: SandboxPath | None) -> None:
        """Mark this call's output as untrusted if that place (a repository or the workspace) holds untrusted
        text."""
        if place is None:
            return
        repo = self.sandbox.config.repos.get(place.repo)
        if repo is None:
            self.strangers.extend(taint.source for taint in await self.sandbox.files.taints())
        elif not repo.mine:
            self.strangers.append(repo.source)

    async def repos_shown(self, named: Collection[str]) -> frozenset[str]:
        """The names of the repositories that a call may see: the owner's own, those that it names itself, and
        those whose text is in the chat or its files already."""
        repos = self.sandbox.config.repos.values()
        if all(repo.mine or repo.name in named for repo in repos):
            return frozenset(repo.name for repo in repos)
        held = [*await self.taints(), *await self.sandbox.files.taints()]
        known = {taint.source for taint in held}
        return frozenset(r.name for r in repos if r.mine or r.name in named or r.source in known)

    async def writes(self, place: SandboxPath, change: str) -> None:
        """Ask an owner or mark the workspace, as that place needs it; to be awaited before it is changed."""
        if place.repo:
            what = translated("Write {name}:").format(name=place.name)
            await self.approve(f"{what}\n\n{change}", scope=f"write:{place.repo}")
        elif source := await self.touched_by():
            await self.sandbox.files.mark(source)


@dataclass(frozen=True)
class Tool:
    function: Callable[..., Awaitable[Output]]
    name: str
    description: str
    fields: Mapping[str, tuple[Any, Any]] = field(repr=False)

    @cached_property
    def arguments(self) -> type[BaseModel]:
        config = ConfigDict(extra="forbid", title=self.name)
        return create_model(self.name, __config__=config, **dict(self.fields))  # type: ignore[call-overload, no-any-return]

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The tool's JSON schema on the wire: compact, and without what grammars refuse."""
        full = self.arguments.model_json_schema()
        properties = {name: plain_property(p) for name, p in full.get("properties", {}).items()}
        parameters = {
            "type": "object",
            "properties": properties,
            "required": full.get("required", []),
        }
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    @property
    def signature(self) -> str:
        names = [k if v[1] is ... else f"{k}?" for k, v in self.fields.items()]
        return f"Use {self.name}({', '.join(names)})."

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The given arguments, repaired where the schema says how, and validated; ToolError says what is wrong, and the
        signature."""
        properties = self.schema["function"]["parameters"]["properties"]
        given = {}
        for written, value in arguments.items():
            name = written if written in properties else written.lower()
            value = repaired(value, properties.get(name, {}))
            if value is not None or name not in properties:
                given[name] = value
        try:
            model = self.arguments.model_validate(given)
        except ValidationError as error:
            raise ToolError(f"{first_complaint(error)} {self.signature}") from None
        checked = model.model_dump(exclude_unset=True)
        for name, value in checked.items():
            try:
                str(value).encode()
            except UnicodeEncodeError as error:
                # JSON can hold half of a character (\ud800), but files, names and commands cannot.
                half = f"\\u{ord(error.object[error.start]):04x}"
                raise ToolError(f"{name} holds {half}, half of a character.") from None
        return checked

    async def run(self, call: Call, arguments: Mapping[str, Any]) -> Output:
        checked = self.check(arguments)
        await call.leaves(self.name, "\n".join(f"{k}: {plain(v)}" for k, v in checked.items()))
        return await self.function(call, **checked)


def tool(function: Callable[..., Awaitable[Output]]) -> Tool:
    """Make a tool of a typed async function."""
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    fields = {
        p.name: (hints[p.name], ... if p.default is inspect.Parameter.empty else p.default)
        for p in parameters
    }
    return Tool(function, function.__name__, inspect.getdoc(function) or "", fields)


def plain(value: object) -> str:
    """An argument as a text to search for leaks."""
    return "\n".join(value) if isinstance(value, list) else str(value)


def repaired(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value as its schema wants it, where it can mean nothing else; None for a word that stands for nothing."""
    kind, choices = schema.get("type"), schema.get("enum", ())
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "string" and (number or (isinstance(value, list) and len(value) == 1)):
        return str(value) if number else value[0]
    if not isinstance(value, str) or value in choices or (kind == "string" and not choices):
        return value
    if (word := value.strip().lower()) in ("", "null", "none"):
        return None
    if kind == "array":
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
        return value if isinstance(value, list) else [value]
    return word if word in choices else value


def plain_property(schema: dict[str, Any]) -> dict[str, Any]:
    """One argument's type, items, choices and description, in that order."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    schema = {**schema, **(kinds[0] if kinds else {})}
    keep = ("type", "items", "enum", "description")
    return {key: schema[key] for key in keep if key in schema}


def first_complaint(error: ValidationError) -> str:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"]) or "arguments"
    messages = {
        "missing": f"{name} is missing.",
        "extra_forbidden": f"{name} is not an argument of this tool.",
    }
    return messages.get(first["type"], f"{name}: {first['msg']}.")
