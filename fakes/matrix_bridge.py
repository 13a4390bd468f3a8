"""A Matrix bridge as its homeserver sees it: an application service that speaks as its ghosts, one for each person of
another network, and as the account whose owner logged in there (double puppeting)."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from fakes.synapse import AS_TOKEN, GHOSTS, SERVER, Synapse


@dataclass
class Ghost:
    """Speaks in the name of `id`, which may also be a person's own account."""

    http: aiohttp.ClientSession
    url: str
    id: str

    async def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        address = f"{self.url}/_matrix/{path}"
        params = {"user_id": self.id, **query}
        data = {"data": body} if isinstance(body, bytes) else {"json": body or {}}
        async with self.http.request(method, address, params=params, **data) as answer:
            told = await answer.json()
            assert answer.status == 200, told
            return told

    async def join(self, room: str) -> None:
        await self.ask("POST", f"client/v3/join/{room}")

    async def send(self, room: str, kind: str, content: dict[str, Any]) -> str:
        path = f"client/v3/rooms/{room}/send/{kind}/{secrets.token_hex(8)}"
        return str((await self.ask("PUT", path, content))["event_id"])

    async def say(self, room: str, text: str, **more: Any) -> str:
        """A text as mautrix-whatsapp sends it: with `m.mentions`, also where nobody is mentioned."""
        content = {"msgtype": "m.text", "body": text, "m.mentions": {}, **more}
        return await self.send(room, "m.room.message", content)

    async def upload(self, content: bytes) -> str:
        return str((await self.ask("POST", "media/v3/upload", content))["content_uri"])


@asynccontextmanager
async def ghost(server: Synapse, name: str) -> AsyncIterator[Ghost]:
    """A new ghost that calls itself `name`."""
    local = f"{GHOSTS}{secrets.randbelow(10**12)}"
    async with bridge(server, f"@{local}:{SERVER}") as made:
        login = {"type": "m.login.application_service", "username": local, "inhibit_login": True}
        await made.ask("POST", "client/v3/register", login)
        path = f"client/v3/profile/{made.id}/displayname"
        await made.ask("PUT", path, {"displayname": name})
        yield made


@asynccontextmanager
async def bridge(server: Synapse, user: str) -> AsyncIterator[Ghost]:
    """The bridge, speaking as a user that is there."""
    headers = {"Authorization": f"Bearer {AS_TOKEN}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        yield Ghost(http, server.url, user)
