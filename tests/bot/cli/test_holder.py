"""One process holds the state: the bot, or a command where no bot runs. The other commands are its clients."""

import asyncio
import codecs
import json
import os
import shutil
import signal
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot.cli import connect, holder_client
from bot.cli.command import Failed
from bot.cli.holder_client import LOCK, Patience, change, holder_socket, holding_state
from bot.cli.setup import settings_at
from bot.setup import telegram
from fakes import mcp_server
from fakes.bot_process import Process
from fakes.bot_running import TOKEN
from fakes.command_line import start_voltaire
from fakes.localgram import Localgram, Person
from fakes.model_scripted import ModelServer, Reply, calls, says
from fakes.patience import SECONDS, soon

PIPE = asyncio.subprocess.PIPE


@dataclass
class Typed:
    """A command that runs, and what it has printed."""

    process: asyncio.subprocess.Process
    out: str = ""
    err: str = ""
    reading: list[asyncio.Task[None]] = field(default_factory=list)

    def says(self, text: str) -> Any:
        return soon(lambda: text in self.out + self.err)

    async def ended(self) -> int:
        async with asyncio.timeout(SECONDS):
            await asyncio.gather(*self.reading)
            return await self.process.wait()

    def type(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n".encode())


@dataclass
class House:
    """A state folder, a model's server that a test holds up, and a bot that may run."""

    folder: Path
    model: ModelServer
    gram: Localgram
    owner: Person
    bot: Process
    let_go: asyncio.Event
    asked: asyncio.Event
    started: list[Typed] = field(default_factory=list)

    async def start(self, *words: str) -> Typed:
        process = await start_voltaire(
            *words, env=self.bot._environment, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        typed = Typed(process)
        self.started.append(typed)

        async def read(stream: asyncio.StreamReader | None, name: str) -> None:
            assert stream
            decoder = codecs.getincrementaldecoder("utf-8")()  # a piece may end within a character
            while piece := await stream.read(4096):
                setattr(typed, name, getattr(typed, name) + decoder.decode(piece))

        typed.reading = [
            asyncio.create_task(read(process.stdout, "out")),
            asyncio.create_task(read(process.stderr, "err")),
        ]
        return typed

    async def run(self, *words: str) -> tuple[int, str, str]:
        typed = await self.start(*words)
        assert typed.process.stdin
        typed.process.stdin.close()
        return await typed.ended(), typed.out, typed.err

    async def listening(self) -> None:
        """Return once somebody serves the state."""

        def served() -> bool:
            """A process that was killed leaves its socket behind."""
            with socket.socket(socket.AF_UNIX) as caller:
                return caller.connect_ex(str(holder_socket(self.folder))) == 0

        await soon(served)

    def rows(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.bot.database)) as database:
            return database.execute(sql).fetchall()


def words_of(request: dict[str, Any]) -> str:
    return str([m["content"] for m in request["messages"] if m["role"] == "user"][-1])


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    let_go, asked = asyncio.Event(), asyncio.Event()

    async def held() -> None:
        asked.set()
        await let_go.wait()

    def script(request: dict[str, Any]) -> Reply:
        words = words_of(request)
        if "slow" in words:
            return says("At last.", hold=held)
        if "daily" in words and request["messages"][-1]["role"] == "user":
            return calls("schedule", when="every day at 8", task="remind me to drink")
        return says("Forty-two.")

    async with ModelServer(script=script) as model, Localgram(TOKEN) as gram:
        owner = gram.user("Tim", id=111, started=True)
        bot = Process(gram, tmp_path, model.url, owner.id)
        house = House(tmp_path, model, gram, owner, bot, let_go, asked)
        yield house
        let_go.set()
        for typed in house.started:
            if typed.process.returncode is None:
                typed.process.kill()
            await typed.ended()


async def test_commands_that_start_together_all_get_their_answers(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The backend of the command that ends first is replaced by the next one's, after 5 s of its own accord.
    monkeypatch.setattr(connect, "failover", partial(connect.failover, seconds=0.5))
    found = await asyncio.gather(*(house.run("ask", f"question {n}") for n in range(3)))
    assert [(code, out) for code, out, _ in found] == [(0, "Forty-two.\n")] * 3, found
    assert len(house.rows("SELECT 1 FROM turns WHERE state = 'done' AND reason = 'done'")) == 3


async def test_beside_the_bot_a_command_is_its_client(house: House) -> None:
    async with house.bot.running():
        await house.listening()
        with pytest.raises(BlockingIOError), holding_state(house.folder):
            pass
        code, out, err = await house.run("ask", "--json", "six times seven")
        assert code == 0, err
        events = [json.loads(line) for line in out.splitlines()]
        assert [events[0]["type"], events[-1]["type"]] == ["turn.started", "turn.finished"]
        assert events[-1]["text"] == "Forty-two."
        asking = await house.start("ask", "a slow one")
        await house.asked.wait()
        assert await house.run("freeze") == (
            0, "Frozen: 1 turns stopped, 0 standing permissions ended. `voltaire thaw` ends it.\n", ""
        )  # fmt: skip
        assert await asking.ended() == 130
        assert (await house.run("thaw"))[0] == 0
        code, out, err = await house.run("tool", "bash", '{"command": "echo $((6 * 7))"}')
        assert (code, out) == (0, "42\n"), err


def opens_the_state(command: Typed) -> bool:
    for held in Path(f"/proc/{command.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if "voltaire.db" in os.readlink(held):
                return True
    return False


async def test_beside_the_bot_a_server_of_tools_is_started_by_it(house: House) -> None:
    """Also one that was added since the bot began."""
    program = house.folder / "mcp" / "tea" / "program"
    program.mkdir(parents=True)
    shutil.copy(mcp_server.__file__, program / "server.py")
    async with house.bot.running():
        await house.listening()
        given = ("mcp", "add", "tea", "--", "python3", "/program/server.py")
        assert (await house.run(*given))[0] == 0
        test = await house.start("mcp", "test", "tea")
        await test.says("as they are now?")
        assert not opens_the_state(test)
        test.type("y")
        assert (await test.ended(), test.err) == (0, "")
        assert "add a b [unit]" in test.out
        assert house.rows("SELECT 1 FROM facts WHERE key = 'mcp:tea'")


async def test_beside_the_bot_a_device_is_verified_by_it(house: House) -> None:
    async with house.bot.running():
        await house.listening()
        house.bot.configure(MATRIX__HOMESERVER="http://127.0.0.1:9", MATRIX__USER="@v:x")
        verify = await house.start("matrix", "verify")
        place = "FROM facts WHERE key = 'matrix-verification'"
        await soon(lambda: house.rows(f"SELECT 1 {place}"))
        assert not opens_the_state(verify)
        talk = json.loads(house.rows(f"SELECT value {place}")[0][0])
        told = json.dumps([talk[0], "failed", "", "the app has ended it"])
        with closing(sqlite3.connect(house.bot.database)) as database:  # as the bot writes it
            database.execute(
                "UPDATE facts SET value = ? WHERE key = 'matrix-verification'", (told,)
            )
            database.commit()
        assert await verify.ended() == 1 and "the app has ended it" in verify.err
        assert not house.rows(f"SELECT 1 {place}")


async def test_nobody_can_be_asked_behind_ask_and_whoever_is_at_chat_can(house: House) -> None:
    async with house.bot.running():
        await house.listening()
        code, out, err = await house.run("ask", "--json", "drink daily")
        events = [json.loads(line) for line in out.splitlines()]
        decided = [e["decision"] for e in events if e["type"] == "approval.asked"]
        assert (code, decided) == (0, ["denied"]), err
        assert house.rows("SELECT 1 FROM approvals") == [], "nobody was asked"
        chat = await house.start("chat")
        chat.type("drink daily")
        await chat.says("Allow once")
        chat.type("1")
        await chat.says("Forty-two.")
        assert house.rows("SELECT state, decided_by FROM approvals") == [("once", "terminal")]
        assert house.rows("SELECT kind, state FROM jobs") == [("remind", "active")]


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
async def test_a_client_that_ends_ends_its_turn(house: House, by: signal.Signals) -> None:
    async with house.bot.running():
        await house.listening()
        asking = await house.start("ask", "a slow one")
        await house.asked.wait()
        asking.process.send_signal(by)
        await soon(lambda: house.rows("SELECT 1 FROM turns WHERE reason = 'cancelled'"))
        assert (await house.run("ask", "and now?"))[1] == "Forty-two.\n"


async def test_a_bot_that_is_killed_loses_no_question(house: House) -> None:
    """The command continues its turn itself, or in the bot that was started again."""
    async with house.bot.running():
        await house.listening()
        asking = await house.start("ask", "a slow one")
        await house.asked.wait()
        house.asked.clear()
        await house.bot.kill()
    await house.asked.wait()
    house.let_go.set()
    assert (await asking.ended(), asking.out.splitlines()[-1]) == (0, "At last."), asking.err
    assert len(house.rows("SELECT 1 FROM turns")) == 1


async def test_a_bot_that_starts_takes_the_state_from_a_chat_which_goes_on(house: House) -> None:
    chat = await house.start("chat")
    chat.type("hello")
    await chat.says("Forty-two.")
    assert (house.folder / LOCK).read_text() == str(chat.process.pid)
    chat.type("a slow one")
    await house.asked.wait()
    house.asked.clear()
    async with house.bot.running():
        await house.asked.wait()
        house.let_go.set()
        await chat.says("At last.")
        assert (house.folder / LOCK).read_text() == str(house.bot.pid)
        assert await house.bot.row("SELECT count(*) FROM turns") == 2
    chat.out = ""
    chat.type("and without it?")
    await chat.says("Forty-two.")
    assert chat.process.stdin
    chat.process.stdin.close()
    assert await chat.ended() == 0, chat.err


async def test_a_second_bot_on_the_state_says_so(house: House) -> None:
    async with house.bot.running():
        await house.listening()
        code, _, err = await house.run("bot")
        assert (code, f"process {house.bot.pid}" in err) == (1, True)


async def test_ctrl_c_in_chat_stops_the_answer_alone(house: House) -> None:
    async with house.bot.running():
        await house.listening()
        chat = await house.start("chat")
        chat.type("a slow one")
        await house.asked.wait()
        os.kill(chat.process.pid, signal.SIGINT)
        await chat.says("Stopped.")
        chat.type("hello")
        await chat.says("Forty-two.")
        os.kill(chat.process.pid, signal.SIGINT)
        assert await chat.ended() == 130


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside-the-bot"])
async def test_a_reminder_comes_into_the_terminal(house: House, beside: bool) -> None:
    @asynccontextmanager
    async def bot() -> AsyncIterator[None]:
        if not beside:
            yield
            return
        async with house.bot.running():
            await house.listening()
            yield

    async with bot():
        chat = await house.start("chat")
        chat.type("hello")
        await chat.says("Forty-two.")
        await house.run("jobs", "add", "--yes", "remind me to drink in 2 hours")
        assert (await house.run("jobs", "run", "1"))[0] == 0
        await chat.says("⏰ drink")
        await soon(lambda: house.rows("SELECT 1 FROM outbox WHERE state = 'delivered'"))
        assert house.rows("SELECT state FROM occurrences") == [("done",)]


async def test_what_a_job_posted_meanwhile_waits_for_the_terminal(house: House) -> None:
    async with house.bot.running():
        await house.listening()
        await house.run("jobs", "add", "--yes", "remind me to drink in 2 hours")
        assert (await house.run("jobs", "run", "1"))[0] == 0
        await soon(lambda: house.rows("SELECT 1 FROM outbox WHERE chat = 'cli'"))
        chat = await house.start("chat")
        await chat.says("⏰ drink")


async def test_a_job_of_a_chat_that_nobody_has_is_refused(house: House) -> None:
    code, out, err = await house.run(
        "jobs", "add", "--yes", "--chat", "tg:999", "remind me to drink in 2 hours"
    )
    assert (code, out, "tg:999" in err) == (1, "", True)


async def test_a_job_whose_time_passed_is_shown_as_overdue(house: House) -> None:
    await house.run("jobs", "add", "--yes", "remind me to drink in 2 hours")
    with closing(sqlite3.connect(house.bot.database)) as database, database:
        database.execute("UPDATE jobs SET next_at = next_at - 10800")
    _, out, _ = await house.run("jobs", "list")
    assert "overdue" in out
    [job] = json.loads((await house.run("jobs", "list", "--json"))[1])
    assert job["overdue"] is True


async def test_the_wizard_has_the_bot_make_the_link_and_send_the_first_message(
    house: House,
) -> None:
    act = partial(change, settings_at(house.folder))
    house.bot.configure(TELEGRAM__OWNERS="[]")
    async with house.bot.running():
        await house.listening()
        links: list[str] = []
        pairing = asyncio.create_task(telegram.pair(act, "voltaire_bot", links.append))
        await soon(lambda: links)
        await house.owner.send(f"/start {links[0].rpartition('=')[2]}")
        assert await pairing == [house.owner.id] == await act("owners")
        await telegram.first_message(act, [f"tg:{house.owner.id}"], "Ready.")
        assert house.rows(
            "SELECT 1 FROM outbox WHERE state = 'delivered' AND payload LIKE '%Ready%'"
        )


async def test_a_bot_that_starts_in_this_process_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holder_client, "PATIENCE_SECONDS", -1.0)
    with holding_state(tmp_path):
        await Patience(tmp_path).wait()
        (tmp_path / LOCK).write_text("1")
        with pytest.raises(Failed, match="Process 1 holds the state"):
            await Patience(tmp_path).wait()
