"""Tests whether a model can call tools here: by one real request, and by what its template renders.

    result = await SelftestStore(store, model, queue, schemas).of(status)

The request begins with the fixed prefix, so it warms what the first conversation
needs. The result is stored by profile and model file: another file, or another
profile with its own flags and template, counts as another model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

from agent.language import translated
from agent.llm.gpu_queue import GpuQueue
from agent.llm.tool_call_parser import KnownTools, ToolCallParser
from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Model, ModelRefused, Request, completion_of
from agent.prompt import system_text
from agent.store import Store
from backend.protocol import PERSON, ServerStatus

Verdict = Literal["structured", "salvaged", "none"]
TOKENS = 256
QUESTION = "Which files are in /workspace? Find out with the bash tool."
_QUOTED = 120

TEXT_REMEDY = (
    "It works, since calls written as text are read as well. A Coder variant of Qwen 2.5 does "
    "this, and so does a template that is not the model's own: the Instruct variant or the "
    "right --chat-template-file gives structured calls."
)
LOST = "Its template drops tool calls or their results."
NO_CALL_REMEDY = (
    "Check that the template is the model's own and that it is an Instruct variant; "
    "else use a model that calls tools."
)


class RenderingModel(Model, Protocol):
    async def rendered(self, request: Request) -> str | None: ...


@dataclass(frozen=True, slots=True)
class SelfTest:
    """`template_error` is the template's exception about a whole conversation, or empty.

    `keeps_prefix`: a conversation with thoughts that has become longer is rendered with the
    shorter one at its beginning; None where the server cannot show prompts. `keeps_turn`:
    that holds within a turn, from one tool call to the next.
    """

    verdict: Verdict
    detail: str
    remedy: str = ""
    template_error: str = ""
    keeps_prefix: bool | None = None
    keeps_turn: bool | None = None


async def self_test(model: RenderingModel, schemas: Sequence[Mapping[str, Any]]) -> SelfTest:
    """Raises BackendAway and ModelRefused as the model does."""
    question = (System(system_text()), User(QUESTION))
    found = await check_template(model, question, schemas)
    request = Request(question, tuple(schemas), max_tokens=TOKENS)
    completion = await completion_of(model, request)
    if completion.calls:
        return SelfTest("structured", f"It called {completion.calls[0].name}.", "", *found)
    parser = ToolCallParser(KnownTools.of(schemas))
    parser.feed(completion.text)
    parser.close()
    if parser.calls:
        detail = f"It wrote its call as text: {quoted(parser.generated)}"
        return SelfTest("salvaged", detail, TEXT_REMEDY, *found)
    detail = f"Asked for one call, it wrote: {quoted(parser.visible)}"
    return SelfTest("none", detail, NO_CALL_REMEDY, *found)


async def check_template(
    model: RenderingModel, question: tuple[Message, ...], schemas: Sequence[Mapping[str, Any]]
) -> tuple[str, bool | None, bool | None]:
    """SelfTest's `template_error`, `keeps_prefix` and `keeps_turn`, found with a conversation that grows."""
    calls = (
        ToolCall("call00001", "bash", '{"command": "ls one"}'),
        ToolCall("call00002", "bash", '{"command": "ls two"}'),
    )
    messages, prompts = list(question), []
    steps: list[tuple[Message, ...]] = [()]
    for number, call in enumerate(calls, 1):
        said = Assistant("", (call,), thought=f"So look at number {number}.")
        steps.append((said, ToolResult(call.id, call.name, f"done: {call.id}")))
    steps.append((Assistant("There is one file.", thought="That is all."), User("And now?")))
    for step in steps:
        messages += step
        try:
            prompt = await model.rendered(Request(tuple(messages), tuple(schemas)))
        except ModelRefused as error:
            return str(error), None, None
        if prompt is None:
            return "", None, None
        prompts.append(prompt)
    kept = [later.startswith(earlier) for earlier, later in pairwise(prompts)]
    marks = ("ls one", "ls two", *(f"done: {call.id}" for call in calls))
    lost = "" if all(mark in prompts[-1] for mark in marks) else LOST
    return lost, all(kept), all(kept[:-1])


def quoted(text: str) -> str:
    line = " ".join(text.split()) or "nothing"
    return line if len(line) <= _QUOTED else line[: _QUOTED - 1] + "…"


@dataclass(frozen=True)
class SelftestStore:
    store: Store
    model: RenderingModel
    queue: GpuQueue
    schemas: Sequence[Mapping[str, Any]]

    async def known(self, server: ServerStatus) -> SelfTest | None:
        """The stored result; None for a model that was never tested."""
        return await self.store.key_values.get(record_key(server), SelfTest)

    async def of(self, server: ServerStatus) -> SelfTest:
        """The stored result, else that of a test now. Raises as `self_test` does."""
        return await self.known(server) or await self.anew(server)

    async def anew(self, server: ServerStatus) -> SelfTest:
        """Test the model that serves now, and store the result."""
        async with self.queue("self-test", PERSON, None):
            found = await self_test(self.model, self.schemas)
        await self.store.key_values.put(record_key(server), asdict(found))
        return found


def record_key(server: ServerStatus) -> str:
    return f"self-test {server.profile or '-'} {server.model or '-'}"


def sentence(found: SelfTest) -> str:
    """One line for a person."""
    calls = {
        "structured": translated("It calls tools as it should."),
        "salvaged": translated("It writes tool calls as text; they work as well."),
        "none": translated("It does not call tools."),
    }[found.verdict]
    trouble = found.template_error
    if not trouble and found.keeps_turn is False:
        trouble = translated(
            "Its template rewrites earlier calls: they are read again at each one."
        )
    elif not trouble and found.keeps_prefix is False:
        trouble = translated(
            "Its template rewrites finished turns: they are read again between turns."
        )
    return " ".join(filter(None, [calls, trouble, found.remedy]))
