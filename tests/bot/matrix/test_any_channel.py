"""What every channel does alike, with Telegram, Matrix and the terminal, each before its real other end."""

import io
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from agent.leaks import LeakDetector
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
from fakes.bot_running import OWNER, TOKEN, TelegramScenario
from fakes.matrix_person import matrix_person
from fakes.matrix_running import MatrixScenario
from fakes.patience import soon
from fakes.synapse import Synapse

SECRET = f"sk-{'a1b2c3d4' * 4}"


@dataclass
class ChannelUnderTest:
    """`shown` gives the texts that the person at the other end sees now."""

    channel: Channel
    chat: str
    shown: Callable[[], list[str]]
    refuses: bool = True  # what must not leave; a terminal is the owner's own

    async def soon(self, text: str) -> None:
        await soon(lambda: any(text in each for each in self.shown()))


async def telegram(stack: AsyncExitStack, folder: Path) -> ChannelUnderTest:
    gram = await stack.enter_async_context(Localgram(TOKEN))
    olga = gram.user("Olga", id=OWNER, started=True)
    leaks = LeakDetector({"key": SECRET})
    scenario = TelegramScenario(gram=gram, folder=folder, owner=olga, leaks=leaks)
    run = await stack.enter_async_context(scenario.open())
    await soon(lambda: run.bot.health.last_at)
    return ChannelUnderTest(
        run.bot.channel, f"tg:{OWNER}", lambda: [message.text for message in olga.messages()]
    )


async def terminal(stack: AsyncExitStack, folder: Path) -> ChannelUnderTest:
    out = io.StringIO()
    lines = InputLines(io.StringIO(""))
    channel = Terminal(Console(file=out, width=100), lines, folder)
    return ChannelUnderTest(channel, "cli", lambda: [out.getvalue()], refuses=False)


async def matrix(stack: AsyncExitStack, folder: Path, server: Synapse) -> ChannelUnderTest:
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

    def shown() -> list[str]:
        newest = {e.replaces: e.content["m.new_content"]["body"] for e in olga.seen if e.replaces}
        plain = [e for e in olga.seen if e.type == "m.room.message" and not e.replaces]
        return [newest.get(event.id, event.body) for event in plain]

    return ChannelUnderTest(run.bot.channel, str(RoomKey(room)), shown)


@pytest.fixture(params=["telegram", "matrix", "terminal"])
async def case(
    request: pytest.FixtureRequest, life: AsyncExitStack, tmp_path: Path
) -> ChannelUnderTest:
    match request.param:
        case "telegram":
            return await telegram(life, tmp_path)
        case "matrix":
            return await matrix(life, tmp_path, request.getfixturevalue("running_server"))
        case _:
            return await terminal(life, tmp_path)


async def test_what_any_channel_does(case: ChannelUnderTest) -> None:
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
    # what must not leave does not
    if case.refuses:
        for send_it in (
            send(channel, chat, OutgoingMessage(f"The key is {SECRET}.")),
            channel.edit(chat, first, SECRET),
            channel.send_files(chat, [(io.BytesIO(SECRET.encode()), "a.txt")], ""),
        ):
            with pytest.raises(MessageRefused):
                await send_it
        assert SECRET not in "".join(case.shown())
    # a file
    await ChannelFileSender(channel, chat).send_file(io.BytesIO(b"content"), "file.txt", "A file.")
    # a turn's view raises nothing, and its tools' lines stay
    live = channel.live_view(chat)
    calls = (ToolCallView("1", "bash", "ls -l", "ok", "done", 1.0),)
    await live.show(TurnView(calls=calls, text="grows", status="goes on"))
    live.close(TurnView(calls=calls))
    await live.settle(TurnView(calls=calls))
    await live.finish(TurnView(calls=calls))
    await case.soon("ls -l")
    await channel.typing(chat)
    await channel.react(chat, first, "👀")
