"""The local server with its people and groups, which runs while it is entered."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self, TypeVar

from bot.localgram.chat import Chat
from bot.localgram.faults import Fault, Hold, Kind
from bot.localgram.feed import SECONDS
from bot.localgram.message import Account, Message
from bot.localgram.page import Page
from bot.localgram.person import Person
from bot.localgram.server import BotApi, listening
from bot.localgram.world import SUPERGROUPS, Made, World

Found = TypeVar("Found")


class Localgram:
    """A local Bot API server with its chat page, entered as a context.

    `port` 0 takes a free one. `topics` switches topic mode in private chats on. `key` is asked of whoever
    opens the page; without one, any user of this machine may.

        async with Localgram(token="1:a") as gram:
            alice = gram.user("Alice")
            await alice.send("hi")
            reply = await alice.next_message()
    """

    def __init__(
        self,
        token: str,
        port: int = 0,
        *,
        key: str = "",
        username: str = "voltaire_bot",
        name: str = "Voltaire",
        topics: bool = False,
    ) -> None:
        self.token = token
        self.key = key
        self.world = World(Account(int(token.partition(":")[0]), name, username, is_bot=True))
        self.world.topics_in_private = topics
        self.port = port
        self._user_ids = itertools.count(1001)
        self._group_ids = itertools.count(1)

    async def __aenter__(self) -> Self:
        """Raises OSError when the port is in use."""
        self._serving = self._serve()
        await self._serving.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._serving.__aexit__(*raised)

    @asynccontextmanager
    async def _serve(self) -> AsyncIterator[None]:
        routes = [*BotApi(self.world, self.token).routes(), *Page(self.world).routes()]
        async with listening(routes, self.port, self.key) as self.port:
            deliveries = asyncio.create_task(self.world.updates.deliver())
            try:
                yield
            finally:
                self.world.faults.release()
                self.world.updates.wake("")
                for chat in self.world.chats.values():
                    chat.feed.close()
                deliveries.cancel()
                await asyncio.wait([deliveries])
        if not deliveries.cancelled():
            deliveries.result()

    @property
    def url(self) -> str:
        """The address for the setting `telegram.base_url`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def page(self) -> str:
        """The chat page's address."""
        return f"{self.url}/?key={self.key}" if self.key else f"{self.url}/"

    def user(
        self,
        name: str,
        *,
        id: int | None = None,
        username: str = "",
        language: str = "en",
        started: bool = False,
    ) -> Person:
        """Create a person. The bot cannot write to them before their first message, unless `started`."""
        number = next(self._user_ids) if id is None else id
        first, _, last = name.partition(" ")
        account = Account(number, first, username, last, language)
        self.world.people[number] = account
        chat = Chat(number, "private", name, peer=account, status="member" if started else "")
        chat.members = {number: account}
        self.world.chats[number] = chat
        return Person(self.world, account)

    def group(
        self,
        title: str,
        *members: Person,
        supergroup: bool = False,
        forum: bool = False,
        admin: bool = False,
    ) -> Chat:
        """Create a group of these people and the bot; the first person owns it. A forum is a supergroup."""
        wide = supergroup or forum
        number = next(self._group_ids)
        chat = Chat(
            SUPERGROUPS - number if wide else -number, "supergroup" if wide else "group", title
        )
        chat.forum = forum
        chat.status = ""
        chat.members = {member.id: member.account for member in members}
        self.world.chats[chat.id] = chat
        if members:
            standing = "administrator" if admin else "member"
            self.world.set_standing(chat, members[0].account, standing)
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
        """Make calls of a method ("*": any) fail in a way of `faults.Kind`."""
        fault = Fault(method, kind, times, seconds, chat, rate)
        self.world.faults.list.append(fault)
        return fault

    @contextmanager
    def hold(
        self, method: str, *, executed: bool = False, chat: int | None = None
    ) -> Iterator[Hold]:
        """Hold back a method's calls until the block is left or the hold is released."""
        hold = Hold(method, executed=executed, chat=chat)
        self.world.faults.holds.append(hold)
        try:
            yield hold
        finally:
            hold.release()
            self.world.faults.holds.remove(hold)

    @property
    def calls(self) -> list[Made]:
        """The bot's calls, oldest first, without getUpdates."""
        return list(self.world.calls)

    def called(self, method: str) -> list[Made]:
        return [made for made in self.world.calls if made.method == method]

    async def until(self, look: Callable[[], Found | None], *, seconds: float = SECONDS) -> Found:
        """Wait until `look()` returns something; it is called after every event and call.

        Raises TimeoutError after `seconds`.
        """
        return await self.world.feed.until(look, seconds)
