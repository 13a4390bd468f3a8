"""A person at a Matrix homeserver, by matrix-nio's whole client: rooms, messages, what the others say."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from nio import (
    Event,
    KeysQueryResponse,
    LoginResponse,
    MatrixRoom,
    MegolmEvent,
    RoomCreateResponse,
    RoomSendResponse,
    SyncResponse,
)
from nio.client.async_client import AsyncClient, AsyncClientConfig
from nio.store.database import SqliteStore

from fakes.patience import SECONDS
from fakes.synapse import PASSWORD

ENCRYPTION = {
    "type": "m.room.encryption",
    "state_key": "",
    "content": {"algorithm": "m.megolm.v1.aes-sha2"},
}


@dataclass(frozen=True)
class SeenEvent:
    """`encrypted`: it came so, and could be read; `unread`: it could not."""

    room: str
    id: str
    sender: str
    type: str
    content: dict[str, Any]
    encrypted: bool = False
    unread: bool = False

    @property
    def body(self) -> str:
        return str(self.content.get("body", ""))

    @property
    def replaces(self) -> str:
        relation = self.content.get("m.relates_to") or {}
        return str(relation.get("event_id")) if relation.get("rel_type") == "m.replace" else ""

    @property
    def final(self) -> bool:
        """A message that makes a sound."""
        return self.content.get("msgtype") == "m.text" and not self.replaces


class PersonClient(AsyncClient):
    _changed: Set[str] = frozenset()  # users whose devices changed since the last query began

    async def keys_query(self) -> Any:
        """Nothing where a message on its way has asked meanwhile: nio would raise that, and its syncs would end.

        Asked again for whoever changed during the query, whom nio would take for known.
        """
        answer: Any = KeysQueryResponse({}, {})
        while self.should_query_keys:
            self._changed = set()
            answer = await super().keys_query()
            if not self._changed:
                break
            self.users_for_key_query.update(self._changed)
        return answer

    async def receive_response(self, response: Any) -> None:
        await super().receive_response(response)
        if isinstance(response, SyncResponse):
            self._changed |= set(response.device_list.changed)


@dataclass
class MatrixPerson:
    client: AsyncClient
    seen: list[SeenEvent] = field(default_factory=list)
    syncing: asyncio.Task[None] | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def id(self) -> str:
        return str(self.client.user_id)

    async def room_with(self, *others: str, encrypted: bool = False, direct: bool = True) -> str:
        """A new room with invited others, once they have joined and, if it is encrypted, their devices are known."""
        created = await self.client.room_create(
            is_direct=direct,
            invite=list(others),
            initial_state=[ENCRYPTION] if encrypted else [],
        )
        assert isinstance(created, RoomCreateResponse), created
        room = str(created.room_id)
        for other in others:
            await self.until(lambda other=other: self._joined(room, other))  # type: ignore[misc]
            if encrypted:  # else what is said at once is encrypted for nobody
                await self.until(lambda other=other: self._devices(other))  # type: ignore[misc]
        return room

    def _devices(self, user: str) -> list[Any]:
        return list(self.client.device_store.active_user_devices(user))

    def _joined(self, room: str, user: str) -> bool:
        known = self.client.rooms.get(room)
        return known is not None and user in known.users and not known.users[user].invited

    @property
    def keys(self) -> Any:
        """nio's machine."""
        return self.client.olm

    async def until(self, look: Callable[[], Any]) -> Any:
        """What `look` finds, asked whenever something came. Raises what ended the syncs."""
        async with asyncio.timeout(SECONDS):
            while not (found := look()):
                if self.syncing and self.syncing.done():
                    self.syncing.result()
                self._news.clear()
                await self._news.wait()
        return found

    async def send(self, room: str, kind: str, content: dict[str, Any]) -> str:
        sent = await self.client.room_send(
            room, kind, content, tx_id=secrets.token_hex(8), ignore_unverified_devices=True
        )
        assert isinstance(sent, RoomSendResponse), sent
        return str(sent.event_id)

    async def say(self, room: str, text: str, **more: Any) -> str:
        """Send a text; its id."""
        return await self.send(room, "m.room.message", {"msgtype": "m.text", "body": text, **more})

    async def react(self, room: str, event: str, key: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": event, "key": key}
        return await self.send(room, "m.reaction", {"m.relates_to": relation})

    async def reply(self, room: str, event: str, text: str) -> str:
        return await self.say(
            room, text, **{"m.relates_to": {"m.in_reply_to": {"event_id": event}}}
        )

    async def next(self, where: Callable[[SeenEvent], Any] = lambda e: e.final) -> SeenEvent:
        """The first event of others that is so, and was not given before."""
        found: list[SeenEvent] = await self.until(
            lambda: [
                e for e in self.seen if e.sender != self.id and e not in self._given and where(e)
            ]
        )
        self._given.append(found[0])
        return found[0]

    _given: list[SeenEvent] = field(default_factory=list)

    def finals(self, room: str) -> list[str]:
        """The texts that others have sent with a sound."""
        return [e.body for e in self.seen if e.room == room and e.sender != self.id and e.final]

    def take(self, room: MatrixRoom, event: Event) -> None:
        source = event.source
        unread = isinstance(event, MegolmEvent)
        self.seen.append(
            SeenEvent(
                room.room_id,
                event.event_id,
                event.sender,
                str(source.get("type")),
                dict(source.get("content", {})),
                encrypted=bool(event.decrypted),
                unread=unread,
            )
        )
        self._news.set()


@asynccontextmanager
async def matrix_person(
    url: str, user: str, folder: Path, device: str = ""
) -> AsyncIterator[MatrixPerson]:
    """Logged in with a new device, syncing."""
    folder.mkdir(parents=True, exist_ok=True)
    config = AsyncClientConfig(store=SqliteStore, encryption_enabled=True, max_timeouts=50)
    client: AsyncClient = PersonClient(url, user, device or None, str(folder), config)
    answer = await client.login(PASSWORD)
    assert isinstance(answer, LoginResponse), answer
    person = MatrixPerson(client)

    async def on_event(room: MatrixRoom, event: Event) -> None:
        person.take(room, event)

    async def on_sync(_: Any) -> None:
        person._news.set()

    client.add_event_callback(on_event, Event)
    client.add_response_callback(cast(Any, on_sync))
    syncing = asyncio.create_task(client.sync_forever(timeout=30_000, full_state=True))
    syncing.add_done_callback(lambda _: person._news.set())
    person.syncing = syncing
    try:
        await asyncio.wait_for(client.synced.wait(), SECONDS)
        yield person
    finally:
        syncing.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await syncing
        await client.close()
