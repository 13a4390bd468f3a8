"""Builds the agent from the settings."""

import asyncio
import logging
import math
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Hashable,
    Mapping,
    Sequence,
)
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from agent.approvals import Approvals, AskOwners
from agent.budgets import DailyBudgets
from agent.chats.assignment import Assignment, ChatOptions, Listener
from agent.chats.chats import Chats
from agent.context.compactor import Spill
from agent.context.window import ModelWindow, never, text_tokens, token_breakdown
from agent.errors import BackendAway, ToolError
from agent.events import Emit, GpuQueued, Notice, TurnFinished
from agent.language import translate_phrase, translated
from agent.leaks import LeakDetector
from agent.llm.gpu_queue import QueuedModel, backend_queue, profile_held
from agent.llm.openai import OpenAIModel, message_json
from agent.llm.selftest import SelftestStore
from agent.memory.notes import ChatMemory
from agent.memory.search import Embedder, SemanticSearch
from agent.messages import PICTURE_TOKENS, System
from agent.model import Model, ModelRefused, Request
from agent.prompt import system_text
from agent.sandbox import sandbox
from agent.sandbox.host_report import HostReport
from agent.sandbox.hosts import Hosts
from agent.sandbox.limits import HostRepo, SandboxLimits
from agent.sandbox.observer import Observer
from agent.sandbox.sandbox import Sandboxes
from agent.schedule.job_kind import JobClassifier
from agent.schedule.planner import NOTHING_RUNS, Planner
from agent.shell import registry
from agent.store import Store
from agent.store.chats import Chat
from agent.store.errors import StoreError
from agent.store.ledger import LedgerTable
from agent.store.retention import Retention
from agent.timezones import known_zone
from agent.tools.context import ALBUM, FileSender, ToolContext
from agent.tools.registry import chosen, shell_names
from agent.tools.tool import Tool
from agent.turn import texts
from agent.turn.fixed_answers import FixedAnswers, blind_answer
from agent.turn.loop import run_turn
from agent.turn.turn import Constrain, Turn, TurnLimits
from agent.web.browser import Browser, PageCache
from backend.client import BackendClient, BackendUnavailable, control_socket
from backend.protocol import Endpoint, Phrase, Prefix, QueueState, Status
from bot.config_file import sync_config
from bot.secret_values import secret_values
from bot.settings import ConfigurationError, Settings
from bot.state import make_private, open_state

if TYPE_CHECKING:
    from agent.documents.indexer import DocumentIndexer
    from agent.documents.library import Library
    from agent.documents.meaning import PassageMeaning
    from agent.documents.reading import DocumentReader
    from agent.mcp.servers import ToolServers
    from agent.pictures import VisionLimits
    from agent.voice.speech_to_text import SpeechToText

log = logging.getLogger(__name__)

STATUS_SECONDS = 5.0  # that the machine's figures may be old when a turn begins
PICTURES_SHARE = 0.25  # of the window, for the pictures of one message
RETURN_SECONDS = 30.0  # in which a restarted backend answers again
T = TypeVar("T")


