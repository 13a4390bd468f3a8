"""The wizard as a person walks it, at a keyboard: with and without network, token and card, to the end or to Ctrl-C."""

import asyncio
import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from backend.build.build import VERSION
from backend.build.release import RELEASES_VARIABLE
from bot.cli.setup import READY_TO_RUN
from fakes import gguf_maker
from fakes.hub import Hub
from fakes.localgram import Localgram
from fakes.patience import SECONDS
from fakes.pseudo_terminal import CTRL_C, CTRL_D, PseudoTerminal, typing_at
from fakes.release_server import ReleaseServer
from fakes.toolkits import program
from tests.bot.test_setup import TINY, builder, configured, gram, v100

__all__ = ["gram", "v100"]  # fixtures

NOWHERE = "http://127.0.0.1:9"
ELSEWHERE = {"HF_ENDPOINT": NOWHERE, RELEASES_VARIABLE: f"{NOWHERE}/releases"}
APP, TOKEN, ZONE, MODEL = "Messaging app.*:", "Bot token.*:", "Time zone.*:", "Model profile.*:"
ACCOUNT = "Matrix account.*:"
SEARCH = "Web search.*or later.*:"
GET, BUILD = "get, build, later.*:", r"\nbuild, later.*:"


def wizard(home: Path, *words: str, **more: str) -> AbstractAsyncContextManager[PseudoTerminal]:
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(home / "c"),
        "XDG_STATE_HOME": str(home / "s"),
    }
    environment |= {"HF_HOME": str(home / "hf"), **ELSEWHERE, **more}
    config = home / "c" / "voltaire" / "config.toml"
    return typing_at(["--config", config, "setup", "--no-units", *words], environment)


async def test_without_network_token_and_card(tmp_path: Path) -> None:
    async with wizard(tmp_path) as terminal:
        await terminal.answer((APP, "signal"))
        await terminal.until("'signal' is none of them")
        await terminal.answer((APP, ""), (TOKEN, ""), (TOKEN, "hello"))
        await terminal.until("/newbot to\n@BotFather")
        await terminal.answer((TOKEN, "later"), (ZONE, "Mars"), (ZONE, "UTC"))
        await terminal.until("A small real model.*qwen2.5-coder-1.5b .1.0 GiB")
        await terminal.answer(
            (MODEL, "pockett"), (MODEL, "qwen2.5-coder-1.5b"), ("Download.*:", "yes")
        )
        await terminal.until(r"could not be reached or broke off \(Connection refused\)")
        await terminal.answer(("Download.*no.:", "back"))
        await terminal.until("no profile called back")
        await terminal.answer(("Download.*:", "nope.gguf"))
        await terminal.until("There is no file nope.gguf")
        await terminal.answer(("Download.*:", "qwen2.5-1.5b"))
        await terminal.answer(("Download.*:", "qwen2.5-coder-1.5b"), ("Download.*:", ""))
        await terminal.until("voltaire model pull qwen2.5-coder-1.5b")
        await terminal.until(
            "embedded one, without a card"
        )  # no question about a server for a card
        await terminal.answer((SEARCH, "bing"))
        await terminal.until("'bing' is none of")
        await terminal.answer((SEARCH, "later"))
        await terminal.until(
            "voltaire chat[^$]*voltaire setup telegram[^$]*Start it with: voltaire run"
        )
        assert await terminal.ended() == 0
    assert configured(tmp_path)["backend"]["profile"] == "qwen2.5-coder-1.5b"


@pytest.mark.slow
async def test_a_missing_model_can_be_replaced_by_the_one_that_is_here(tmp_path: Path) -> None:
    async with wizard(tmp_path) as terminal:
        await terminal.answer((APP, "n"), (ZONE, ""), (MODEL, "nope.gguf"))
        await terminal.until("There is no file nope.gguf")
        await terminal.answer(
            (MODEL, "qwen2.5-coder-1.5b"), ("Download.*:", "pocket"), (SEARCH, "no")
        )
        await terminal.until("voltaire chat")
        assert await terminal.ended() == 0
    assert configured(tmp_path)["backend"]["profile"] == "pocket"


