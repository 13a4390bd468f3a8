"""The local Bot API server with what only tests and benches need: groups, topics, faults, webhooks, inline and
guest queries."""

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, TypeVar, cast

import aiohttp

from bot.localgram import Chat, Message, Topic
from bot.localgram import Localgram as DemoLocalgram
from bot.localgram import Person as DemoPerson
from bot.localgram.feed import SECONDS, Feed, Posted
from bot.localgram.message import Account, formatted
from bot.localgram.methods import TABLE, Method, allowed_of
from bot.localgram.wire import ApiError, Call, Json, bad_request
from bot.localgram.world import Query, Update, Updates, World
from fakes.localgram_faults import Fault, Faults, FaultyApi, Hold, Kind, Made

Found = TypeVar("Found")

SUPERGROUPS = -1_000_000_000_000
WEBHOOK_ACTIVE = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
HEADER = "X-Telegram-Bot-Api-Secret-Token"
UNDO = "chg:"  # the bot's button under the answer of a turn that changed files
CALLS_KEPT = 20_000
WEBHOOK_PAUSE = 0.1  # s, after an update that was not taken


class Person(DemoPerson):
    """A person who also edits, presses buttons by their labels, and waits for answers."""

    async def edit(self, message: Message, text: str) -> Message:
        chat, (kept, entities) = self.chat(message.chat), formatted(text, [])
        before, now = chat.messages[message.id], self.world.now()
        edited = replace(before, text=kept, entities=entities, edited=now)
        self.world.change(chat, edited)
        self.tell("edited_message", chat, edited)
        return edited

    async def press(self, message: Message, label: str) -> Query:
        """Press the button with this text under the current version of the message.

        Raises: LookupError when there is no such button.
        """
        current = self.now(message)
        buttons = [] if current is None else [button for row in current.keyboard for button in row]
        for button in buttons:
            if button["text"] == label and current is not None:
                return self.press_button(current, button)
        shown = ", ".join(repr(button["text"]) for button in buttons) or "none"
        raise LookupError(f"no button {label!r} under message {message.id}; there are: {shown}")

    def now(self, message: Message) -> Message | None:
        """Return the message as it is now; None if it was deleted."""
        return self.world.chats[message.chat].messages.get(message.id)

    async def until(
        self, message: Message, look: Callable[[Message], object], *, seconds: float = SECONDS
    ) -> Message:
        """Wait until the message satisfies the condition, and return it."""

        def settled() -> Message | None:
            current = self.now(message)
            return current if current is not None and look(current) else None

        return await self.world.chats[message.chat].feed.until(settled, seconds)

    def messages(self, *, chat: Chat | int | None = None) -> list[Message]:
        """Return the chat's messages, oldest first."""
        return list(self.chat(chat).messages.values())

    async def ask(
        self, text: str, *, chat: Chat | int | None = None, seconds: float = 600.0
    ) -> Message:
        """Send a message and wait for its final answer (is_final)."""
        place = self.chat(chat)
        self._read[place.id] = place.feed.last
        await self.send(text, chat=place)
        return await self.next_message(chat=place, where=is_final, seconds=seconds)


def is_final(message: Message) -> bool:
    """Whether the message is an answer: progress and tool lines are silent, and but for [Undo] no answer has buttons."""
    keys = (button.get("callback_data", "") for row in message.keyboard for button in row)
    return not message.silent and all(key.startswith(UNDO) for key in keys)


class Localgram(DemoLocalgram):
    """`topics` switches topic mode in private chats on."""

    def __init__(self, token: str, *, topics: bool = False, **more: Any) -> None:
        super().__init__(token, **more)
        self.world.topics_in_private = topics
        self.world.updates = self.updates = WebhookUpdates(self.world.feed)
        self.faults = Faults()
        # Of the bot, oldest first, without getUpdates.
        self.calls: deque[Made] = deque(maxlen=CALLS_KEPT)
        self._group_ids = itertools.count(1)

    def user(self, name: str, **more: Any) -> Person:
        return Person(self.world, super().user(name, **more).account)

    def api(self) -> FaultyApi:
        api = FaultyApi(self.world, self.token)
        api.faults, api.made = self.faults, self.calls
        api.methods = METHODS
        return api

    @asynccontextmanager
    async def _serve(self) -> AsyncIterator[None]:
        async with super()._serve():
            deliveries = asyncio.create_task(self.updates.deliver())
            try:
                yield
            finally:
                self.faults.release()
                deliveries.cancel()
                await asyncio.wait([deliveries])
        if not deliveries.cancelled():
            deliveries.result()

    def group(self, title: str, *members: Person, supergroup: bool = False) -> Chat:
        """Create a group of these people and the bot; the first person owns it."""
        number = next(self._group_ids)
        id, kind = (SUPERGROUPS - number, "supergroup") if supergroup else (-number, "group")
        chat = Chat(id, kind, title, status="")
        chat.members = {member.id: member.account for member in members}
        self.world.chats[chat.id] = chat
        if members:
            set_standing(self.world, chat, members[0].account, "member")
        return chat

    def migrate(self, chat: Chat) -> Chat:
        """Make a group a supergroup, which gets another id."""
        owner = next(iter(chat.members.values()))
        new = Chat(SUPERGROUPS - next(self._group_ids), "supergroup", chat.title)
        new.status, new.members = chat.status, dict(chat.members)
        self.world.chats[new.id] = new
        person = Person(self.world, owner)
        person.post(chat, Message(sender=owner, service={"migrate_to_chat_id": new.id}))
        person.post(new, Message(sender=owner, service={"migrate_from_chat_id": chat.id}))
        chat.migrated_to = new.id
        return new

    def inject(self, kind: str, body: object) -> int:
        """Deliver an update unchecked; return its number."""
        return self.world.updates.inject(kind, body)

    def fault(
        self,
        method: str,
        kind: Kind,
        *,
        times: int | None = 1,
        seconds: float = 0.0,
        chat: int | None = None,
        rate: float = 1.0,
    ) -> Fault:
        """Make calls of a method ("*": any) fail in a way of `Kind`."""
        fault = Fault(method, kind, times, seconds, chat, rate)
        self.faults.list.append(fault)
        return fault

    @contextmanager
    def hold(
        self, method: str, *, executed: bool = False, chat: int | None = None
    ) -> Iterator[Hold]:
        """Hold back a method's calls until the block is left or the hold is released."""
        hold = Hold(method, executed=executed, chat=chat)
        self.faults.holds.append(hold)
        try:
            yield hold
        finally:
            hold.release()
            self.faults.holds.remove(hold)

    def called(self, method: str) -> list[Made]:
        return [made for made in self.calls if made.method == method]

    async def until(self, look: Callable[[], Found | None], *, seconds: float = SECONDS) -> Found:
        """Wait until `look()` returns something; it is called after every event and call.

        Raises TimeoutError after `seconds`.
        """
        return await self.world.feed.until(look, seconds)


