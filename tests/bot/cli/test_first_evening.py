"""What somebody meets who has just installed it: each command says what it needs, and what comes next."""

import asyncio
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from agent.approvals import NOBODY
from agent.events import (
    ModelFinished,
    ModelProgress,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    TurnFinished,
)
from agent.schedule.planner import NOTHING_RUNS
from agent.turn.texts import FROZEN, NEEDS_TOOL
from backend.client import BackendClient
from backend.protocol import ServerState
from bot.cli.ask import CLEAR, TextPrinter
from bot.cli.connect import telling_what_keeps
from bot.cli.logs import overlap
from bot.cli.progress import STARTING, reading_program, sign_of_life
from bot.installed_program import ROOT
from fakes.command_line import folders, own_environment, start_voltaire
from fakes.command_line import voltaire_beside as voltaire
from fakes.model_scripted import ModelServer, says
from fakes.patience import SECONDS
from fakes.pseudo_terminal import typing_at


async def test_a_command_that_does_not_exist_gets_the_nearest_one(tmp_path: Path) -> None:
    for words, nearest in ((["modl"], "'model'"), (["jobs", "ad"], "'add'")):
        code, _, err = await voltaire(tmp_path, *words)
        assert (code, nearest in err) == (2, True), err


async def test_the_page_before_a_first_message_says_what_to_do(tmp_path: Path) -> None:
    code, out, err = await voltaire(tmp_path, "page")
    assert (code, out, "voltaire chat" in err) == (1, "", True)


async def test_config_names_the_file_and_what_differs(tmp_path: Path) -> None:
    config = '[telegram]\ntoken = "123:abc"\n[agent]\nmax_tool_calls = 24\nturn_seconds = 700\n'
    config += f'[state]\ndir = "{tmp_path}/d"\n'
    code, out, err = await voltaire(tmp_path, "config", config=config)
    assert (code, err) == (0, "")
    first, *lines = out.splitlines()
    assert first == str(tmp_path / "c.toml")
    assert "agent.max_tool_calls = 24  (the default)" in lines
    assert any(line.startswith("agent.turn_seconds = 700  (default: ") for line in lines), lines
    assert "abc" not in out
    assert f'state.dir = "{tmp_path}/d"  (default: "{tmp_path}/s/voltaire")' in lines, lines
    (tmp_path / "token").write_text("123:abc")
    config = f'[telegram]\ntoken_file = "{tmp_path}/token"\n'
    code, out, err = await voltaire(tmp_path, "config", config=config)
    assert (code, out.count("telegram.token"), err) == (0, 1, ""), "the token itself is not set"


async def test_logs_without_anything_that_runs(tmp_path: Path) -> None:
    code, out, err = await voltaire(tmp_path, "logs")
    assert (code, out, "Nothing runs" in err) == (3, "", True)


def test_lines_that_were_shown_are_not_shown_again() -> None:
    assert [overlap(a, b) for a, b in (([], ["1"]), (["1", "2"], ["2", "3"]), (["1"], ["2"]))] == [
        0, 1, 0
    ]  # fmt: skip


async def test_a_frozen_answer_is_printed_once_and_the_ledger_has_the_question(
    tmp_path: Path,
) -> None:
    async with ModelServer(says("Forty-two.")) as server:
        config = f'[backend]\nkind = "external"\nurl = "{server.url}"\n'
        assert (await voltaire(tmp_path, "freeze", config=config))[0] == 0
        code, out, err = await voltaire(tmp_path, "ask", "six times seven", config=config)
        assert (code, out.count("Forty-two."), len(out.splitlines()) > 1) == (0, 1, True), err
        _, out, _ = await voltaire(tmp_path, "audit", "--json", config=config)
    messages = [row for row in json.loads(out) if row["kind"] == "message"]
    assert [(row["chat"], row["facts"]["by"]) for row in messages] == [("cli", "terminal")]


