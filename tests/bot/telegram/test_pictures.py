"""A photo from Telegram to the answer of a real llama.cpp server with a projector, and a second question."""

import io
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest
from PIL import Image

from fakes import gguf_chain, gguf_projector
from fakes.bot_process import Process
from fakes.bot_running import OWNER
from fakes.llama_embedded import serve
from fakes.localgram import Localgram, Person

SAID = "A red square."
REREAD = 32  # tokens


def photo() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (640, 480), "red").save(out, "JPEG")
    return out.getvalue()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A model that always says the same, and a projector that fits it, both with random weights."""
    model = gguf_chain.make_chain(tmp_path / "m.gguf", SAID)
    return model, gguf_projector.make(tmp_path / "mmproj.gguf", gguf_chain.WIDTH)


@asynccontextmanager
async def process(
    kind: str, gram: Localgram, folder: Path, files: tuple[Path, Path]
) -> AsyncIterator[Process]:
    """`voltaire run`, with a server of its own or with somebody else's."""
    model, projector = files
    async with AsyncExitStack() as stack:
        url = ""
        if kind == "external":
            place = await stack.enter_async_context(serve(model, mmproj=projector))
            url = place.url
        (folder / "state").mkdir()
        program = Process(gram, folder / "state", url, OWNER)
        if kind == "external":
            program.configure(BACKEND__API_KEY="secret")
        else:
            profiles = folder / "state/config/voltaire/profiles"
            profiles.mkdir(parents=True)
            (profiles / "eyes.toml").write_text(
                'title = "VisionLimits"\ngpu = false\ncontext = 8192\n'
                f'[model]\npath = "{model}"\n[model.mmproj]\npath = "{projector}"\n'
                '[flags.required]\n"--parallel" = "1"\n"--threads" = "1"\n'
            )
            program.configure(
                BACKEND__KIND="managed", BACKEND__SERVER="embedded", BACKEND__PROFILE="eyes"
            )
        yield program


def calls(database: Path) -> list[tuple[int, int, int]]:
    """Of each model call: tokens of the prompt, cached, and read again."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        sql = "SELECT prompt_tokens, cached_tokens, reread FROM usage WHERE purpose = 'turn' ORDER BY id"
        return connection.execute(sql).fetchall()


async def answered(olga: Person, count: int) -> None:
    said = 0
    while said < count:
        await olga.next_message(where=lambda m: m.text == SAID)
        said += 1


@pytest.mark.parametrize("kind", [pytest.param("managed", marks=pytest.mark.slow), "external"])
async def test_a_photo_is_seen_read_once_and_kept_over_a_restart(
    kind: str, gram: Localgram, tmp_path: Path, files: tuple[Path, Path]
) -> None:
    olga = gram.user("Olga Owner", id=OWNER, started=True)
    async with process(kind, gram, tmp_path, files) as program:
        async with program.running():
            await olga.send_file("photo", photo(), caption="What is this?")
            await answered(olga, 1)
            await olga.send("And what colour?")
            await answered(olga, 1)
            await program.stop()
        async with program.running():
            await olga.send("Once more?")
            await answered(olga, 1)
            await program.stop()
    first, second, third = calls(program.database)
    pictures = (gguf_projector.IMAGE // gguf_projector.PATCH) ** 2
    # What stood in the first prompt, picture included, is in the cache when the second comes.
    assert first[0] - second[1] <= REREAD and second[2] <= REREAD
    assert second[0] > first[0] > pictures
    if kind == "external":  # its server went on: the restarted bot sends the same bytes
        assert second[0] - third[1] <= REREAD
    assert third[0] > second[0]
    with closing(sqlite3.connect(program.database)) as connection:
        [(kind_of_picture,)] = connection.execute("SELECT kind FROM pictures").fetchall()
        texts = [row[0] for row in connection.execute("SELECT head FROM transcript")]
    assert kind_of_picture == "image/png"
    assert any("; shown)" in text for text in texts)