@dataclass
class Agent:
    """A running agent, as the messaging apps, the terminal and the commands use it."""

    settings: Settings
    store: Store
    sandboxes: Sandboxes
    backend: BackendClient
    model: OpenAIModel
    window: ModelWindow
    approvals: Approvals
    tools: tuple[Tool, ...]
    schemas: tuple[Mapping[str, Any], ...]
    host: HostReport
    budgets: DailyBudgets
    leaks: LeakDetector
    servers: "ToolServers | None"
    people: "People"
    jobs_changed: Callable[[], None] = lambda: None  # called after each change of a chat's jobs
    jobs_note: str = NOTHING_RUNS  # for a model that plans one
    pages: PageCache = field(default_factory=PageCache)
    _checked_at: float = -math.inf  # when `refresh_status` last had an answer, monotonic
    _uptime_s: float | None = None  # of the backend process that knows the prefix
    _registered: Prefix | None = None  # the prefix that it knows

    async def context(self, chat: str) -> dict[str, int]:
        """A chat's tokens by part, the free ones last."""
        return await token_breakdown(self.store, self.window, chat)

    async def command_tokens(self, chat: str) -> dict[str, int]:
        """The tokens of /commands.txt by program and skill, which no prompt holds before the model reads it."""
        known = registry.entries(await self.tool_context(chat))
        return {name: await text_tokens(self.window, text) for name, text in known.items()}

    async def run(self, assignment: Assignment, emit: Emit) -> TurnFinished:
        """Run or resume one turn of a chat."""
        if time.monotonic() - self._checked_at > STATUS_SECONDS:
            await self.refresh_status()
        chat, known = assignment.chat, assignment.known

        def on_wait(state: QueueState) -> None:
            emit(Notice(translate_phrase(state.reason)) if state.reason else GpuQueued(state.ahead))

        model: Model = self.model
        if any(each.body != "{}" for each in assignment.answers):  # files came
            model = FixedAnswers(model, partial(blind_answer, told=await self.blind_words()))
        turn = Turn(
            model=QueuedModel(model, self.window.queue, chat, assignment.priority, on_wait),
            journal=assignment.journal,
            tools=self.tools,
            schemas=self.schemas,
            context=await self.tool_context(chat, zone_of(known, self.settings)),
            approvals=replace(self.approvals, ask=self.people.asker(assignment)),
            limits=turn_limits(self.settings),
            thinking=known.thinking if known else None,
            ready=self.ready,
            stop=assignment.stop,
            answer_now=assignment.answer_now,
            budgets=self.budgets,
            frozen="" if assignment.frozen is None else translated(texts.FROZEN),
            constrain=await self.constrain(),
        )
        async with profile_held(self.backend, chat, assignment.stop, on_wait):
            return await run_turn(turn, emit)

    async def constrain(self) -> Constrain:
        """Whether this model's calls are kept readable by a grammar, by its self-test where it was made."""
        with suppress(BackendAway):
            if self.host.status and await self.model.shows_prompts():
                known = await self.selftests.known(self.host.status.backend)
                return "always" if known and known.constrain else "once needed"
        return "never"

    async def tool_context(self, chat: str, zone: str | None = None) -> ToolContext:
        """What tools get in a chat; `zone` is its IANA time zone, read from the store unless given."""
        zone = zone or zone_of(await self.store.chats.get(chat), self.settings)
        sandbox, web = await self.sandboxes.of(chat), None
        if hosts := allowed_hosts(self.settings):
            from agent.web.fetch import Fetcher

            web = Fetcher(hosts, sandbox.observer)
        search = semantic_search(self.store, self.settings)
        return ToolContext(
            sandbox=sandbox,
            web=web,
            notes=ChatMemory(self.store, chat, zone, search),
            jobs=await self.planner(chat, zone),
            plans=self.store.plans,
            file_sender=self.people.file_sender(chat),
            leaks=self.leaks,
            browser=browser(self.settings, self.store, chat, self.pages),
            documents=partial(self.documents.library, chat),
            skills=partial(offered_skills, self.settings.state_dir),
            servers=self.servers,
            vision=self._model_vision,
        )

    @cached_property
    def documents(self) -> "Documents":
        return Documents(self.settings, self.store, self.sandboxes)

    async def planner(self, chat: str, zone: str | None = None) -> Planner:
        """The planner of a chat's jobs, in its time zone."""
        zone = zone or zone_of(await self.store.chats.get(chat), self.settings)

        async def profiles() -> list[str]:
            """Empty while the backend is away, or where the server is external."""
            with suppress(BackendUnavailable):
                return [profile.name for profile in await self.backend.profiles()]
            return []

        def changed() -> None:
            self.jobs_changed()  # assigned once there is a scheduler

        made = planner(self.settings, self.store, chat, zone, profiles, changed)
        return replace(made, note=self.jobs_note)

    @property
    def selftests(self) -> SelftestStore:
        """Self-tests of models, run when a model is first used."""
        return SelftestStore(self.store, self.model, backend_queue(self.backend), self.schemas)

    async def ready(self) -> None:
        """Return once the model server serves. Raises BackendAway when it has failed or is gone."""
        backend = self.backend
        while True:
            try:
                async for _ in backend.ready(turn_limits(self.settings).away_seconds):
                    pass
                return
            except BackendUnavailable as error:
                if await backend.answers() or not await backend.answers_within(RETURN_SECONDS):
                    raise BackendAway(Phrase.of(error)) from None

    async def vision(self) -> "VisionLimits | None":
        """The limits of pictures, asked once the model serves; None where it sees none, or none serves."""
        return await self._once_served(self._model_vision)

    async def _model_vision(self) -> "VisionLimits | None":
        """The limits of pictures; None where the model sees none. Raises BackendUnavailable."""
        from agent.pictures import VisionLimits

        found = await self.backend.endpoint(vision=True)
        if not found.vision:
            return None
        most = int(PICTURES_SHARE * found.n_ctx / PICTURE_TOKENS)
        return VisionLimits(found.picture_pixels, max(1, min(ALBUM, most)))

    async def _once_served(self, ask: Callable[[], Awaitable[T]]) -> T | None:
        """The backend's answer once its model serves; None where none does."""
        with suppress(BackendAway):
            try:
                return await ask()
            except BackendUnavailable:
                await self.ready()
            with suppress(BackendUnavailable):
                return await ask()
        return None

    async def blind_words(self) -> str:
        """Explain that this model cannot see pictures, and name models that can."""
        model, seeing = translated("This model"), list[str]()
        with suppress(BackendUnavailable):
            found = await self.backend.endpoint()
            model = found.profile or found.model or model
            seeing = [each.name for each in await self.backend.profiles() if each.sees]
            if found.kind == "external":
                return translated(texts.BLIND_SERVER).format(model=model)
        which = translated(" none of those here can.")
        if seeing:
            which = translated(" {names} can.").format(names=", ".join(seeing))
        return translated(texts.BLIND).format(model=model, which=which)

    def speech_to_text(self) -> "SpeechToText":
        """Transcription of recordings; imported with the first one."""
        from agent.voice.speech_to_text import ModelRecognizer, SpeechToText

        async def recognizer() -> ModelRecognizer | None:
            found = await self._once_served(self.backend.endpoint)
            if found is None or not found.audio:
                return None
            model = QueuedModel(self.model, self.window.queue, "voice")
            return ModelRecognizer(model, self.schemas)

        url = self.settings.agent.transcribe_url
        used = self.store.ledger.use_of("agent.transcribe_url", url)
        return SpeechToText(models_of(self.settings), url, recognizer, used)

    async def refresh_status(self) -> Status | None:
        """The backend's status, also kept for /host.txt; None while it is away.

        A restarted backend is told the prefix to keep warm, as is one whose model's template changes its form.
        """
        try:
            status = await self.backend.status()
            prefix = await self._prefix() if status.backend.serving else None
            known = self._uptime_s is not None and status.uptime_s >= self._uptime_s
            if not known or (prefix is not None and prefix != self._registered):
                if prefix is None:
                    system, tools = message_json(System(system_text())), [*map(dict, self.schemas)]
                    prefix = Prefix(messages=[system], tools=tools)
                await self.backend.warm(prefix.messages, prefix.tools, prefix.before)
                self._registered = prefix
            self._uptime_s = status.uptime_s
            self._checked_at = time.monotonic()
        except BackendUnavailable:
            status = None
        self.host.status = status
        return status

    async def _prefix(self) -> Prefix | None:
        """The fixed prefix in the form of this model's template; None while that is unknown."""
        with suppress(BackendAway, ModelRefused):
            return await self.model.prefix(Request((System(system_text()),), self.schemas))
        return None

    async def server_identity(self) -> Hashable | None:
        """A value that changes at each restart of the model server.

        None while none serves, or it sleeps, and for a server that does not report its cache: warming
        chats there might cost money in vain.
        """
        status = await self.refresh_status()
        if status is None or status.backend.state not in ("ready", "busy"):
            return None
        with suppress(BackendUnavailable):
            if (await self.backend.endpoint()).extras:
                server = status.backend
                return server.pid, server.profile, server.restarts, server.model
        return None


