"""The least that an agent can be: a loop around the server with our system text and tools, without anything of our
turn. What the turn adds is measured against it."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import aiohttp

from agent.errors import AgentError
from agent.evaluate.runner import prepared_sandbox
from agent.evaluate.tasks import EvalTask, TurnRecorder, failed_check
from agent.prompt import context_block, system_text
from agent.tools.tool import Call, Output
from bench.real_models.trial import Bench, Trial, revision
from fakes.answer_faults import faults_of

CALLS = 8
WRITTEN = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```|<tools>\s*(\{.*?\})\s*</tools>", re.DOTALL)


async def plain_trial(bench: Bench, task: EvalTask, seed: int) -> Trial:
    recorder, agent, began = TurnRecorder(notes=list(task.notes)), bench.agent, time.monotonic()
    async with prepared_sandbox(bench.stage, task) as sandbox:
        context = await bench.stage.context(task, sandbox, recorder)
        tools = {tool.name: tool for tool in agent.tools}

        async def approve(*_: Any, **__: Any) -> None:
            return

        async def use(name: str, arguments: Any) -> str:
            call = Call("1", "turn", sandbox.chat, context, approve, lambda _: None, 4096)
            try:
                output: Output = await tools[name].run(call, arguments)
            except (AgentError, KeyError, TypeError) as error:
                return f"{type(error).__name__}: {error}"
            recorder.ran.append(name)
            return output.text

        asked = context_block(datetime.now(UTC), "UTC") + task.ask
        messages: list[Any] = [
            {"role": "system", "content": system_text()},
            {"role": "user", "content": asked},
        ]
        used, answer, reason = 0, "", "tool_limit"
        while used < CALLS:
            said = await complete(bench, messages, seed)
            calls = said.get("tool_calls") or list(written_calls(said.get("content") or ""))
            if not calls:
                answer, reason = said.get("content") or "", "done"
                break
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
            for call in calls:
                used += 1
                result = await use(
                    call["function"]["name"], json.loads(call["function"]["arguments"])
                )
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        fault = await failed_check(task, answer, recorder, sandbox)
    faults = faults_of(answer, list(tools))
    seconds = round(time.monotonic() - began, 3)
    return Trial(bench.name, "plain", seed, task.name, revision(), fault, reason, faults, used, seconds, ())  # fmt: skip


async def complete(bench: Bench, messages: list[Any], seed: int) -> dict[str, Any]:
    endpoint = await bench.agent.backend.endpoint()
    body = {"messages": messages, "tools": bench.agent.schemas, "temperature": 0.2, "top_p": 0.9}
    key = {"Authorization": f"Bearer {endpoint.api_key}"}
    async with aiohttp.ClientSession(headers=key, timeout=aiohttp.ClientTimeout()) as session:
        body |= {"seed": seed, "max_tokens": 512}
        async with session.post(f"{endpoint.url}/v1/chat/completions", json=body) as response:
            answer = await response.json()
    return (
        dict(answer["choices"][0]["message"]) if "choices" in answer else {"content": str(answer)}
    )


def written_calls(text: str) -> Iterator[dict[str, Any]]:
    """Calls that came as text: a fence, or in the marks of the tools."""
    for number, found in enumerate(WRITTEN.finditer(text)):
        try:
            call = json.loads(found[1] or found[2])
            function = {"name": call["name"], "arguments": json.dumps(call.get("arguments") or {})}
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        yield {"id": f"call{number}", "type": "function", "function": function}
