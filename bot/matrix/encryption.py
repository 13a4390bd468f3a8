"""End-to-end encryption by matrix-nio's machine (Olm and Megolm of vodozemac), with its own key store.

Done here is what nio leaves to its caller, or does in a way that a kill or a hostile server could harm:
one-time keys are on the disk before they are offered, a message counts as its sender's only if its key came
from a device of theirs, and only the device that made a key may forward it.

All devices of a room's members get its keys, verified or not, as in the usual apps.
"""

import asyncio
import json
import logging
import uuid
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from nio.crypto.olm_machine import Olm
from nio.event_builders import ToDeviceMessage
from nio.events import ForwardedRoomKeyEvent, MegolmEvent, ToDeviceEvent
from nio.exceptions import EncryptionError
from nio.responses import KeysClaimResponse, KeysQueryResponse, KeysUploadResponse, ToDeviceResponse
from nio.store.database import SqliteStore

from bot.matrix.homeserver import CLIENT, Homeserver, HomeserverAway, MatrixJson
from bot.matrix.rooms import JoinedRoom, JoinedRooms
from bot.matrix.session import KEYS, MatrixSession, read_session

log = logging.getLogger(__name__)

MEGOLM = "m.megolm.v1.aes-sha2"
SHARES = 8  # attempts at giving out a room's key for one message, while its members change
FAULTS = (
    *(AssertionError, AttributeError, EncryptionError, LookupError, TypeError),
    RecursionError,  # of deep nesting
    ValueError,  # of vodozemac, too
)


class Undecryptable(Exception):
    """A message cannot be decrypted. `awaited`: its key may still come."""

    def __init__(self, why: str, *, awaited: bool = True) -> None:
        super().__init__(why)
        self.awaited = awaited


class KeyMachine(Olm):
    """nio's machine, but it also accepts a forwarded key from the device that made it."""

    def _should_accept_forward(
        self, sender: str, sender_key: str, event: ForwardedRoomKeyEvent
    ) -> bool:
        asked = self.outgoing_key_requests.get(event.session_id)
        made_by = event.source.get("content", {}).get("sender_key")
        if asked and made_by == sender_key and event.room_id == asked.room_id:
            device = self.device_store.device_from_sender_key(sender, sender_key)
            return device is not None and event.algorithm == MEGOLM
        return super()._should_accept_forward(sender, sender_key, event)


