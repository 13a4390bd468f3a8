"""Voice messages in and out, through the local Bot API server: the words reach the model and are shown, answers are
spoken."""

import asyncio
import re
from pathlib import Path
from typing import cast

import pytest

from agent.channels import TurnReply
from agent.events import Reason, TextDelta
from agent.sandbox.sandbox import Sandboxes
from agent.trust import Taint
from agent.turn.texts import STOPPED
from agent.voice.sound import HEARD_RATE
from agent.voice.speech_to_text import SpeechRecognizer, SpeechToText
from bot.channel import OutgoingMessage
from bot.delivery import compose
from bot.localgram.feed import Drafted
from bot.localgram.message import Message
from bot.telegram.app import TelegramApp
from fakes import recordings
from fakes.bot_running import RunningBot, TelegramScenario
from fakes.localgram import is_final
from fakes.model_scripted import says
from fakes.patience import soon
from fakes.telegram_person import forward
from fakes.words import saying

CHAT = "tg:111"


class ScriptedRecognizer:
    """Hears each piece as its number, and as many of them as it `may`."""

    piece_seconds = 10.0
    name = "a script"

    def __init__(self) -> None:
        self.heard = 0
        self.recordings = list[bytes]()
        self.may = asyncio.Semaphore(1000)

    async def words(self, box: object, recording: bytes) -> str:
        self.heard += 1
        self.recordings.append(recording)
        await self.may.acquire()
        return f"piece {self.heard}"

    def speech_to_text(self) -> SpeechToText:
        async def recognizer() -> SpeechRecognizer:
            return self

        return SpeechToText(Path("nowhere"), model=recognizer)


@pytest.fixture
def recognizer(scenario: TelegramScenario, sandboxes: Sandboxes) -> ScriptedRecognizer:
    recognizer = ScriptedRecognizer()
    scenario.sandbox, scenario.speech_to_text = sandboxes.of, recognizer.speech_to_text
    return recognizer


def told(run: RunningBot[TelegramApp]) -> str:
    """The newest message that the model was sent."""
    return str(run.model.requests[-1].messages[-1].text)


def quoted(message: Message) -> bool:
    return any(entity["type"] == "blockquote" for entity in message.entities)


async def test_what_was_said_reaches_the_model_and_is_shown(
    scenario: TelegramScenario, recognizer: ScriptedRecognizer
) -> None:
    async with scenario.open() as run:
        await scenario.owner.send_file("voice", recordings.spoken("Good morning."), seconds=2)
        shown = await scenario.owner.next_message(where=quoted)
        await scenario.owner.next_message(where=is_final)
        assert (shown.text, shown.silent) == ("piece 1", True)
        assert told(run).endswith("</context>\npiece 1")
        assert "; transcribed)" in told(run)
        assert await run.store.taints.of(1) == []  # a person's own words


@pytest.mark.slow
async def test_a_video_note_is_heard(
    scenario: TelegramScenario, recognizer: ScriptedRecognizer, tmp_path: Path
) -> None:
    async with scenario.open() as run:
        note = recordings.video_note("Good morning.", tmp_path)
        await scenario.owner.send_file("video_note", note, seconds=2)
        shown = await scenario.owner.next_message(where=quoted)
        await scenario.owner.next_message(where=is_final)
        assert (shown.text, told(run).endswith("</context>\npiece 1")) == ("piece 1", True)
        assert await run.store.taints.of(1) == []  # a person's own words
    form, codec, seconds = recordings.probed(recognizer.recordings[0], tmp_path)
    assert (form, codec) == ("wav", "pcm_s16le") and 0.5 < seconds < 3


async def test_words_of_others_are_strangers_text(
    scenario: TelegramScenario, recognizer: ScriptedRecognizer
) -> None:
    async with scenario.open() as run:
        said = await scenario.owner.send_file("voice", recordings.spoken("Good morning."))
        await scenario.owner.next_message(where=is_final)
        await forward(scenario.owner, said)
        await scenario.owner.next_message(where=is_final)
        taints: list[Taint] = list(await run.store.taints.of(1))
        assert taints[0].source.startswith("message from Olga")
        await scenario.owner.send_file("audio", recordings.spoken("A song."), name="song.ogg")
        await scenario.owner.next_message(where=is_final)
        assert told(run).endswith("piece 3")
        assert any("song.ogg" in taint.source for taint in await run.store.taints.of(1))


