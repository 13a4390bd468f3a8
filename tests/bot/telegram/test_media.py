"""Files and pictures, in both directions."""

import base64
import io
from collections.abc import Sequence
from typing import Annotated

import pytest
from PIL import Image
from pydantic import Field

from agent.documents.library import Library
from agent.documents.reading import DocumentReader
from agent.messages import Message, ToolResult, User
from agent.pictures import VisionLimits
from agent.sandbox.sandbox import Sandboxes
from agent.tools.files import read_file
from agent.tools.tool import Call, Output, tool
from bot import attachments
from bot.telegram import app
from fakes import documents
from fakes.bot_running import TelegramScenario
from fakes.localgram import is_final
from fakes.localgram_faults import Kind
from fakes.model_scripted import calls, in_order, says
from fakes.words import saying


def _png(width: int = 4, height: int = 3) -> bytes:
    drawn = io.BytesIO()
    Image.new("RGB", (width, height)).save(drawn, "PNG")
    return drawn.getvalue()


PNG, WIDE = _png(), _png(400, 200)
VISION = VisionLimits(pixels=10_000, most=2)


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
        assert told(run) == saying("\nreceived/table.csv: 2 lines", '"a,b 1,2"')
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
    scenario.sandbox, scenario.vision = sandboxes.of, VISION
    async with scenario.open() as run:
        await scenario.owner.send_file("photo", PNG, caption="what is it?")
        await scenario.owner.next_message(where=is_final)
        assert "; shown)" in told(run)
        await scenario.owner.send("and now?")
        await scenario.owner.next_message(where=is_final)
        first, second = (request.messages for request in run.model.requests)
    assert second[: len(first)] == first
    [picture] = images(first)
    assert size_of(picture) == (4, 3)


def images(messages: Sequence[Message]) -> list[str]:
    return [url for message in messages if isinstance(message, User) for url in message.images]


def size_of(url: str) -> tuple[int, int]:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).size


async def test_an_album_is_shown_as_far_as_there_is_room(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox, scenario.vision = sandboxes.of, VISION
    async with scenario.open() as run:
        album = scenario.gram.world.next_album()
        for picture, caption in ((PNG, "all"), (WIDE, ""), (PNG, "")):
            await scenario.owner.send_file("photo", picture, caption=caption, album=album)
        await scenario.owner.next_message(where=is_final)
        asked = run.model.requests[-1].messages
    assert [size_of(url) for url in images(asked)] == [(4, 3), (141, 71)]
    assert told(run).count("; shown)") == 2
    assert told(run).count("; not shown: ") == 1 and told(run) == saying(
        "2 are the most", "read_file"
    )


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\nbroken", "the picture is damaged, or not what its name says"),
        ("a.svg", b"<svg/>", "an SVG is a drawing in text, which read_file reads"),
    ],
)
async def test_a_picture_that_cannot_be_shown_is_kept_and_said_so(
    scenario: TelegramScenario, sandboxes: Sandboxes, name: str, content: bytes, why: str
) -> None:
    scenario.sandbox, scenario.vision = sandboxes.of, VISION
    async with scenario.open() as run:
        await scenario.owner.send_file("document", content, name=name, caption="what is it?")
        await scenario.owner.next_message(where=is_final)
        assert f"; not shown: {why})" in told(run)
    box = await sandboxes.of("tg:111")
    with await box.files.open(f"received/{name}") as file:
        assert file.read() == content


