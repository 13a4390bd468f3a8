"""The messaging apps of the running bot, and which one a chat belongs to."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Self
from zoneinfo import ZoneInfo

from agent.approvals import ApprovalRequest
from agent.channels import Assignment
from agent.events import ApprovalAsked, Decision, Event, TurnFinished
from agent.language import speaking
from agent.store import Store
from agent.store.errors import StoreError
from agent.store.ledger import Verification, tell_head
from agent.store.set_aside import UPDATES
from backend.protocol import Phrase
from bot.access import Access
from bot.approval_question import OwnerApprovals
from bot.channel import Channel, ChannelFileSender, OutgoingMessage, Reactions, ShownReactions
from bot.commands.approvals import show_decision, show_withdrawn
from bot.commands.context import HandlerContext, Services
from bot.commands.jobs import have_signed_in
from bot.delivery import Delivery
from bot.live_replies import LiveReplies
from bot.texts import TEXTS

if TYPE_CHECKING:  # loaded where servers are configured
    from agent.mcp.servers import ToolServers
import logging
import time
from dataclasses import field

AUTO = "auto"  # each text is in the language of whoever it is for
LOOK_SECONDS = 15.0  # between two looks at who may talk and what was set aside


@dataclass(frozen=True, slots=True)
class AppHealth:
    """Whether an app receives messages.

    `last_at`: when the app's server last answered, in seconds since the epoch; `problem` a sentence.
    """

    username: str | None = None
    last_at: float | None = None
    problem: Phrase | None = None


class AppUnavailable(Exception):
    """A messaging app cannot run; `str` is one sentence, `refused` whether its token is wrong."""

    def __init__(self, sentence: str, *, refused: bool = False) -> None:
        super().__init__(sentence)
        self.refused = refused


class MessagingApp(ABC):
    """One messaging app: its channel, who may talk there, its live replies and the delivery of its messages.

    `timezone` (IANA) and `repos` are the agent's; `language` is that of fixed texts, or AUTO.
    `page` is that of HandlerContext.
    """

    def __init__(
        self,
        store: Store,
        channel: Channel,
        access: Access,
        *,
        timezone: str = "UTC",
        repos: Sequence[str] = (),
        reactions: ShownReactions = "done",
        language: str = AUTO,
        demo: bool = False,
        page: str | None = None,
    ) -> None:
        self.store = store
        self.channel = channel
        self.access = access
        self.language = "" if language == AUTO else language
        self.timezone = timezone
        self.repos = tuple(repos)
        self.approvals = OwnerApprovals(channel, access, store)
        self.reactions = Reactions(channel, reactions)
        self.replies = LiveReplies(channel, self.approvals.whom, self.reactions.ended)
        self.delivery = Delivery(store, channel, self.replies.final, self.replies.sent)
        self.demo = demo
        self.page = page
        self._context: HandlerContext | None = None  # once it serves
        self.health_changed = asyncio.Event()  # to be told at once

    async def connect(self) -> None:
        """Connect to the app's server. Nothing is sent before this returns."""
        return

    @abstractmethod
    async def listen(self, context: HandlerContext) -> None:
        """Receive messages, commands and presses until cancelled."""

    @property
    def health(self) -> AppHealth:
        return AppHealth()

    def owner_chats(self) -> list[str]:
        return [self.channel.private_chat(owner) for owner in sorted(self.access.owners)]

    async def serve(self, services: Services) -> None:
        """Receive updates and deliver the outbox, until cancelled."""
        await self.access.load()
        await self.connect()
        context = HandlerContext(
            self.channel,
            self.access,
            self.store,
            self.delivery,
            services,
            self.store.clock(),
            self.timezone,
            self.repos,
            lambda: self.health.problem,
            self.reactions,
            self.demo,
            self.language,
            self.page,
        )
        self._context = context
        with speaking(self.language):
            async with context.tasks, asyncio.TaskGroup() as group:
                group.create_task(self.delivery.run(services.voice))
                group.create_task(self.listen(context))

    async def event(self, assignment: Assignment, event: Event) -> None:
        """Show an event of a turn; questions that the turn withdrew lose their buttons."""
        if self._context:
            match event:
                case ApprovalAsked(id):  # decided, or expired
                    self._context.start(show_decision(self._context, id))
                case TurnFinished(reason=reason) if reason != "done":
                    self._context.start(show_withdrawn(self._context, assignment.turn.id))
        await self.replies.event(assignment, event)