def offered_skills(state: Path) -> list[tuple[str, str]]:
    """Names and descriptions of the skills that the owner has added."""
    if not (state / "skills").is_dir():  # avoids the import
        return []
    from agent.skills import SkillShelf

    return [(pin.name, pin.description) for pin in SkillShelf(state).offered()]


def show_skills(state: Path) -> None:
    """Have the sandboxes show the skills that were added and are unchanged."""
    if (state / "skills").is_dir():
        from agent.skills import SkillShelf

        SkillShelf(state).show()


@dataclass
class Documents:
    """The documents of all chats and of the owner's folders. Modules are imported when they are needed."""

    settings: Settings
    store: Store
    sandboxes: Sandboxes
    _indexed: bool = False  # an indexer is at work

    @cached_property
    def _reader(self) -> "DocumentReader":
        from agent.documents.reading import DocumentReader

        return DocumentReader(self.sandboxes, self.settings.agent.documents)

    @cached_property
    def _meaning(self) -> "PassageMeaning | None":
        from agent.documents.meaning import PassageMeaning

        embedder = embedder_of(self.settings, self.store)
        return PassageMeaning(self.store.documents, embedder) if embedder else None

    def library(self, chat: str) -> "Library":
        from agent.documents.library import Library

        return Library(
            self.store.documents, self._reader, chat, self._meaning, alone=not self._indexed
        )

    def indexer(self, busy: Callable[[], bool]) -> "DocumentIndexer":
        from agent.documents.indexer import DocumentIndexer

        self._indexed = True
        return DocumentIndexer(self.store.documents, self._reader, busy, self._meaning)


