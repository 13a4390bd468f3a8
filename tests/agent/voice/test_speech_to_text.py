"""The three ways to words. whisper.cpp itself runs here on a toy of random weights, whose every token is one word: no
real weights can be had offline, so what it understands is not tested."""

import asyncio
import base64
import io
import wave
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from aiohttp import web

from agent.llm.openai import OpenAIModel
from agent.sandbox.sandbox import Sandbox
from agent.voice import speech_to_text as speech_to_text_module
from agent.voice.speech_to_text import (
    ModelRecognizer,
    NoRecognizer,
    Recognized,
    ServerRecognizer,
    SpeechRecognizer,
    SpeechToText,
    whisper_program,
)
from fakes import recordings, sandbox_box, whisper_toy
from fakes.model_scripted import ModelServer, ScriptedModel, refused, says
from fakes.words import saying

VOICE = "received/voice.oga"


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with sandbox_box.opened(tmp_path / "state") as sandboxes:
        opened = await sandboxes.of("cli")
        await opened.files.write(VOICE, recordings.spoken("Good morning, how are you?"))
        yield opened


async def heard(
    speech_to_text: SpeechToText, box: Sandbox, path: str = VOICE
) -> tuple[Recognized, list[float]]:
    seen: list[float] = []

    async def progress(seconds: float) -> None:
        seen.append(seconds)

    return await speech_to_text.hear(box, path, progress), seen


class WhisperServer:
    """In OpenAI's form; hears how long each recording is. `forms` are those that it answers in."""

    def __init__(
        self,
        status: int = 200,
        forms: Sequence[str] = ("json", "verbose_json"),
        text: str = " {seconds:.0f} seconds ",
    ) -> None:
        self.status = status
        self.text = text
        self.forms = forms
        self.names: list[str] = []

    async def __aenter__(self) -> str:
        app = web.Application(client_max_size=64 << 20)
        app.add_routes([web.post("/v1/audio/transcriptions", self._transcribe)])
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _transcribe(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert set(form) == {"file", "model", "response_format"}
        if form["response_format"] not in self.forms:
            return web.Response(status=400)
        file = form["file"]
        assert isinstance(file, web.FileField)
        self.names.append(file.filename)
        with wave.open(io.BytesIO(file.file.read())) as sound:
            seconds = sound.getnframes() / sound.getframerate()
        if self.status != 200:
            return web.Response(status=self.status)
        return web.json_response({"text": self.text.format(seconds=seconds)})


async def test_a_server_gets_wav_a_minute_at_a_time(box: Sandbox, tmp_path: Path) -> None:
    await box.files.write("long.oga", recordings.tones(57, 57, 5))
    server = WhisperServer()
    async with server as url:
        found, seen = await heard(SpeechToText(tmp_path, url), box, "long.oga")
    assert found.words.endswith(" seconds") and found.words.count("seconds") == len(seen) == 3
    assert (found.problem, round(found.seconds)) == ("", 122)
    assert server.names == ["recording.wav"] * 3


async def test_a_server_without_figures_is_asked_for_the_text(box: Sandbox, tmp_path: Path) -> None:
    async with WhisperServer(forms=["json"]) as url:
        found, _ = await heard(SpeechToText(tmp_path, url), box)
    assert found.words.endswith(" seconds") and not found.problem


async def test_a_server_that_refuses_is_one_sentence(box: Sandbox, tmp_path: Path) -> None:
    async with WhisperServer(status=500) as url:
        found, _ = await heard(SpeechToText(tmp_path, url), box)
    assert found == Recognized("", 0, saying("server did not accept"))
    found, _ = await heard(SpeechToText(tmp_path, "http://127.0.0.1:9"), box)
    assert found.problem == saying("server did not accept")


async def test_of_silence_nobody_is_asked(box: Sandbox, tmp_path: Path) -> None:
    await box.files.write("still.oga", recordings.silence(5))
    server = WhisperServer()
    async with server as url:
        found, _ = await heard(SpeechToText(tmp_path, url), box, "still.oga")
    assert (found.words, found.problem, server.names) == ("", "", [])


async def test_a_recording_that_never_ends_and_says_nothing_is_left(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header of 8 samples a second makes half a day of 400 kB."""
    monkeypatch.setattr(speech_to_text_module, "SILENT_SECONDS", 100.0)
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8)
        file.writeframes(bytes(400_000))
    await box.files.write("slow.wav", sound.getvalue())
    async with WhisperServer() as url:
        found, seen = await heard(SpeechToText(tmp_path, url), box, "slow.wav")
    assert found.words == "" and 100 < found.seconds < 200 and len(seen) < 5
    assert found.problem == saying("left out", "nobody spoke")


async def test_what_nobody_said_is_not_heard(box: Sandbox, tmp_path: Path) -> None:
    async with WhisperServer(text="Thanks for watching!") as url:
        found, _ = await heard(SpeechToText(tmp_path, url), box)
    assert (found.words, found.problem) == ("", "")


async def test_a_model_that_hears_is_asked_with_the_sound_itself(
    box: Sandbox, tmp_path: Path
) -> None:
    async with ModelServer(says("Good morning.")) as server:
        async with OpenAIModel(server.endpoint) as model:

            async def recognizer() -> SpeechRecognizer:
                return ModelRecognizer(model, ())

            found, _ = await heard(SpeechToText(tmp_path, "http://unused", recognizer), box)
        body = server.requests[-1]
    assert found.words == "Good morning."
    text, sound = body["messages"][-1]["content"]
    assert (text["type"], sound["type"], sound["input_audio"]["format"]) == (
        "text",
        "input_audio",
        "wav",
    )
    with wave.open(io.BytesIO(base64.b64decode(sound["input_audio"]["data"]))) as recording:
        assert recording.getframerate() == 16_000
        assert recording.getnframes() > 16_000


async def test_a_model_that_refuses_is_one_sentence(box: Sandbox, tmp_path: Path) -> None:
    async def recognizer() -> SpeechRecognizer:
        return ModelRecognizer(ScriptedModel(lambda _: refused(500, "no audio")), ())

    found, _ = await heard(SpeechToText(tmp_path, model=recognizer), box)
    assert found.problem == "The model refused: no audio."


async def test_without_anything_that_hears_the_program_says_how_to_get_it(
    box: Sandbox, tmp_path: Path
) -> None:
    with pytest.raises(NoRecognizer, match="voltaire model pull whisper-base"):
        await heard(SpeechToText(tmp_path), box)


@pytest.mark.slow  # a minute where the machine is busy: a model that is sure of nothing tries each word again
async def test_the_real_whisper_cpp_runs_in_the_sandbox(box: Sandbox, tmp_path: Path) -> None:
    assert whisper_program()
    models = tmp_path / "models"
    models.mkdir()
    whisper_toy.write(models / "ggml-toy.bin")
    found, _ = await heard(SpeechToText(models), box)
    assert found.problem == ""
    assert set(found.words.split()) == {"toy"}


async def test_a_piece_that_takes_too_long_ends_the_recording_there(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SlowEar(ServerRecognizer):
        async def words(self, box: Sandbox, recording: bytes) -> str:
            await asyncio.Event().wait()
            return ""

    async def recognizer() -> SpeechRecognizer:
        return SlowEar("")

    monkeypatch.setattr(speech_to_text_module, "PIECE_SECONDS", 0.01)
    found, _ = await heard(SpeechToText(tmp_path, model=recognizer), box)
    assert found.problem == "It took too long."
