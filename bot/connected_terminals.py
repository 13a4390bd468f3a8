"""Terminals that are connected to the process that holds the state: `voltaire ask`, `chat`, `mcp serve`.

A terminal says something, and is shown the events of the turn that answers it. While one is there, it is
asked for approvals and gets files and what jobs post to its chat. When its connection ends, so does its turn.
`BotChannels` is what the agent knows of them and of the messaging apps.
"""

import asyncio
import base64
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.aio import complete, set_within
from agent.approvals import ApprovalRequest, AskOwners
from agent.channels import Assignment, Channels, TurnListener, TurnReply
from agent.chats.chats import Chats
from agent.errors import ToolError
from agent.events import Decision, Event, Notice, TurnFinished, wire_form
from agent.language import translated
from agent.store import Incoming, Store
from agent.store.errors import StoreError
from agent.store.inbox import CLI, JOB, InboxRow
from agent.store.ledger import digest
from agent.store.outbox import OutboxRow
from agent.tools.context import FileSender
from agent.trust import Origin
from agent.turn import texts
from bot.channel import APP_PREFIXES, NamedFile, OutgoingMessage, discard_file
from bot.delivery import compose

if TYPE_CHECKING:  # not loaded where no bot runs
    from agent.mcp.servers import ToolServers
    from bot.attachments import AttachmentFetcher
    from bot.messaging_apps import Apps, MessagingApp

log = logging.getLogger(__name__)

AGAIN_SECONDS = 5.0
UPLOAD_LIMIT = 50 << 20  # bytes of a file for a terminal, which is one message
JsonFields = dict[str, Any]


class TerminalGone(Exception):
    """The terminal's connection ended before it replied."""


@dataclass(eq=False)
class ConnectedTerminal:
    """One connected terminal; `interactive` where a person sits at it. `send` queues a message to it. `client` is
    "", or the program at the owner's page that asks through it; approvals then go to the owners."""

    chat: str
    interactive: bool
    send: Callable[[JsonFields], None]
    client: str = ""
    updates: set[str] = field(default_factory=set)  # of the messages that it sent
    upload_limit: int = UPLOAD_LIMIT
    _replies: dict[str, asyncio.Future[Any]] = field(default_factory=dict)
    _ended: bool = False

    async def request(self, message: JsonFields, id: str) -> Any:
        """Send a message and wait for the reply to it. Raises TerminalGone."""
        if self._ended:
            raise TerminalGone
        reply = self._replies[id] = asyncio.get_running_loop().create_future()
        self.send({**message, "id": id})
        try:
            return await reply
        finally:
            self._replies.pop(id, None)

    def replied(self, id: str, value: Any) -> None:
        reply = self._replies.get(id)
        if reply and not reply.done():
            reply.set_result(value)

    def end(self) -> None:
        self._ended = True
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(TerminalGone())

    async def ask(self, request: ApprovalRequest) -> Decision | None:
        """Ask for an approval at the terminal: whoever sits there is the owner. None once the terminal is gone: the
        turn is stopped, or continued by the next holder."""
        asked = {"type": "question", "request": asdict(request)}
        try:
            answer = await self.request(asked, request.id)
        except TerminalGone:
            return None
        return answer if answer in ("once", "chat") else "denied"

    async def send_files(self, files: Sequence[NamedFile], caption: str) -> None:
        """Send files to the terminal, which writes them to its folder. Raises ToolError if it cannot."""
        try:
            problem = await self.show_files(files, caption)
        except TerminalGone:
            problem = "the terminal is gone"
        if problem:
            raise ToolError(f"{', '.join(name for _, name in files)} was not sent: {problem}")

    async def show_files(self, files: Sequence[NamedFile], caption: str) -> str:
        """Have the terminal write the files; return why it could not, or "". Raises TerminalGone."""
        content = [
            {"name": name, "base64": base64.b64encode(await asyncio.to_thread(file.read)).decode()}
            for file, name in files
        ]
        message = {"type": "files", "files": content, "caption": caption}
        return str(await self.request(message, f"files-{id(message)}") or "")


