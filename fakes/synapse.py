"""A real Synapse on loopback, with SQLite: accounts, and a proxy before it that misbehaves on demand.

Its packages lie in an environment of their own: `make .cache/synapse/.stamp` (part of make test).
"""

import asyncio
import base64
import json
import os
import secrets
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from backend.server.launch import free_port
from fakes.patience import SECONDS

PYTHON = Path(__file__).parent.parent / ".cache" / "synapse" / "bin" / "python"
SERVER = "voltaire.test"
PASSWORD = "a password of seventeen"
AS_TOKEN, GHOSTS = "of-a-bridge", "whatsapp_"  # fakes/matrix_bridge.py
BRIDGE = {
    "id": "whatsapp",
    "url": None,  # nothing is pushed to it
    "as_token": AS_TOKEN,
    "hs_token": "of-the-homeserver",
    "sender_localpart": f"{GHOSTS}bot",
    "rate_limited": False,
    "namespaces": {
        "users": [
            {"exclusive": True, "regex": f"@{GHOSTS}.*"},
            {"exclusive": False, "regex": "@olga-.*"},
        ]
    },
}
CONFIG = """
server_name: {name}
pid_file: {folder}/pid
signing_key_path: {folder}/signing.key
media_store_path: {folder}/media
log_config: {folder}/log.yaml
macaroon_secret_key: of a test
report_stats: false
suppress_key_server_warning: true
trusted_key_servers: []
enable_registration: true
enable_registration_without_verification: true
bcrypt_rounds: 4
database: {{name: sqlite3, args: {{database: {folder}/homeserver.db}}}}
listeners:
  - {{port: {port}, type: http, bind_addresses: [127.0.0.1], resources: [{{names: [client]}}]}}
rc_message: &all {{per_second: {rate}, burst_count: {burst}}}
rc_registration: &free {{per_second: 10000, burst_count: 10000}}
rc_login: {{address: *free, account: *free, failed_attempts: *free}}
rc_joins: {{local: *free, remote: *free}}
rc_joins_per_room: *free
rc_invites: {{per_room: *free, per_user: *free, per_issuer: *free}}
rc_room_creation: *free
rc_media_create: *free
rc_delayed_event_mgmt: *free
caches: {{global_factor: 0.1}}
presence: {{enabled: false}}
app_service_config_files: [{folder}/bridge.yaml]
"""
LOG = """
version: 1
handlers: {{file: {{class: logging.FileHandler, filename: {folder}/log.txt}}}}
root: {{level: WARNING, handlers: [file]}}
"""


class Synapse:
    """A homeserver; `rate` and `burst` are how many events of an account it takes a second."""

    def __init__(self, folder: Path, rate: float = 10_000.0, burst: int = 10_000) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        folder.mkdir(parents=True, exist_ok=True)
        values = {"name": SERVER, "folder": folder, "port": self.port}
        config = CONFIG.format(**values, rate=rate, burst=burst)
        (folder / "homeserver.yaml").write_text(config)
        (folder / "bridge.yaml").write_text(json.dumps(BRIDGE))
        seed = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        (folder / "signing.key").write_text(f"ed25519 a_test {seed}\n")
        (folder / "log.yaml").write_text(LOG.format(folder=folder))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        config = str(self.folder / "homeserver.yaml")
        words = [str(PYTHON), "-m", "synapse.app.homeserver", "-c", config]
        with (self.folder / "out.txt").open("ab") as out:
            self._process = subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True)

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    async def answers(self) -> None:
        """Wait until it does."""

        async def answered() -> bool:
            try:
                async with (
                    aiohttp.ClientSession() as http,
                    http.get(f"{self.url}/_matrix/client/versions") as answer,
                ):
                    return answer.status == 200
            except aiohttp.ClientError:
                return False

        async with asyncio.timeout(SECONDS):
            while not await answered():
                assert self._process and self._process.poll() is None, self.log
                await asyncio.sleep(0.02)

    @property
    def log(self) -> str:
        return "".join(
            path.read_text("utf-8", "replace")
            for name in ("out.txt", "log.txt")
            if (path := self.folder / name).exists()
        )

    async def account(self, name: str = "") -> str:
        """A new account's user id; its password is PASSWORD."""
        body = {
            "username": (name or "user") + "-" + secrets.token_hex(4),
            "password": PASSWORD,
            "inhibit_login": True,
            "auth": {"type": "m.login.dummy"},
        }
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{self.url}/_matrix/client/v3/register", json=body) as answer,
        ):
            registered = await answer.json()
            assert answer.status == 200, registered
            return str(registered["user_id"])

    def stored(self, text: str) -> list[str]:
        """The tables whose rows hold a text."""
        with closing(sqlite3.connect(f"file:{self.folder}/homeserver.db?mode=ro", uri=True)) as db:
            names = [
                row[0]
                for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                if not row[0].startswith("sqlite_")
            ]
            return [name for name in names if _holds(db, name, text)]


def _holds(db: sqlite3.Connection, table: str, text: str) -> bool:
    try:
        rows = db.execute(f'SELECT * FROM "{table}"')
        return any(text in json.dumps([str(value) for value in row]) for row in rows)
    except sqlite3.DatabaseError:
        return False  # a virtual table of an index


@contextmanager
def running_synapse(folder: Path, **limits: Any) -> Iterator[Synapse]:
    server = Synapse(folder, **limits)
    server.start()
    try:
        yield server
    finally:
        server.kill()