def create_topic(world: World, chat: Chat, by: Account, name: str) -> tuple[Topic, Message]:
    """Create a topic, numbered by the service message that announces it."""
    number = world.next_id(chat)
    topic = chat.topics[number] = Topic(number, name)
    service = {"forum_topic_created": {"name": name, "icon_color": 0x6FB9F0}}
    told = Message(
        sender=by, id=number, chat=chat.id, date=world.now(), thread=number, service=service
    )
    chat.messages[number] = told
    world.publish(chat, Posted(told))
    world.changed(chat)
    return topic, told


def set_standing(world: World, chat: Chat, by: Account, status: str) -> None:
    """Change the bot's status in a chat, and queue an update of that."""
    before, chat.status = chat.status or "left", status
    body: Json = {"chat": chat.json(), "from": by.json(), "date": world.now()}
    for name, standing in (("old_chat_member", before), ("new_chat_member", status)):
        until = {"until_date": 0} if standing == "kicked" else {}
        body[name] = {"user": world.bot.json(), "status": standing, **until}
    world.updates.put("my_chat_member", body)
    world.changed(chat)


# -- webhooks, inline and guest queries ----------------------------------------


class WebhookUpdates(Updates):
    """Updates that go to a webhook while one is set."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(feed)
        self._came = asyncio.Event()
        self.webhook, self._secret = "", ""

    def wake(self, conflict: str) -> None:
        self._came.set()
        super().wake(conflict)

    async def take(
        self, offset: int, limit: int, seconds: float, allowed: list[str] | None
    ) -> list[Json]:
        if self.webhook:
            raise ApiError(409, WEBHOOK_ACTIVE)
        return await super().take(offset, limit, seconds, allowed)

    def set_webhook(self, url: str, secret: str) -> None:
        """Send updates to this URL from now on; an empty one returns to getUpdates."""
        self.webhook, self._secret = url, secret
        self.wake("terminated by setWebhook request" if url else "")

    async def deliver(self) -> None:
        """Until cancelled, post updates to the webhook if one is set: one at a time, repeated until it is accepted."""
        async with aiohttp.ClientSession() as http:
            while True:
                self._came.clear()
                if not self.webhook or not self._queue:
                    await self._came.wait()
                elif await self._delivered(http, update := self._queue[0]):
                    self.acknowledge(update.id + 1)
                else:
                    await asyncio.sleep(WEBHOOK_PAUSE)

    async def _delivered(self, http: aiohttp.ClientSession, update: Update) -> bool:
        headers = {HEADER: self._secret} if self._secret else {}
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with http.post(self.webhook, json=update.json(), headers=headers) as response:
                return response.ok
        return False


def set_webhook(world: World, call: Call) -> bool:
    """Set the webhook; unlike Telegram it accepts http, as the URL is on loopback."""
    updates = cast(WebhookUpdates, world.updates)
    if call.flag("drop_pending_updates"):
        updates.pending().clear()
    updates.allow(allowed_of(call))
    updates.set_webhook(call.text("url"), call.text("secret_token"))
    return True


def answer_inline_query(world: World, call: Call) -> bool:
    world.close(call.text("inline_query_id")).results = _inline(call.sequence("results"))
    return True


def answer_guest_query(world: World, call: Call) -> Json:
    query = call.text("guest_query_id")
    world.close(query).results = _inline([call.mapping("result")])
    return {"inline_message_id": f"guest{query}"}


def _inline(results: list[Json]) -> list[Json]:
    if not all(each.get("title") and each.get("input_message_content") for each in results):
        raise bad_request("can't parse inline query result: Can't find field \"title\"")
    return results


METHODS: dict[str, Method] = {
    **TABLE,
    "answerInlineQuery": answer_inline_query,
    "answerGuestQuery": answer_guest_query,
    "setWebhook": set_webhook,
    "deleteWebhook": set_webhook,
}
