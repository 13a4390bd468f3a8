"""A real CalDAV server, Radicale, on loopback: accounts with a calendar each, and what other programs put there."""

import asyncio
import json
import secrets
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from backend.server.launch import free_port
from fakes.patience import SECONDS

CALENDAR = "home"
# Ends with the tests, also where those are killed (PR_SET_PDEATHSIG).
WITH_PARENT = """
import ctypes, runpy, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def event(*lines: str, uid: str = "", more: str = "") -> str:
    """A calendar object with one event of these lines; `more` are components beside it."""
    uid = uid or secrets.token_hex(8)
    own = "\r\n".join([f"UID:{uid}", "DTSTAMP:20260101T000000Z", *lines])
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//\r\n{more}BEGIN:VEVENT\r\n{own}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"


@dataclass
class Calendar:
    """A person's calendar on the server."""

    folder: Path
    url: str  # of the server
    user: str
    password: str
    password_file: Path

    @property
    def account(self) -> dict[str, str]:
        """A section of the configuration."""
        return {"url": self.url, "user": self.user, "password_file": str(self.password_file)}

    @property
    def place(self) -> str:
        return f"{self.url}{self.user}/{CALENDAR}/"

    def put(self, text: str, name: str = "") -> Path:
        """Put an object there, as another program does."""
        path = self.folder / f"{name or secrets.token_hex(8)}.ics"
        path.write_text(text, newline="")
        return path

    @property
    def objects(self) -> list[str]:
        return [path.read_bytes().decode() for path in sorted(self.folder.glob("*.ics"))]


@dataclass
class Radicale:
    folder: Path
    port: int = field(default_factory=free_port)
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "users").touch()
        options = {
            "server-hosts": f"127.0.0.1:{self.port}",
            "auth-type": "htpasswd",
            "auth-htpasswd-filename": str(self.folder / "users"),
            "auth-htpasswd-encryption": "plain",
            "auth-delay": "0",
            "storage-filesystem-folder": str(self.folder / "storage"),
        }
        words = [part for name, value in options.items() for part in (f"--{name}", value)]
        with (self.folder / "log").open("ab") as out:
            command = [sys.executable, "-c", WITH_PARENT, "radicale", "--config", "", *words]
            self._process = subprocess.Popen(command, stdout=out, stderr=out)
        async with asyncio.timeout(SECONDS), aiohttp.ClientSession() as http:
            while True:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                try:
                    async with http.get(self.url):
                        return
                except aiohttp.ClientError:
                    await asyncio.sleep(0.02)

    @property
    def running(self) -> bool:
        return self._process is not None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def calendar(self) -> Calendar:
        """A new person's."""
        user, password = f"u{secrets.token_hex(4)}", secrets.token_hex(12)
        with (self.folder / "users").open("a") as users:
            users.write(f"{user}:{password}\n")
        folder = self.folder / "storage" / "collection-root" / user / CALENDAR
        folder.mkdir(parents=True)
        about = {
            "tag": "VCALENDAR",
            "D:displayname": "Home",
            "C:supported-calendar-component-set": "VEVENT",
        }
        (folder / ".Radicale.props").write_text(json.dumps(about))
        file = self.folder / f"{user}.password"
        file.write_text(f"{password}\n")
        return Calendar(folder, self.url, user, password, file)