class ConnectedTerminals:
    """The connected terminals. `apps` are the bot's messaging apps, None where no bot runs; every chat that
    belongs to none of them is a terminal's."""

    def __init__(self, store: Store, apps: "Apps | None") -> None:
        self._store = store
        self.apps = apps
        self._open: list[ConnectedTerminal] = []
        self.closing = False  # the holder ends, and the next one continues their turns

    def in_chat(self, chat: str) -> list[ConnectedTerminal]:
        return [each for each in self._open if each.chat == chat]

    def person_at(self, chat: str) -> ConnectedTerminal | None:
        """The first terminal at which a person has that chat open."""
        return next((each for each in self.in_chat(chat) if each.interactive), None)

    def senders(self, answers: Sequence[Incoming]) -> list[ConnectedTerminal]:
        """The connected terminals that sent the first of the messages that a turn answers."""
        if not answers or answers[0].source != CLI:
            return []
        return [each for each in self._open if own_update(answers[0]) in each.updates]

    def enter(self, terminal: ConnectedTerminal) -> None:
        """Register a terminal, which is shown the events of its turns from now on."""
        self._open.append(terminal)

    async def leave(self, terminal: ConnectedTerminal, chats: Chats) -> None:
        """Remove a terminal and stop its turn, unless the next holder is to continue it."""
        self._open.remove(terminal)
        terminal.end()
        if self.closing:
            return
        running = chats.assignment(terminal.chat)
        if running and first_update(running.answers) in terminal.updates:
            with suppress(StoreError):
                await chats.stop(terminal.chat)
        elif terminal.updates:
            chats.wake(terminal.chat)  # drops what waits

    async def say(
        self, terminal: ConnectedTerminal, chats: Chats, text: str, update: str, stranger: str = ""
    ) -> None:
        """Submit a terminal's message, once even if it was already sent to a holder that is gone."""
        terminal.updates.add(update)
        running = chats.assignment(terminal.chat)
        if running and first_update(running.answers) != update:
            terminal.send(wire_form(Notice(self._busy(running))))
        origin: Origin = "person" if terminal.client else "owner"
        incoming = Incoming(terminal.chat, CLI, update, text, origin=origin, stranger=stranger)
        if await chats.submit(incoming):
            by = terminal.client or "terminal"
            await self._store.ledger.record("message", terminal.chat, by=by, text=digest(text))
            return
        ended = await self._store.turns.answer_to(CLI, update)
        words, reason = ended or ("", None)
        if not words and reason in (None, "cancelled"):
            if ended:  # dropped by a holder to which this terminal came too late
                await self._store.inbox.wait_again(CLI, update)
            chats.wake(terminal.chat)
            return
        told = TurnFinished(words or translated(texts.STOPPED), reason or "cancelled", 0)
        terminal.send(wire_form(told))

    async def retry(self, terminal: ConnectedTerminal, chats: Chats) -> bool:
        """Answer the terminal's last question again; False where there is none."""
        last = await self._store.turns.last(terminal.chat)
        if last is None or last[0].source != CLI:
            return False
        rows = await self._store.inbox.of_turn(last[0].id)
        terminal.updates |= {own_update(row.incoming) for row in rows}
        return await chats.retry(terminal.chat)

    async def deliver(self, terminal: ConnectedTerminal) -> None:
        """Show what jobs post to the terminal's chat, until cancelled."""
        if self.app(terminal.chat) or terminal.chat.startswith(APP_PREFIXES):
            return
        outbox, woken = self._store.outbox, asyncio.Event()
        outbox.on_wake.append(woken.set)
        try:
            if self.person_at(terminal.chat) is terminal:
                await outbox.requeue(terminal.chat)
            while True:
                woken.clear()
                try:
                    while row := await outbox.claim(terminal.chat):
                        await self._show(terminal, row)
                    await woken.wait()
                except StoreError as error:
                    log.warning("%s waits: %s", terminal.chat, error)
                    await set_within(woken, AGAIN_SECONDS)
        finally:
            outbox.on_wake.remove(woken.set)

    async def _show(self, terminal: ConnectedTerminal, row: OutboxRow) -> None:
        try:
            message = OutgoingMessage.from_json(row.payload)
            if message.file:
                path = Path(message.file)
                with await asyncio.to_thread(path.open, "rb") as file:
                    if problem := await terminal.show_files([(file, path.name)], message.text):
                        raise ValueError(problem)
            else:
                shown = {"type": "message", "text": message.text}
                await terminal.request(shown, f"message-{row.id}")
        except (ValueError, OSError) as error:
            await self._store.outbox.failed(row.id, str(error))
        except BaseException:
            with suppress(StoreError):
                await complete(self._store.outbox.postponed(row.id, 0))
            raise
        else:
            await self._store.outbox.delivered(row.id, [f"cli-{row.id}"])
            await asyncio.to_thread(discard_file, message)

    def app(self, chat: str) -> "MessagingApp | None":
        return self.apps.of(chat) if self.apps else None

    def _busy(self, running: Assignment) -> str:
        """Which turn runs in the chat, and for how long."""
        told = translated(texts.CHAT_ANSWERS)
        if running.turn.kind == "job":
            told = translated(texts.CHAT_HAS_JOB)
        return told.format(seconds=max(1, round(self._store.clock() - running.turn.started_at)))