async def test_each_question_can_be_put_off(tmp_path: Path) -> None:
    async with wizard(tmp_path) as terminal:
        await terminal.answer((APP, "matrix"), (ACCOUNT, "later"), (ZONE, "n"), (MODEL, "later"))
        await terminal.answer((SEARCH, "brave"), ("Its key.*:", "later"))
        await terminal.until("voltaire chat[^$]*voltaire setup matrix[^$]*voltaire setup search")
        assert await terminal.ended() == 0
    written = configured(tmp_path)
    assert set(written) == {"agent", "backend", "state"} and set(written["agent"]) == {"timezone"}
    assert written["backend"]["profile"] == "pocket"


@pytest.mark.slow
async def test_a_server_of_ones_own_is_named_where_telegram_is_out_of_reach(
    gram: Localgram, tmp_path: Path
) -> None:
    async with wizard(tmp_path, "--base-url", NOWHERE, "--token", "1000001:abc") as terminal:
        await terminal.until(r"cannot be reached \(Connection refused\)")
        await terminal.answer(("again, later, or .*:", gram.url.removeprefix("http://")))
        await terminal.answer((ZONE, ""), (MODEL, ""), (SEARCH, ""))
        await terminal.until("starting the bot, ")
        code = (await terminal.until(r"Or write to @voltaire_bot: /start (\S+)"))[1]
        await terminal.until("waiting for you to press Start, ")
        owner = gram.user("Ada")
        await owner.send(f"/start {code}")
        await owner.next_message(where=lambda m: m.text == READY_TO_RUN, seconds=SECONDS)
        await terminal.until("not running as a service")
        assert await terminal.ended() == 0
    assert configured(tmp_path)["telegram"]["base_url"] == gram.url


async def test_with_network_and_token(gram: Localgram, tmp_path: Path) -> None:
    async with wizard(tmp_path, "--base-url", gram.url) as terminal:
        await terminal.answer((TOKEN, "1000002:wrong"))
        await terminal.until("refuses the token")
        await terminal.answer((TOKEN, "1000001:abc"), (ZONE, ""), (MODEL, ""), (SEARCH, "searxng"))
        await terminal.until("starting the bot, ")
        code = (await terminal.until(r"t\.me/voltaire_bot\?start=(\S+)"))[1]
        owner = gram.user("Ada")
        await owner.send(f"/start {code}")
        await terminal.until("The first message is delivered")
        assert await terminal.ended() == 0
        # Nothing that ran before has to be restarted for the search.
        unwanted = ("abc", "1000002:wrong", "setup --upgrade")
        assert not any(word in terminal.output for word in unwanted)
    assert configured(tmp_path)["telegram"]["base_url"] == gram.url


@pytest.mark.slow
async def test_with_a_card_and_without_a_network(tmp_path: Path, v100: dict[str, str]) -> None:
    async with wizard(tmp_path, **v100) as terminal:
        await terminal.answer(
            (APP, "later"), (ZONE, ""), (MODEL, "qwen2.5-3b"), ("Download.*:", "no")
        )
        await terminal.answer((GET, ""))
        await terminal.until(r"cannot be reached \(Connect call failed")
        await terminal.answer((BUILD, "no"))
        await terminal.until("voltaire server get, or voltaire server build")
        await terminal.answer((SEARCH, ""))
        await terminal.until("voltaire chat")
        assert await terminal.ended() == 0
    assert configured(tmp_path)["backend"] == {
        "profile": "qwen2.5-3b",
        "server": "auto",
        "socket": configured(tmp_path)["backend"]["socket"],
    }


async def test_with_a_card_and_a_network(tmp_path: Path, v100: dict[str, str]) -> None:
    folder = tmp_path / "c" / "voltaire" / "profiles"
    folder.mkdir(parents=True)
    (folder / "tiny.toml").write_text(TINY.replace("gpu = false\n", ""))
    content = gguf_maker.make(tmp_path / "tiny.gguf").read_bytes()
    async with Hub(content).running() as hub, ReleaseServer().running() as releases:
        more = {**v100, "HF_ENDPOINT": hub.url, RELEASES_VARIABLE: releases.url}
        async with wizard(tmp_path, **more) as terminal:
            await terminal.answer((APP, "later"), (ZONE, ""), (MODEL, "tiny"), ("Download.*:", "y"))
            await terminal.answer((GET, "get"), (SEARCH, ""))
            await terminal.until("compiled in the background")
            await terminal.until("voltaire chat")
            assert await terminal.ended() == 0
    assert (tmp_path / "s" / "voltaire" / "models" / "tiny.gguf").read_bytes() == content


