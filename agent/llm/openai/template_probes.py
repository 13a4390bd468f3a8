"""Finds the form in which a chat template takes a conversation with tools, by rendering one.

A template may refuse a role, silently drop calls or results, take one call a
message, or show no tools. There is no list of which does what: a short conversation is
rendered in one form after the other, and the first form in which nothing of it is
lost is taken.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import product
from typing import Any, TypeVar

from agent.llm.openai.prompt_form import (
    BLIND,
    NATIVE,
    Json,
    PromptForm,
    ThoughtForm,
)
from agent.llm.openai.values import mapping, text
from agent.llm.openai.wire import EFFORTS, NO_EFFORT, prompt_json
from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import ModelRefused, Request
from backend.protocol import Endpoint

NO_ROUTE = (404, 405, 501)
NONSENSE = "-"  # a `reasoning_effort` that no template knows
PROBED_ID = "call_of_another_model_"  # a chat that switches models brings such ids along
FORMS = [
    PromptForm(calls, results, tools, system, short_ids)  # type: ignore[arg-type]
    for (calls, results, tools), system, short_ids in product(
        (
            ("native", True, True),
            ("single", True, True),
            ("text", True, True),
            ("text", False, True),
            ("text", True, False),
            ("text", False, False),
        ),
        (True, False),
        (False, True),
    )
    if not (short_ids and calls == "text" and not results)  # no ids are sent
]


def _call(number: int) -> ToolCall:
    return ToolCall(f"{PROBED_ID}{number}", "look", json.dumps({"at": f"#call-{number}#"}))


def _result(number: int) -> ToolResult:
    return ToolResult(f"{PROBED_ID}{number}", "look", f"#result-{number}#")


_LOOK: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "#tool#",
        "parameters": {
            "type": "object",
            # Every type of our tools': some templates cannot write lists (Command R+).
            "properties": {
                "at": {"type": "string"},
                "times": {"type": "integer"},
                "deep": {"type": "boolean"},
                "besides": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["at"],
        },
    },
}
PROBE = Request(
    (
        System("#system#"),
        User("#asked#"),
        Assistant("", (_call(1), _call(2))),
        _result(1),
        _result(2),
        Assistant("#answer#"),
        User("#next#"),
        Assistant("Words.", (_call(3),)),
        _result(3),
    ),
    (_LOOK,),
)
MARKS = (
    *("#system#", "#tool#", "#asked#", "#answer#", "#next#"),
    *(f"#{kind}-{number}#" for kind in ("call", "result") for number in (1, 2, 3)),
)
ASKED = replace(PROBE, messages=PROBE.messages[:2])
THOUGHT, SAID = "#thought#\n", "#said#"


def asked_and(*messages: Message) -> Request:
    """The probe's question, with these messages behind it."""
    return replace(ASKED, messages=(*ASKED.messages, *messages))


T = TypeVar("T")
ProbeMethod = Callable[["TemplateProbes", Endpoint], Awaitable[T]]


def probed(what: str) -> Callable[[ProbeMethod[T]], ProbeMethod[T]]:
    """A method that probes a model's template runs once for each model of a server; `what` names its result."""

    def decorated(probe: ProbeMethod[T]) -> ProbeMethod[T]:
        @wraps(probe)
        async def known(probes: "TemplateProbes", endpoint: Endpoint) -> T:
            key = (endpoint.url, endpoint.model, endpoint.profile, what)
            if key not in probes.found:
                probes.found[key] = await probe(probes, endpoint)
            result: T = probes.found[key]
            return result

        return known

    return decorated


AskServer = Callable[[str, Endpoint, str, Json | None], Awaitable[Any]]
"""(method, endpoint, path, body): the JSON of the server's answer. Raises ModelRefused and BackendAway."""


@dataclass
class TemplateProbes:
    """What was found out about the servers' chat templates."""

    ask: AskServer
    found: dict[tuple[str, str, str | None, str], Any] = field(default_factory=dict)

    async def form(self, endpoint: Endpoint, request: Request) -> PromptForm:
        """The form in which the server's template wants the request; probes what the request depends on."""
        # Where it is not known whether the model sees, whoever let a picture in has assumed so.
        sees = endpoint.vision is not False
        if not endpoint.extras:
            return NATIVE if sees else BLIND
        form = replace(await self.whole_form(endpoint), pictures=sees)
        answers = [m for m in request.messages if isinstance(m, Assistant)]
        if any(m.thought for m in answers):
            form = replace(form, thoughts=await self.thought_form(endpoint))
        if any(m.words for m in answers):
            form = replace(form, gap=(await self.gap(endpoint))[0])
        if request.thinking is not None:
            form = replace(form, efforts=await self.efforts(endpoint))
        return form

    @probed("form of calls")
    async def whole_form(self, endpoint: Endpoint) -> PromptForm:
        """The first form in which the template shows all of a conversation with calls."""
        for form in FORMS:
            wire = prompt_json(PROBE, form, endpoint.template)
            try:
                shown = await self.rendered(endpoint, wire)
            except ModelRefused as error:
                if error.status in NO_ROUTE:
                    break
                continue  # the template's complaint: another form may please it
            if not shown or all(mark in shown for mark in MARKS):
                return form
        return NATIVE

    @probed("thoughts")
    async def thought_form(self, endpoint: Endpoint) -> ThoughtForm:
        """How the template shows, behind a call's result, the thought before that call. "whole" where a server shows no
        prompts: it may be sent then in any case, as servers ignore fields that they do not know."""
        form = replace(await self.whole_form(endpoint), thoughts="whole")
        thought = asked_and(Assistant("", (_call(1),), thought=THOUGHT), _result(1))
        try:
            prompt = await self.rendered(endpoint, prompt_json(thought, form, endpoint.template))
        except ModelRefused as error:
            return "whole" if error.status in NO_ROUTE else "none"
        if f"{THOUGHT}\n" in prompt:
            return "stripped"
        return "whole" if THOUGHT.strip() in prompt else "none"

    @probed("words before a call")
    async def gap(self, endpoint: Endpoint) -> tuple[str | None]:
        """The white space that the template writes between words and a call; None where it shows no words."""
        called = asked_and(Assistant(SAID, (_call(1),)), _result(1))
        prompt = await self._shown(endpoint, called, await self.whole_form(endpoint))
        _, said, behind = (prompt or "").partition(SAID)
        return (behind[: len(behind) - len(behind.lstrip())] if said else None,)

    @probed("efforts")
    async def efforts(self, endpoint: Endpoint) -> frozenset[str]:
        """The values of `reasoning_effort` that the template takes; none where they change nothing.

        A template that takes any word does not show which of them mean "do not think".
        """
        shown = {}
        for effort in (*EFFORTS, NONSENSE):
            values = {**endpoint.template, "reasoning_effort": effort}
            model = endpoint.model_copy(update={"template": values})
            if prompt := await self._shown(model, ASKED):
                shown[effort] = prompt
        unsure = {NONSENSE, *NO_EFFORT} if NONSENSE in shown else set[str]()
        return frozenset(shown.keys() - unsure if len(set(shown.values())) > 1 else ())

    async def rendered(self, endpoint: Endpoint, wire: Json) -> str:
        """The prompt as the server's template renders it."""
        found = await self.ask("POST", endpoint, "/apply-template", wire)
        return text(mapping(found).get("prompt"))

    async def _shown(
        self, endpoint: Endpoint, request: Request, form: PromptForm = NATIVE
    ) -> str | None:
        """The prompt of a probe; None where the template refuses it."""
        try:
            return await self.rendered(endpoint, prompt_json(request, form, endpoint.template))
        except ModelRefused:
            return None