class Apps:
    """All messaging apps; a chat belongs to the app whose prefix its key has.

    Chats of the command line (`cli`) belong to none: the first app's owners are asked for their
    approvals, and their turns are shown nowhere. The context must be open while turns run: leaving it
    ends the live replies.
    """

    def __init__(self, apps: Sequence[MessagingApp], look_seconds: float = LOOK_SECONDS) -> None:
        self.apps = apps
        self._look_seconds = look_seconds
        self._replies = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for app in self.apps:
            await self._replies.enter_async_context(app.replies.tasks)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._replies.aclose()

    def of(self, chat: str) -> MessagingApp | None:
        return next((app for app in self.apps if chat.startswith(app.channel.prefix)), None)

    def channel(self, chat: str) -> Channel:
        return (self.of(chat) or self.apps[0]).channel

    def owner_chats(self) -> list[str]:
        return [chat for app in self.apps for chat in app.owner_chats()]

    async def alerted_chats(self) -> list[str]:
        """The owners' chats that get alerts: of linked chats only the chosen one. Raises StoreError."""
        return await self.apps[0].store.links.alerted(self.owner_chats())

    @property
    def health(self) -> AppHealth:
        """The first app's health, with the problems of all."""
        problems = [app.health.problem for app in self.apps if app.health.problem]
        problem = problems[0] if problems else None
        if len(problems) > 1:
            problem = Phrase("{first} {then}", first=problems[0], then=problems[1])
        return replace(self.apps[0].health, problem=problem)

    async def ask(self, request: ApprovalRequest) -> Decision | None:
        """Ask the owners to approve a step (agent.approvals.AskOwners)."""
        return await (self.of(request.chat) or self.apps[0]).approvals.ask(request)

    def file_sender(self, chat: str) -> ChannelFileSender | None:
        app = self.of(chat)
        return ChannelFileSender(app.channel, chat, app.replies.show_calls) if app else None

    def ask_to_sign_in(self, servers: "ToolServers", name: str) -> None:
        """Send the owners the link to sign in to an MCP server."""

        async def tell(text: str) -> None:
            for chat in self.owner_chats():
                await self.apps[0].store.outbox.add(chat, [OutgoingMessage(text).to_json()])

        if name not in servers.signing_in:
            work = have_signed_in(servers, name, tell)
            servers.tasks.start(work, f"signing in to {name}")

    async def event(self, assignment: Assignment, event: Event) -> None:
        """Pass an event to the app of its chat (agent.channels.TurnListener)."""
        if app := self.of(assignment.chat):
            await app.event(assignment, event)

    async def waiting(self, chat: str, why: str) -> None:
        if app := self.of(chat):
            await app.replies.waiting(chat, why)

    async def serve(self, services: Services) -> None:
        async with asyncio.TaskGroup() as group:
            for app in self.apps:
                group.create_task(app.serve(services))
            group.create_task(self._tell_owners())

    async def _tell_owners(self) -> None:
        """Tell each chat what of it was set aside and, once a day, the owners what was set aside anywhere and
        the ledger's head, with what is wrong in it. Also reload who may talk."""
        store = self.apps[0].store

        def set_aside(chat: str, table: str, count: int) -> str | None:
            app = self.of(chat)
            if app is None:
                return None
            with speaking(app.language):
                what = TEXTS.set_aside_kinds[table].format(count=count)
                form = TEXTS.set_aside_anywhere if table == UPDATES else TEXTS.set_aside_here
                return OutgoingMessage(form.format(what=what)).to_json()

        def head(found: Verification) -> str:
            broken = TEXTS.ledger_broken.format(problem=found.problem) if found.problem else ""
            text = TEXTS.ledger_head.format(rows=found.rows, head=found.head)
            return OutgoingMessage(f"{broken}\n{text}".strip()).to_json()

        while True:
            now = datetime.fromtimestamp(store.clock(), ZoneInfo(self.apps[0].timezone))
            midnight = now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
            with suppress(StoreError):  # tried again at the next look
                for app in self.apps:
                    await app.access.load()  # the command line or the page may have changed it
                owners = await self.alerted_chats()
                told = await store.set_aside.tell(owners, set_aside)
                if await tell_head(store.ledger, owners, head, midnight) or told:
                    store.outbox.wake()
            await asyncio.sleep(self._look_seconds)


# -- health -------------------------------------------------------------------


log = logging.getLogger(__name__)

STALE_SECONDS = 90.0


@dataclass
class InboundHealth:
    """Records whether messages come in from an app.

    `last_at`: when the app's server last answered, in seconds since the epoch. `changed` is set when messages
    begin or cease to come in. `quiet`: silence is no failure, as of a webhook while nobody writes.
    """

    app: str
    changed: asyncio.Event
    quiet: bool = False
    last_at: float | None = None
    failure: Phrase | None = field(default=None, init=False)
    _heard: float | None = field(default=None, init=False)  # monotonic: it sleeps with the machine

    def answered(self) -> None:
        if self.last_at is None or self.failure:
            self.changed.set()
        if self.failure:
            log.warning("messages from %s come in again", self.app)
        self.last_at, self._heard, self.failure = time.time(), time.monotonic(), None

    def failed(self, why: Phrase) -> None:
        """Record that messages do not come in; `why` is a sentence."""
        if why != self.failure:
            log.error("%s", why)
            self.changed.set()
        self.failure = why

    def problem(self) -> Phrase | None:
        """One sentence on what is wrong; None while messages come in."""
        if self.failure:
            return self.failure
        silent = 0.0 if self.quiet or self._heard is None else time.monotonic() - self._heard
        told = Phrase("{app}: no answer for {seconds} s.", app=self.app, seconds=round(silent))
        return told if silent > STALE_SECONDS else None
