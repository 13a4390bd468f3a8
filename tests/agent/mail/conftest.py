"""A real Dovecot, an SMTP server behind it, and boxes whose chats have the account."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from agent.mail.account import MailAccount, open_accounts
from agent.sandbox.sandbox import Sandboxes
from agent.store import Store, open_store
from agent.tools.bash import bash
from backend.server.launch import free_port
from fakes.mail_server import Dovecot, Relay, installed, relay
from fakes.sandbox_box import Box, opened

if not installed():
    collect_ignore_glob = ["test_*.py"]  # make test installs them


class Mails:
    """Boxes over the account; each `open` is a program that was started anew."""

    def __init__(
        self,
        dovecot: Dovecot,
        relay: Relay,
        store: Store,
        sandboxes: Sandboxes,
        state: Path,
        stack: AsyncExitStack,
    ) -> None:
        self.dovecot, self.relay, self.store = dovecot, relay, store
        self.sandboxes, self.state, self.stack = sandboxes, state, stack
        self.config = dovecot.config()
        self.granted: dict[str, set[str]] = {}

    async def accounts(self, **fields: Any) -> dict[str, MailAccount]:
        config = self.dovecot.config(**fields)
        opened = open_accounts([config], self.sandboxes, self.state, self.store)
        return await self.stack.enter_async_context(opened)

    async def open(self, *, chat: str = "cli", **fields: Any) -> Box:
        granted = self.granted.setdefault(chat, set())
        box = Box(await self.sandboxes.of(chat), chat=chat, granted=granted)
        box.mail = await self.accounts(**fields)
        return box


async def mail(box: Box, command: str) -> str:
    """The output of `mail ...` in bash."""
    return await box.text(bash, command=f"mail {command}")


async def numbers(box: Box, command: str = "list --limit 200") -> dict[str, int]:
    """The numbers of messages by subject."""
    told = await mail(box, command)
    assert "exit code" not in told, told
    listed = [] if told.startswith("There is no") else told.splitlines()
    return {line.split("  ")[3].partition(" [")[0]: int(line.split("  ")[0]) for line in listed}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "voltaire.db") as store:
        yield store


@pytest.fixture(scope="session")
def running_dovecot() -> Iterator[Dovecot]:
    with Dovecot(free_port()).running() as served:
        yield served


@pytest.fixture
async def relayed(running_dovecot: Dovecot) -> AsyncIterator[Relay]:
    async with relay(running_dovecot.relay) as served:
        yield served


@pytest.fixture
def dovecot(running_dovecot: Dovecot, relayed: Relay) -> Dovecot:
    """One server for all tests of a process, with an empty mailbox."""
    running_dovecot.move()
    return running_dovecot


@pytest.fixture
async def mails(
    tmp_path: Path, dovecot: Dovecot, relayed: Relay, store: Store
) -> AsyncIterator[Mails]:
    async with AsyncExitStack() as stack:
        boxes = await stack.enter_async_context(opened(tmp_path / "state"))
        yield Mails(dovecot, relayed, store, boxes, tmp_path / "state", stack)
