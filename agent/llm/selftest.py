"""Tests how a model calls tools here, by what it does, and what its template renders.

    result = await SelftestStore(store, model, queue, schemas).of(status)

It is asked three small things with a known right call, a known right answer to the call's result,
or no need for a call. Where its calls are not those of its template, it is asked again under a
grammar that keeps calls readable (agent.llm.openai.call_grammar), and the better way is kept for
this model. The requests begin with the fixed prefix, so they warm what the first conversation
needs. The result is stored by profile and model file: another file, or another profile with its
own flags and template, counts as another model.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal, Protocol

from agent.language import translated
from agent.llm.queued_model import GpuQueue
from agent.llm.tool_call_parser import KnownTools, ToolCallParser
from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Model, ModelRefused, Request, completion_of
from agent.prompt import system_text
from agent.store import Store
from agent.turn.step import Step, read_step
from backend.protocol import SCHEDULED, Priority, ServerStatus

Verdict = Literal["structured", "salvaged", "constrained", "unreliable"]
TOKENS = 256  # of one answer
_QUOTED = 120  # characters

REMEDY = (
    "Check that the template is the model's own and that it is an Instruct variant; "
    "else use a model that calls tools."
)
LOST = "Its template drops tool calls or their results."


@dataclass(frozen=True, slots=True)
class Trial:
    """A question; the tools of which one is right, none where words are; what its arguments must hold; the
    result it then gets, and what the answer to that must hold."""

    question: str
    tools: frozenset[str] = frozenset()
    argument: str = ""
    result: str = ""
    answer: str = ""

    @property
    def points(self) -> int:
        return 2 if self.tools else 1


TRIALS = (
    Trial(
        "Which files are in /workspace? Use a tool.",
        frozenset(("bash", "list_files")),
        result="/workspace/harbour.txt\n",
        answer="harbour",
    ),
    Trial(
        "Remember that the spare key is under the blue pot.",
        frozenset(("remember",)),
        argument="blue pot",
        result="Saved: the spare key is under the blue pot",
    ),
    Trial("Thank you, that was all."),
)
MOST_POINTS = sum(trial.points for trial in TRIALS)
TRUSTED = MOST_POINTS - 1  # points from which tools can be left to a model
CHANCE = 2  # points by which calls that come as text must do better than those under a grammar


class RenderingModel(Model, Protocol):
    async def rendered(self, request: Request) -> str | None: ...

    async def shows_prompts(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class SelfTest:
    """How the model calls tools: as its template does ("structured"), as text that is read ("salvaged"),
    under a grammar ("constrained"), or badly, whatever is done ("unreliable").

    `points` of `MOST_POINTS`; `constrain`: a grammar serves it better. `template_error` is
    the template's exception about a whole conversation, or empty. `keeps_prefix`: a conversation with
    thoughts that has become longer is rendered with the shorter one at its beginning; None where the
    server cannot show prompts. `keeps_turn`: that holds within a turn, from one tool call to the next.
    """

    verdict: Verdict
    detail: str
    remedy: str = ""
    template_error: str = ""
    keeps_prefix: bool | None = None
    keeps_turn: bool | None = None
    points: int = 0
    constrain: bool = False


@dataclass
class Attempt:
    """The outcome of the trials in one form."""

    constrained: bool
    points: int = 0
    as_text: int = 0  # calls that the server did not read
    detail: str = ""  # the first answer to the first question


Turns = Callable[[], AbstractAsyncContextManager[object]]
"""Holds the GPU for one request."""


async def self_test(
    model: RenderingModel, schemas: Sequence[Mapping[str, Any]], turns: Turns = nullcontext
) -> SelfTest:
    """Raises BackendAway and ModelRefused as the model does."""
    found = await check_template(model, (System(system_text()), User(TRIALS[0].question)), schemas)
    best = await attempt(model, schemas, turns, constrained=False)
    if (best.as_text or best.points < MOST_POINTS) and await model.shows_prompts():
        with suppress(ModelRefused):  # a grammar is more than this server can do
            other = await attempt(model, schemas, turns, constrained=True)
            if other.points + (CHANCE if best.as_text else 0) > best.points:
                best = other
    verdict: Verdict = "structured"
    if best.points < TRUSTED:
        verdict = "unreliable"
    elif best.constrained:
        verdict = "constrained"
    elif best.as_text:
        verdict = "salvaged"
    remedy = REMEDY if verdict == "unreliable" else ""
    return SelfTest(verdict, best.detail, remedy, *found, best.points, best.constrained)


async def attempt(
    model: RenderingModel, schemas: Sequence[Mapping[str, Any]], turns: Turns, *, constrained: bool
) -> Attempt:
    found = Attempt(constrained)
    for trial in TRIALS:
        messages: tuple[Message, ...] = (System(system_text()), User(trial.question))
        async with turns():
            step = await ask(model, messages, schemas, found)
        found.detail = found.detail or described(step)
        if not trial.tools:
            found.points += not step.calls and bool(step.text)
            continue
        call = next((call for call in step.calls if call.name in trial.tools), None)
        if call is None or trial.argument not in call.arguments.lower():
            continue
        result = ToolResult(call.id, call.name, trial.result)
        messages = (*messages, Assistant("", (call,)), result)
        async with turns():
            answer = await ask(model, messages, schemas, found)
        right = not answer.calls and bool(answer.text) and trial.answer in answer.text.lower()
        found.points += 1 + right
    return found


async def ask(
    model: Model,
    messages: tuple[Message, ...],
    schemas: Sequence[Mapping[str, Any]],
    found: Attempt,
) -> Step:
    request = Request(messages, tuple(schemas), "auto", TOKENS, constrained=found.constrained)
    completion = await completion_of(model, request)
    known = KnownTools.of(schemas)
    parser = ToolCallParser(known)
    parser.feed(completion.text)
    parser.close()
    step = read_step(completion, parser, known, ())
    found.as_text += bool(step.calls) and not completion.calls
    return step


def described(step: Step) -> str:
    if not step.calls:
        return f"Asked for one call, it wrote: {quoted(step.text)}"
    if step.message.raw:
        return f"It wrote its call as text: {quoted(step.message.raw)}"
    return f"It called {step.calls[0].name}."


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

    async def of(self, server: ServerStatus, priority: Priority = SCHEDULED) -> SelfTest:
        """The stored result, else that of a test now: people's messages go between its questions, and one of IDLE
        priority waits for open turns. Raises as `self_test` does."""
        if known := await self.known(server):
            return known
        turns = partial(self.queue, "self-test", priority, None)
        found = await self_test(self.model, self.schemas, turns)
        await self.store.key_values.put(record_key(server), asdict(found))
        return found


def record_key(server: ServerStatus) -> str:
    return f"self-test {server.profile or '-'} {server.model or '-'}"


def sentence(found: SelfTest) -> str:
    """Tell a person in one line how well the model calls tools."""
    calls = {
        "structured": translated("It calls tools as it should."),
        "salvaged": translated("It writes tool calls as text; they work as well."),
        "constrained": translated("Its tool calls are kept readable by a grammar; so they work."),
        "unreliable": translated(
            "Do not trust it with tools: talk and drafting are what it can do."
        ),
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
