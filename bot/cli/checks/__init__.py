"""What `voltaire doctor` looks at: one async function a check, each with its remedy.

machine.py   Python, sandbox, disk, clock, secrets, units
server.py    card and driver, server binary, model file, the running backend
fit.py       the model against the card
people.py    the database, Telegram
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from bot.settings import Settings

Status = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    status: Status
    detail: str
    remedy: str = ""


Check = Callable[[Settings], Awaitable[list[Finding]]]


def passed(check: str, detail: str) -> Finding:
    return Finding(check, "pass", detail)
