"""Files that would cost a careless reader its memory or its time: the model is told in a sentence, and the file is kept."""

from pathlib import Path

import pytest

from agent.documents.library import Library
from agent.documents.reading import DocumentReader
from agent.pictures import VisionLimits
from agent.sandbox.sandbox import Sandboxes
from agent.voice.speech_to_text import SpeechRecognizer, SpeechToText
from bot import attachments
from bot.attachments import NAME_CHARACTERS, safe_name
from fakes import documents
from fakes.bot_running import TelegramScenario
from fakes.hostile_files import FILES, HostileFile
from fakes.localgram import is_final

CHAT = "tg:111"


class UnusedEar:
    piece_seconds = 30.0
    name = "nobody"

    async def words(self, box: object, recording: bytes) -> str:
        raise AssertionError("there is nothing to hear")


BY_DAY = ("bomb.docx", "noise.bin")


def speech_to_text() -> SpeechToText:
    async def recognizer() -> SpeechRecognizer:
        return UnusedEar()

    return SpeechToText(Path("nowhere"), model=recognizer)


@pytest.mark.parametrize(
    "file",
    [pytest.param(f, id=f.name, marks=() if f.name in BY_DAY else pytest.mark.slow) for f in FILES],
)
async def test_a_hostile_file_is_a_sentence_and_is_kept(
    scenario: TelegramScenario,
    sandboxes: Sandboxes,
    file: HostileFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attachments, "READ_SECONDS", 3600.0)  # however busy the machine is
    scenario.sandbox, scenario.vision, scenario.speech_to_text = (
        sandboxes.of,
        VisionLimits(10_000, 4),
        speech_to_text,
    )
    reader = DocumentReader(sandboxes, {})
    scenario.library = lambda store, chat: Library(store.documents, reader, chat, alone=True)
    content = file.content()
    async with scenario.open() as run:
        await scenario.owner.send_file(file.kind, content, name=file.name, caption="read this")
        answer = await scenario.owner.next_message(where=lambda m: is_final(m) and not m.silent)
        told = str(run.model.requests[-1].messages[-1].text)
    assert answer.text == "Hello."
    assert file.told in told
    assert told.endswith("\nread this")
    files = (await sandboxes.of(CHAT)).files
    [name] = await files.names("received")
    with await files.open(name if "/" in name else f"received/{name}") as kept:
        assert kept.read() == content


async def test_of_a_document_that_takes_long_the_model_is_told_so(
    scenario: TelegramScenario, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "READ_SECONDS", 0.001)
    scenario.sandbox, reader = sandboxes.of, DocumentReader(sandboxes, {})
    scenario.library = lambda store, chat: Library(store.documents, reader, chat, alone=True)
    async with scenario.open() as run:
        await scenario.owner.send_file(
            "document", documents.pdf(["Words."]), name="a.pdf", caption="read this"
        )
        await scenario.owner.next_message(where=is_final)
        told = str(run.model.requests[-1].messages[-1].text)
    assert f"\nreceived/a.pdf: {attachments.STILL_READ}\n" in told


@pytest.mark.parametrize("begins", [" ", ".", ". ."])
def test_a_long_name_that_is_cut_begins_with_no_dot_and_no_space(begins: str) -> None:
    kept = "n" * (NAME_CHARACTERS - len(begins))
    assert safe_name(f"first{begins}{kept}") == kept