@pytest.mark.parametrize(("level", "how"), [("1", "make demo PORT="), ("", "--port ")])
async def test_a_taken_port_names_the_option_of_the_command_that_was_given(
    tmp_path: Path, level: str, how: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = await start_voltaire(
            "demo", "--port", str(port),
            env={**os.environ, "MAKELEVEL": level}, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, err = await asyncio.wait_for(process.communicate(), SECONDS)
    assert (process.returncode, how in err.decode()) == (1, True), err
    assert f"Port {port} cannot be used: Address already in use." in err.decode()


def own_state(folder: Path) -> str:
    """A configuration: without one, root's wizard sets the machine up."""
    return f'[state]\ndir = "{folder / "state"}"\n'


def wizard(*words: str) -> list[str]:
    return ["setup", "--no-units", "--profile", "pocket", "--server", "auto", *words]


async def test_without_a_token_the_wizard_ends_and_the_terminal_works(tmp_path: Path) -> None:
    code, out, err = await voltaire(tmp_path, *wizard("--yes"), config=own_state(tmp_path))
    assert (code, "voltaire chat" in out, "setup telegram" in out) == (0, True, True), err
    command = str(Path(sys.executable).with_name("voltaire"))
    assert (command in out) is (shutil.which("voltaire") is None), "where it is, if not on the PATH"


@pytest.mark.parametrize("app", [["telegram"], []])
async def test_a_token_can_be_put_off_and_what_is_none_is_explained_without_a_network(
    tmp_path: Path, app: list[str]
) -> None:
    typed = ["", "hello", "later", "UTC"]
    said = "\n".join([*typed] if app else ["", *typed])
    command = wizard("--base-url", "http://127.0.0.1:9") if app else wizard()
    code, out, err = await voltaire(
        tmp_path, *command, *app, config=own_state(tmp_path), stdin=f"{said}\n".encode()
    )
    assert (code, out.count("@BotFather in Telegram"), "cannot be reached" in out) == (0, 2, False)
    assert "voltaire setup telegram" in out, err


@pytest.mark.parametrize("command", ["run", "bot"])
async def test_without_a_token_the_terminal_is_served(tmp_path: Path, command: str) -> None:
    """`voltaire bot` refused, so that no units could be installed."""
    async with ModelServer(says("Forty-two.")) as server:
        config = f'[backend]\nkind = "external"\nurl = "{server.url}"\n'
        environment = {
            "XDG_STATE_HOME": str(tmp_path / "s"),
            "XDG_CONFIG_HOME": str(tmp_path / "x"),
        }
        (tmp_path / "c.toml").write_text(config)
        systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        systemd.bind(str(tmp_path / "n"))
        process = await start_voltaire(
            "--config", str(tmp_path / "c.toml"), command,
            env={**os.environ, **environment, "NOTIFY_SOCKET": str(tmp_path / "n")}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            assert process.stdout
            line = await asyncio.wait_for(process.stdout.readline(), SECONDS)
            assert b"voltaire chat" in line
            with systemd:
                assert b"READY=1" in systemd.recv(4096, socket.MSG_DONTWAIT)
            assert (await voltaire(tmp_path, "ask", "hi", config=config))[1] == "Forty-two.\n"
            assert server.requests
            code, out, _ = await voltaire(tmp_path, "status", config=config)
            assert "\nbot: runs, in no messaging app\n" in out
            code, _, err = await voltaire(tmp_path, command, config=config)
            assert (code, err) == (1, f"Another bot runs on this state (process {process.pid}).\n")
            assert process.returncode is None
        finally:
            process.terminate()
            assert await asyncio.wait_for(process.wait(), SECONDS) == 0


async def test_chat_greets_names_its_model_and_ends(tmp_path: Path) -> None:
    async with ModelServer(says("Forty-two.")) as server:
        config = f'[backend]\nkind = "external"\nurl = "{server.url}"\n'
        for end in ("/exit", "/quit"):
            said = f"/model\n{end}\nhello\n".encode()
            code, out, err = await voltaire(tmp_path, "chat", config=config, stdin=said)
            assert (code, "/help" in out, "scripted answers" in out) == (0, True, True), out + err
    assert not server.requests, "what follows is not asked"


SENTENCES = ["/home is 98 % full, what can I delete?", "/etc/hosts", "/etc/fstab: read it", "/tmp, /var: which is larger",
             "/help me", "/new ideas for dinner", "/memory is full", "/model is slow, why", "/status.txt is empty",
             "/retry of a download by curl", "//server/share is gone", "/undo button in vim", "/r/python is down"]  # fmt: skip


async def test_a_line_that_begins_with_a_path_is_asked(tmp_path: Path) -> None:
    async with ModelServer(*[says("Forty-two.")] * len(SENTENCES)) as server:
        config = f'[backend]\nkind = "external"\nurl = "{server.url}"\n'
        said = "\n".join([*SENTENCES[:-1], "/hepl", SENTENCES[-1], ""]).encode()
        code, out, err = await voltaire(tmp_path, "chat", config=config, stdin=said)
        assert (code, "There is no /hepl" in out) == (0, True), out + err
        heard = [
            request["messages"][-1]["content"].rpartition("\n")[2] for request in server.requests
        ]
    assert heard == SENTENCES


async def test_a_model_that_is_not_ready_yet_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    class Loading(BackendClient):
        async def ready(self, deadline: float | None = None) -> AsyncGenerator[ServerState]:
            asked.append(deadline)
            yield ServerState(state="loading")
            if len(asked) > 1:  # after what is waited for in silence
                told.set()
            await asyncio.Event().wait()

    told, asked = asyncio.Event(), list[float | None]()
    async with telling_what_keeps(Loading(Path("none")), seconds=0):
        async with asyncio.timeout(SECONDS):
            await told.wait()
    assert "loading" in capsys.readouterr().err


def test_what_the_model_does_unseen_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    printer = TextPrinter()
    told = []
    for event in (
        ModelProgress(1, 3000, 0),
        ModelProgress(3000, 3000, 0),  # and then a tool call, which is not shown
        ThoughtDelta("Hm."),
        ToolCalled("a", "bash", {}),
    ):
        printer.print(event)
        capsys.readouterr()
        for _ in range(2):
            printer._at -= 60
            printer.tell()
        told.append(capsys.readouterr().err)
    doing = ["reading 3,000 tokens", "writing", "thinking", "running bash"]
    assert told == [f"· {each} …\n" for each in doing]
    printer.print(ToolFinished("a", "bash", True, "", 1))
    printer._at -= 60
    printer.tell()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("note", "text", "told"),
    [
        (NOTHING_RUNS, "I will remind you.", f"I will remind you.\n{NOTHING_RUNS}\n"),
        (NOTHING_RUNS, f"Planned. {NOTHING_RUNS}", f"Planned. {NOTHING_RUNS}\n"),
        ("", "I will remind you.", "I will remind you.\n"),
    ],
)
def test_a_reminder_that_nothing_will_run_is_not_promised(
    capsys: pytest.CaptureFixture[str], note: str, text: str, told: str
) -> None:
    printer = TextPrinter()
    printer.print(ToolFinished("a", "schedule", True, f"Planned as job 1: at 9.\n{note}", 1))
    printer.print(TurnFinished(text, "done", 1))
    assert capsys.readouterr().out == told


def test_an_answer_after_a_discarded_one_is_printed_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printer = TextPrinter()
    for event in (
        TextDelta("This is beyond me."),
        finished("stop"),
        TextDelta("All tools are frozen, "),
        finished("length"),
        TextDelta("so I cannot."),
        finished("stop"),
        TurnFinished("❄ Frozen.\n\nAll tools are frozen, so I cannot.", "done", 0),
    ):
        printer.print(event)
    told = "This is beyond me.\nAll tools are frozen, so I cannot.\n❄ Frozen.\n"
    assert capsys.readouterr().out == told


def finished(reason: str) -> ModelFinished:
    return ModelFinished(1, 0, 1, 1, None, None, reason)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a pseudo-terminal: ours, and a program's."""
    ours, theirs = os.openpty()
    yield ours, theirs
    os.close(theirs)
    os.close(ours)


def test_a_sign_of_life_leaves_the_terminal_again(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = terminal
    with open(theirs, "w", closefd=False) as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        printer = TextPrinter(steps_out=True)
        printer._at -= 60
        printer.print(ModelProgress(3000, 3000, 0))
        printer.tell()
        assert "writing, 0 s" in os.read(ours, 1000).decode()
        printer.step("→ bash")
        assert os.read(ours, 1000).decode() == CLEAR


SILENT = (
    '[backend]\nkind = "external"\nurl = "{url}"\n[telegram]\ntoken = "1:a"\nbase_url = "{url}"\n'
)
SILENT += '[agent.mcp.mute]\ncommand = ["/bin/cat"]\n'


@pytest.mark.parametrize(
    ("words", "sign"),
    [
        ("doctor", "checked: "),
        ("eval --easy", "starting the model, "),
        ("model fit qwen2.5-3b", "reading what it needs, "),
        ('tool bash \'{"command": "tail -f /dev/null"}\'', "running, "),
        ("mcp test mute", "starting mute, "),
        ("setup --no-units --yes --token 1:a --base-url {url}", "asking Telegram, "),
    ],
)
async def test_a_command_that_waits_says_so_on_a_terminal(
    tmp_path: Path, terminal: tuple[int, int], words: str, sign: str
) -> None:
    """Model server, Telegram and hub take connections, and are silent. How long it waits is shown, too."""
    ours, theirs = terminal
    mute = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    url = "http://{}:{}".format(*mute.sockets[0].getsockname())
    (tmp_path / "c.toml").write_text(SILENT.format(url=url))
    hub = {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "hf"), "TERM": "xterm"}
    given = [word.replace("{url}", url) for word in shlex.split(words)]
    waits = await start_voltaire(
        "--config",
        tmp_path / "c.toml",
        *given,
        env={**own_environment(), **folders(tmp_path), **hub},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=theirs,
    )
    try:
        seen = ""
        async with asyncio.timeout(SECONDS):
            while not re.search(rf"{sign}[^\r]*[1-9]\d* s", seen):
                if (await asyncio.to_thread(select.select, [ours], [], [], 1.0))[0]:
                    seen += os.read(ours, 1000).decode(errors="replace")
    finally:
        mute.close()
        with suppress(ProcessLookupError):
            waits.terminate()
        await waits.wait()


def test_what_is_printed_beside_a_sign_of_life_goes_where_it_would_go(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = terminal
    monkeypatch.setenv("TERM", "xterm")
    with open(theirs, "w", closefd=False) as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        with sign_of_life("working"):
            click.echo("result")
            click.echo("beside", err=True)
    assert capsys.readouterr().out == "result\n"
    seen = ""
    while "beside" not in seen:
        seen += os.read(ours, 1000).decode()


def test_a_program_that_is_being_read_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with reading_program():
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 1
        signal.raise_signal(signal.SIGALRM)
        signal.raise_signal(signal.SIGALRM)
    assert capsys.readouterr().err == f"{STARTING}.\r\x1b[K"
    with reading_program():
        pass
    assert capsys.readouterr().err == ""
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_what_make_installs_shows_that_it_goes_on(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    script = ROOT / "with-dots.sh"
    work = subprocess.Popen([script, "Installing", "cat"], stdin=subprocess.PIPE, stderr=theirs)
    seen = ""
    while seen.count(".") < 2:
        seen += os.read(ours, 100).decode()
    work.communicate(b"", timeout=SECONDS)
    assert (work.returncode, seen[:11]) == (0, "Installing ")
    quiet = subprocess.run([script, "Installing", "false"], stderr=subprocess.PIPE, check=False)
    assert (quiet.returncode, quiet.stderr) == (1, b"Installing\n"), "no dots where nobody looks"


@pytest.mark.parametrize("part", ["calendar", "mail", "matrix", "mcp", "voice"])
def test_a_part_that_make_adds_shows_that_it_goes_on_and_names_its_page(part: str) -> None:
    make = ["make", "--dry-run", "--old-file=install", part]
    made = subprocess.run(make, cwd=ROOT, text=True, capture_output=True, check=True)
    installs, told = made.stdout.splitlines()
    assert installs.startswith("./with-dots.sh ") and f" -r requirements-{part}.lock" in installs
    (page,) = re.findall(r"docs/\w+\.md", told)
    assert (ROOT / page).is_file()


async def test_pocket_tells_a_reminder_whole_where_nothing_will_run_it(tmp_path: Path) -> None:
    code, out, err = await voltaire(tmp_path, "ask", "in 2 hours remind me to stretch")
    assert (code, NOTHING_RUNS in err) == (0, True), out + err
    planned = rf"Done: Planned as job 1: .*stretch.* \d\d:\d\d\.\n{re.escape(NOTHING_RUNS)}"
    assert re.fullmatch(planned, out.strip()), out
    code, out, err = await voltaire(tmp_path, "ask", "every day at 7 remind me to stretch")
    assert out.strip() == NOBODY, out + err


async def test_pocket_frozen_names_the_call_that_it_takes_and_says_nothing_twice(
    tmp_path: Path,
) -> None:
    await voltaire(tmp_path, "freeze")
    code, out, err = await voltaire(tmp_path, "ask", "how much disk space is free?")
    needs = NEEDS_TOOL.format(call="bash df -h /workspace")
    assert (code, out) == (0, f"{FROZEN}\n\n{needs}\n"), err
    assert "frozen" not in err and "→" not in err


def test_make_install_ends_with_how_to_call_it_and_what_comes_next(tmp_path: Path) -> None:
    """As a user of the machine; what it names is run as it stands."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "bin" / "id").chmod(0o755)
    home = own_environment() | {"HOME": str(tmp_path)}
    env = home | {"PATH": f"{tmp_path}/bin:{home['PATH']}"}
    make = ["make", "--old-file=system", "--old-file=compiled", "install"]
    made = subprocess.run(make, cwd=ROOT, env=env, text=True, capture_output=True, check=True)
    here, after = made.stdout.splitlines()[-2:]
    told = re.fullmatch(r"The command is (\S+); for your PATH: (.*)", here)
    assert told and "/usr/" not in told[2], made.stdout
    subprocess.run(told[2], shell=True, env=env, check=True)
    linked = tmp_path / ".local" / "bin" / "voltaire"
    assert (str(linked.readlink()), os.access(linked, os.X_OK)) == (told[1], True)
    assert "voltaire setup" in after and "voltaire chat" in after


async def test_pocket_calls_nothing_done_that_was_denied(tmp_path: Path) -> None:
    environment = {**own_environment(), **folders(tmp_path)}
    async with typing_at(["chat"], environment) as chat:
        for shown, typed in (("›", "every day at 7 remind me to stretch"), ("Deny", "2")):
            await chat.until(shown)
            chat.type(f"{typed}\n")
        await chat.until("That did not work: denied by the owner")
        chat.type("remind me tomorrow to call mum\n")  # it said the same of this, too
        await chat.until("That did not work: nothing is planned")
        chat.type("/exit\n")
        assert await chat.ended() == 0
    assert "Done" not in chat.output
    assert "(/approve, or voltaire page)" in " ".join(chat.output.split())


async def test_pocket_calls_nothing_done_that_failed(tmp_path: Path) -> None:
    for asked, answer in (
        ("remind me tomorrow to call mum", "That did not work: nothing is planned. At what time?"),
        ("send me notes.txt", "That did not work: files cannot be sent here; voltaire chat and messaging apps take them"),
    ):  # fmt: skip
        code, out, err = await voltaire(tmp_path, "ask", asked)
        assert (code, out.removesuffix("\n").removesuffix(".")) == (0, answer), err


async def test_what_the_demo_denies_is_told_to_a_person(tmp_path: Path) -> None:
    asked = "every day at 7 remind me to stretch"
    code, out, err = await voltaire(tmp_path, "demo", "--ask", asked)
    *_, failed, said = out.splitlines()
    assert (code, failed, said) == (0, "  (failed)", "That did not work: denied by the owner."), err
    assert out.count("denied by the owner") == 2 and "Say so" not in out
