"""What `voltaire doctor` looks at: one async function a check, each finding with its remedy.

machine.py   Python, sandbox, disk, clock, secrets, units
server.py    card and driver, server binary, model file, whether the model fits
backend.py   the running backend, the first token, tool calls, the template
bot.py       the database, Telegram
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from bot.settings import Settings


@dataclass(frozen=True, slots=True)
class Finding:
    """`remedy` says what to do about it; empty for a pass."""

    check: str
    status: Literal["pass", "warn", "fail"]
    detail: str
    remedy: str = ""


Check = Callable[[Settings], Awaitable[list[Finding]]]


def passed(check: str, detail: str) -> Finding:
    return Finding(check, "pass", detail)


def warning(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check, "warn", detail, remedy)


def failure(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check, "fail", detail, remedy)
