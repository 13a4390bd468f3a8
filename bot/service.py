"""The bot as a service: messaging apps, the agent, the schedule and the backend's alerts in one loop."""

import asyncio
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

from agent.agent import Agent, offered_skills, voice_models, zone_of
from agent.aio import BackgroundTasks, set_within
from agent.channels import TurnListener
from agent.chats.chats import Chats
from agent.chats.maintenance import Maintenance
from agent.context.window import WindowTooSmall
from agent.errors import AgentError
from agent.language import speaking, translate_phrase
from agent.leaks import LeakDetector
from agent.model import ModelRefused
from agent.sandbox.sandbox import probe
from agent.schedule.scheduler import (
    NIGHT,
    JobAction,
    JobRunner,
    QuietHours,
    Scheduler,
    SubmitTask,
    SummarizeRepo,
    remind,
)
from agent.schedule.watches import WATCH
from agent.store import Store
from agent.store.errors import StoreError
from agent.store.ledger import record
from backend.client import BackendClient, BackendUnavailable
from backend.protocol import IDLE, Phrase
from bot import config_file
from bot.agent_config import leak_detector, open_agent, retention_of
from bot.attachments import AttachmentFetcher
from bot.channel import OutgoingMessage
from bot.commands.context import ModelSource, Services
from bot.commands.people import TOY
from bot.connected_terminals import BotChannels, ConnectedTerminals
from bot.holder import Holder, ServeHolder
from bot.job_actions import HealthDigest, ProfileSwitch, repo_summaries, run_watch
from bot.messaging_apps import Apps
from bot.night_shift import night_shift
from bot.settings import CalendarSection, Settings
from bot.state import (
    PRESENCE,
    Presence,
    bot_facts,
    open_checked_state,
    share_facts,
    started,
    write_presence,
)
from bot.voice.replies import SpokenReplies

log = logging.getLogger(__name__)

PRESENCE_SECONDS = 10.0
LOOK_SECONDS = 15.0  # between two looks at the backend
AGAIN_SECONDS = 5.0
BACKUP_LOOK_SECONDS = 600.0
LAST_ALERT = "alert"
CONFIGURATION = "configuration"  # its SHA-256 and the program's version at the last start
ALERT_MARKS = {"critical": "🔥", "warning": "⚠️", "over": "✅", "info": "·"}
OpenApps = Callable[[Settings, Store, LeakDetector], AbstractAsyncContextManager[Apps]]


async def serve_bot(
    settings: Settings,
    backend: BackendClient,
    open_apps: OpenApps,
    also: Sequence[TurnListener] = (),
    notify: Callable[[str], None] = lambda line: None,
    models: ModelSource | None = None,
    serve_holder: ServeHolder = lambda holder: nullcontext(),
) -> None:
    """Run the messaging apps until cancelled. Raises bot.messaging_apps.AppUnavailable, StoreError.

    `also` are more listeners of turns; `notify` tells the service manager; `models` is what /model offers;
    `serve_holder` serves the commands.
    """
    leaks = leak_detector(settings)
    async with open_checked_state(settings) as store, open_apps(settings, store, leaks) as apps:
        terminals = ConnectedTerminals(store, apps)
        channels = BotChannels(terminals)
        async with (
            open_agent(settings, backend, store, channels, leaks=leaks, jobs_note="") as agent,
            SpokenReplies(agent.sandboxes.of, voice_models(settings.state_dir)) as voice,
            Chats(
                store,
                agent.run,
                agent.window,
                replace(channels, attachments=AttachmentFetcher(agent, apps)),
                replace(channels, listeners=(apps, voice, *also)),
                settings.agent.timezone,
            ) as chats,
            open_scheduler(settings, agent, chats),
            background_work(settings, agent, apps, chats, notify),
            serve_holder(Holder(settings, backend, store, agent, chats, terminals, runs_jobs=True)),
        ):
            await record_configuration(settings, store)
            await apps.serve(
                Services(
                    chats,
                    agent.approvals,
                    backend,
                    agent.context,
                    agent.planner,
                    selftests=agent.selftests,
                    sandbox=agent.sandboxes.of,
                    state=settings.state_dir,
                    budgets=agent.budgets,
                    models=models,
                    skills=partial(offered_skills, settings.state_dir),
                    servers=agent.servers,
                    search=engine.name if (engine := agent.browser("").engine) else "",
                    voice=voice,
                )
            )