class People(Protocol):
    """Who is asked on behalf of a turn, and gets a chat's files; None where nobody is there."""

    def asker(self, assignment: Assignment) -> AskOwners | None: ...

    def file_sender(self, chat: str) -> FileSender | None: ...


class Nobody:
    """Nobody is asked, and files go nowhere."""

    def asker(self, assignment: Assignment) -> None:
        return None

    def file_sender(self, chat: str) -> None:
        return None


def leak_detector(settings: Settings) -> LeakDetector:
    """A detector that knows every secret of the configuration."""
    leaks = LeakDetector(secret_values(settings))
    if leaks.unwatched:
        log.warning("too plain to be found in what leaves: %s", ", ".join(leaks.unwatched))
    return leaks


@asynccontextmanager
async def open_agent(
    settings: Settings,
    backend: BackendClient,
    store: Store | None = None,
    people: People | None = None,
    *,
    leaks: LeakDetector | None = None,
) -> AsyncIterator[Agent]:
    """The agent on a backend and the database, which is opened here unless it is given, as is the detector."""
    host = HostReport(settings.state_dir, settings.agent.timezone)
    try:
        tools = chosen(settings.agent.tools)
    except ValueError as error:
        raise ConfigurationError(f"agent.tools: {error}") from None
    leaks = leaks or leak_detector(settings)

    async with AsyncExitStack() as stack:
        if store is None:
            store = await stack.enter_async_context(open_state(settings))
        boxes = await stack.enter_async_context(open_sandboxes(settings, host, store))
        await asyncio.to_thread(show_skills, settings.state_dir)
        endpoint = recorded_endpoint(settings, backend, store.ledger, leaks)
        model = await stack.enter_async_context(OpenAIModel(endpoint, kept=store.key_values))
        servers = await stack.enter_async_context(tool_servers(settings, store, boxes))
        tools += await tools_of_servers(servers, tools)
        schemas = tuple(tool.schema for tool in tools)
        yield Agent(
            settings,
            store,
            boxes,
            backend,
            model,
            ModelWindow(
                store,
                model,
                backend_queue(backend),
                schemas,
                spill_into(boxes),
                model.useful,
                model.shows_prompts if settings.agent.read_ahead else never,
            ),
            Approvals(store.approvals, None, zone=settings.agent.timezone),
            tools,
            schemas,
            host,
            DailyBudgets(store.budgets, budget_limits(settings), settings.agent.timezone),
            leaks,
            servers,
            people or Nobody(),
        )


