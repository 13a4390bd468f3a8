"""The bot as a service: messaging apps, the agent, the schedule and the backend's alerts in one loop."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent.chats.assignment import Assignment, ChatOptions, Listener
from agent.chats.chats import Chats
from agent.chats.maintenance import Maintenance
from agent.context.window import WindowTooSmall
from agent.errors import AgentError
from agent.events import Event
from agent.schedule.job_actions import JobAction, SubmitTask, SummarizeRepo, remind
from agent.schedule.job_runner import JobRunner, QuietHours
from agent.schedule.scheduler import Scheduler
from agent.store import Store
from agent.store.errors import StoreError
from backend.client import BackendClient, BackendUnavailable
from backend.protocol import Alert
from bot import presence, profile_switch
from bot.app import Apps
from bot.attachments import AttachmentFetcher
from bot.channel import OutgoingMessage
from bot.commands.context import Services
from bot.composition import Agent, open_agent, open_chats, retention_of
from bot.health_digest import HealthDigest
from bot.repo_summaries import repo_summaries
from bot.settings import Settings
from bot.state import open_state
from bot.status import PRESENCE
from bot.tool_contexts import meaning_of

PRESENCE_SECONDS = 10.0
LOOK_SECONDS = 15.0  # how fresh the machine's report and the warm prefix are kept
AGAIN_SECONDS = 5.0
JOB = "job"
LAST_ALERT = "alert"


OpenApps = Callable[[Settings, Store], AbstractAsyncContextManager[Apps]]


async def serve_bot(
    settings: Settings,
    backend: BackendClient,
    open_apps: OpenApps,
    also: Listener | None = None,
    notify: Callable[[str], None] = lambda line: None,
) -> None:
    """Run the messaging apps until cancelled. Raises bot.app.AppUnavailable, StoreError.

    `also` is told of every turn, too; `notify` tells the service manager.
    """
    async with (
        open_state(settings) as store,
        open_apps(settings, store) as apps,
        open_agent(settings, backend, store, ask=apps.ask, file_sender=apps.file_sender) as agent,
        open_chats(agent, _service(agent, apps), _Both(apps, also)) as chats,
        _scheduler(agent, chats) as scheduler,
        _beside(settings, agent, apps, chats, notify),
    ):
        agent.tool_contexts.jobs_changed = scheduler.wake
        await apps.serve(
            Services(
                chats,
                agent.approvals,
                backend,
                agent.context,
                agent.tool_contexts.planner,
                selftests=agent.selftests,
            )
        )


@dataclass(frozen=True)
class _Both:
    """Two listeners of the same turns."""

    first: Listener
    second: Listener | None

    async def event(self, assignment: Assignment, event: Event) -> None:
        await self.first.event(assignment, event)
        if self.second:
            await self.second.event(assignment, event)

    async def waiting(self, chat: str, why: str) -> None:
        await self.first.waiting(chat, why)
        if self.second:
            await self.second.waiting(chat, why)


def _service(agent: Agent, apps: Apps) -> ChatOptions:
    fetcher = AttachmentFetcher(
        apps.channel,
        agent.store,
        agent.sandboxes.of,
        agent.has_vision,
        agent.settings.agent.transcribe_url,
    )
    sources = frozenset({JOB, *(app.channel.source for app in apps.apps)})
    return ChatOptions(sources, agent.settings.agent.timezone, apps.compose, fetch=fetcher.fetch)


@asynccontextmanager
async def _scheduler(agent: Agent, chats: Chats) -> AsyncIterator[Scheduler]:
    settings = agent.settings.agent
    try:
        quiet = QuietHours.parse(settings.quiet_hours, settings.timezone)
    except ValueError:
        raise AgentError('agent.quiet_hours must look like "22:00-07:00".') from None
    digest = HealthDigest(
        agent.store, agent.backend, agent.settings.state_dir, agent.settings.backend.price_kwh
    )
    actions: dict[str, JobAction] = {
        "remind": remind,
        "task": SubmitTask(chats.submit),
        "summary": SummarizeRepo(repo_summaries(agent), _payload),
        "digest": digest,
        profile_switch.KIND: profile_switch.ProfileSwitch(agent.backend),
    }
    runner = JobRunner(agent.store, actions, _payload, agent.store.clock, quiet)
    await profile_switch.sync_config(agent.store, agent.settings.path, settings.timezone)
    async with Scheduler(runner) as scheduler:
        yield scheduler


def _payload(text: str) -> str:
    return OutgoingMessage(text).to_json()


# -- beside the turns ---------------------------------------------------------


@asynccontextmanager
async def _beside(
    settings: Settings,
    agent: Agent,
    apps: Apps,
    chats: Chats,
    notify: Callable[[str], None],
) -> AsyncIterator[None]:
    """What goes on whether or not anybody writes."""
    path = settings.state_dir / PRESENCE
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_tell_presence(path, apps, notify)),
            group.create_task(_look(agent, apps)),
            group.create_task(pass_on_alerts(agent.backend, agent.store, apps.owner_chats)),
            group.create_task(tell_set_aside(agent.store, apps.owner_chats)),
            group.create_task(_idle(agent, chats).run()),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            path.unlink(missing_ok=True)


def _idle(agent: Agent, chats: Chats) -> Maintenance:
    meaning = meaning_of(agent.store, agent.settings)
    retention = retention_of(agent.settings)
    return Maintenance(agent.store, agent.window, chats, agent.server_identity, retention, meaning)


async def _tell_presence(path: Path, apps: Apps, notify: Callable[[str], None]) -> None:
    """The presence file and the service manager's watchdog: both say that this loop turns."""
    pid = os.getpid()
    started = presence.started(pid) or 0
    told = False
    while True:
        here = _presence(apps, pid, started)
        with suppress(OSError):  # a full disk is no reason to end: it is written the next time
            presence.write(path, here)
        if here.polling_ok is not None and not told:
            told = True
            notify(f"READY=1\nSTATUS=@{here.username} listens")
        notify(f"WATCHDOG=1\nSTATUS={here.problem or f'@{here.username} listens'}")
        await asyncio.sleep(PRESENCE_SECONDS if told else 0.5)


