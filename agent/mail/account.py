"""A mail account: what is new in it, its messages, and letters that are sent by it."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agent.aio import BackgroundTasks, complete, until_readable
from agent.documents.reading import MailMessage, parsed_mail
from agent.errors import NoSandbox, ToolError
from agent.mail.index import KnownMessage, MessageIndex
from agent.mail.letter import digest, recipients
from agent.mcp.config import read_secret_file
from agent.sandbox.sandbox import Sandboxes
from agent.store import Store

if TYPE_CHECKING:  # imported with the first connection
    from agent.mail.connection import ImapConnection

HEAD = "BODY.PEEK[]<0.24576>"  # what is indexed of a message
BATCH, AT_ONCE = 200, 400  # messages
MOST_BYTES, PIECE = 48 << 20, 12 << 20  # of a message that is read; of what a program prints
NO_PACKAGE = "The package for mail is not installed; the owner can install it (docs/mail.md)."
SENT_BEFORE = "This very letter was sent on {when}, or may have been, so it is not sent again: another one has other words."
T = TypeVar("T")


@dataclass(frozen=True)
class AccountConfig:
    """A section `agent.mail.NAME`. `folders` are searched; `sender` is the address of its letters."""

    name: str
    imap: str
    user: str
    password_file: str = ""
    smtp: str = ""
    sender: str = ""
    folders: Sequence[str] = ("INBOX",)
    client_id: str = ""  # an owner signs in (agent.mail.oauth), without a password
    client_secret_file: str = ""
    device_url: str = ""
    token_url: str = ""
    scope: str = ""

    async def secret(self, tokens: Path) -> str:
        """The password, or an access token. Raises ToolError."""
        if not self.client_id:
            what = f"The password_file of the mail account {self.name}"
            return read_secret_file(self.password_file, what).strip("\r\n")
        from agent.mail.oauth import access_token

        return await access_token(self, tokens)


@dataclass
class MailAccount:
    """One account, connected to at its first use. Its methods raise ToolError with what is wrong."""

    config: AccountConfig
    index: MessageIndex
    sandboxes: Sandboxes
    store: Store
    tasks: BackgroundTasks
    _connection: "ImapConnection | None" = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _renewing: asyncio.Lock = field(default_factory=asyncio.Lock)
    _filling: asyncio.Task[None] | None = None

    async def find(
        self, folder: str, limit: int, *, unread: bool = False, **wanted: Any
    ) -> tuple[list[KnownMessage], int]:
        """The newest messages of a folder, or of all (""), that match `wanted` (arguments of MessageIndex.find); and how
        many older ones are not in the index yet, but read into it in the background."""
        folders, lacking = [folder] if folder else self.config.folders, 0
        for each in folders:
            missing = await self._on_server(partial(self._missing, each))
            await self._take(each, missing[:AT_ONCE])
            lacking += len(older := missing[AT_ONCE:])
            if older and (self._filling is None or self._filling.done()):
                work = self._take(each, older)
                self._filling = self.tasks.start(work, f"the index of {self.config.name}")
        if unread:
            folders = folders[:1]
            wanted["uids"] = await self._on_server(methodcaller("uids", folders[0], "UNSEEN"))
        return await asyncio.to_thread(self.index.find, folders, limit, **wanted), lacking

    async def news(self, folder: str, after: str, limit: int) -> tuple[str, Sequence[KnownMessage]]:
        """A folder's state, and what came since the state `after`: nothing where that is "", or of another folder."""
        folder = folder or self.config.folders[0]
        validity, following, _ = await self._on_server(methodcaller("state", folder))
        known, _, first = after.partition(".")
        if known != str(validity):
            return f"{validity}.{following}", ()
        came = range(int(first), following)
        found = (await self.find(folder, limit, came=came))[0] if came else ()
        return f"{validity}.{following}", found

    async def follow(self, folder: str, look: Callable[[str], Awaitable[float]]) -> None:
        """Call `look` with a folder's state (as of `news`) now, whenever a message comes, and at the latest after the
        seconds that `look` returned. Returns only where the server has no IDLE, after the first look."""
        connection = (await connections()).ImapConnection(self.config)

        async def do(work: "Callable[[ImapConnection], T]") -> T:
            return await complete(asyncio.to_thread(connection.use, work, secret))

        try:
            while True:
                secret = await self._secret(self.config.imap)
                validity, following, _ = await do(methodcaller("state", folder))
                seconds = await look(f"{validity}.{following}")
                descriptor = await do(methodcaller("begin_idle"))
                if descriptor is None:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await until_readable(descriptor)
                await do(methodcaller("end_idle"))
        finally:
            await complete(asyncio.to_thread(connection.close))

    def _missing(self, folder: str, box: "ImapConnection") -> list[int]:
        return self.index.missing(folder, box.state(folder), lambda: box.uids(folder))

    async def _take(self, folder: str, uids: Sequence[int]) -> None:
        """Read the beginnings of messages into the index."""
        for at in range(0, len(uids), BATCH):
            batch = uids[at : at + BATCH]
            fetched = await self._on_server(methodcaller("fetch", folder, batch, HEAD))
            try:
                raw = b"".join(b"%d\n%s" % (len(each), each) for _, each in fetched)
                lines = (await self._parsed(raw, "index")).splitlines() if fetched else []
                read = [MailMessage.model_validate_json(line) for line in lines]
            except NoSandbox:
                raise
            except (ToolError, ValueError):  # one of them has broken its parser
                if half := len(batch) // 2:
                    await self._take(folder, batch[:half])
                    await self._take(folder, batch[half:])
                    continue
                read = [MailMessage(subject="(not readable)")] * len(fetched)
            await asyncio.to_thread(self.index.add, folder, [head for head, _ in fetched], read)

    async def known(self, number: int) -> KnownMessage:
        if found := await asyncio.to_thread(self.index.get, number):
            return found
        raise ToolError(f"There is no message {number}: mail list and mail search give numbers.")

    async def whole(self, known: KnownMessage) -> bytes:
        if known.size > MOST_BYTES:
            raise ToolError(f"It has {known.size >> 20} MiB: {MOST_BYTES >> 20} are read at most.")
        what = known.folder, [known.uid], "BODY.PEEK[]"
        fetched = await self._on_server(methodcaller("fetch", *what))
        if not fetched:
            raise ToolError(f"Message {known.number} is no longer in {known.folder}.")
        return bytes(fetched[0][1])

    async def read(self, raw: bytes) -> MailMessage:
        return MailMessage.model_validate_json(await self._parsed(raw, "read"))

    async def attachment(self, raw: bytes, number: int) -> bytes:
        """The content of an attachment, counted from 1."""
        content = b""
        for end in range(PIECE, MOST_BYTES + 1, PIECE):
            content += await self._parsed(raw, "part", str(number), str(end - PIECE), str(end))
            if len(content) < end:
                break
        return content

    async def _parsed(self, raw: bytes, act: str, *words: str) -> bytes:
        box = await self.sandboxes.of(f"mail:{self.config.name}")
        return await parsed_mail(box, raw, act, *words)

    async def keep(self, letter: EmailMessage, role: str) -> None:
        """Add a letter to the folder of that role (connection.ROLES)."""
        await self._on_server(methodcaller("append", bytes(letter), role))

    async def send(self, letter: EmailMessage) -> None:
        """Send a letter; connection.Uncertain where nobody knows whether it was. One that was begun is not sent again,
        also after a crash."""
        await complete(self._send(letter))

    async def _send(self, letter: EmailMessage) -> None:
        table, to, key = self.store.key_values, recipients(letter), f"mail-sent:{digest(letter)}"
        module = await connections()
        async with self._lock:
            if when := await table.get(key, str):
                raise ToolError(SENT_BEFORE.format(when=when))
            del letter["Bcc"]
            secret = await self._secret(self.config.smtp)
            await table.put(key, f"{datetime.now().astimezone():%d %b %Y, %H:%M}")
            try:
                await asyncio.to_thread(module.send, self.config, secret, to, bytes(letter))
            except module.Uncertain:
                raise
            except ToolError:
                await table.remove(key)
                raise

    async def _on_server(self, work: "Callable[[ImapConnection], T]") -> T:
        """Return the result of `work` with the connection, in a thread. Raises ToolError."""
        async with self._lock:
            if self._connection is None:
                self._connection = (await connections()).ImapConnection(self.config)
            secret = await self._secret(self.config.imap)
            return await complete(asyncio.to_thread(self._connection.use, work, secret))

    async def close(self) -> None:
        if self._connection:
            await asyncio.to_thread(self._connection.close)

    async def _secret(self, url: str) -> str:
        """The password or token for the server at `url`; its use is recorded. Raises ToolError."""
        kind = "client_id" if self.config.client_id else "password_file"
        await self.store.ledger.secret_used(f"agent.mail.{self.config.name}.{kind}", url)
        async with self._renewing:
            return await self.config.secret(tokens_file(self.index.path.parent, self.config.name))


