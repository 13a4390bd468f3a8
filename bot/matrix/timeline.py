"""Events of rooms, turned into what the handlers of any app (bot.commands) work with.

The sync token moves on only when an event's handler has returned. After a kill events come again; the inbox
ignores those that it has.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import quote

from agent.language import speaking
from agent.sandbox.output_buffer import visible
from agent.store import Incoming
from agent.store.database import storable
from bot import intake
from bot.access import AccessLevel, Sender
from bot.channel import FEEDBACK, TONIGHT, OutgoingMessage
from bot.commands import people
from bot.commands.context import ButtonPress, CommandCall, HandlerContext
from bot.commands.jobs import react_tonight
from bot.commands.table import (
    command_named,
    handle_press,
    is_known,
    run_command,
    show_press_result,
)
from bot.intake import Quotation, Unparsable, UpdateGate
from bot.matrix.channel import MatrixChannel
from bot.matrix.encryption import FAULTS, Encryption, Undecryptable
from bot.matrix.homeserver import (
    CLIENT,
    HomeserverAway,
    HomeserverBusy,
    HomeserverError,
    MatrixJson,
    events_of,
    mapping,
    room_path,
)
from bot.matrix.incoming_message import (
    RoomMessage,
    incoming_message,
    parse_message,
    words,
)
from bot.matrix.keyboards import KeyboardStore, chosen_button
from bot.matrix.rooms import SOURCE, JoinedRoom, RoomKey, parse
from bot.texts import TEXTS

log = logging.getLogger(__name__)

WAITS = "matrix-waits:"  # messages without their key, by event
INVITATIONS = "matrix-invitation:"  # who has invited the bot, by room
VERDICTS = "matrix-verdict:"  # whose verdict on which answer, by the event of the reaction
TOLD = "matrix-told:"  # what owners were told about rooms
REMEMBERED = 500  # messages remembered, to be quoted
RETRY_SECONDS = 10.0


class WaitingEvent(NamedTuple):
    room: str
    event: MatrixJson


class Verdict(NamedTuple):
    message: str
    user: str


class Timeline:
    """Passes a sync's events to the handlers, with `context`. Call `load` first."""

    def __init__(
        self, channel: MatrixChannel, encryption: Encryption, context: HandlerContext
    ) -> None:
        self._channel = channel
        self._encryption = encryption
        self._context = context
        self._store = context.store
        self._gate = UpdateGate(SOURCE, context.store.set_aside)
        self._keyboards = KeyboardStore(context.store.key_values)
        self._waiting: dict[str, WaitingEvent] = {}
        self.invitations: dict[str, str] = {}
        self._followed: set[str] = set()  # rooms that replace others
        self._recent: OrderedDict[str, RoomMessage] = OrderedDict()  # by event
        self.me = encryption.rooms.me

    async def load(self) -> None:
        kept = await self._store.key_values.with_prefix(WAITS, WaitingEvent)
        self._waiting = {key.removeprefix(WAITS): event for key, event in kept.items()}
        invited = await self._store.key_values.with_prefix(INVITATIONS, str)
        self.invitations = {key.removeprefix(INVITATIONS): by for key, by in invited.items()}
        for room in self.invitations:
            self._context.start(self.answer_invitation(room))
        self._channel.invited_by = lambda user: next(
            (room for room, by in self.invitations.items() if by == user), None
        )
        await self._keyboards.prune()

    async def take(self, room: JoinedRoom, raw: MatrixJson) -> None:
        """Handle an event of a room's timeline, or set it aside."""
        await self._gate.take(json.dumps(raw), lambda: self._handle(room, raw))
        await self._gate.keep_unparsable()

    async def _handle(self, room: JoinedRoom, raw: MatrixJson) -> None:
        """Decrypt and parse an event, and run its handler. Raises Unparsable, StoreError."""
        event, encrypted = raw, raw.get("type") == "m.room.encrypted"
        if encrypted:
            try:
                event = self._encryption.decrypt(room.id, raw)
            except Undecryptable as error:
                await self._wait(room, raw, error)
                return
            except FAULTS as error:
                raise Unparsable(error) from None
        handlers: dict[str, Callable[[JoinedRoom, MatrixJson], Awaitable[None]]] = {
            "m.room.message": self._message,
            "m.reaction": self._reaction,
            "m.room.redaction": self._redaction,
        }
        handler = handlers.get(str(event.get("type")))
        if handler is None or "state_key" in raw:
            return
        event = json.loads(storable(json.dumps(event, ensure_ascii=False)))
        if room.encrypted and not encrypted and handler == self._message:
            await self._in_plain(room, event)
            return
        await handler(room, event)

    # -- messages -------------------------------------------------------------

    async def _message(self, room: JoinedRoom, event: MatrixJson) -> None:
        if not event.get("content"):
            return  # redacted before it was read
        try:
            message = parse_message(room.id, event)
            self._remember(message)
            if message.sender == self.me:
                transaction = str((event.get("unsigned") or {}).get("transaction_id"))
                await self._channel.seen(transaction, message.id)
                return
            if message.kind == "m.notice":
                return
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Unparsable(error) from None
        sender = self.sender_of(room, message.sender)
        level = self._context.access.level(sender)
        if message.replaces:
            original = level != "stranger" and await self._earlier(room, message.replaces)
            if level == "stranger" or (original and original.sender != message.sender):
                return
            if original:  # an edit names neither
                message = replace(message, thread=original.thread, answers=original.answers)
        elif message.answers and await self._pressed(
            room, message.answers, message.body, message.sender
        ):
            return
        addressed = await self._is_addressed(room, message, sender)
        if (command := message.command) and not message.replaces:
            name, argument = command
            known = is_known(name, argument)
            alone = not argument and message.body.lstrip().startswith("/")
            if known or (sender.group is None and alone):
                call = CommandCall(message.chat, sender, level, argument)
                if await run_command(self._context, command_named(name), call):
                    row = await self._inbox_row(room, message, level)
                    await intake.receive(self._context, replace(row, text=argument))
                return
        if not addressed:
            return
        if not await intake.may_write(self._context, message.chat, sender, level):
            return
        row = await self._inbox_row(room, message, level)
        if message.replaces:
            await self._context.services.chats.submit(row)
        else:
            await intake.receive(self._context, row)

    async def _inbox_row(
        self, room: JoinedRoom, message: RoomMessage, level: AccessLevel
    ) -> Incoming:
        several = self._encryption.rooms.partner(room.id) is None
        quoted = await self._quoted(room, message)
        incoming = incoming_message(
            message,
            sender=room.name(message.sender) if several else "",
            me=(self.me, room.name(self.me)),
            quote=quoted,
            origin=intake.origin(level),
        )
        ours = message.answers if quoted and quoted.ours else ""
        return await intake.mark_untrusted(self._context, incoming, ours)

    async def _quoted(self, room: JoinedRoom, message: RoomMessage) -> Quotation | None:
        if not message.answers:
            return None
        found = await self._earlier(room, message.answers)
        if found is None or not (found.body or found.files):  # such as what was withdrawn
            return Quotation("", "[a message that cannot be read here]")
        if found.sender == self.me:
            return Quotation("you", found.body, ours=True)
        name = "they" if found.sender == message.sender else room.name(found.sender)
        quote = Quotation(name, words(found, ()), files=found.files)
        return await intake.quote_heard(self._context, quote, message.chat, SOURCE, found.id)

    async def _is_addressed(self, room: JoinedRoom, message: RoomMessage, sender: Sender) -> bool:
        if sender.group is None or self._context.access.groups == "all":
            return True
        if message.mentions(self.me, room.name(self.me)):
            return True
        answered = await self._earlier(room, message.answers) if message.answers else None
        return answered is not None and answered.sender == self.me

    def sender_of(self, room: JoinedRoom, user: str) -> Sender:
        group = None if self._encryption.rooms.partner(room.id) == user else room.id
        return Sender(user, room.name(user), group)

    def _remember(self, message: RoomMessage) -> None:
        """Keep a message for quotations; an edit corrects only its author's own."""
        if message.replaces:
            known = self._recent.get(message.replaces)
            if known is None or known.sender != message.sender:
                return
            message = replace(message, thread=known.thread, answers=known.answers)
        self._recent[message.replaces or message.id] = message
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)

    async def _earlier(self, room: JoinedRoom, event: str) -> RoomMessage | None:
        """An older message of the room; None if it cannot be fetched or read."""
        if event not in self._recent:
            with suppress(HomeserverError, Undecryptable, *FAULTS):
                raw = await self._channel.server.get(room_path(room.id, "event", event))
                if raw["type"] == "m.room.encrypted":
                    raw = self._encryption.decrypt(room.id, raw)
                self._remember(parse_message(room.id, raw))
        found = self._recent.get(event)
        return found if found and found.room == room.id else None

    # -- what cannot be read --------------------------------------------------

    async def _in_plain(self, room: JoinedRoom, event: MatrixJson) -> None:
        """Answer an unencrypted message in an encrypted room with a warning: whoever runs the homeserver can write
        one in anybody's name."""
        sender = self.sender_of(room, str(event.get("sender")))
        content = mapping(event.get("content"))
        level = self._context.access.level(sender)
        if sender.user == self.me or level == "stranger" or content.get("msgtype") == "m.notice":
            return
        await self._context.send(str(RoomKey(room.id)), TEXTS.in_plain)

    async def _wait(self, room: JoinedRoom, raw: MatrixJson, why: Undecryptable) -> None:
        """Keep a message until its key comes, and ask for the key. Raises StoreError."""
        sender = self.sender_of(room, str(raw.get("sender")))
        id, level = str(raw.get("event_id")), self._context.access.level(sender)
        if sender.user == self.me or level == "stranger" or id in self._waiting:
            return
        chat = str(RoomKey(room.id))
        if not why.awaited:
            text = TEXTS.undecryptable.format(why=why)
            await self._context.send(chat, text)
            return
        await self._store.key_values.put(WAITS + id, [room.id, raw])
        self._waiting[id] = WaitingEvent(room.id, raw)
        self._context.start(self._seek_key(room, id, raw, str(why)))

    async def _seek_key(self, room: JoinedRoom, id: str, raw: MatrixJson, why: str) -> None:
        """The key often comes a moment later; if it does not, the sender is told."""
        with suppress(HomeserverError):
            await self._encryption.tend()
        await self.try_again()
        if id not in self._waiting:
            return
        try:
            await self._encryption.ask_for_key(room.id, raw)
        except HomeserverError as error:
            log.warning("the key of a message is not asked for yet: %s", error)
        await asyncio.sleep(RETRY_SECONDS)
        if id in self._waiting:
            text = TEXTS.undecryptable.format(why=why)
            await self._context.send(str(RoomKey(room.id)), text)

    async def try_again(self) -> None:
        """Handle the messages whose keys have come meanwhile."""
        for id, (room_id, raw) in list(self._waiting.items()):
            room = self._encryption.rooms.get(room_id)
            if room is None:
                continue
            try:
                self._encryption.decrypt(room_id, raw)
            except Undecryptable as error:
                if error.awaited:
                    continue
            if self._waiting.pop(id, None):
                await self.take(room, raw)
                await self._store.key_values.remove(WAITS + id)

    # -- buttons --------------------------------------------------------------

    async def _reaction(self, room: JoinedRoom, event: MatrixJson) -> None:
        relation = mapping(mapping(event.get("content")).get("m.relates_to"))
        if event.get("sender") == self.me or relation.get("rel_type") != "m.annotation":
            return
        message, said = str(relation.get("event_id")), str(relation.get("key"))
        user = str(event.get("sender"))
        if await self._pressed(room, message, said, user):
            return
        level, said = self._context.access.level(self.sender_of(room, user)), said.strip("\ufe0f")
        if level == "stranger":
            return
        if said in TONIGHT:
            await react_tonight(self._context, str(RoomKey(room.id)), message, user)
        if (liked := FEEDBACK.get(said)) is None:
            return
        if await self._store.turns.judge(str(RoomKey(room.id)), message, user, liked):
            values = self._store.key_values
            for before, verdict in (await values.with_prefix(VERDICTS, Verdict)).items():
                if verdict == (message, user):  # withdrawing it leaves the newer one
                    await values.remove(before)
            await values.put(VERDICTS + str(event.get("event_id")), [message, user])

    async def _pressed(self, room: JoinedRoom, message: str, said: str, user: str) -> bool:
        """Press the button that a reaction or a reply to a message of the bot's means; return whether there is one."""
        kept = await self._keyboards.of(message)
        key = chosen_button(said, kept.buttons) if kept else None
        if kept is None or key is None or parse(kept.chat).room != room.id:
            return False
        context, sender = self._context, self.sender_of(room, user)
        kind, _, argument = key.partition(":")
        level = context.access.level(sender)
        press = ButtonPress(kept.chat, message, sender, level, argument)
        with speaking(await context.chosen_language(kept.chat)):
            result = await handle_press(context, kind, press)
            told = result.toast if result.text is None and result.later is None else ""
            if told and level != "stranger" and told not in TEXTS.decided.values():
                await context.send(kept.chat, told, silent=True)
        context.start(show_press_result(context, press, result))
        return True

    async def _redaction(self, room: JoinedRoom, event: MatrixJson) -> None:
        """A message that its author deletes is not answered, a verdict does not count any more; another's redaction
        takes nothing back."""
        author = str(event.get("sender"))
        gone = str(event.get("redacts") or mapping(event.get("content")).get("redacts") or "")
        self._recent.pop(gone, None)
        if taken := await self._store.inbox.take_back(SOURCE, gone, author):
            await self._context.services.chats.stop(taken)
        verdict = await self._store.key_values.get(VERDICTS + gone, Verdict)
        if verdict and verdict.user == author:
            await self._store.turns.judge(str(RoomKey(room.id)), verdict.message, author, None)
            await self._store.key_values.remove(VERDICTS + gone)
        waiting = self._waiting.get(gone)
        if waiting and waiting.event.get("sender") == author:
            del self._waiting[gone]
            await self._store.key_values.remove(WAITS + gone)

    # -- invitations ----------------------------------------------------------

    async def invited(self, room: str, state: list[MatrixJson]) -> None:
        """Accept the invitation of somebody who may talk; ask the owners about others."""
        of_me = [
            e for e in state if e.get("type") == "m.room.member" and e.get("state_key") == self.me
        ]
        if not of_me:
            return
        by = str(of_me[-1].get("sender"))
        names = {
            str(e.get("state_key")): (e.get("content") or {}).get("displayname") for e in state
        }
        if room in self.invitations:
            return
        await self._store.key_values.put(INVITATIONS + room, by)
        self.invitations[room] = by
        sender = Sender(by, str(names.get(by) or by))
        access = self._context.access
        if access.level(Sender(by, "", room)) != "stranger":
            self._context.start(self.answer_invitation(room))
        elif await access.request(sender):
            await people.ask_owners(self._context, sender, lambda: TEXTS.wants_in_room)

    async def answer_invitation(self, room: str) -> None:
        """Join a room, however long that takes."""
        by = self.invitations.get(room, "")
        if by != self.me and self._context.access.level(Sender(by, "", room)) == "stranger":
            return
        while True:
            try:
                await self._channel.server.post(f"{CLIENT}/join/{quote(room)}", {})
                break
            except (HomeserverAway, HomeserverBusy) as error:
                await asyncio.sleep(max(RETRY_SECONDS, getattr(error, "after", 0.0)))
            except HomeserverError as error:
                log.warning("the room %s cannot be joined: %s", room, error)
                await self.forget_invitation(room)
                return

    async def forget_invitation(self, room: str) -> str:
        """Remove an invitation; return who sent it, or ""."""
        by = self.invitations.pop(room, "")
        if by:
            await self._store.key_values.remove(INVITATIONS + room)
        return by

    async def joined(self, room: JoinedRoom) -> None:
        """After joining a room: send what waits for it; if the room has more than two members, ask an owner who
        invited the bot whether everybody there may talk."""
        by = await self.forget_invitation(room.id)
        chat = str(RoomKey(room.id))
        await self._store.chats.set_blocked(chat, blocked=False)
        self._store.outbox.wake()
        if self._encryption.rooms.partner(room.id) is None:
            await people.offer_to_let_in_group(self._context, chat, room.id, by)

    async def moved(self, room: JoinedRoom) -> None:
        """Move the room's chat to the room that replaces it."""
        new, chat = room.successor, str(RoomKey(room.id))
        if new in self._followed:
            return
        if new in self._encryption.rooms:
            log.info("the room %s was replaced by %s: its chat goes on there", room.id, new)
            if await self._store.chats.get(chat):
                text = TEXTS.upgraded.format(room=self._room_name(room))
                await self._tell_owners(f"{TOLD}{room.id} {new}", text)
            self._followed.add(new)
            await self._store.chats.rename(chat, str(RoomKey(new)))
            access = self._context.access
            if room.id in access.members and new not in access.members:
                await access.put(new, "member", "", room.id)
        elif new not in self.invitations:
            await self._store.key_values.put(INVITATIONS + new, self.me)
            self.invitations[new] = self.me
            self._context.start(self.answer_invitation(new))

    async def put_out(self, id: str, told: MatrixJson) -> None:
        """Handle the removal of the bot from a room, or a withdrawn invitation."""
        await self.forget_invitation(id)
        known = id in self._encryption.rooms
        room = self._encryption.rooms.get(id) or JoinedRoom(id)
        by, key = "", ""
        for event in [
            e for part in ("state", "timeline") for e in events_of(told.get(part, {}).get("events"))
        ]:
            if event.get("type") != "m.room.member" or event.get("state_key") != self.me:
                room.change(event)
            elif mapping(event.get("content")).get("membership") in ("leave", "ban"):
                before = mapping(mapping(event.get("unsigned")).get("prev_content")).get(
                    "membership"
                )
                by = str(event.get("sender")) if known or before == "join" else ""
                key = f"{TOLD}{event.get('event_id')}"
        await self._store.chats.set_blocked(str(RoomKey(id)), blocked=True)
        if by not in ("", self.me):
            who = f"{visible(room.name(by))} ({by})"
            text = TEXTS.put_out.format(by=who, room=self._room_name(room))
            await self._tell_owners(key, text, by, id)
        if known or by:
            log.warning("the bot was put out of the room %s: what it has to say there waits", id)
        self._encryption.rooms.pop(id, None)

    def _room_name(self, room: JoinedRoom) -> str:
        """The name by which owners know a room."""
        return visible(room.title or self._encryption.rooms.called(room.id)) or room.id

    async def _tell_owners(self, key: str, text: str, by: str = "", of: str = "") -> None:
        """Tell each owner once, also if the event comes again after a kill. An owner who caused it (`by`) is told only
        in another room than `of`."""
        direct = self._encryption.rooms.direct
        chats = [
            self._channel.private_chat(owner)
            for owner in sorted(self._context.access.owners)
            if owner != by or any(room.id != of for room in direct(owner))
        ]
        await self._store.outbox.add_once(key, chats, OutgoingMessage(text).to_json())
