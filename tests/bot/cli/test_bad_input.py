"""Bad input gets one plain sentence and the right exit code, and nothing is lost."""

import asyncio
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from fakes.command_line import (
    folders,
    own_environment,
    start_voltaire,
    voltaire,
    voltaire_beside,
)
from fakes.localgram import Localgram
from fakes.patience import SECONDS, soon
from fakes.words import saying


def one_sentence(text: str) -> str:
    lines = [
        line
        for line in text.splitlines()
        if not line.startswith(("WARNING", "INFO", "ERROR", "· "))
    ]
    assert len(lines) == 1 and "Traceback" not in text, text
    return lines[0]


def test_usage_and_configuration_are_exit_2(tmp_path: Path) -> None:
    for words, config, sentence in (
        (["ask", "hi"], "[agent]\nmax_tool_cals = 3", "Unknown key agent.max_tool_cals"),
        (["ask", "hi"], "[telegram", "is not valid TOML"),
        (["ask", ""], "", "the text is empty"),
        (["tool", "bash", "{"], "", "The arguments are not JSON"),
        (["tool", "bash", "[1]"], "", "must be a JSON object"),
        (["sandbox"], "", "Give a command after --"),
        (["tool", "bash", "{}", "--chat", " "], "", "A chat needs a name."),
        (["tool", "bash", "{}", "--chat", "c\udcff"], "", "is not UTF-8"),
        (
            ["model", "fit", "gema"],
            "",
            "no profile called gema; the nearest are gemma3-4b, gemma3-1b,",
        ),
        (["ask", "hi"], "[agent]\ntools = ['bsh']", "bsh"),
    ):
        code, _, err = voltaire(tmp_path, *words, config=config)
        assert (code, sentence in one_sentence(err)) == (2, True), (words, err)


async def test_an_interrupt_ends_a_question(tmp_path: Path) -> None:
    """It was heard when the question was answered: Return then was taken for a yes."""
    pipe = asyncio.subprocess.PIPE
    process = await start_voltaire(
        *("jobs", "add", "every day at 8 stretch"),
        env={**own_environment(), **folders(tmp_path)},
        stdin=pipe,
        stdout=pipe,
    )
    assert process.stdout
    await asyncio.wait_for(process.stdout.readuntil(b"?"), SECONDS)
    call = Path(f"/proc/{process.pid}/syscall")
    await soon(lambda: call.read_text().split()[1:2] == ["0x0"])  # it reads its standard input
    process.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(process.wait(), SECONDS) == 130


ASKS_INTERRUPTED = """
import click, os, signal, sys
from bot.cli.command import confirmed, runs

async def ask(options):
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))  # before the event loop is asked again
    confirmed("Really?")

click.Command("ask", callback=runs(ask)).main([], obj=object(), standalone_mode=True)
"""


@pytest.mark.parametrize("name", ["SIGINT", pytest.param("SIGTERM", marks=pytest.mark.slow)])
async def test_a_signal_just_before_a_question_ends_it(name: str) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASKS_INTERRUPTED, name, stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        assert process.stdout
        printed = await asyncio.wait_for(process.stdout.read(), SECONDS)
        assert (b"Really?" in printed, await process.wait()) == (False, 1)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def test_a_port_that_cannot_be_is_wrong_usage(tmp_path: Path) -> None:
    code, _, err = voltaire(tmp_path, "demo", "--port", "99999")
    assert (code, err) == (2, saying("99999", "not in the range"))


def test_an_unreadable_configuration_is_told(tmp_path: Path) -> None:
    code, _, err = voltaire(tmp_path, "--config", str(tmp_path), "status")
    assert code == 2 and "directory" in err.lower()
    code, _, err = voltaire(tmp_path, "--config", str(tmp_path / "absent.toml"), "status")
    assert code == 2 and "cannot be read" in one_sentence(err)


def test_an_external_server_that_is_not_there_is_exit_3(tmp_path: Path) -> None:
    config = "[backend]\nkind = 'external'\nurl = 'http://127.0.0.1:9'\nconnect_seconds = 2"
    code, out, err = voltaire(tmp_path, "ask", "hi", config=config)
    assert (code, out) == (3, "") and "127.0.0.1:9" in one_sentence(err)


def test_a_missing_or_damaged_model_is_exit_3(tmp_path: Path) -> None:
    profiles = tmp_path / "x" / "voltaire" / "profiles"
    profiles.mkdir(parents=True)
    (tmp_path / "damaged.gguf").write_bytes(b"GGUF" + b"\0" * 100)
    for name, sentence in (("absent", "absent.gguf"), ("damaged", "The model file is damaged")):
        (profiles / f"{name}.toml").write_text(
            f"title = 'x'\ncontext = 4096\ngpu = false\n[model]\npath = '{tmp_path}/{name}.gguf'\n"
        )
        code, out, err = voltaire(tmp_path, "ask", "hi", config=f"[backend]\nprofile = '{name}'")
        assert (code, out, sentence in one_sentence(err)) == (3, "", True)


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = voltaire(tmp_path, "demo", "--port", str(port))
    assert (code, one_sentence(err)) == (1, saying(f"{port}", "already in use", "--port"))


async def test_a_wrong_token(tmp_path: Path) -> None:
    async with Localgram("1000001:right") as gram:
        config = f"[telegram]\ntoken = '1000002:wrong-one'\nbase_url = '{gram.url}'"
        code, _, err = await voltaire_beside(tmp_path, "bot", config=config)
    assert (code, one_sentence(err)) == (2, saying("token", "@BotFather"))
    assert "wrong-one" not in err


def test_a_tool_that_fails_is_exit_1_and_a_command_passes_its_own(tmp_path: Path) -> None:
    code, out, _ = voltaire(tmp_path, "tool", "read_file", '{"path": "absent.txt"}')
    assert code == 1 and out.startswith("Error: ") and "absent.txt" in out
    code, out, _ = voltaire(tmp_path, "tool", "read_file", "{}")
    assert (code, out) == (1, saying("Error: path", "read_file(path, first?, last?)"))
    code, _, _ = voltaire(tmp_path, "sandbox", "--", "bash", "-c", "exit 42")
    assert code == 42
    code, out, err = voltaire(tmp_path, "sandbox", "--", "nosuch", "-x")
    assert (code, out, err) == (127, "nosuch: command not found\n", "")
    code, out, _ = voltaire(tmp_path, "sandbox", "--", "printf", "%s,", "a b", "--", "$HOME")
    assert (code, out) == (0, "a b,--,$HOME,\n")


def test_a_damaged_database_is_told_and_kept(tmp_path: Path) -> None:
    state = tmp_path / "s" / "voltaire"
    state.mkdir(parents=True, mode=0o700)
    (state / "voltaire.db").write_bytes(b"this is no database at all, but somebody's file\n" * 100)
    before = (state / "voltaire.db").read_bytes()
    code, _, err = voltaire(tmp_path, "jobs", "list")
    assert code == 1 and "voltaire.db" in one_sentence(err)
    assert (state / "voltaire.db").read_bytes() == before
