"""Long polling of /sync: each answer is stored before the next request acknowledges it, whatever fails."""

import asyncio
import json
import logging
import time
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from agent.aio import complete
from backend.protocol import Phrase
from bot.commands.context import HandlerContext
from bot.intake import until_stored
from bot.matrix.channel import MatrixChannel
from bot.matrix.encryption import Encryption
from bot.matrix.homeserver import (
    CLIENT,
    HomeserverBusy,
    HomeserverError,
    HomeserverRefused,
    MatrixJson,
    events_of,
    mapping,
    room_path,
)
from bot.matrix.rooms import SOURCE
from bot.matrix.timeline import Timeline
from bot.matrix.verification import EVENTS, DeviceVerification
from bot.messaging_apps import InboundHealth

log = logging.getLogger(__name__)

PLACE = "matrix-sync"
POLL_MS = 25_000
GRACE_SECONDS = 15.0  # for an answer beyond the time that a sync may wait
FIRST_SECONDS = 120.0  # with the state of all rooms
FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 30.0
STOP_SECONDS = 3.0  # for the answer in hand, when we stop
TIMELINE = 50  # events of a room in one answer
HANDLED = ("m.room.encrypted", "m.room.message", "m.reaction", "m.room.redaction")
# Who may set the state of a room could fill any answer with others.
KINDS_OF_STATE = ("member", "encryption", "name", "tombstone")
MOST_MISSED = 1000  # events of a room that are fetched after a long absence
FILTER = {
    "presence": {"types": []},
    "account_data": {"types": []},
    "room": {
        "timeline": {"limit": TIMELINE},
        "state": {"types": [f"m.room.{kind}" for kind in KINDS_OF_STATE]},
        "ephemeral": {"types": []},
        "account_data": {"types": []},
    },
}


class SyncPlace(NamedTuple):
    """The position of the syncs: the token for the next one, and when the newest event was sent, in
    milliseconds since the epoch."""

    token: str = ""
    newest: int = 0


class LoggedOut(Exception):
    """The homeserver does not know the session any more; `soft`: its device may log in again."""

    def __init__(self, soft: bool) -> None:
        super().__init__()
        self.soft = soft


