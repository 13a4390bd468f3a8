"""Killed with SIGKILL while a voice message is heard, and again while its answer is said: each comes once."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from aiohttp import web

from fakes import recordings
from fakes.bot_process import Process
from fakes.bot_running import OWNER
from fakes.localgram import Localgram
from fakes.model_scripted import ModelServer, says
from fakes.patience import soon

WORDS, ANSWER = "is it raining", "Yes, it is raining."
# Instead of an engine: a mark that it has begun, and no end.
SPEAKS_FOR_EVER = """
import asyncio, pathlib
from bot.voice.replies import SpokenReplies
async def say(*_):
    pathlib.Path({mark!r}).touch()
    await asyncio.Event().wait()
SpokenReplies._say = say
"""


class WhisperServer:
    """In OpenAI's form; answers once it `may`."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.asked = 0

    async def transcribe(self, request: web.Request) -> web.Response:
        await request.read()
        self.asked += 1
        await self.may.wait()
        return web.json_response({"text": WORDS})


@pytest.fixture
async def whisper() -> AsyncIterator[tuple[WhisperServer, str]]:
    server, app = WhisperServer(), web.Application(client_max_size=64 << 20)
    app.add_routes([web.post("/v1/audio/transcriptions", server.transcribe)])
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield server, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.slow
async def test_a_voice_message_is_heard_and_answered_once(
    gram: Localgram, tmp_path: Path, whisper: tuple[WhisperServer, str]
) -> None:
    server, url = whisper
    olga = gram.user("Olga Owner", id=OWNER, started=True)
    async with ModelServer(says(ANSWER)) as model:
        program = Process(gram, tmp_path, model.url, OWNER)
        program.configure(AGENT__TRANSCRIBE_URL=url)
        async with program.running():
            await olga.send("/settings")
            shown = await olga.next_message(where=lambda m: m.keyboard)
            await olga.press(shown, "to voice messages")
            await olga.until(shown, lambda m: "voice messages: to voice messages" in m.text)
            await olga.send_file("voice", recordings.spoken(WORDS), seconds=1)
            await soon(lambda: server.asked)
        assert model.requests == []
        server.may.set()
        mark = tmp_path / "speaks"
        program.first = SPEAKS_FOR_EVER.format(mark=str(mark))
        async with program.running():
            await soon(mark.exists)
            state = await program.row("SELECT state FROM outbox WHERE turn IS NOT NULL")
        assert state == "waiting"
        program.first = ""
        async with program.running():
            voice = await olga.next_message(where=lambda m: m.media and m.sender.is_bot)
            await program.stop()
    assert voice.media and (voice.media.kind, voice.text) == ("voice", ANSWER)
    said = [message for message in olga.messages() if message.sender.is_bot]
    assert [message.text for message in said].count(ANSWER) == 1
    assert len([m for m in said if m.text == WORDS]) == 1  # the quote
    assert len(model.requests) == 1
    with closing(sqlite3.connect(program.database)) as connection:
        left = connection.execute("SELECT count(*) FROM outbox WHERE state = 'uncertain'")
        assert left.fetchone() == (0,)