class Encryption:
    """One device's keys. `rooms` are those that it is in."""

    def __init__(self, session: MatrixSession, folder: Path, server: Homeserver) -> None:
        self._session = session
        self.device = session.device
        self._server = server
        self._store = SqliteStore(
            session.user, session.device, str(folder), session.pickle_key, KEYS
        )
        self.machine: Olm = KeyMachine(session.user, session.device, self._store)
        self.rooms = JoinedRooms(session.user, self._store.load_encrypted_rooms())
        self._remembered: set[str] = set(self._store.load_encrypted_rooms())
        self._keys = asyncio.Lock()  # one change of the keys at a time
        self._closed = False

    def close(self) -> None:
        """Close the key store; calls in progress end with HomeserverAway and touch no key."""
        self._closed = True
        self._store.database.close()

    # -- what a sync brings ---------------------------------------------------

    def receive(self, sync: MatrixJson) -> bool:
        """Process the keys and device lists of a sync; return whether a key for messages came."""
        came = False
        for raw in sync.get("to_device", {}).get("events", []):
            came |= self.receive_event(raw)
        self.machine.collect_key_requests()
        lists = sync.get("device_lists", {})
        changed = {*lists.get("changed", []), *lists.get("left", [])}
        readers = {user for room in self.rooms.values() if room.encrypted for user in room.members}
        self.machine.add_changed_users(changed & readers)
        self.machine.tracked_users -= changed - readers  # looked up once they are in a room again
        # An algorithm that is not named has none left.
        count = sync.get("device_one_time_keys_count", {}).get("signed_curve25519", 0)
        self.machine.uploaded_key_count = count
        return came

    def receive_event(self, raw: MatrixJson) -> bool:
        """Process a to-device event; return whether it was a key for messages."""
        try:
            event = ToDeviceEvent.parse_event(raw)
            return self.machine.handle_to_device_event(event) is not None
        except Exception:  # what the library makes of a stranger's bytes; the others go on
            log.warning("a to-device event cannot be read", exc_info=True)
            return False

    def change(self, room: JoinedRoom, event: MatrixJson) -> None:
        """Apply a room's state event. When its members change, the next message gets a new key; unknown devices
        are marked at once to be looked up, as a message may be sent at any await."""
        encrypted, machine = room.encrypted, self.machine
        if room.change(event):
            machine.outbound_group_sessions.pop(room.id, None)
            if encrypted and (user := event["state_key"]) in room.members:
                machine.add_changed_users({user} - machine.tracked_users)
        if room.encrypted and not encrypted:
            self._track(room)

    def settle(self, room: JoinedRoom) -> None:
        """Once a room's events are taken: store that it is encrypted, and look up the devices of new members."""
        if room.encrypted:
            self._track(room)
            if room.id not in self._remembered:
                self._remembered.add(room.id)
                self._store.save_encrypted_rooms({room.id})

    def _track(self, room: JoinedRoom) -> None:
        """Have the devices of the room's members looked up, as far as they are not known."""
        self.machine.update_tracked_users(SimpleNamespace(users=room.members))

    # -- reading --------------------------------------------------------------

    def decrypt(self, room: str, raw: MatrixJson) -> MatrixJson:
        """Decrypt an event. Raises Undecryptable."""
        if self._closed:
            raise Undecryptable("the bot logs in anew")
        machine, event = self.machine, self._megolm(room, raw)
        sender_key, session_id = str(event.sender_key), str(event.session_id)
        held = machine.inbound_group_store.get(room, sender_key, session_id)
        if held is None:
            raise Undecryptable("its key has not come")
        if event.sender == self._session.user:
            ours = sender_key == machine.account.identity_keys["curve25519"]
        else:
            device = machine.device_store.device_from_sender_key(event.sender, sender_key)
            ours = device is not None and device.ed25519 == held.ed25519
        if not ours:  # or a device that is not looked up yet
            machine.users_for_key_query.add(event.sender)
            raise Undecryptable("its key is of no device of its sender")
        try:
            plain, index = held.decrypt(event.ciphertext)
            if not machine.message_index_ok(index, event):
                raise Undecryptable("it is another message, sent again", awaited=False)
            payload = json.loads(plain)
            if payload["room_id"] != room:
                raise Undecryptable("it was written for another room", awaited=False)
            kind, content = payload["type"], dict(payload["content"])
        except FAULTS as error:
            raise Undecryptable(str(error), awaited=False) from None
        if asked := machine.outgoing_key_requests.pop(session_id, None):
            self._store.remove_outgoing_key_request(asked)
        relation = raw["content"].get("m.relates_to")
        if relation and "m.relates_to" not in content:
            content["m.relates_to"] = relation
        return {**raw, "type": kind, "content": content}

    def _megolm(self, room: str, raw: MatrixJson) -> MegolmEvent:
        """Raises Undecryptable."""
        content = raw["content"]
        if "sender_key" not in content and isinstance(id := content.get("session_id"), str):
            made_by = self.machine.inbound_group_store[room]
            known = next((key for key, held in made_by.items() if id in held), "?")
            raw = {**raw, "content": {"device_id": "?", **content, "sender_key": known}}
        try:
            event = MegolmEvent.parse_encrypted_event(raw)
        except FAULTS:
            event = None
        if not isinstance(event, MegolmEvent):
            raise Undecryptable("it is encrypted in an unknown way", awaited=False)
        event.room_id = room
        return event

    async def ask_for_key(self, room: str, raw: MatrixJson) -> None:
        """Ask the sender's device for the key of a message, once. Raises HomeserverError."""
        with suppress(Undecryptable, AssertionError):  # without a session's id
            event, machine = self._megolm(room, raw), self.machine
            if event.session_id in machine.outgoing_key_requests:
                return
            machine.check_if_wedged(event)
            queued = machine.outgoing_to_device_messages
            if all(getattr(m, "session_id", "") != event.session_id for m in queued):
                me = self._session.device
                queued.append(event.as_key_request(event.sender, me, None, event.device_id))
        await self.tend()

    # -- keys, ours and others' -----------------------------------------------

    async def tend(self) -> None:
        """Upload missing keys of ours, look up devices, and send queued to-device messages. Raises
        HomeserverError; what is left is done by the next call."""
        async with self._keys:
            self._check_open()
            await self._upload()
            await self._query()
            machine = self.machine
            if machine.wedged_devices or machine.key_request_devices_no_session:
                await self._claim(machine.get_users_for_key_claiming())
            for message in list(machine.outgoing_to_device_messages):
                await self.send_to_device(message)
                machine.handle_response(ToDeviceResponse(message))

    async def _upload(self) -> None:
        machine = self.machine
        if not machine.should_upload_keys:
            return
        enough = int(machine.account.max_one_time_keys) // 2  # lest they are refilled one by one
        if machine.account.shared and (machine.uploaded_key_count or 0) >= enough:
            return
        keys = machine.share_keys()
        machine.save_account()  # before anybody can use them
        self._handle(await self._post(KeysUploadResponse, "upload", keys))

    async def _query(self) -> None:
        machine, users = self.machine, self.machine.users_for_key_query
        if not users:
            return
        machine.users_for_key_query = set()  # a sync puts in who changes while we ask
        try:
            asked: MatrixJson = {"device_keys": {user: [] for user in users}}
            response = await self._post(KeysQueryResponse, "query", asked)
            changed = set(machine.users_for_key_query)
            self._handle(response)
        except BaseException:
            machine.users_for_key_query |= users
            raise
        # Users of a server that is away: asked again when they change, or the next time they write.
        machine.users_for_key_query = changed
        for room in self.rooms.values():
            if not room.members.keys().isdisjoint(response.changed):
                machine.outbound_group_sessions.pop(room.id, None)

    async def _claim(self, devices: dict[str, list[str]]) -> None:
        wanted = {u: dict.fromkeys(ids, "signed_curve25519") for u, ids in devices.items()}
        self._handle(await self._post(KeysClaimResponse, "claim", {"one_time_keys": wanted}))

    async def send_to_device(self, message: ToDeviceMessage) -> None:
        """Send a to-device message. Raises HomeserverError."""
        await self.to_device(message.type, message.as_dict()["messages"])

    async def to_device(self, kind: str, messages: MatrixJson) -> None:
        """Send contents by user and device. Raises HomeserverError."""
        path = f"{CLIENT}/sendToDevice/{kind}/{uuid.uuid4()}"
        await self._server.put(path, {"messages": messages})
        self._check_open()

    async def _post(self, kind: Any, what: str, body: MatrixJson) -> Any:
        """The answer as nio's. Raises HomeserverError."""
        response = kind.from_dict(await self._server.post(f"{CLIENT}/keys/{what}", body))
        self._check_open()
        if not isinstance(response, kind):
            raise HomeserverAway(f"{self._server.url} gives no whole answer")
        return response

    def _check_open(self) -> None:
        """Raise HomeserverAway if the session, and its keys, ended during an await."""
        if self._closed:
            raise HomeserverAway("the bot logs in anew")

    def _handle(self, response: Any) -> None:
        try:
            self.machine.handle_response(response)
        except FAULTS as error:  # the library trusts what a server says of devices
            raise HomeserverAway(f"{self._server.url} gives wrong keys ({error})") from None

    # -- writing --------------------------------------------------------------

    async def encrypt(self, room: JoinedRoom, kind: str, content: MatrixJson) -> MatrixJson:
        """Share the key with all of the room's members, and return the content of an m.room.encrypted event. Raises
        HomeserverError."""
        async with self._keys:
            self._check_open()
            machine = self.machine
            for _ in range(SHARES):  # at each await a sync may tell of other members and devices
                await self._query()
                if not machine.users_for_key_query.isdisjoint(room.members):
                    continue
                if not machine.should_share_group_session(room.id):
                    break
                await self._share(room)
            else:
                raise HomeserverAway(f"the members of {room.id} change all the time")
            written = machine.group_encrypt(room.id, {"type": kind, "content": content})
        if relation := content.get("m.relates_to"):  # servers group by it: it is never encrypted
            written["m.relates_to"] = relation
        return dict(written)

    async def _share(self, room: JoinedRoom) -> None:
        """Give the room's members a new key, unless they change meanwhile; a key that the room has dropped since
        is not used."""
        machine, readers = self.machine, sorted(room.members)
        if missing := machine.get_missing_sessions(readers):
            await self._claim(missing)
            if sorted(room.members) != readers:
                return
        for shared, content in machine.share_group_session_parallel(
            room.id, readers, ignore_unverified_devices=True
        ):
            key = machine.outbound_group_sessions[room.id]
            await self.to_device("m.room.encrypted", content["messages"])
            if machine.outbound_group_sessions.get(room.id) is not key:
                return
            key.users_shared_with.update(shared)
        machine.outbound_group_sessions[room.id].shared = True


def export_keys(folder: Path, target: Path, passphrase: str) -> int:
    """Write the keys of all readable messages into a file that Matrix apps can import, and return their number.

    `folder` holds the session and its keys; no other process may use them meanwhile."""
    session = read_session(folder)
    assert session
    store = SqliteStore(session.user, session.device, str(folder), session.pickle_key, KEYS)
    try:
        sessions = list(store.load_inbound_group_sessions())
        Olm.export_keys_static(sessions, str(target), passphrase)
    finally:
        store.database.close()
    return len(sessions)
