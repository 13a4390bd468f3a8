"""The agent: its configuration, what it is made of, and how it runs a turn.

async with open_agent(AgentConfig(state_dir), backend, store) as agent:
    async with Chats(store, agent.run, agent.window, NoChannels()) as chats:
        await chats.submit(Incoming(...))
"""

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
    suppress,
)
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agent.approvals import Approvals
from agent.budgets import DailyBudgets
from agent.channels import Assignment, Channels, NoChannels
from agent.context.window import ModelWindow, Spill, text_tokens, token_breakdown
from agent.errors import BackendAway, ToolError
from agent.events import Emit, GpuQueued, Notice, TurnFinished
from agent.language import translate_phrase, translated
from agent.leaks import LeakDetector
from agent.llm.openai import OpenAIModel, message_json
from agent.llm.queued_model import OnWait, QueuedModel, backend_queue, profile_held
from agent.llm.selftest import SelftestStore
from agent.memory.notes import ChatMemory
from agent.memory.search import Embedder, SemanticSearch
from agent.messages import PICTURE_TOKENS, System
from agent.model import Model, ModelRefused, Request
from agent.prompt import system_text, use_instructions
from agent.sandbox import sandbox
from agent.sandbox.host_report import HostReport
from agent.sandbox.hosts import Hosts
from agent.sandbox.limits import HostRepo, SandboxLimits
from agent.sandbox.observer import Observer
from agent.sandbox.sandbox import Sandboxes
from agent.schedule.night import Night
from agent.schedule.planner import NOTHING_RUNS, JobClassifier, Planner
from agent.shell import registry
from agent.store import Store
from agent.store.chats import Chat
from agent.timezones import known_zone
from agent.tools.context import ALBUM, ToolContext
from agent.tools.registry import chosen, offered, shell_names
from agent.tools.tool import Tool
from agent.turn import texts
from agent.turn.loop import run_turn
from agent.turn.turn import Constrain, Turn, TurnLimits, TurnTime
from agent.web.browser import Browser, PageCache
from backend.client import BackendClient, BackendGone, BackendUnavailable
from backend.protocol import Endpoint, Phrase, Prefix, QueueState, Status

if TYPE_CHECKING:  # imported when they are first needed
    from agent.calendar.accounts import Calendars
    from agent.documents.indexer import DocumentIndexer, PassageMeaning
    from agent.documents.library import Library
    from agent.documents.reading import DocumentReader
    from agent.mail.account import AccountConfig, MailAccount
    from agent.mcp.config import ServerConfig
    from agent.mcp.servers import ToolServers
    from agent.pictures import VisionLimits
    from agent.voice.speech_to_text import SpeechToText

log = logging.getLogger(__name__)

STATUS_SECONDS = 5.0  # that the machine's figures may be old when a turn begins
PICTURES_SHARE = 0.25  # of the window, for the pictures of one message
RETURN_SECONDS = 30.0  # in which a restarted backend answers again
T = TypeVar("T")


async def keep_no_schedule(store: Store) -> None:
    """The `keep_schedule` where no configuration file lists the jobs."""


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """What an agent may do and use.

    `zone` is an IANA name. `hosts` are those that tools may reach; None: no network. `budgets` are by the
    kinds of agent.budgets, 0 for no limit. `external`: the model server belongs to somebody else.
    `keep_schedule` is called after each change of a job.
    """

    state_dir: Path
    zone: str = "UTC"
    instructions: str = ""  # of the owner, at the end of the system text
    tools: tuple[Tool, ...] = field(default_factory=partial(chosen, ()))
    limits: TurnLimits = field(default_factory=TurnLimits)
    sandbox: SandboxLimits = field(default_factory=SandboxLimits)
    repos: Sequence[HostRepo] = ()
    hosts: Hosts | None = None
    budgets: Mapping[str, int] = field(default_factory=dict)
    search: str = ""  # a service; empty: SearXNG where there is a `search_url`
    search_url: str = ""  # of a SearXNG
    search_key_file: Path | None = None  # of any other
    read_pages: Literal["seen", "ask", "never"] = "seen"
    render_pages: bool = False
    documents: Mapping[str, Path] = field(default_factory=dict)  # folders by name
    mcp: "Sequence[ServerConfig]" = ()
    mail: "Sequence[AccountConfig]" = ()
    calendars: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # as configured
    embedding_url: str = ""
    embedding_model: str = ""  # of the backend, where there is no `embedding_url`
    transcribe_url: str = ""
    read_ahead: bool = True
    external: bool = False
    night: Night = field(default_factory=Night)
    keep_schedule: Callable[[Store], Awaitable[None]] = keep_no_schedule
    jobs_note: str = NOTHING_RUNS  # for a model that plans one: where jobs do not run