async def test_a_recording_that_is_damaged_is_one_sentence_and_kept(
    scenario: TelegramScenario, recognizer: ScriptedRecognizer, sandboxes: Sandboxes
) -> None:
    async with scenario.open() as run:
        await scenario.owner.send_file("voice", b"OggS is not enough", caption="hear this")
        shown = await scenario.owner.next_message(where=lambda m: "could not hear" in m.text)
        await scenario.owner.next_message(where=is_final)
        assert shown.text == saying("could not hear", "no sound")
        assert told(run).endswith("\nhear this")
        assert told(run) == saying("not transcribed: ", "no sound")
    assert len(await (await sandboxes.of(CHAT)).files.names("received")) == 1


async def test_where_nothing_hears_the_person_learns_how_to_get_it(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox = sandboxes.of
    async with scenario.open():
        await scenario.owner.send_file("voice", recordings.spoken("Good morning."))
        shown = await scenario.owner.next_message(where=lambda m: "could not hear" in m.text)
        assert "voltaire model pull whisper-base" in shown.text
        await scenario.owner.next_message(where=is_final)


async def listening(scenario: TelegramScenario, pattern: str) -> None:
    """Wait for the draft that says so."""
    await scenario.owner.event(
        lambda e: e if isinstance(e, Drafted) and re.fullmatch(pattern, e.text) else None
    )


async def test_a_long_recording_is_heard_in_pieces_and_shows_how_far_it_is(
    scenario: TelegramScenario, recognizer: ScriptedRecognizer
) -> None:
    recognizer.may = asyncio.Semaphore(0)
    async with scenario.open() as run:
        await scenario.owner.send_file("voice", recordings.tones(8, 8, 8), seconds=7200)
        await listening(scenario, "listening: 0:00 of 2:00:00")
        recognizer.may.release()
        await listening(scenario, "listening: 0:0[89] of 2:00:00")
        for _ in range(9):
            recognizer.may.release()
        shown = await scenario.owner.next_message(where=quoted)
        await scenario.owner.next_message(where=is_final)
        words = " ".join(f"piece {n}" for n in range(1, recognizer.heard + 1))
    assert shown.text == words and recognizer.heard >= 3
    assert told(run).endswith(f"</context>\n{words}")
    assert all(len(each) <= 10 * 2 * HEARD_RATE + 44 for each in recognizer.recordings)


async def test_stop_ends_the_hearing_of_a_long_recording(
    scenario: TelegramScenario, recognizer: ScriptedRecognizer
) -> None:
    recognizer.may = asyncio.Semaphore(0)
    async with scenario.open() as run:
        await scenario.owner.send_file("voice", recordings.tones(12, 12, 12), seconds=7200)
        await soon(lambda: recognizer.heard)
        await scenario.owner.send("/stop")
        final = await scenario.owner.next_message(where=is_final)
        assert recognizer.heard == 1
        assert final.text == STOPPED
        assert STOPPED in str(await run.store.transcript.texts(1))


# -- spoken answers -----------------------------------------------------------


@pytest.fixture
def speaking(scenario: TelegramScenario, sandboxes: Sandboxes, tmp_path: Path) -> TelegramScenario:
    scenario.sandbox, scenario.voices = sandboxes.of, tmp_path
    scenario.script = lambda _: says("It is half full. There is nothing to do.")
    return scenario


async def test_an_answer_is_a_voice_message_with_its_text(
    speaking: TelegramScenario, tmp_path: Path
) -> None:
    async with speaking.open() as run:
        await run.store.chats.set(CHAT, "Olga", voice="always")
        await speaking.owner.send("how full is the disk?")
        answer = await speaking.owner.next_message(where=lambda m: m.media)
    assert answer.media
    assert (answer.media.kind, answer.text) == ("voice", "It is half full. There is nothing to do.")
    kind, codec, seconds = recordings.probed(answer.media.file.content, tmp_path)
    assert (kind, codec) == ("ogg", "opus")
    assert seconds == pytest.approx(float(answer.media.details["duration"]), abs=0.6)
    assert 2 < seconds < 8


@pytest.mark.slow
async def test_a_long_answer_follows_its_voice(speaking: TelegramScenario) -> None:
    text = "It is half full.\n\n```\n" + "\n".join(f"/disk/{n}" for n in range(150)) + "\n```"
    speaking.script = lambda _: says(text)
    async with speaking.open() as run:
        await run.store.chats.set(CHAT, "Olga", voice="always")
        await speaking.owner.send("tell me")
        voice = await speaking.owner.next_message(where=lambda m: m.media)
        rest = await speaking.owner.next_message(where=is_final)
    assert voice.text == ""
    assert (rest.media, rest.text.startswith("It is half full.")) == (None, True)


async def test_voice_is_answered_by_voice_and_text_by_text(
    speaking: TelegramScenario, recognizer: ScriptedRecognizer, tmp_path: Path
) -> None:
    async with speaking.open() as run:
        await speaking.owner.send("/settings")
        shown = await speaking.owner.next_message(where=lambda m: m.keyboard)
        await speaking.owner.press(shown, "to voice messages")
        await speaking.owner.until(shown, lambda m: "voice messages: to voice messages" in m.text)
        await speaking.owner.send_file("voice", recordings.spoken("Good morning."))
        spoken = await speaking.owner.next_message(where=lambda m: m.media)
        assert spoken.media and spoken.media.kind == "voice"
        await speaking.owner.send("and in writing?")
        written = await speaking.owner.next_message(where=is_final)
        assert written.media is None
        assert len(run.model.requests) == 2


async def test_sentences_are_said_while_the_answer_is_written(
    speaking: TelegramScenario,
) -> None:
    """The first sentence is said before the second is whole: the turn has not ended, and nothing is sent."""
    async with speaking.open() as run:
        await run.store.chats.set(CHAT, "Olga", voice="always")
        voice = run.services.voice
        assert voice
        await speaking.owner.send("begin")
        await speaking.owner.next_message(where=lambda m: m.media)
        first = next(iter(voice._turns.values()))  # the newest turn's
        assert set(first.said) == {"It is half full.", "There is nothing to do."}
        first.said.clear()
        first.text, first.ended = "", asyncio.Event()
        meanwhile = asyncio.create_task(voice._say_meanwhile(first))
        for piece in ("One is ", "said. And tw"):
            first.text += TextDelta(piece).text
            first.changed.set()
        await soon(lambda: first.said)
        assert list(first.said) == ["One is said."]
        first.ended.set()
        await meanwhile


async def test_stop_leaves_the_text_alone(
    speaking: TelegramScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with speaking.open() as run:
        await run.store.chats.set(CHAT, "Olga", voice="always")
        voice = run.services.voice
        assert voice
        begun = asyncio.Event()

        async def say(*_: object) -> bytes:
            begun.set()
            await asyncio.Event().wait()
            return b""

        monkeypatch.setattr(voice, "_say", say)
        await speaking.owner.send("how full is the disk?")
        await begun.wait()
        await soon(lambda: voice._speaking)
        await speaking.owner.send("/stop")
        answer = await speaking.owner.next_message(where=is_final)
    assert (answer.media, answer.text) == (None, "It is half full. There is nothing to do.")


def test_only_a_whole_answer_is_spoken() -> None:
    for reason, spoken in (("done", True), ("cancelled", False), ("error", False)):
        reply = TurnReply(CHAT, "t", "text", cast(Reason, reason), (), {"voice": "always"})
        [payload] = compose(reply)
        assert OutgoingMessage.from_json(payload).voice is spoken


@pytest.mark.slow
async def test_a_person_who_takes_no_voice_messages_gets_the_text(
    speaking: TelegramScenario,
) -> None:
    speaking.gram.fault("sendVoice", "voice_forbidden")
    async with speaking.open() as run:
        await run.store.chats.set(CHAT, "Olga", voice="always")
        await speaking.owner.send("how full is the disk?")
        answer = await speaking.owner.next_message(where=is_final)
    assert (answer.media, answer.text) == (None, "It is half full. There is nothing to do.")