async def tools_of_servers(
    servers: "ToolServers | None", others: Sequence[Tool]
) -> tuple[Tool, ...]:
    """The tools of MCP servers that are listed in every prompt."""
    if servers is None or not any(server.tools for server in servers.configs.values()):
        return ()
    from agent.mcp.listed import listed_tools

    found = await listed_tools(servers, others)
    if found.problem:
        log.warning("%s", found.problem)
    return found.tools


@asynccontextmanager
async def tool_servers(
    settings: Settings, store: Store, sandboxes: Sandboxes
) -> "AsyncIterator[ToolServers | None]":
    """The MCP servers of the configuration; None, and nothing imported, where there are none."""
    if not settings.agent.mcp:
        yield None
        return
    from agent.mcp.config import SecretBinding, ServerConfig
    from agent.mcp.servers import open_servers

    configs = [
        ServerConfig(
            name,
            command=section.command,
            url=section.url,
            env_file=section.env_file,
            network=section.network,
            folders=section.folders,
            allow=section.allow,
            tools=section.tools,
            secrets=[
                SecretBinding(variable, each.file, each.host, each.header.lower())
                for variable, each in section.secrets.items()
            ],
            client_id=section.client_id,
            client_secret_file=section.client_secret_file,
            callback_port=section.callback_port,
        )
        for name, section in settings.agent.mcp.items()
    ]
    async with open_servers(configs, sandboxes, settings.state_dir, store.key_values) as servers:
        store.freeze.on_freeze.append(servers.stop_all)
        yield servers


def recorded_endpoint(
    settings: Settings, backend: BackendClient, ledger: LedgerTable, leaks: LeakDetector
) -> Callable[[], Awaitable[Endpoint]]:
    """Gives the model's address, and records in the ledger that the owner's key is used there (once a day)."""

    async def endpoint() -> Endpoint:
        found = await backend.endpoint()
        if settings.backend.kind == "external" and found.api_key:
            await ledger.secret_used("backend.api_key", found.url)
        await ledger.use_of("backend.url", found.url)()
        leaks.watch("of the model server", found.api_key)
        return found

    return endpoint


def spill_into(sandboxes: Sandboxes) -> Spill:
    """Saves old output in its chat's workspace; its path, "" where there is no room."""

    async def spill(chat: str, text: str, stranger: str) -> str:
        try:
            files = (await sandboxes.of(chat)).files
            if stranger:
                await files.mark(stranger)
            return await files.save_output(text.encode("utf-8", "replace"))
        except ToolError:
            return ""

    return spill


@dataclass(frozen=True)
class LedgerObserver(Observer):
    """Records in the ledger; without a store it opens the state's for each entry."""

    settings: Settings
    store: Store | None
    chat: str

    async def connection(self, host: str, refused: str = "") -> None:
        async with self._ledger() as ledger:
            await ledger.connection(self.chat, host, refused)

    async def tainted(self, source: str) -> None:
        async with self._ledger() as ledger:
            await ledger.record("taint", self.chat, what="files", source=source)

    async def secret(self, name: str, where: str) -> None:
        async with self._ledger() as ledger:
            await ledger.secret_used(name, where)

    @asynccontextmanager
    async def _ledger(self) -> AsyncIterator[LedgerTable]:
        try:
            opened = nullcontext(self.store) if self.store else open_state(self.settings)
            async with opened as store:
                yield store.ledger
        except StoreError as error:
            raise ToolError(f"It cannot be recorded, so it is not done: {error}") from None