@dataclass(kw_only=True)
class Agent:
    """A running agent, as the messaging apps, the terminal and the commands use it."""

    config: AgentConfig
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
    mail: "Mapping[str, MailAccount]"
    channels: Channels
    pages: PageCache = field(default_factory=PageCache)
    _checked_at: float = -math.inf  # when `refresh_status` last had an answer, monotonic
    _uptime_s: float | None = None  # of the backend process that knows the prefix
    _registered: Prefix | None = None  # the prefix that it knows

    async def context(self, chat: str) -> dict[str, int]:
        """Count a chat's tokens by part of the prompt, the free ones last; they add up to the window."""
        return await token_breakdown(self.store, self.window, chat)

    async def command_tokens(self, chat: str) -> dict[str, int]:
        """The tokens of /commands.txt by program and skill, which no prompt holds before the model reads it."""
        known = registry.entries(await self.tool_context(chat))
        return {name: await text_tokens(self.window, text) for name, text in known.items()}

    async def run(self, assignment: Assignment, emit: Emit) -> TurnFinished:
        """Run or resume one turn of a chat."""
        chat, limit = assignment.chat, TurnTime()

        def on_wait(state: QueueState) -> None:
            limit.stand_still(state.reason is not None)
            emit(Notice(translate_phrase(state.reason)) if state.reason else GpuQueued(state.ahead))

        async with profile_held(self.backend, chat, assignment.stop, on_wait):
            return await run_turn(await self._turn(assignment, limit, on_wait), emit)

    async def _turn(self, assignment: Assignment, limit: TurnTime, on_wait: OnWait) -> Turn:
        """Compose what a turn needs; what depends on the model is asked of the one that serves now."""
        if time.monotonic() - self._checked_at > STATUS_SECONDS:
            await self.refresh_status()
        chat, known = assignment.chat, assignment.known
        model: Model = self.model
        if any(each.body != "{}" for each in assignment.answers):  # files came
            from agent.pictures import FixedAnswers, blind_answer

            model = FixedAnswers(model, partial(blind_answer, told=await self.blind_words()))
        context = await self.tool_context(chat, zone_of(known, self.config))
        return Turn(
            model=QueuedModel(model, self.window.queue, chat, assignment.priority, on_wait),
            journal=assignment.journal,
            tools=self.tools,
            schemas=self.schemas,
            context=context,
            approvals=replace(self.approvals, ask=self.channels.asker(assignment)),
            limits=self.config.limits,
            thinking=known.thinking if known else None,
            ready=self.ready,
            stop=assignment.stop,
            answer_now=assignment.answer_now,
            budgets=self.budgets,
            frozen="" if assignment.frozen is None else translated(texts.FROZEN),
            constrain=self.constrain,
            history=context.sandbox.history,
            time=limit,
        )

    async def constrain(self) -> Constrain:
        """When a grammar keeps the model's calls readable, by its self-test if that was made; "never" while it is away."""
        with suppress(BackendAway):
            if await self.model.shows_prompts():
                status = self.host.status or await self.refresh_status()
                known = await self.selftests.known(status.backend) if status else None
                if known and known.constrain:
                    return "always"
                return "text call" if known and known.verdict == "structured" else "missed call"
        return "never"

    async def tool_context(self, chat: str, zone: str | None = None) -> ToolContext:
        """Create the context of tool calls in a chat; `zone` is its IANA time zone, read from the store unless given."""
        zone = zone or zone_of(await self.store.chats.get(chat), self.config)
        sandbox, web = await self.sandboxes.of(chat), None
        if hosts := self.config.hosts:
            from agent.web.fetch import Fetcher

            web = Fetcher(hosts, sandbox.observer)
        return ToolContext(
            sandbox=sandbox,
            web=web,
            notes=ChatMemory(self.store, chat, zone, self.semantic_search),
            jobs=await self.planner(chat, zone),
            plans=self.store.plans,
            file_sender=self.channels.file_sender(chat),
            leaks=self.leaks,
            browser=self.browser(chat),
            documents=partial(self.documents.library, chat),
            skills=partial(offered_skills, self.config.state_dir),
            servers=self.servers,
            mail=self.mail,
            calendars=self.calendars(zone),
            vision=self._model_vision,
        )

    @cached_property
    def documents(self) -> "Documents":
        return Documents(self.store, self.sandboxes, self.config.documents, self._embedder)

    async def planner(self, chat: str, zone: str | None = None) -> Planner:
        """The planner of a chat's jobs, in its time zone."""
        made = await planner(self.config, self.store, self.backend, chat, zone)
        return replace(made, note=self.config.jobs_note)

    @cached_property
    def _embedder(self) -> Embedder | None:
        return embedder(self.config, self.store, self.backend)

    @cached_property
    def semantic_search(self) -> SemanticSearch | None:
        """Search by meaning; None where no embedding server is configured."""
        return SemanticSearch(self.store, self._embedder) if self._embedder else None

    def browser(self, chat: str) -> Browser:
        """Search and reading of the web for a chat."""
        config, engine = self.config, None
        if config.search or config.search_url:
            from agent.web.search import open_engine

            named = config.search, config.search_url, config.search_key_file
            engine = open_engine(*named, self.store.ledger)
        pages, render = self.pages, config.render_pages
        return Browser(
            chat, self.store.addresses, engine, config.read_pages, pages, rendering=render
        )

    def calendars(self, zone: str) -> "Calendars | None":
        """The owner's calendars for a chat in a time zone; None where none is configured."""
        if not self.config.calendars:
            return None
        from agent.calendar.accounts import Calendars

        return Calendars(self.config.calendars, zone)

    @property
    def selftests(self) -> SelftestStore:
        """Self-tests of models, run when a model is first used."""
        return SelftestStore(self.store, self.model, backend_queue(self.backend), self.schemas)

    async def ready(self) -> None:
        """Return once the model server serves. Raises BackendAway when it has failed or is gone."""
        backend = self.backend
        while True:
            try:
                async for _ in backend.ready(self.config.limits.away_seconds):
                    pass
                return
            except BackendUnavailable as error:
                gone = isinstance(error, BackendGone)
                if not gone or not await backend.answers_within(RETURN_SECONDS):
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

        url = self.config.transcribe_url
        used = self.store.ledger.use_of("agent.transcribe_url", url)
        return SpeechToText(voice_models(self.config.state_dir), url, recognizer, used)

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

    async def saves_prompts(self) -> str:
        """When the backend saves the prompts of chats to the disk: "silent", "now", or "" for never."""
        with suppress(BackendUnavailable):
            endpoint = await self.backend.endpoint()
            if endpoint.saves_prompts:
                return "now" if endpoint.unloads else "silent"
        return ""

    async def forget_prompts(self, chat: str) -> bool:
        """Delete what the backend has saved of a chat; False while it is away."""
        with suppress(BackendUnavailable):
            await self.backend.forget_chat(chat)
            return True
        return False

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

    store: Store
    sandboxes: Sandboxes
    folders: Mapping[str, Path]
    embedder: Embedder | None
    _indexed: bool = False  # an indexer is at work

    @cached_property
    def _reader(self) -> "DocumentReader":
        from agent.documents.reading import DocumentReader

        return DocumentReader(self.sandboxes, self.folders)

    @cached_property
    def _meaning(self) -> "PassageMeaning | None":
        from agent.documents.indexer import PassageMeaning

        return PassageMeaning(self.store.documents, self.embedder) if self.embedder else None

    def library(self, chat: str) -> "Library":
        from agent.documents.library import Library

        return Library(
            self.store.documents, self._reader, chat, self._meaning, alone=not self._indexed
        )

    def indexer(self, busy: Callable[[], bool]) -> "DocumentIndexer":
        from agent.documents.indexer import DocumentIndexer

        self._indexed = True
        return DocumentIndexer(self.store.documents, self._reader, busy, self._meaning)


