"""What every messaging app does alike: one suite for Telegram, Matrix and the terminal, each before its
real other end. A new channel is one more entry of CHANNELS."""

import io
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from bot.matrix.rooms import RoomKey
from bot.terminal import InputLines, Terminal
from fakes.bot_running import OWNER, TOKEN, TelegramScenario
from fakes.localgram import Localgram
from fakes.matrix_person import MatrixPerson, matrix_person
from fakes.matrix_running import MatrixScenario
from fakes.patience import soon

SECRET = f"sk-{'a1b2c3d4' * 4}"


async def at_once(chat: str) -> None:
    """Nothing has to be shown before a file is sent."""


@dataclass
class ChannelUnderTest:
    """`shown` gives the texts that the person at the other end sees now, `files` the names of files."""

    channel: Channel
    chat: str
    shown: Callable[[], list[str]]
    files: Callable[[], list[str]]
    refuses: bool = True  # what must not leave; a terminal is the owner's own
    talks: bool = True  # an agent is behind it

    async def soon(self, text: str) -> None:
        await soon(lambda: any(text in each for each in self.shown()))


async def telegram(stack: AsyncExitStack, folder: Path, _: Any) -> ChannelUnderTest:
    gram = await stack.enter_async_context(Localgram(TOKEN))
    olga = gram.user("Olga", id=OWNER, started=True)
    leaks = LeakDetector({"key": SECRET})
    scenario = TelegramScenario(gram=gram, folder=folder, owner=olga, leaks=leaks)
    run = await stack.enter_async_context(scenario.open())
    await soon(lambda: run.bot.health.last_at)

    def files() -> list[str]:
        return [m.media.file.name for m in olga.messages() if m.media]

    return ChannelUnderTest(
        run.bot.channel,
        f"tg:{OWNER}",
        lambda: [m.text for m in olga.messages() if m.sender.is_bot],
        files,
    )


async def terminal(stack: AsyncExitStack, folder: Path, _: Any) -> ChannelUnderTest:
    out = io.StringIO()
    lines = InputLines(io.StringIO(""))
    channel = Terminal(Console(file=out, width=100), lines, folder)
    return ChannelUnderTest(
        channel,
        "cli",
        lambda: [out.getvalue()],
        lambda: [out.getvalue()],
        refuses=False,
        talks=False,
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
    leaks = LeakDetector({"key": SECRET})
    home = folder / "bot"
    home.mkdir()
    scenario = MatrixScenario(url=server.url, folder=home, account=account, owner=me, leaks=leaks)
    run = await stack.enter_async_context(scenario.open())
    room = await olga.room_with(account, encrypted=True)
    await soon(lambda: (known := run.bot.channel.encryption) and room in known.rooms)

    def files() -> list[str]:
        return [str(e.content.get("filename")) for e in olga.seen if "filename" in e.content]

    return ChannelUnderTest(
        run.bot.channel,
        str(RoomKey(room)),
        lambda: seen_texts(olga),
        files,
    )


CHANNELS = {"telegram": telegram, "matrix": matrix, "terminal": terminal}


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
    if case.talks:  # the terminal prints the plan as the shell's output
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
