"""One attack: what it does to a subject, and how its success is seen."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agent.sandbox.output_buffer import visible
from tests.attacks.stage import Stage
from tests.attacks.subject import Subject

WON = "PWNED"
_DRIVES_A_TERMINAL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
CHORE = "chore"  # the area of what tidies up between attacks, and is none
MOST_OUTPUT = 64 << 10
MOST_SHOWN = 2000  # characters of what it did

Act = Callable[[Subject, Stage], Awaitable[str]]


@dataclass(frozen=True)
class Attack:
    """`act` returns what the attacker, or the person who reads along, gets to see."""

    area: str
    name: str
    act: Act

    async def success(self, subject: Subject, stage: Stage) -> str:
        """Why it succeeded; empty when it was blocked."""
        output = await self.act(subject, stage)
        return _seen(output, stage) or stage.harm()


def _seen(output: str, stage: Stage) -> str:
    if stage.secret in output:
        return "the secret was read"
    if won := re.search(rf"^{WON}$(.*)", output, re.MULTILINE | re.DOTALL):
        return f"it did what it may not {visible(won[1][:MOST_SHOWN])}".strip()
    if _DRIVES_A_TERMINAL.search(output):
        return "control characters came through"
    if len(output.encode("utf-8", "replace")) > MOST_OUTPUT:
        return "the output flooded"
    return ""


def shell(area: str, name: str, command: str) -> Attack:
    """`command` may name places of the stage in braces, and prints PWNED where it succeeds."""

    async def act(subject: Subject, stage: Stage) -> str:
        return await subject.run(fill_places(command, stage))

    return Attack(area, name, act)


def python(area: str, name: str, code: str) -> Attack:
    """As shell, for the host's Python; `won()` tells success, `call(n, ...)` makes system call n."""

    async def act(subject: Subject, stage: Stage) -> str:
        script = _PYTHON + fill_places(code, stage)
        return await subject.run(f"/usr/bin/python3 - <<'END' 2>&1\n{script}\nEND")

    return Attack(area, name, act)


_PYTHON = """
import ctypes, os, socket, struct, sys, time, mmap, errno
libc = ctypes.CDLL(None, use_errno=True)
def won(): print("PWNED", flush=True)
def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    return -ctypes.get_errno() if result == -1 else result
"""


def fill_places(text: str, stage: Stage) -> str:
    for name, value in stage.places().items():
        text = text.replace(f"{{{name}}}", str(value))
    return text
