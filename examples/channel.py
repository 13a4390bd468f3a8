"""A messaging app of one's own: lines of JSON over a UNIX socket, for one owner.

A client writes {"id": "7", "text": "hello"} or {"press": "st:", "message": "3"}; `id`
is unique for good. It reads {"id", "text", "buttons": [[key, label], ...]} and
{"edits": id, ...}. What it has not read waits until it is connected again.

Used by a line in `open_apps` of bot/cli/bot.py:
SocketApp(store, path, "me", SocketChannel(leaks)).
"""

import asyncio
import json
from functools import partial
from itertools import count
from pathlib import Path

from agent.leaks import LeakDetector
from agent.store import Incoming, Store
from bot import intake
from bot.access import Access, Sender
from bot.channel import Channel, Keyboard, NotSent, OutgoingMessage, refuse_secret
from bot.commands.context import ButtonPress, CommandCall, HandlerContext
from bot.commands.table import command_named, handle_press, run_command, show_press_result
from bot.messaging_apps import MessagingApp


class SocketChannel(Channel):
    source = "socket"
    prefix = "sock:"

    def __init__(self, leaks: LeakDetector | None = None) -> None:
        self._leaks = leaks or LeakDetector()
        self.client: asyncio.StreamWriter | None = None
        self._ids = count(1)

    def user_of(self, chat: str) -> str:
        return chat.removeprefix(self.prefix)

    async def send_part(self, chat: str, message: OutgoingMessage) -> tuple[str, None]:
        id = str(next(self._ids))
        self._write(id=id, text=message.text, buttons=message.keyboard)
        return id, None

    async def edit(self, chat: str, message: str, text: str, keyboard: Keyboard = ()) -> None:
        self._write(edits=message, text=text, buttons=keyboard)

    def _write(self, *, buttons: Keyboard, **fields: str) -> None:
        """Nobody connected: surely not sent, so the outbox tries it again."""
        refuse_secret(self._leaks, fields["text"])
        if self.client is None:
            raise NotSent("nobody is connected")
        keys = [[button.key, button.label] for row in buttons for button in row]
        self.client.write(json.dumps({**fields, "buttons": keys}).encode() + b"\n")


class SocketApp(MessagingApp):
    channel: SocketChannel

    def __init__(
        self, store: Store, path: Path, owner: str, channel: SocketChannel | None = None
    ) -> None:
        channel = channel or SocketChannel()
        access = Access(store.people, channel.source, frozenset({owner}), frozenset())
        super().__init__(store, channel, access)
        self._path = path
        self._owner = owner

    async def listen(self, context: HandlerContext) -> None:
        server = await asyncio.start_unix_server(partial(self._serve, context), self._path)
        async with server:
            await server.serve_forever()

    async def _serve(
        self, context: HandlerContext, lines: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.channel.client = writer
        try:
            async for line in lines:
                await self._handle(context, json.loads(line))
        finally:
            self.channel.client = None
            writer.close()

    async def _handle(self, context: HandlerContext, fields: dict[str, str]) -> None:
        chat, sender = self.channel.private_chat(self._owner), Sender(self._owner, self._owner)
        level = context.access.level(sender)
        if "press" in fields:
            kind, _, argument = fields["press"].partition(":")
            press = ButtonPress(chat, fields["message"], sender, level, argument)
            result = await handle_press(context, kind, press)
            await show_press_result(context, press, result)
        elif fields["text"].startswith("/"):
            name, _, argument = fields["text"][1:].partition(" ")
            call = CommandCall(chat, sender, level, argument)
            await run_command(context, command_named(name), call)
        elif await intake.may_write(context, chat, sender, level):
            id = fields["id"]
            message = Incoming(chat, self.channel.source, id, fields["text"], ref=id)
            await intake.receive(context, message)
