"""Voice messages in and out over a real homeserver: its store has no sound of an encrypted room."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from nio.crypto.attachments import decrypt_attachment, encrypt_attachment

from agent.sandbox.sandbox import Sandboxes
from agent.voice.speech_to_text import SpeechRecognizer, SpeechToText
from bot.matrix.incoming_message import VOICE
from bot.matrix.rooms import RoomKey
from fakes import recordings
from fakes.matrix_person import MatrixPerson, SeenEvent
from fakes.matrix_running import MatrixScenario
from fakes.model_scripted import says
from fakes.synapse import Synapse

SAID, ANSWER = "turn the heating down", "It is at nineteen degrees."
OGG = b"OggS"


class WholeRecognizer:
    """Hears the decoded sound of a recording as SAID; `sounds` is what it was given."""

    piece_seconds = 30.0
    name = "a script"

    def __init__(self) -> None:
        self.sounds: list[bytes] = []

    async def words(self, box: object, recording: bytes) -> str:
        self.sounds.append(recording)
        return SAID


class Phone:
    """The person's app: uploads and downloads files, sealed where the room is encrypted."""

    def __init__(self, server: Synapse, olga: MatrixPerson, *, encrypted: bool) -> None:
        self.url, self.olga, self.encrypted = server.url, olga, encrypted
        self.headers = {"Authorization": f"Bearer {olga.client.access_token}"}

    async def say_aloud(self, room: str, recording: bytes) -> None:
        sealed, keys = encrypt_attachment(recording)
        upload = f"{self.url}/_matrix/media/v3/upload"
        content = sealed if self.encrypted else recording
        async with (
            aiohttp.ClientSession(headers=self.headers) as http,
            http.post(upload, data=content) as answer,
        ):
            url = (await answer.json())["content_uri"]
        where: dict[str, Any] = {"file": {**keys, "url": url}} if self.encrypted else {"url": url}
        described = {"mimetype": "audio/ogg", "size": len(recording), "duration": 2000}
        told = {"msgtype": "m.audio", "body": "voice.ogg", VOICE: {}, "info": described}
        await self.olga.send(room, "m.room.message", {**told, **where})

    async def sound_of(self, event: SeenEvent) -> bytes:
        keys = event.content.get("file")
        mxc = keys["url"] if keys else event.content["url"]
        server, _, media = mxc.removeprefix("mxc://").partition("/")
        path = f"{self.url}/_matrix/client/v1/media/download/{server}/{media}"
        async with (
            aiohttp.ClientSession(headers=self.headers) as http,
            http.get(path) as answer,
        ):
            stored = await answer.read()
        if not keys:
            return stored
        assert OGG not in stored
        key, digest = keys["key"]["k"], keys["hashes"]["sha256"]
        return bytes(decrypt_attachment(stored, key, digest, keys["iv"]))


@pytest.mark.parametrize(
    "encrypted", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["encrypted", "plain"]
)
async def test_a_voice_message_is_heard_and_answered_by_one(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    server: Synapse,
    sandboxes: Sandboxes,
    tmp_path: Path,
    encrypted: bool,
) -> None:
    recognizer = WholeRecognizer()

    async def listens() -> SpeechRecognizer:
        return recognizer

    scenario.sandbox, scenario.voices = sandboxes.of, tmp_path
    scenario.speech_to_text = lambda: SpeechToText(Path("nowhere"), model=listens)
    scenario.script = lambda request: says(ANSWER)
    phone = Phone(server, olga, encrypted=encrypted)
    before = {file for file in (server.folder / "media").rglob("*") if file.is_file()}
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=encrypted)
        await run.store.chats.open(str(RoomKey(room)))
        await run.store.chats.set(str(RoomKey(room)), "Olga", voice="same")
        await phone.say_aloud(room, recordings.spoken("Good morning, all of you."))
        # What was heard is shown, so that a misheard word is seen.
        quoted = await olga.next(lambda e: SAID in e.body)
        spoken = await olga.next(lambda e: e.content.get("msgtype") == "m.audio")
        told = str(run.model.requests[-1].messages[-1].text)
        sound = await phone.sound_of(spoken)
        # Text is answered by text.
        await olga.say(room, "and in writing?")
        await olga.next(lambda e: e.final and e.body == ANSWER)
    assert recognizer.sounds and told.endswith(SAID)
    assert quoted.encrypted == spoken.encrypted == encrypted
    assert VOICE in spoken.content and spoken.body == ANSWER
    kind, codec, seconds = recordings.probed(sound, tmp_path)
    assert (kind, codec) == ("ogg", "opus")
    assert seconds == pytest.approx(spoken.content["info"]["duration"] / 1000, abs=0.6)
    stored = {file for file in (server.folder / "media").rglob("*") if file.is_file()} - before
    assert any(OGG in file.read_bytes() for file in stored) != encrypted
    assert [bool(server.stored(words)) for words in (SAID, ANSWER)] == [not encrypted] * 2
