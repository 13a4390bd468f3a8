"""The examples work as they stand."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agent.store import open_store
from bot.channel import OutgoingMessage
from examples.channel import SocketApp
from fakes.bot_running import ScriptedAgent
from fakes.model_scripted import says
from fakes.patience import SECONDS, soon


class Client:
    """The other end of the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def write(self, **fields: str) -> None:
        self._writer.write(json.dumps(fields).encode() + b"\n")

    async def read(self) -> Any:
        async with asyncio.timeout(SECONDS):
            return json.loads(await self._reader.readline())


@asynccontextmanager
async def connected(path: Path) -> AsyncIterator[Client]:
    await soon(path.exists)
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


async def test_a_channel_of_ones_own_answers_runs_commands_and_buttons(tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    agent = ScriptedAgent(script=lambda request: says("Hello."))
    async with open_store(tmp_path / "voltaire.db") as store:
        app = SocketApp(store, path, "me")
        async with agent.serving(store, app) as running:
            async with connected(path) as client:
                client.write(id="1", text="hi")
                answer = await client.read()
                client.write(id="1", text="hi")  # once more: known already
                client.write(text="/status")
                card = await client.read()
                client.write(press=card["buttons"][0][0], message=card["id"])
                refreshed = await client.read()
            await soon(lambda: app.channel.client is None)
            await store.outbox.add("sock:me", [OutgoingMessage("news").to_json()])
            await soon(lambda: not store.outbox.added.is_set())
            async with connected(path) as client:
                news = await client.read()
            assert len(running.model.requests) == 1
    assert answer == {"id": "1", "text": "Hello.", "buttons": []}
    assert card["buttons"] == [["st:", "Refresh"]]
    assert refreshed["edits"] == card["id"] and "waiting" in refreshed["text"]
    assert news["text"] == "news"
