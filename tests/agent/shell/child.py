"""A bot for a test to kill while a command is being answered: `python -m tests.agent.shell.child STATE PROGRAMS`.

Prints a line at each event; its model calls bash once and then says what it was told.
"""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

from agent.messages import Assistant, ToolCall, ToolResult
from agent.model import Request
from agent.sandbox.sandbox import open_sandboxes
from agent.shell import programs
from agent.shell.registry import scripts
from agent.tools.bash import bash
from agent.tools.context import ToolContext
from agent.tools.tool import Call, Output, tool
from fakes.sandbox_box import LIMITS
from tests.agent.chats.child import Loud, Texts
from tests.agent.chats.conftest import Bench, said


def answer(request: Request) -> Assistant:
    told = [m.text for m in request.messages if isinstance(m, ToolResult)]
    if told:
        return Assistant(f"I was told: {told[-1]}")
    return Assistant("", (ToolCall("c1", "bash", '{"command": "say hang"}'),))


async def main() -> None:
    state = Path(sys.argv[1])
    programs.__path__.append(sys.argv[2])
    async with open_sandboxes(
        state / "state", limits=LIMITS, repos=(), zone="UTC", report=str, programs=scripts()
    ) as sandboxes:
        context = ToolContext(await sandboxes.of("cli"))

        async def run(call: Call, command: str) -> Output:
            "Run a command."
            return await bash.run(replace(call, context=context), {"command": command})

        bench = Bench(state / "v.db", tools=[replace(tool(run), name="bash")], channels=Texts())
        bench.model.answer = answer
        bench.heard = Loud()  # type: ignore[assignment]
        async with bench.running() as chats:
            await chats.submit(said("hello", "1", "cli"))
            while await chats.store.inbox.count_waiting():
                await asyncio.sleep(0.05)
    print("answered", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
