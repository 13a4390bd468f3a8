"""Several messaging apps beside each other."""

import io
from pathlib import Path

import pytest

from agent.approvals import ApprovalRequest
from agent.channels import TurnReply
from agent.errors import ToolError
from agent.store import Incoming, open_store
from agent.store.inbox import CLI
from bot.delivery import compose
from bot.messaging_apps import Apps
from examples.channel import SocketApp, SocketChannel


class SecondChannel(SocketChannel):
    source = "second"
    prefix = "second:"


async def test_a_chat_belongs_to_the_app_whose_prefix_it_has(tmp_path: Path) -> None:
    async with open_store(tmp_path / "voltaire.db") as store:
        first = SocketApp(store, tmp_path / "a.sock", "olga")
        second = SocketApp(store, tmp_path / "b.sock", "otto", SecondChannel())
        apps = Apps([first, second])
        assert [apps.of(chat) for chat in ("sock:olga", "second:otto", "cli")] == [
            first,
            second,
            None,
        ]
        assert apps.owner_chats() == ["sock:olga", "second:otto"]
        assert apps.file_sender("cli") is None
        sender = apps.file_sender("second:otto")
        assert sender and sender.channel is second.channel and sender.upload_limit == 0
        with pytest.raises(ToolError, match="cannot be sent here"):
            await sender.send_files([(io.BytesIO(b"data"), "a.txt")], "")


async def test_a_question_goes_to_the_owners_of_the_chats_app(tmp_path: Path) -> None:
    async with open_store(tmp_path / "voltaire.db") as store:
        apps = [
            SocketApp(store, tmp_path / "a.sock", "olga"),
            SocketApp(store, tmp_path / "b.sock", "otto", SecondChannel()),
        ]
        for number, (chat, asked) in enumerate(
            [("sock:olga", 0), ("second:member", 1), ("cli", 0)], 1
        ):
            clients = [RecordingClient(), RecordingClient()]
            for app, client in zip(apps, clients, strict=True):
                app.channel.client = client  # type: ignore[assignment]
            request = ApprovalRequest(f"id{number}", "t", f"c{number}", chat, "ls", "s", 0.0)
            await store.approvals.open(request)
            assert await Apps(apps).ask(request) is None
            assert [bool(client.lines) for client in clients] == [asked == 0, asked == 1]
            assert (chat in clients[asked].lines[0]) == (chat != "sock:olga")


class RecordingClient:
    """What a client would have read."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write(self, line: bytes) -> None:
        self.lines.append(line.decode())


async def test_nobody_who_can_be_asked_is_a_denial(tmp_path: Path) -> None:
    async with open_store(tmp_path / "voltaire.db") as store:
        apps = Apps([SocketApp(store, tmp_path / "a.sock", "olga")])
        request = ApprovalRequest("id", "t", "c", "sock:olga", "ls", "s", 0.0)
        await store.approvals.open(request)
        assert await apps.ask(request) == "denied"  # nobody is connected


def test_a_terminal_is_sent_no_reply_to_what_it_asked() -> None:
    asked = Incoming("sock:olga", CLI, "1", "hello")
    assert compose(TurnReply("sock:olga", "t", "text", "done", (asked,))) == ()
    for chat in ("sock:olga", "cli"):
        assert len(compose(TurnReply(chat, "t", "text", "done", ()))) == 1
