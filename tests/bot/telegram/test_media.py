"""Files and pictures, in both directions."""

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import pytest
from aiohttp import web
from PIL import Image
from pydantic import Field

from agent.sandbox.limits import SandboxLimits
from agent.sandbox.sandbox import Sandboxes, open_sandboxes
from agent.tools.tool import Call, Output, tool
from bot.localgram import is_final
from fakes.bot_running import TelegramScenario
from fakes.model_scripted import calls, in_order, says


def _png() -> bytes:
    drawn = io.BytesIO()
    Image.new("RGB", (4, 3)).save(drawn, "PNG")
    return drawn.getvalue()


PNG = _png()


@pytest.fixture
async def sandboxes(tmp_path: Path) -> AsyncIterator[Sandboxes]:
    async with open_sandboxes(
        tmp_path / "boxes", limits=SandboxLimits(), repos=[], zone="UTC", report=str
    ) as opened:
        yield opened


def told(run: object) -> str:
    """The newest message that the model was sent."""
    return str(run.model.requests[-1].messages[-1].text)  # type: ignore[attr-defined]


async def test_a_document_is_saved_and_named(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox = sandboxes.of
    async with scenario.open() as run:
        await scenario.owner.send_file(
            "document", b"a,b\n1,2\n", name="table.csv", caption="sum it"
        )
        await scenario.owner.next_message(where=is_final)
        assert "file: received/table.csv (document, text/csv, 1 kB)" in told(run)
        assert told(run).endswith("\nsum it")
        await scenario.owner.send_file("document", b"other", name="table.csv", caption="and this")
        await scenario.owner.next_message(where=is_final)
        assert "file: received/table-" in told(run)
        waiting = await run.store.documents.seen_by("tg:111", [])
        assert ("table.csv", "waiting") in [(one.title, one.state) for one in waiting]
    box = await sandboxes.of("tg:111")
    with await box.files.open("received/table.csv") as file:
        assert file.read() == b"a,b\n1,2\n"


async def test_a_photo_is_shown_to_a_model_that_sees(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox, scenario.sees = sandboxes.of, True
    async with scenario.open() as run:
        await scenario.owner.send_file("photo", PNG, caption="what is it?")
        await scenario.owner.next_message(where=is_final)
        message = run.model.requests[-1].messages[-1]
        assert message.images[0].startswith("data:image/jpeg;base64,")  # type: ignore[union-attr]
        assert "; shown)" in told(run)


async def test_a_photo_for_a_blind_model_is_said_to_be_one(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox = sandboxes.of
    async with scenario.open() as run:
        await scenario.owner.send_file("photo", PNG, caption="what is it?")
        await scenario.owner.next_message(where=is_final)
        assert "; this model cannot see pictures)" in told(run)


async def test_an_album_is_one_message(scenario: TelegramScenario, sandboxes: Sandboxes) -> None:
    scenario.sandbox = sandboxes.of
    async with scenario.open() as run:
        await scenario.owner.send_album([PNG, PNG], caption="both")
        await scenario.owner.next_message(where=is_final)
        assert len(run.model.requests) == 1
        assert told(run).count("file: received/photo-") == 2


async def test_a_file_too_large_is_explained_at_once(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox = sandboxes.of
    async with scenario.open() as run:
        await scenario.owner.send_file(
            "document", b"x", name="big.bin", caption="look", size=300 << 20
        )
        warning = await scenario.owner.next_message(where=lambda m: "larger than" in m.text)
        await scenario.owner.next_message(where=is_final)
        assert "big.bin (document, application/octet-stream, 300.0 MB; not fetched: larger" in told(
            run
        )
    assert warning.silent


async def test_a_dead_link_is_asked_for_again(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox = sandboxes.of
    scenario.gram.fault("getFile", "stale_link")
    async with scenario.open() as run:
        await scenario.owner.send_file("document", b"text", name="a.txt", caption="read")
        await scenario.owner.next_message(where=is_final)
        assert "received/a.txt (document, text/plain, 1 kB)" in told(run)


async def test_speech_is_transcribed_where_a_server_is(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox = sandboxes.of
    async with whisper("Good morning") as url:
        scenario.transcribe_url = url
        async with scenario.open() as run:
            await scenario.owner.send_file("voice", b"OggS", name="v.oga")
            await scenario.owner.next_message(where=is_final)
            assert told(run).endswith("</context>\nGood morning")
    scenario.transcribe_url = ""
    async with scenario.open() as run:
        await scenario.owner.send_file("voice", b"OggS2", name="v.oga")
        await scenario.owner.next_message(where=is_final)
        assert "no transcription server is configured" in told(run)


class whisper:
    """A transcription server in OpenAI's form that always hears the same."""

    def __init__(self, words: str) -> None:
        self._words = words

    async def __aenter__(self) -> str:
        app = web.Application()
        app.add_routes([web.post("/v1/audio/transcriptions", self._transcribe)])
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _transcribe(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert set(form) == {"file", "model"}
        return web.json_response({"text": self._words})


@tool
async def give(call: Call, file: Annotated[str, Field(description="name")]) -> Output:
    """Give a file."""
    content = PNG if file.endswith(".png") else b"content"
    assert call.context.file_sender
    await call.context.file_sender.send_file(io.BytesIO(content), file, f"**{file}**")
    return Output("sent")


async def test_files_and_pictures_are_sent(scenario: TelegramScenario) -> None:
    scenario.tools = [give]
    scenario.script = in_order(
        [calls("give", file="a.txt"), calls("give", file="b.png"), says("There.")]
    )
    async with scenario.open():
        await scenario.owner.send("files, please")
        document = await scenario.owner.next_message(where=lambda m: m.media)
        photo = await scenario.owner.next_message(where=lambda m: m.media)
        await scenario.owner.next_message(where=lambda m: m.text == "There.")
    assert document.media and photo.media
    assert (document.media.kind, document.media.file.content) == ("document", b"content")
    assert (document.text, [e["type"] for e in document.entities]) == ("a.txt", ["bold"])
    assert (photo.media.kind, photo.media.file.content) == ("photo", PNG)


@tool
async def give_all(call: Call, files: list[str]) -> Output:
    """Give."""
    assert call.context.file_sender
    opened = [(io.BytesIO(PNG if f.endswith(".png") else b"content"), f) for f in files]
    await call.context.file_sender.send_album(opened, "**all**")
    return Output("sent")


async def test_several_files_are_sent_as_an_album(scenario: TelegramScenario) -> None:
    scenario.tools = [give_all]
    scenario.script = in_order(
        [
            calls("give_all", files=["a.png", "b.png", "c.png"]),
            calls("give_all", files=["a.png", "a.txt"]),
            says("There."),
        ]
    )
    async with scenario.open():
        await scenario.owner.send("all, please")
        await scenario.owner.next_message(where=lambda m: m.text == "There.")
    sent = [m for m in scenario.owner.messages() if m.media]
    pictures, documents = sent[:3], sent[3:]
    assert [m.media.kind for m in sent if m.media] == ["photo"] * 3 + ["document"] * 2
    assert [m.media.file.content for m in documents if m.media] == [PNG, b"content"]
    assert [m.text for m in sent] == ["all", "", "", "all", ""]
    assert len({m.album for m in pictures}) == len({m.album for m in documents}) == 1
    assert pictures[0].album != documents[0].album