async def record_configuration(settings: Settings, store: Store) -> None:
    """Record in the ledger where the configuration or the program has changed since the last start."""
    file = await asyncio.to_thread(settings.path.read_bytes) if settings.path else b""
    digest, program = hashlib.sha256(file).hexdigest(), version("voltaire-agent")
    known = await store.key_values.get(CONFIGURATION, str) or ""
    if known == f"{digest} {program}":
        return
    async with store.database.write() as tx:
        if settings.path and known.partition(" ")[0] != digest:
            facts = {"act": "configuration", "file": str(settings.path), "sha256": digest}
            await record(tx, "admin", **facts)
        if (before := known.partition(" ")[2]) != program:
            await record(tx, "admin", act="version", to=program)
            if before:
                log.info("another version from=%s to=%s", before, program)
    await store.key_values.put(CONFIGURATION, f"{digest} {program}")


@asynccontextmanager
async def open_scheduler(
    configuration: Settings, agent: Agent, chats: Chats
) -> AsyncIterator[Scheduler]:
    """Open the scheduler of the jobs of all chats that the agent's channels own."""
    settings = configuration.agent
    try:
        quiet = QuietHours.parse(settings.quiet_hours, settings.timezone)
    except ValueError:
        raise AgentError('agent.quiet_hours must look like "22:00-07:00".') from None

    price = configuration.backend.price_kwh
    digest = HealthDigest(agent.store, agent.backend, configuration.state_dir, price)
    submit = SubmitTask(chats.submit)
    actions: dict[str, JobAction] = {
        "remind": remind,
        "task": submit,
        WATCH: run_watch(agent, submit),
        NIGHT: night_shift(agent, lambda: bool(chats.running())),
        "summary": SummarizeRepo(repo_summaries(agent), agent.channels),
        "digest": digest,
        config_file.PROFILE_JOB: ProfileSwitch(agent.backend, agent.store),
    }
    runner = JobRunner(agent.store, actions, agent.channels, quiet)
    await agent.config.keep_schedule(agent.store)
    async with BackgroundTasks() as tasks, Scheduler(runner) as scheduler:
        if agent.mail:
            from agent.schedule.arrivals import Arrivals

            arrivals = Arrivals(agent.store, agent.mail, agent.channels)
            tasks.start(arrivals.run(), "waiting for mail")
        yield scheduler


# -- background work ----------------------------------------------------------