async def test_a_picture_that_a_tool_made_is_shown(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox, scenario.vision, scenario.tools = sandboxes.of, VISION, [read_file]
    scenario.script = in_order([calls("read_file", path="chart.png"), says("A line.")])
    box = await sandboxes.of("tg:111")
    await box.files.write("chart.png", WIDE)
    async with scenario.open() as run:
        await scenario.owner.send("look at the chart")
        await scenario.owner.next_message(where=is_final)
        *_, result, shown = run.model.requests[-1].messages
    assert isinstance(result, ToolResult)
    assert result.text == saying("chart.png is a picture", "shown below")
    assert isinstance(shown, User) and size_of(shown.images[0]) == (141, 71)


async def test_a_picture_is_no_text_for_a_model_that_does_not_see(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox, scenario.tools = sandboxes.of, [read_file]
    scenario.script = in_order([calls("read_file", path="chart.png"), says("I cannot.")])
    box = await sandboxes.of("tg:111")
    await box.files.write("chart.png", WIDE)
    async with scenario.open() as run:
        await scenario.owner.send("look at the chart")
        await scenario.owner.next_message(where=is_final)
        result = run.model.requests[-1].messages[-1]
    assert isinstance(result, ToolResult) and "this model cannot see" in result.text


async def test_a_photo_for_a_blind_model_is_said_to_be_one(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox = sandboxes.of
    async with scenario.open() as run:
        await scenario.owner.send_file("photo", PNG, caption="what is it?")
        await scenario.owner.next_message(where=lambda m: m.text == "It is blind.")
        await scenario.owner.next_message(where=lambda m: m.text == "Hello.")
        assert told(run) == saying("cannot see pictures", "person was told")
        assert images(run.model.requests[-1].messages) == []


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
        assert told(run) == saying("big.bin (document", "300.0 MB; not fetched: larger")
    assert warning.silent


async def test_a_file_larger_than_it_was_said_to_be_is_not_read_on(
    scenario: TelegramScenario, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "download_limit", lambda own_server: 1 << 20)
    scenario.sandbox = sandboxes.of
    async with scenario.open() as run:
        await scenario.owner.send_file(
            "document", bytes(3 << 20), name="big.bin", caption="look", size=5
        )
        await scenario.owner.next_message(where=is_final)
        assert told(run) == saying("not fetched: ", "larger than", "can be received")


async def test_a_dead_link_is_asked_for_again(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox = sandboxes.of
    scenario.gram.fault("getFile", "stale_link")
    async with scenario.open() as run:
        await scenario.owner.send_file("document", b"text", name="a.txt", caption="read")
        await scenario.owner.next_message(where=is_final)
        assert "received/a.txt (document, text/plain, 1 kB)" in told(run)


@pytest.mark.parametrize("fault", ["bad_gateway", "drop"])
async def test_a_file_waits_for_telegram_to_answer_again(
    scenario: TelegramScenario, sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch, fault: Kind
) -> None:
    monkeypatch.setattr(attachments, "AGAIN_SECONDS", 0.05)
    scenario.sandbox = sandboxes.of
    scenario.gram.fault("getFile", fault, times=5)
    async with scenario.open() as run:
        await scenario.owner.send_file("document", b"text", name="a.txt", caption="read")
        await scenario.owner.next_message(where=is_final)
        assert "received/a.txt (document, text/plain, 1 kB)" in told(run)


@tool
async def give(call: Call, file: Annotated[str, Field(description="name")]) -> Output:
    """Give a file."""
    content = PNG if file.endswith(".png") else b"content"
    assert call.context.file_sender
    await call.context.file_sender.send_files([(io.BytesIO(content), file)], f"**{file}**")
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
    await call.context.file_sender.send_files(opened, "**all**")
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


async def test_sound_is_sent_as_audio(scenario: TelegramScenario) -> None:
    scenario.tools = [give_all]
    scenario.script = in_order(
        [
            calls("give_all", files=["a.mp3"]),
            calls("give_all", files=["a.mp3", "b.ogg"]),
            says("There."),
        ]
    )
    async with scenario.open():
        await scenario.owner.send("music, please")
        await scenario.owner.next_message(where=lambda m: m.text == "There.")
    sent = [m for m in scenario.owner.messages() if m.media]
    assert [m.media.kind for m in sent if m.media] == ["audio"] * 3
    assert sent[0].album != sent[1].album == sent[2].album


@pytest.mark.parametrize(
    ("name", "content", "told_of_it"),
    [
        ("a.pdf", documents.pdf(["The fee is 40 euros.", "End."]), '2 pages, it begins: "The fee is 40 euros.".'),
        ("b.pdf", documents.pdf(["Secret."], locked=True), "It is encrypted: send it again without its password."),
        ("c.docx", b"PK\x03\x04broken", "It is damaged, or not what its name says."),
    ],
    ids=["pdf", "locked", "broken"],
)  # fmt: skip
async def test_what_a_document_holds_is_told_by_the_program(
    scenario: TelegramScenario, sandboxes: Sandboxes, name: str, content: bytes, told_of_it: str
) -> None:
    scenario.sandbox = sandboxes.of
    reader = DocumentReader(sandboxes, {})
    scenario.library = lambda store, chat: Library(store.documents, reader, chat, alone=True)
    async with scenario.open() as run:
        await scenario.owner.send_file("document", content, name=name, caption="what does it say?")
        await scenario.owner.next_message(where=is_final)
        assert f"\nreceived/{name}: {told_of_it}\n" in told(run)