def tokens_file(folder: Path, account: str) -> Path:
    return folder / f"{account}.tokens"


async def try_account(config: AccountConfig, folder: Path) -> str:
    """Sign in to the servers of an account; return what was found, in one sentence. Raises ToolError."""
    module = await connections()
    secret = await config.secret(tokens_file(folder, config.name))
    return str(await asyncio.to_thread(module.try_servers, config, secret))


async def connections() -> Any:
    """Import and return agent.mail.connection. Raises ToolError where its package is not installed."""
    try:
        return await asyncio.to_thread(importlib.import_module, "agent.mail.connection")
    except ImportError:
        raise ToolError(NO_PACKAGE) from None


@asynccontextmanager
async def open_accounts(
    configs: Sequence[AccountConfig], sandboxes: Sandboxes, state: Path, store: Store
) -> AsyncIterator[dict[str, MailAccount]]:
    """The accounts by name; on leaving, their connections are closed."""
    async with BackgroundTasks() as tasks:
        accounts: dict[str, MailAccount] = {}
        for each in configs:
            index = MessageIndex(state / "mail" / f"{each.name}.db")
            accounts[each.name] = MailAccount(each, index, sandboxes, store, tasks)
        try:
            yield accounts
        finally:
            await tasks.stop()
            for account in accounts.values():
                await account.close()