def _presence(apps: Apps, pid: int, started: int) -> presence.Presence:
    health = apps.apps[0].health
    problem, at = health.problem, health.last_at
    return presence.Presence(
        pid=pid,
        started=started,
        username=health.username,
        polling_ok=None if at is None else problem is None,
        last_update_at=datetime.fromtimestamp(at, UTC) if at else None,
        problem=problem,
    )


async def _look(agent: Agent, apps: Apps) -> None:
    measured = False
    while True:
        with suppress(StoreError):  # it is said the next time
            if await agent.refresh_status() and not measured:
                measured = await _measured(agent, apps)
        await asyncio.sleep(LOOK_SECONDS)


async def _measured(agent: Agent, apps: Apps) -> bool:
    """Whether the window could be looked at; one that is too small is told to the owners."""
    try:
        await agent.window.check()
    except WindowTooSmall as error:
        for chat in apps.owner_chats():
            await agent.store.outbox.add(chat, [_payload(f"⚠️ {error}")])
    except AgentError:
        return False  # not there yet
    return True


async def pass_on_alerts(
    backend: BackendClient,
    store: Store,
    owner_chats: Callable[[], Collection[str]],
    pause: float = AGAIN_SECONDS,
) -> None:
    """What the backend has to say goes to every owner's chat, restarts included; what cannot be
    written down now, for want of room, is asked for again."""
    while True:
        with suppress(BackendUnavailable, StoreError):
            last = await store.key_values.get(LAST_ALERT, int) or 0
            async for alert in backend.events(last):
                for chat in owner_chats():
                    await store.outbox.add(chat, [_payload(_told(alert))])
                await store.key_values.put(LAST_ALERT, alert.id)
        await asyncio.sleep(pause)


async def tell_set_aside(
    store: Store, owner_chats: Callable[[], Collection[str]], pause: float = LOOK_SECONDS
) -> None:
    """Tell the owners, and the chat that it belonged to, of each row that was set aside."""
    while True:
        with suppress(StoreError):  # told at the next look
            for row in await store.set_aside.untold():
                what = STORED.get(row.table_name, "entry")
                text = (
                    f"⚠️ A stored {what} could not be read. It was set aside; nothing waits for it."
                )
                for chat in {*owner_chats(), *([row.chat] if row.chat else [])}:
                    await store.outbox.add(chat, [_payload(text)])
                await store.set_aside.told(row.id)
        await asyncio.sleep(pause)


STORED = {
    "chats": "setting of a chat",
    "inbox": "message",
    "turns": "answer",
    "transcript": "part of a conversation",
    "jobs": "job",
    "outbox": "reply",
}


def _told(alert: Alert) -> str:
    mark = {"critical": "🔥", "warning": "⚠️", "over": "✅", "info": "·"}[alert.level]
    return f"{mark} {alert.text}"