@asynccontextmanager
async def open_agent(
    config: AgentConfig,
    backend: BackendClient,
    store: Store,
    channels: Channels | None = None,
    leaks: LeakDetector | None = None,
) -> AsyncIterator[Agent]:
    """The agent on a backend and a database."""
    channels = channels or NoChannels()
    leaks = leaks or LeakDetector({})
    use_instructions(config.instructions)
    host = HostReport(config.state_dir, config.zone)
    async with AsyncExitStack() as stack:
        boxes = await stack.enter_async_context(open_sandboxes(config, host, store))
        await asyncio.to_thread(show_skills, config.state_dir)
        endpoint = recorded_endpoint(config, backend, store, leaks)
        model = await stack.enter_async_context(OpenAIModel(endpoint))
        servers = None
        if config.mcp:
            from agent.mcp.servers import open_servers

            opened = open_servers(config.mcp, boxes, config.state_dir, store, channels)
            servers = await stack.enter_async_context(opened)
        mail: Mapping[str, MailAccount] = {}
        if config.mail:
            from agent.mail.account import open_accounts

            accounts = open_accounts(config.mail, boxes, config.state_dir, store)
            mail = await stack.enter_async_context(accounts)
        tools = config.tools + await tools_of_servers(servers, config.tools)
        schemas = offered(tools, with_repositories=bool(config.repos))
        window = ModelWindow(
            store,
            model,
            backend_queue(backend),
            schemas,
            spill_into(boxes),
            model.useful,
            config.read_ahead,
        )
        yield Agent(
            config=config,
            store=store,
            sandboxes=boxes,
            backend=backend,
            model=model,
            window=window,
            approvals=Approvals(store.approvals, None, zone=config.zone),
            tools=tools,
            schemas=schemas,
            host=host,
            budgets=DailyBudgets(store.budgets, config.budgets, config.zone),
            leaks=leaks,
            servers=servers,
            mail=mail,
            channels=channels,
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


def recorded_endpoint(
    config: AgentConfig, backend: BackendClient, store: Store, leaks: LeakDetector
) -> Callable[[], Awaitable[Endpoint]]:
    """Return the model's endpoint, and record in the ledger, once a day, that the owner's key is used there."""

    async def endpoint() -> Endpoint:
        found = await backend.endpoint()
        if config.external and found.api_key:
            await store.ledger.secret_used("backend.api_key", found.url)
        await store.ledger.use_of("backend.url", found.url)()
        leaks.watch("of the model server", found.api_key)
        return found

    return endpoint


def spill_into(sandboxes: Sandboxes) -> Spill:
    """Create the function that saves old output in its chat's workspace; it returns the path, "" if there is no room."""

    async def spill(chat: str, text: str, stranger: str) -> str:
        try:
            files = (await sandboxes.of(chat)).files
            if stranger:
                await files.mark(stranger)
            return await files.save_output(text.encode("utf-8", "replace"))
        except ToolError:
            return ""

    return spill


def open_sandboxes(
    config: AgentConfig, host: HostReport, store: Store | None = None
) -> AbstractAsyncContextManager[Sandboxes]:
    """The sandboxes of all chats. What they do is recorded in the store's ledger, if one is given."""
    config.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return sandbox.open_sandboxes(
        config.state_dir,
        limits=config.sandbox,
        repos=config.repos,
        zone=config.zone,
        report=host.text,
        hosts=config.hosts,
        observe=partial(Observer, store.ledger if store else None),
        programs={**registry.scripts(), **shell_names(config.tools)},
    )


async def planner(
    config: AgentConfig,
    store: Store,
    backend: BackendClient,
    chat: str,
    zone: str | None = None,
    *,
    profiles: Callable[[], Collection[str]] = tuple,
) -> Planner:
    """The planner of a chat's jobs, in its time zone; `profiles` gives their names while the backend is away."""
    zone = zone or zone_of(await store.chats.get(chat), config)

    async def known() -> Collection[str]:
        with suppress(BackendUnavailable):
            return [profile.name for profile in await backend.profiles()]
        return profiles()

    async def changed() -> None:
        store.jobs.wake()
        await config.keep_schedule(store)

    classifier = JobClassifier([repo.name for repo in config.repos], known)
    return Planner(store, chat, zone, classifier, on_change=changed, night=config.night.rule)


def embedder(config: AgentConfig, store: Store, backend: BackendClient) -> Embedder | None:
    """The owner's embedding server, else the backend's; None where there is neither."""
    if url := config.embedding_url:
        return Embedder(url, used=store.ledger.use_of("agent.embedding_url", url))
    if name := config.embedding_model:
        return Embedder("http://backend", name, backend.socket)
    return None


def voice_models(state: Path) -> Path:
    """The folder of downloaded speech models and voices."""
    return state / "models" / "voice"


def zone_of(chat: Chat | None, config: AgentConfig) -> str:
    """The chat's own time zone, else the agent's."""
    return (chat and known_zone(chat.timezone or "")) or config.zone
