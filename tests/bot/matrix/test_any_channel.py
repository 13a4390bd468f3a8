"""What every messaging app does alike: one suite for Telegram, Matrix and the terminal, each before its
real other end. A new channel is one more entry of CHANNELS."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from rich.console import Console

from agent.leaks import LeakDetector
from agent.plan import PlanStep
from bot.channel import (
    Channel,
    ChannelFileSender,
    MessageRefused,
    OutgoingMessage,
    ToolCallView,
    TurnView,
    send,
)
from bot.localgram import Localgram
from bot.matrix.rooms import RoomKey
from bot.terminal import InputLines, Terminal
from bot.texts import Texts
from fakes.bot_running import OWNER, TOKEN, RunningBot, TelegramScenario
from fakes.homeserver_proxy import HomeserverProxy, homeserver_proxy
from fakes.matrix_person import MatrixPerson, matrix_person
from fakes.matrix_running import MatrixScenario
from fakes.model_scripted import says
from fakes.patience import soon

SECRET = f"sk-{'a1b2c3d4' * 4}"
Fault = Literal["lost", "never", "flood"]
SEND = r"PUT .*/send/m\.room\.encrypted/"


async def at_once(chat: str) -> None:
    """Nothing has to be shown before a file is sent."""


@dataclass
class ChannelUnderTest:
    """`shown` gives the texts that the person at the other end sees now, `files` the names of files.

    Where an agent is behind the app: `say` has the owner write, `break_sends` has the next send of a
    text answered by 429 or its answer lost, or the send itself; `of_stranger` what a stranger who
    writes is told.
    """

    channel: Channel
    chat: str
    shown: Callable[[], list[str]]
    files: Callable[[], list[str]]
    refuses: bool = True  # what must not leave; a terminal is the owner's own
    run: RunningBot[Any] | None = None
    say: Callable[[str], Awaitable[object]] | None = None
    break_sends: Callable[[Fault], object] = lambda fault: None
    of_stranger: Callable[[str], Awaitable[str]] | None = None

    async def soon(self, text: str) -> None:
        await soon(lambda: any(text in each for each in self.shown()))

    def count(self, text: str) -> int:
        return sum(text in each for each in self.shown())


async def telegram(stack: AsyncExitStack, folder: Path, _: Any) -> ChannelUnderTest:
    gram = await stack.enter_async_context(Localgram(TOKEN))
    olga = gram.user("Olga", id=OWNER, started=True)
    leaks = LeakDetector({"key": SECRET})
    scenario = TelegramScenario(gram=gram, folder=folder, owner=olga, leaks=leaks)
    scenario.script = lambda request: says("The answer.")
    run = await stack.enter_async_context(scenario.open())
    await soon(lambda: run.bot.health.last_at)

    def break_sends(fault: Fault) -> None:
        kinds = {"lost": "execute_then_drop", "never": "drop", "flood": "flood"}
        gram.fault("sendMessage", kinds[fault], seconds=1)  # type: ignore[arg-type]

    async def of_stranger(text: str) -> str:
        eve = gram.user("Eve", id=666, started=True)
        return (await eve.ask(text)).text

    def files() -> list[str]:
        return [m.media.file.name for m in olga.messages() if m.media]

    return ChannelUnderTest(
        run.bot.channel,
        f"tg:{OWNER}",
        lambda: [m.text for m in olga.messages() if m.sender.is_bot],
        files,
        run=run,
        say=olga.send,
        break_sends=break_sends,
        of_stranger=of_stranger,
    )


async def terminal(stack: AsyncExitStack, folder: Path, _: Any) -> ChannelUnderTest:
    out = io.StringIO()
    lines = InputLines(io.StringIO(""))
    channel = Terminal(Console(file=out, width=100), lines, folder)
    return ChannelUnderTest(
        channel, "cli", lambda: [out.getvalue()], lambda: [out.getvalue()], refuses=False
    )


def seen_texts(person: MatrixPerson) -> list[str]:
    """The messages that somebody sees now, each as it was last edited."""
    newest = {e.replaces: e.content["m.new_content"]["body"] for e in person.seen if e.replaces}
    plain = [e for e in person.seen if e.type == "m.room.message" and not e.replaces]
    return [newest.get(event.id, event.body) for event in plain if event.sender != person.id]


async def matrix(stack: AsyncExitStack, folder: Path, server: Any) -> ChannelUnderTest:
    await server.answers()
    account, me = await server.account("voltaire"), await server.account("olga")
    olga = await stack.enter_async_context(matrix_person(server.url, me, folder / "olga"))
    proxy: HomeserverProxy = await stack.enter_async_context(homeserver_proxy(server.url))
    leaks = LeakDetector({"key": SECRET})
    home = folder / "bot"
    home.mkdir()
    scenario = MatrixScenario(url=proxy.url, folder=home, account=account, owner=me, leaks=leaks)
    scenario.script = lambda request: says("The answer.")
    run = await stack.enter_async_context(scenario.open())
    room = await olga.room_with(account, encrypted=True)
    await soon(lambda: (known := run.bot.channel.encryption) and room in known.rooms)

    def break_sends(fault: Fault) -> None:
        slow = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too many", "retry_after_ms": 300}
        match fault:
            case "lost":
                proxy.rule(SEND, "lose")
            case "never":
                proxy.rule(SEND, "refuse", body="<html>")
            case "flood":
                proxy.rule(SEND, "refuse", status=429, body=slow)

    async def of_stranger(text: str) -> str:
        """In a room that an owner has let her into."""
        eve = await stack.enter_async_context(
            matrix_person(server.url, await server.account("eve"), folder / "eve")
        )
        shared = await olga.room_with(account, encrypted=False)
        await olga.client.room_invite(shared, eve.id)
        await eve.until(lambda: shared in eve.client.invited_rooms)
        await eve.client.join(shared)
        await olga.client.room_leave(shared)
        await soon(lambda: run.bot.channel.user_of(str(RoomKey(shared))) == eve.id)
        await eve.say(shared, text)
        return (await eve.next(lambda e: e.sender == account and e.final)).body

    def files() -> list[str]:
        return [str(e.content.get("filename")) for e in olga.seen if "filename" in e.content]

    return ChannelUnderTest(
        run.bot.channel,
        str(RoomKey(room)),
        lambda: seen_texts(olga),
        files,
        run=run,
        say=lambda text: olga.say(room, text),
        break_sends=break_sends,
        of_stranger=of_stranger,
    )


CHANNELS = {"telegram": telegram, "matrix": matrix, "terminal": terminal}
TALKING = ["telegram", "matrix"]  # whose turns are answered by delivery from the outbox
talking = pytest.mark.parametrize("case", TALKING, indirect=True)


@pytest.fixture(params=list(CHANNELS))
async def case(
    request: pytest.FixtureRequest, life: AsyncExitStack, tmp_path: Path
) -> ChannelUnderTest:
    server = request.getfixturevalue("running_server") if request.param == "matrix" else None
    return await CHANNELS[request.param](life, tmp_path, server)


async def test_texts_edits_files_and_views(case: ChannelUnderTest) -> None:
    channel, chat = case.channel, case.chat
    # a text; its id serves to edit it, as often as one likes
    (first,) = await send(channel, chat, OutgoingMessage("The first text."))
    await case.soon("The first text.")
    for _ in range(2):
        await channel.edit(chat, first, "The second text.")
    await case.soon("The second text.")
    # a long one comes whole, in parts
    long = "\n\n".join(f"Paragraph {n} of many. " + f"w{n} " * 120 for n in range(30))
    await send(channel, chat, OutgoingMessage(long))
    await soon(lambda: all(f"Paragraph {n} of" in "".join(case.shown()) for n in range(30)))
    # who reads it
    assert channel.user_of(chat)
    assert isinstance(await channel.name(chat), str)
    # a file
    file = io.BytesIO(b"content"), "file.txt"
    await ChannelFileSender(channel, chat, at_once).send_files([file], "A file.")
    await soon(lambda: any("file.txt" in name for name in case.files()))
    # a turn's view raises nothing, and its tools' lines and the plan stay
    live = channel.live_view(chat)
    calls = (ToolCallView("1", "bash", "ls -l", "ok", "done", 1.0),)
    plan = (PlanStep("read the log", done=True), PlanStep("find the cause"))
    await live.show(TurnView(calls=calls, text="grows", status="goes on", plan=plan))
    live.close(TurnView(calls=calls, plan=plan))
    await live.settle(TurnView(calls=calls, plan=plan))
    await live.finish(TurnView(calls=calls, plan=plan))
    await case.soon("ls -l")
    if case.run:  # the terminal prints the plan as the shell's output
        await case.soon("☑ read the log\n☐ find the cause")
    await channel.typing(chat)
    await channel.react(chat, first, "👀")


async def test_what_must_not_leave_does_not(case: ChannelUnderTest) -> None:
    channel, chat = case.channel, case.chat
    if not case.refuses:
        pytest.skip("a terminal is the owner's own")
    (first,) = await send(channel, chat, OutgoingMessage("The first text."))
    for send_it in (
        send(channel, chat, OutgoingMessage(f"The key is {SECRET}.")),
        channel.edit(chat, first, SECRET),
        channel.send_files(chat, [(io.BytesIO(SECRET.encode()), "a.txt")], ""),
    ):
        with pytest.raises(MessageRefused):
            await send_it
    assert SECRET not in "".join(case.shown())


@talking
@pytest.mark.parametrize("fault", ["lost", "never"])
async def test_a_send_without_an_answer_neither_doubles_nor_vanishes(
    case: ChannelUnderTest, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a repeat is known as one it is repeated; else the person is told, and has a button."""
    monkeypatch.setattr("bot.delivery.FIRST_BACKOFF", 0.05)
    assert case.run and case.say
    case.break_sends(fault)
    await case.say("hi")
    if case.channel.repeat_seconds:
        await case.soon("The answer.")
        await soon_delivered(case)
    else:
        await case.soon(Texts().in_doubt)
    assert case.count("The answer.") == (
        0 if fault == "never" and not case.channel.repeat_seconds else 1
    )
    assert len(case.run.model.requests) == 1


async def soon_delivered(case: ChannelUnderTest) -> None:
    assert case.run
    while await case.run.store.outbox.counts():  # of what is not delivered
        await asyncio.sleep(0.003)


@talking
async def test_a_flood_is_waited_for(
    case: ChannelUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert case.run and case.say
    case.break_sends("flood")
    await case.say("hi")
    await case.soon("The answer.")
    await soon_delivered(case)
    await case.say("/timezone")  # comes behind any copy
    await case.soon("time zone")
    assert case.count("The answer.") == 1


@talking
async def test_a_stranger_is_told_one_line_and_not_answered(case: ChannelUnderTest) -> None:
    assert case.run and case.of_stranger
    assert await case.of_stranger("let me in") == Texts().stranger
    assert case.run.model.requests == []
