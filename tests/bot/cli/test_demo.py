"""The demo is the whole path: the pocket model, the sandbox, Telegram's library, the phone."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.texts import Texts
from fakes.command_line import start_voltaire
from fakes.gguf_chain import make_chain
from fakes.hub import Hub
from fakes.patience import SECONDS

POCKET = Path(__file__).parents[3] / "backend" / "embedded" / "pocket.gguf"
QUESTION = "how much disk space is free?"


@asynccontextmanager
async def demo(
    home: Path, *words: str, env: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    own = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")}
    env = {**own, "XDG_STATE_HOME": str(home), **(env or {})}
    pipe = asyncio.subprocess.PIPE
    process = await start_voltaire(
        "demo", *words, env=env, stdout=pipe, stderr=pipe, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await process.communicate()


async def test_one_question_is_answered_from_the_disk_itself(tmp_path: Path) -> None:
    async with demo(tmp_path, "--ask", QUESTION) as process:
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    said = out.decode()
    assert process.returncode == 0, err.decode()
    assert re.search(r"^→ bash \{\"command\": \"df ", said, re.MULTILINE), said
    free = re.search(r"\s(\S+)\s+\d+%\s+/workspace", said)
    assert free and free[1] in said[free.end() :], said
    assert list(tmp_path.iterdir()) == []  # nothing of it stays


@pytest.mark.slow
async def test_what_an_owner_would_have_to_approve_is_denied(tmp_path: Path) -> None:
    async with demo(tmp_path, "--ask", "tell me when the disk is above 90 %") as process:
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert "Nobody can press a button here, so it is denied" in out.decode() + err.decode()


@pytest.mark.slow
@pytest.mark.parametrize("wish", Texts().wishes)
async def test_what_the_first_screen_offers_is_done(tmp_path: Path, wish: str) -> None:
    async with demo(tmp_path, "--ask", wish) as process:
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    said = out.decode()
    assert process.returncode == 0, err.decode()
    assert re.search(r"^→ (bash|write_file|remember|schedule) ", said, re.MULTILINE), said
    assert "failed" not in said.lower() and "beyond me" not in said, said


@pytest.mark.slow
async def test_a_file_of_ones_own_runs_by_flags_that_suit_any(tmp_path: Path) -> None:
    """Not by the toy's: its one thread, its window, its sampling. dash passes MODEL=~/mine.gguf on as it stands."""
    make_chain(tmp_path / "mine.gguf", "Hello, I am no toy.")
    env = {"HOME": str(tmp_path)}
    async with demo(tmp_path / "s", "--ask", "hi", "--model", "~/mine.gguf", env=env) as process:
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert (process.returncode, out.decode().splitlines()[-1]) == (0, "Hello, I am no toy.")
    assert "processor" not in err.decode(), "there is no card whose absence could be a fault"


async def test_a_profile_is_downloaded_first_and_stays(tmp_path: Path) -> None:
    content = make_chain(tmp_path / "far.gguf", "Hello from far away.").read_bytes()
    own = tmp_path / "x" / "voltaire" / "profiles"
    own.mkdir(parents=True)
    (own / "far.toml").write_text(
        'title = "F"\ncpu = true\ncontext = 8192\n[model]\nrepo = "a/b"\nfile = "m.gguf"\n'
    )
    async with Hub(content).running() as hub:
        env = {"XDG_CONFIG_HOME": str(tmp_path / "x"), "HF_ENDPOINT": hub.url}
        env["HF_HOME"] = str(tmp_path / "hf")
        async with demo(tmp_path / "s", "--ask", "hi", "--model", "far", env=env) as process:
            out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert out.decode().splitlines()[-1] == "Hello from far away.", err
    assert "Pulling a/b/m.gguf, 0.0 GiB" in err.decode()
    kept = tmp_path / "s" / "voltaire" / "models" / "m.gguf"
    assert kept.read_bytes() == content and kept.parent.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in (tmp_path / "s").iterdir()] == ["voltaire"]


@pytest.mark.parametrize(
    ("model", "sentence"),
    [("~/none.gguf", "There is no file /"), ("nonesuch", "no profile called nonesuch")],
)
async def test_a_model_that_is_not_there_is_told(tmp_path: Path, model: str, sentence: str) -> None:
    async with demo(tmp_path, "--ask", "hi", "--model", model) as process:
        _, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert (process.returncode, sentence in err.decode()) == (2, True), err.decode()


async def test_the_demo_names_the_models_that_lie_here(tmp_path: Path) -> None:
    model = make_chain(tmp_path / ".cache" / "llama.cpp" / "mine.gguf", "Hello." * 40_000)
    env = {"HOME": str(tmp_path)}
    async with demo(tmp_path / "s", "--port", "0", env=env) as process:
        assert process.stdout
        lines = [await asyncio.wait_for(process.stdout.readline(), SECONDS) for _ in range(3)]
    assert f"  make demo MODEL={model}  (" in lines[2].decode()


@pytest.mark.slow
async def test_what_is_beyond_pocket_is_declined_by_it(tmp_path: Path) -> None:
    async with demo(tmp_path, "--ask", "Write a poem about the sea.") as process:
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode == 0, err.decode()
    assert "demonstration model" in out.decode().splitlines()[-1]


@pytest.mark.slow
async def test_where_no_model_lies_one_is_named_with_its_size(tmp_path: Path) -> None:
    async with demo(tmp_path / "s", "--port", "0", env={"HOME": str(tmp_path)}) as process:
        assert process.stdout
        lines = [await asyncio.wait_for(process.stdout.readline(), SECONDS) for _ in range(3)]
    assert (
        lines[2].decode() == "  make demo MODEL=qwen2.5-coder-1.5b  (1.0 GiB to download, once)\n"
    )


@pytest.mark.slow
async def test_the_words_are_words_to_everybody(tmp_path: Path) -> None:
    """They begin with a dash, hold quotes and shell; nothing runs them."""
    trap = Path("/tmp/voltaire-trap")  # the same in each run: Pocket's answer depends on it
    text = f"-n $(touch {trap}) `touch {trap}` \"hello\" 'you'; touch {trap}"
    async with demo(tmp_path / "s", f"--ask={text}") as process:
        await asyncio.wait_for(process.communicate(), SECONDS)
    assert process.returncode in (0, 1) and not trap.exists()


@pytest.mark.browser
async def test_the_chat_page_shows_the_answer_growing(tmp_path: Path) -> None:
    from playwright.async_api import expect

    from fakes.chromium import chromium

    async with demo(tmp_path, "--port", "0") as process, chromium() as browser:
        assert process.stdout
        line = (await asyncio.wait_for(process.stdout.readline(), SECONDS)).decode()
        url = re.search(r"http://127\.0\.0\.1:\d+/\?key=\S+", line)
        assert url, line
        page = await browser.new_page(viewport={"width": 390, "height": 844})
        page.set_default_timeout(SECONDS * 1000)
        await page.goto(url[0])
        await page.get_by_label("Message", exact=True).fill(QUESTION)
        await page.keyboard.press("Enter")
        answer = page.get_by_role("article").filter(has_text=re.compile(r"\d+(\.\d+)?\s?G"))
        await expect(answer.last).to_be_visible(timeout=SECONDS * 1000)
        await page.screenshot(path=tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000
