"""The local server with its people, which runs while it is entered."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from bot.localgram.chat import Chat
from bot.localgram.message import Account
from bot.localgram.page import Page
from bot.localgram.person import Person
from bot.localgram.server import BotApi, listening
from bot.localgram.world import World


class Localgram:
    """A local Bot API server with its chat page, entered as a context.

    `port` 0 takes a free one. `key` is asked of whoever opens the page; without one, any user of this
    machine may.

        async with Localgram(token="1:a") as gram:
            alice = gram.user("Alice")
            await alice.send("hi")
            reply = await alice.next_message()
    """

    def __init__(self, token: str, port: int = 0, *, key: str = "") -> None:
        self.token = token
        self.key = key
        number = int(token.partition(":")[0])
        self.world = World(Account(number, "Voltaire", "voltaire_bot", is_bot=True))
        self.port = port
        self._user_ids = itertools.count(1001)

    async def __aenter__(self) -> Self:
        """Raises OSError when the port is in use."""
        self._serving = self._serve()
        await self._serving.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._serving.__aexit__(*raised)

    @asynccontextmanager
    async def _serve(self) -> AsyncIterator[None]:
        routes = [*self.api().routes(), *Page(self.world).routes()]
        async with listening(routes, self.port, self.key) as self.port:
            try:
                yield
            finally:
                self.world.updates.wake("")
                for chat in self.world.chats.values():
                    chat.feed.close()

    def api(self) -> BotApi:
        return BotApi(self.world, self.token)

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