class Syncs:
    """Syncs until cancelled, and handles what comes in."""

    def __init__(
        self,
        channel: MatrixChannel,
        encryption: Encryption,
        context: HandlerContext,
        health: InboundHealth,
    ) -> None:
        self._channel = channel
        self._server = channel.server
        self._encryption = encryption
        self._timeline = Timeline(channel, encryption, context)
        self._verification = DeviceVerification(encryption, context)
        self._health = health
        self._key_values = context.store.key_values
        self._place = SyncPlace()
        self._horizon = 0  # what was sent until then is known; in milliseconds since the epoch
        self._backoff = FIRST_BACKOFF
        self._tending: asyncio.Task[None] | None = None
        self._tend_again = False

    async def run(self) -> None:
        """Sync until cancelled. Raises LoggedOut."""
        await self._timeline.load()
        self._place = await self._key_values.get(PLACE, SyncPlace) or SyncPlace()
        if not self._place.newest:  # what was said before the bot's first day is not answered
            self._place = SyncPlace(newest=int(time.time() * 1000))
        try:
            while True:
                await self._sync()
        finally:
            if self._tending:
                self._tending.cancel()

    async def _sync(self) -> None:
        first = not self._channel.synced.is_set()
        query = {"filter": json.dumps(FILTER)}
        if self._place.token:
            query["since"] = self._place.token
        if first:
            query["full_state"] = "true"
        else:
            query["timeout"] = "3000" if self._health.failure else str(POLL_MS)
        wait = FIRST_SECONDS if first else POLL_MS / 1000 + GRACE_SECONDS
        try:
            answer = await self._server.get(f"{CLIENT}/sync", query, seconds=wait)
        except HomeserverError as error:
            await self._failed(error)
            return
        if not isinstance(answer.get("next_batch"), str):
            await self._failed(HomeserverError(f"{self._server.url} gives no whole answer"))
            return
        self._health.answered()
        self._backoff = FIRST_BACKOFF
        try:
            await complete(self._take(answer), grace=STOP_SECONDS)
        except (AttributeError, LookupError, TypeError, ValueError):
            log.exception("what the homeserver gives cannot be read")
            await self._failed(HomeserverError(f"{self._server.url} gives what cannot be read"))

    async def _failed(self, error: HomeserverError) -> None:
        why = str(error)
        if isinstance(error, HomeserverRefused):
            if error.code in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN"):
                raise LoggedOut(error.soft)
            if self._place.token and error.code != "M_FORBIDDEN":
                why = f"the homeserver does not know where the bot was, which begins anew: {error}"
                # What comes again, now or with a later answer, was answered.
                self._horizon = self._place.newest
                self._place = self._place._replace(token="")
        self._health.failed(Phrase("Matrix: {why}.", why=why))
        after = error.after if isinstance(error, HomeserverBusy) else 0.0
        await asyncio.sleep(max(after, self._backoff))
        self._backoff = min(LONGEST_BACKOFF, 2 * self._backoff)

    # -- one answer -----------------------------------------------------------

    async def _take(self, answer: MatrixJson) -> None:
        """Handle and store all of an answer; then the place moves on."""
        keys_came = self._encryption.receive(answer)
        for event in answer.get("to_device", {}).get("events", []):
            if str(event.get("type")).startswith(EVENTS):
                await until_stored(SOURCE, partial(self._verification.take, event))
        rooms = answer.get("rooms", {})
        for id, invited in rooms.get("invite", {}).items():
            await until_stored(SOURCE, partial(self._invited, id, invited))
        newest = self._place.newest
        for id, told in rooms.get("join", {}).items():
            newest = max(newest, await self._take_room(id, told))
        for id, told in rooms.get("leave", {}).items():
            await until_stored(SOURCE, partial(self._timeline.put_out, id, told))
        place = SyncPlace(str(answer["next_batch"]), newest)
        # From an older place events come once more, which the inbox knows: no turn waits for the disk.
        await until_stored(SOURCE, lambda: self._key_values.put(PLACE, place, durable=False))
        self._place = place
        first = not self._channel.synced.is_set()
        self._channel.synced.set()
        if keys_came or first:
            await self._timeline.try_again()
        self._tend()

    async def _invited(self, id: str, told: MatrixJson) -> None:
        """What comes with an invitation is a stranger's: their server wrote it, and ours has not checked it."""
        try:
            await self._timeline.invited(id, told.get("invite_state", {}).get("events", []))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            log.warning("an invitation to %s cannot be read (%s)", id, error)

    async def _take_room(self, id: str, told: MatrixJson) -> int:
        """Handle a room's part of an answer; when its newest event was sent."""
        room = self._encryption.rooms.opened(id)
        timeline = told.get("timeline", {})
        events = events_of(timeline.get("events"))
        for event in events_of(told.get("state", {}).get("events")):
            self._encryption.change(room, event)
        newly = self._joined_at(events)
        if newly is None and timeline.get("limited") and self._place.token:
            events = [*await self._missed(id, str(timeline.get("prev_batch"))), *events]
        for old in [each for each in self._encryption.rooms.values() if each.successor == id]:
            await until_stored(SOURCE, partial(self._timeline.moved, old))
        oldest = self._horizon if self._place.token else self._place.newest
        for number, event in enumerate(events):
            if "state_key" in event:
                self._encryption.change(room, event)
            elif event.get("type") not in HANDLED:
                continue
            elif sent_at(event) > oldest and (newly is None or number > newly):
                if event.get("type") == "m.room.encrypted":
                    self._encryption.settle(room)
                await self._timeline.take(room, event)
        self._encryption.settle(room)
        if newly is not None:
            await until_stored(SOURCE, partial(self._timeline.joined, room))
        if room.successor:
            await until_stored(SOURCE, partial(self._timeline.moved, room))
        return max(map(sent_at, events), default=0)

    def _joined_at(self, events: list[MatrixJson]) -> int | None:
        """The index of the bot's invitation, or else of its joining, among the events; None if it was in the
        room before."""
        ours = [
            (
                number,
                mapping(event.get("content")).get("membership"),
                mapping(event.get("unsigned")),
            )
            for number, event in enumerate(events)
            if event.get("type") == "m.room.member" and event.get("state_key") == self._timeline.me
        ]
        before = [
            mapping(u.get("prev_content")).get("membership") for _, m, u in ours if m == "join"
        ]
        if not before or "join" in before:
            return None
        return min(number for number, membership, _ in ours if membership in ("invite", "join"))

    async def _missed(self, room: str, until: str) -> list[MatrixJson]:
        """The events between the last sync and this one's first, oldest first."""
        found: list[MatrixJson] = []
        while len(found) < MOST_MISSED:
            span = {"dir": "b", "from": until, "to": self._place.token, "limit": "100"}
            try:
                page = await self._server.get(room_path(room, "messages"), span)
            except HomeserverRefused as error:
                log.warning("messages of %s cannot be fetched: %s", room, error)
                break
            except HomeserverError as error:
                self._health.failed(Phrase("Matrix: {why}.", why=Phrase.of(error)))
                await asyncio.sleep(getattr(error, "after", 0.0) or 1.0)
                continue
            chunk = page.get("chunk")
            found += events_of(chunk)
            if not chunk or not (until := str(page.get("end") or "")):
                break
        return found[::-1]

    def _tend(self) -> None:
        """Upload and look up keys in the background; once more for what came meanwhile."""
        self._tend_again = True
        if self._tending is None or self._tending.done():
            self._tending = asyncio.create_task(self._tend_keys())

    async def _tend_keys(self) -> None:
        with suppress(HomeserverError):  # after the next sync again
            while self._tend_again:
                self._tend_again = False
                await self._encryption.tend()


def sent_at(event: MatrixJson) -> int:
    """Milliseconds since the epoch. The sender's server sets it: a time in the future would make all later events
    count as known, so it is at most now."""
    at = event.get("origin_server_ts")
    return max(0, min(at, int(time.time() * 1000))) if isinstance(at, int) else 0
