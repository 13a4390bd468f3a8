"""A bot for a test to kill: `python -m tests.agent.chats.child DATABASE LOG`.

Prints a line at each sign of life. Its tool appends its call's id to LOG.
"""

import asyncio
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from agent.channels import Assignment, NoChannels, TurnReply
from agent.events import Event
from agent.messages import Assistant, ToolCall, ToolResult, User
from agent.model import Request
from agent.store import set_aside
from agent.tools.tool import Call, Output, tool
from tests.agent.chats.conftest import Bench, said

MESSAGES, STEPS = 6, 3


def answer(request: Request) -> Assistant:
    """Three calls for each message, then words."""
    words = [m.text for m in request.messages if isinstance(m, User) and "message" in m.text][-1]
    number = re.findall(r"message (\d+)", words)[-1]
    done = [
        m
        for m in request.messages
        if isinstance(m, ToolResult) and m.call.startswith(f"m{number}.")
    ]
    if len(done) < STEPS:
        return Assistant(
            "",
            (ToolCall(f"m{number}.{len(done)}", "mark", f'{{"step": "m{number}.{len(done)}"}}'),),
        )
    return Assistant(f"answer {number}")


class Texts(NoChannels):
    def compose(self, reply: TurnReply) -> Sequence[str]:
        return [json.dumps(reply.text)]


class Loud:
    async def event(self, assignment: Assignment, event: Event) -> None:
        print(type(event).__name__, flush=True)

    async def waiting(self, chat: str, why: str) -> None:
        print(why, flush=True)


async def main() -> None:
    log = Path(sys.argv[2])

    async def mark(call: Call, step: str) -> Output:
        "Leave a mark."
        with log.open("a") as file:
            file.write(f"{step}\n")
        print("marked", flush=True)
        return Output("marked")

    set_aside.CRASHES = 100  # it is killed at random, and by no message
    bench = Bench(Path(sys.argv[1]), tools=[tool(mark)])
    bench.model.answer = answer
    bench.channels = Texts()
    bench.heard = Loud()  # type: ignore[assignment]
    async with bench.running() as chats:
        for number in range(MESSAGES):
            await chats.submit(said(f"message {number}", str(number), f"tg:{number}"))
            print("kept", flush=True)
        while await chats.store.inbox.count_waiting():
            await asyncio.sleep(0.05)
    print("all answered", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