@dataclass(frozen=True)
class BotChannels(Channels, TurnListener):
    """Messaging apps and terminals as the agent sees them: each call goes to the app or terminals of its chat.

    `attachments` come with the messages of apps; `listeners` are shown the turns that no terminal asked for.
    """

    terminals: ConnectedTerminals
    attachments: "AttachmentFetcher | None" = None
    listeners: Sequence[TurnListener] = ()

    @property
    def _apps(self) -> "Apps | None":
        return self.terminals.apps

    def owns(self, chat: str, source: str) -> bool:
        """Whether the chat is answered here: one of a connected app, or of terminals."""
        terminals = source == CLI or (source == JOB and not chat.startswith(APP_PREFIXES))
        return terminals or self._apps is not None

    def attends(self, incoming: Incoming) -> bool:
        kept = incoming.source != CLI or self.terminals.closing  # the next holder continues
        return kept or bool(self.terminals.senders([incoming]))

    async def fetch(self, rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
        return await self.attachments.fetch(rows) if self.attachments else rows

    def compose(self, reply: TurnReply) -> Sequence[str]:
        return compose(reply)

    def payload(self, text: str) -> str:
        return OutgoingMessage(text).to_json()

    def asker(self, assignment: Assignment) -> AskOwners | None:
        if assignment.turn.source == CLI:
            terminal = next(iter(self.terminals.senders(assignment.answers)), None)
            if terminal is None or not terminal.client:
                return terminal.ask if terminal and terminal.interactive else None
        if app := self.terminals.app(assignment.chat):
            return app.approvals.ask
        if terminal := self.terminals.person_at(assignment.chat):
            return terminal.ask
        return self._apps.ask if self._apps else None

    def file_sender(self, chat: str) -> FileSender | None:
        sender = self._apps.file_sender(chat) if self._apps else None
        return sender or self.terminals.person_at(chat)

    def ask_to_sign_in(self, servers: "ToolServers", name: str) -> bool:
        if self._apps:
            self._apps.ask_to_sign_in(servers, name)
        return self._apps is not None

    async def event(self, assignment: Assignment, event: Event) -> None:
        for terminal in self.terminals.senders(assignment.answers):
            terminal.send(wire_form(event))
        if assignment.turn.source != CLI:
            for listener in self.listeners:
                await listener.event(assignment, event)

    async def waiting(self, chat: str, why: str) -> None:
        for terminal in self.terminals.in_chat(chat):
            terminal.send(wire_form(Notice(why)))
        for listener in self.listeners:
            await listener.waiting(chat, why)


def own_update(incoming: Incoming) -> str:
    """The update id that a terminal gave a message or a retry."""
    return incoming.update.partition("~")[0]


def first_update(answers: Sequence[Incoming]) -> str:
    return own_update(answers[0]) if answers else ""