@pytest.mark.parametrize(
    ("question", "key"), [pytest.param(TOKEN, CTRL_D, marks=pytest.mark.slow), (MODEL, CTRL_C)]
)
async def test_an_interrupted_wizard_says_where_one_stands_and_goes_on(
    tmp_path: Path, question: str, key: str
) -> None:
    answers = {
        APP: (APP, "telegram"), TOKEN: (TOKEN, "later"), ZONE: (ZONE, "Asia/Tokyo"), MODEL: (MODEL, ""),
    }  # fmt: skip
    before = [*answers.values()][: [*answers].index(question)]
    async with wizard(tmp_path) as terminal:
        await terminal.answer(*before, (question, key))
        kept = "Asia/Tokyo" in [answer for _, answer in before]
        await terminal.until("is in .*config.toml" if kept else "Nothing was changed")
        await terminal.until("voltaire setup[^$]*voltaire chat")
        assert await terminal.ended() == 130
    async with wizard(tmp_path) as terminal:
        await terminal.answer((APP, "later"))
        await terminal.until(r"\[Asia/Tokyo\]" if kept else ZONE)


async def test_a_wizard_that_is_told_to_end_does_so_at_a_question(tmp_path: Path) -> None:
    async with wizard(tmp_path) as terminal:
        await terminal.answer((APP, "telegram"))
        await terminal.asked(TOKEN)
        terminal.process.terminate()
        await terminal.until("Nothing was changed")
        assert await terminal.ended() == 130


async def test_an_interrupted_pairing_says_where_one_stands(
    gram: Localgram, tmp_path: Path
) -> None:
    async with wizard(tmp_path, "--base-url", gram.url, "--token", "1000001:abc") as terminal:
        await terminal.answer((ZONE, ""), (MODEL, ""), (SEARCH, ""))
        await terminal.until(r"start=\S+")
        terminal.type(CTRL_C)
        await terminal.until("is in .*config.toml.*voltaire setup")
        assert await terminal.ended() == 130


async def test_a_download_shows_that_it_goes_on_and_can_be_interrupted(tmp_path: Path) -> None:
    """The process waited for the thread that downloads, until the file was whole."""
    folder = tmp_path / "c" / "voltaire" / "profiles"
    folder.mkdir(parents=True)
    (folder / "tiny.toml").write_text(TINY)
    content = gguf_maker.make(tmp_path / "tiny.gguf").read_bytes()
    async with Hub(content).running() as hub:
        hub.held = asyncio.Event()
        async with wizard(tmp_path, HF_ENDPOINT=hub.url) as terminal:
            await terminal.answer((APP, "later"), (ZONE, ""), (MODEL, "tiny"), ("Download.*:", ""))
            for _ in range(2):
                await terminal.until(r"downloading, .* MB, \d+ s")
            terminal.type(CTRL_C)
            async with asyncio.timeout(SECONDS):
                await terminal.until("Stopped.*voltaire setup")
                assert await terminal.ended() == 130
        hub.held.set()


@pytest.mark.slow
async def test_a_compilation_shows_that_it_goes_on(tmp_path: Path) -> None:
    path = builder(tmp_path / "tools")
    sources = tmp_path / "s/voltaire/servers" / f"source-{VERSION}" / "x/tools/server"
    sources.mkdir(parents=True)
    (sources / "CMakeLists.txt").touch()
    os.mkfifo(tmp_path / "go")
    program(tmp_path / "tools" / "cmake", f"read line < {tmp_path / 'go'}")
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "s"), "PATH": path}
    words = ["--config", os.devnull, "server", "build", "--cpu"]
    async with typing_at(words, environment) as terminal:
        await terminal.until("CPU.*about .* minutes")
        for _ in range(2):
            await terminal.until(r"working, \d+ s")
        (tmp_path / "go").write_text("go\n")
        await terminal.until("used from the backend's next start on")
        assert await terminal.ended() == 0
