"""The owner's accounts on CalDAV servers, each asked by a process of its own."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent.aio import output_of
from agent.errors import ToolError
from agent.mcp.config import read_secret_file
from agent.sandbox.observer import Observer

RUN = "import sys; sys.path.insert(0, sys.argv[1]); from agent.calendar.client import main; main()"
CODE = str(Path(__file__).parent.parent.parent)
SECONDS = 60.0  # of one request, with all that it asks the server
NOT_INSTALLED = "The packages for calendars are not installed; the owner can install them (docs/calendar.md). Go on without them."
TOO_MUCH = "The calendar {name} takes too much time or memory to read; ask for fewer days."


@dataclass(frozen=True)
class Calendars:
    """The accounts, as their sections `agent.calendar.NAME` have them, by NAME; times are told in `zone` (IANA)."""

    accounts: Mapping[str, Mapping[str, str]]
    zone: str

    async def ask(self, name: str, do: str, observer: Observer, **what: object) -> dict[str, Any]:
        """Return the answer of agent.calendar.client to the request `do` with the fields `what`. Raises ToolError."""
        if name not in self.accounts:
            names = ", ".join(self.accounts)
            raise ToolError(f"There is no account {name[:40]}; there is {names}.")
        if not find_spec("caldav"):
            raise ToolError(NOT_INSTALLED)
        account, password = self.accounts[name], ""
        parts = urlsplit(account["url"])
        host = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
        await observer.connection(host)
        if path := account.get("password_file"):
            file = f"The password_file of the calendar {name}"
            password = read_secret_file(path, file).strip()
            await observer.secret(f"agent.calendar.{name}.password_file", host)
        own = {"name": name, "password": password, "zone": self.zone, "do": do}
        asked = json.dumps({**account, **own, **what}).encode()
        command = (sys.executable, "-I", "-c", RUN, CODE)
        try:
            code, output = await output_of(*command, seconds=SECONDS, stdin=asked)
        except TimeoutError:
            code, output = -1, b""
        if code:
            raise ToolError(TOO_MUCH.format(name=name))
        answer: dict[str, Any] = json.loads(output)
        if error := answer.get("error"):
            raise ToolError(error)
        return answer
