"""The backend, if it runs: its state, how soon it answers, and what its model makes of tools."""

import time
from typing import Literal

from agent.errors import AgentError
from agent.llm.openai import OpenAIModel
from agent.llm.selftest import SelfTest
from agent.messages import System, User
from agent.model import ModelRefused, Request
from agent.prompt import system_text
from agent.tools.registry import chosen
from backend.client import BackendClient, BackendUnavailable
from bot.cli.checks import Finding, failure, passed, warning
from bot.cli.connect import backend_client
from bot.composition import open_agent
from bot.settings import Settings


async def running(settings: Settings) -> list[Finding]:
    """The backend's state, and how long a warm first token takes."""
    async with backend_client(settings) as backend:
        try:
            server = (await backend.status()).backend
        except BackendUnavailable:
            remedy = "voltaire backend, or the unit voltaire-backend."
            return [warning("backend", "No backend runs.", remedy)]
        if not server.serving:
            detail = f"The backend is {server.state}. {server.reason or ''}".strip()
            return [warning("backend", detail, "voltaire status")]
        detail = f"{server.state}, {server.model}, window {server.n_ctx}"
        warm = server.warm
        cold = f"; cold {warm.seconds:.1f} s for {warm.tokens} tokens" if warm else ""
        return [passed("backend", detail), *await first_token(backend, cold)]


async def first_token(backend: BackendClient, cold: str) -> list[Finding]:
    schemas = tuple(tool.schema for tool in chosen(()))
    request = Request((System(system_text()), User("Say ok.")), schemas, "none", 1)
    began = time.monotonic()
    try:
        async with OpenAIModel(backend.endpoint) as model:
            pieces = [piece async for piece in model.stream(request)]
    except (AgentError, ModelRefused) as error:
        return [failure("first token", f"The model did not answer: {error}.", "voltaire status")]
    return [passed("first token", f"warm {time.monotonic() - began:.2f} s{cold}")] if pieces else []


async def tool_calls(settings: Settings) -> list[Finding]:
    """Whether the model that serves calls tools, and whether its template keeps the prefix."""
    async with backend_client(settings) as backend:
        try:
            server = (await backend.status()).backend
            if not server.serving:
                return []
            async with open_agent(settings, backend) as agent:
                found = await agent.selftests.of(server)
        except BackendUnavailable:
            return []
        except (AgentError, ModelRefused) as error:
            return [failure("tool calls", str(error), "voltaire status")]
    statuses: dict[str, Literal["pass", "warn", "fail"]] = {
        "structured": "pass",
        "salvaged": "warn",
    }
    status = statuses.get(found.verdict, "fail")
    calls = Finding("tool calls", status, found.detail, found.remedy)
    return [calls, *template(found)]


def template(found: SelfTest) -> list[Finding]:
    """What the template made of a whole conversation; nothing where the server cannot show it."""
    if found.template_error:
        detail = f"The chat template refuses a conversation with tools: {found.template_error}"
        remedy = "Give its profile the model's own template ([template] file)."
        return [failure("template", detail, remedy)]
    if found.keeps_prefix is None:
        return []
    if found.keeps_prefix:
        return [passed("template", "Each prompt begins with the one before it.")]
    detail = "The template rewrites earlier turns, so each message reads the conversation anew."
    remedy = "Switch thinking off in the profile ([template] kwargs), or use a template that keeps what was said."
    return [warning("template", detail, remedy)]