@asynccontextmanager
async def background_work(
    settings: Settings, agent: Agent, apps: Apps, chats: Chats, notify: Callable[[str], None]
) -> AsyncIterator[None]:
    """Run the work that goes on whether or not anybody writes."""
    store = agent.store
    maintenance = Maintenance(
        store,
        agent.window,
        chats,
        agent.server_identity,
        retention_of(settings),
        agent.semantic_search,
        saves=agent.saves_prompts,
        forget=agent.forget_prompts,
    )
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(read_documents(agent, chats)),
            group.create_task(keep_presence(agent, apps, notify)),
            group.create_task(watch_backend(agent, apps)),
            group.create_task(test_new_models(agent)),
            group.create_task(pass_on_alerts(agent.backend, store, apps.alerted_chats)),
            group.create_task(maintenance.run()),
            group.create_task(check_sandbox(agent, apps)),
            group.create_task(keep_backups(settings, agent, apps)),
        ]
        for name, account in settings.agent.calendar.items():
            if account.remind:
                tasks += [group.create_task(remind_of_entries(agent, apps, name, account))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            (settings.state_dir / PRESENCE).unlink(missing_ok=True)


async def keep_presence(agent: Agent, apps: Apps, notify: Callable[[str], None]) -> None:
    """Renew the presence file and the service manager's watchdog: both show that this loop runs.

    READY does not wait for a messaging app, whose server may be away for days.
    """
    state_dir, store, servers = agent.config.state_dir, agent.store, agent.servers
    pid = os.getpid()
    began = started(pid) or 0
    shared = os.environ.get("RUNTIME_DIRECTORY")  # of the machine's unit, open to its group
    notify("READY=1")
    log.info("ready version=%s pid=%d", version("voltaire-agent"), pid)
    changed = apps.apps[0].health_changed  # changes of other apps show after PRESENCE_SECONDS
    while True:
        changed.clear()
        health = apps.health
        at = health.last_at
        here = Presence(
            pid=pid,
            started=began,
            username=health.username,
            polling_ok=False if health.problem else True if at else None,
            last_update_at=datetime.fromtimestamp(at, UTC) if at else None,
            problem=health.problem,
            mcp_running=len(servers.running) if servers else None,
        )
        with suppress(OSError, StoreError):  # a full disk, say; tried again next time
            write_presence(state_dir, here)
            if shared:
                share_facts(here, await bot_facts(here, store), Path(shared))
        name = (here.username or "").removeprefix("@")
        line = f"@{name} listens" if at else "looks for the messaging app's server"
        notify(f"WATCHDOG=1\nSTATUS={here.problem or line}")
        await set_within(changed, PRESENCE_SECONDS)


async def remind_of_entries(agent: Agent, apps: Apps, name: str, account: CalendarSection) -> None:
    """Tell a chat, else the owners, of the entries of a calendar account before they begin."""
    from agent.calendar.reminders import Reminders

    async def chats() -> Collection[str]:
        return [account.remind_chat] if account.remind_chat else await apps.alerted_chats()

    chat = await agent.store.chats.get(account.remind_chat)
    calendars = agent.calendars(zone_of(chat, agent.config))
    assert calendars
    payload = agent.channels.payload
    await Reminders(agent.store, calendars, name, account.remind, chats, payload).run()


async def read_documents(agent: Agent, chats: Chats) -> None:
    """Index documents that were sent and those in the owner's folders, while no turn runs."""
    await asyncio.sleep(LOOK_SECONDS)  # not needed for the start
    await agent.documents.indexer(lambda: bool(chats.running())).run()


async def watch_backend(agent: Agent, apps: Apps) -> None:
    """Keep /host.txt and the warm prefix up to date; once a model serves, warn owners where its window is too
    small."""
    checked = False
    while True:
        with suppress(StoreError):  # tried again at the next look
            if await agent.refresh_status() and not checked:
                try:
                    await agent.window.check()
                    checked = True
                except WindowTooSmall as error:
                    checked = True
                    await warn(agent.store, await apps.alerted_chats(), Phrase.of(error))
                except AgentError:
                    pass  # no model serves yet
        await asyncio.sleep(LOOK_SECONDS)


async def test_new_models(agent: Agent) -> None:
    """Find out how a model calls tools when it is the owner's own and serves for the first time."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        with suppress(AgentError, BackendUnavailable, ModelRefused, StoreError):
            server = (await agent.backend.status()).backend
            if server.serving and server.kind == "managed" and server.model != TOY:
                await agent.selftests.of(server, IDLE)


async def check_sandbox(agent: Agent, apps: Apps) -> None:
    """Warn the owners where tools cannot run; the chat works without them."""
    found = await probe(await agent.sandboxes.of("doctor"))
    if found.status == "fail":
        text = f"{found.detail} {found.remedy}".strip()
        log.error("%s", text)
        with suppress(StoreError):
            await warn(agent.store, await apps.alerted_chats(), text)


async def warn(store: Store, chats: Iterable[str], sentence: str, mark: str = "⚠️") -> None:
    """Send an unprompted sentence to each chat, in its own language."""
    for chat in chats:
        with speaking(await store.chats.spoken(chat)):
            await store.outbox.add(
                chat, [OutgoingMessage(f"{mark} {translate_phrase(sentence)}").to_json()]
            )


async def pass_on_alerts(
    backend: BackendClient,
    store: Store,
    owner_chats: Callable[[], Awaitable[Collection[str]]],
    pause: float = AGAIN_SECONDS,
) -> None:
    """Send the backend's alerts to every owner, including those from while the bot was down. One that cannot be
    stored now (a full disk) is asked for again."""
    while True:
        with suppress(BackendUnavailable, StoreError):
            last = await store.key_values.get(LAST_ALERT, int) or 0
            async for alert in backend.events(last):
                await warn(store, await owner_chats(), alert.text, ALERT_MARKS[alert.level])
                if alert.name == "leak":
                    await store.ledger.record("leak", found=alert.text)
                await store.key_values.put(LAST_ALERT, alert.id)
        await asyncio.sleep(pause)


async def keep_backups(settings: Settings, agent: Agent, apps: Apps) -> None:
    """Make a backup each day where `state.backup_dir` is a folder; warn the owners where that fails."""
    store = agent.store
    folder, told = settings.state.backup_dir, None
    if folder == Path():
        return
    from bot.backup import rotate
    from bot.restore import BackupError

    while True:
        today = datetime.fromtimestamp(store.clock(), UTC).astimezone().date()
        try:
            if made := await rotate(settings.state_dir, folder, settings.path, today):
                log.info("backup file=%s mib=%.1f", made, made.stat().st_size / 2**20)
        except (BackupError, StoreError, OSError) as error:
            log.warning("no backup was made: %s", error)
            if told != today:
                told = today
                with suppress(StoreError):
                    chats = await apps.alerted_chats()
                    why = Phrase("No backup was made: {why}", why=Phrase.of(error))
                    await warn(store, chats, why)
        await asyncio.sleep(BACKUP_LOOK_SECONDS)