def open_sandboxes(
    settings: Settings, host: HostReport, store: Store | None = None
) -> AbstractAsyncContextManager[Sandboxes]:
    """The sandboxes of all chats, within the configured limits."""
    make_private(settings.state_dir)
    box = settings.agent.sandbox
    limits = SandboxLimits(
        box.memory_mib, box.pids, box.disk_mib, box.files, box.command_seconds, box.output_kib
    )
    return sandbox.open_sandboxes(
        settings.state_dir,
        limits=limits,
        repos=[
            HostRepo(name, repo.path, repo.write, repo.mine)
            for name, repo in settings.agent.repos.items()
        ],
        zone=settings.agent.timezone,
        report=host.text,
        hosts=allowed_hosts(settings),
        observe=partial(LedgerObserver, settings, store),
        programs={**registry.scripts(), **shell_names(chosen(settings.agent.tools))},
    )


def open_chats(agent: Agent, options: ChatOptions, listener: Listener) -> Chats:
    """The workers of the agent's chats."""
    return Chats(agent.store, agent.run, agent.window, options, listener)


def retention_of(settings: Settings) -> Retention:
    kept = settings.state
    return Retention(
        kept.keep_days, kept.records_days, kept.usage_days, kept.ledger_days, kept.keep_mib << 20
    )


def turn_limits(settings: Settings) -> TurnLimits:
    return TurnLimits(settings.agent.max_tool_calls, settings.agent.turn_seconds)


def budget_limits(settings: Settings) -> dict[str, int]:
    """By the kinds of agent.budgets; 0: no limit."""
    limits = settings.agent.budgets
    return {
        "calls": limits.calls,
        "bytes": limits.out_mib << 20,
        "hosts": limits.new_hosts,
        "files": limits.files,
        "jobs": limits.jobs,
    }


def planner(
    settings: Settings,
    store: Store,
    chat: str,
    zone: str,
    profiles: Callable[[], Awaitable[Collection[str]]],
    changed: Callable[[], None] = lambda: None,
) -> Planner:
    """The planner of a chat's jobs. `profiles` gives the names of the profiles that a job may switch to."""

    async def keep() -> None:
        changed()
        await sync_config(store, settings.path, settings.agent.timezone)

    classifier = JobClassifier(list(settings.agent.repos), profiles)
    return Planner(store, chat, zone, classifier, on_change=keep)


def allowed_hosts(settings: Settings) -> Hosts | None:
    """The hosts that tools may reach; None: no network."""
    box = settings.agent.sandbox
    return Hosts(tuple(box.allow_hosts)) if box.network else None


def browser(settings: Settings, store: Store, chat: str, pages: PageCache) -> Browser:
    """Search and reading of the web for a chat."""
    web, search = settings.agent.web, None
    if web.search_url:
        from agent.web.search import SearXNG

        used = store.ledger.use_of("agent.web.search_url", web.search_url)
        search = SearXNG(web.search_url, used)
    return Browser(chat, store.addresses, search, web.read, pages)


def semantic_search(store: Store, settings: Settings) -> SemanticSearch | None:
    """Search by meaning (embeddings), where an embedding server is configured."""
    embedder = embedder_of(settings, store)
    return SemanticSearch(store, embedder) if embedder else None


def embedder_of(settings: Settings, store: Store) -> Embedder | None:
    """The owner's embedding server, else the backend's; None where there is neither."""
    if url := settings.agent.embedding_url:
        return Embedder(url, used=store.ledger.use_of("agent.embedding_url", url))
    if name := settings.backend.embedding:
        socket = control_socket(settings.backend.socket, settings.state_dir)
        return Embedder("http://backend", Path(name).stem, socket)
    return None


def models_of(settings: Settings) -> Path:
    """The folder of downloaded speech models and voices."""
    return settings.state_dir / "models" / "voice"


def zone_of(chat: Chat | None, settings: Settings) -> str:
    """The chat's own time zone, else the agent's."""
    return (chat and known_zone(chat.timezone or "")) or settings.agent.timezone
