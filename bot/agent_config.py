"""The configuration of the agent, from the settings."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent import agent
from agent.agent import Agent, AgentConfig
from agent.channels import Channels
from agent.leaks import LeakDetector
from agent.sandbox.hosts import Hosts
from agent.sandbox.limits import HostRepo, SandboxLimits
from agent.schedule.night import Night
from agent.schedule.planner import NOTHING_RUNS
from agent.schedule.scheduler import QuietHours
from agent.store import Store
from agent.store.retention import Retention
from agent.tools.registry import chosen
from agent.turn.turn import TurnLimits
from backend.client import BackendClient
from bot.config_file import sync_config
from bot.secret_values import secret_values
from bot.settings import ConfigurationError, MailSection, McpSection, Settings
from bot.state import make_private, open_state

if TYPE_CHECKING:  # loaded where servers are configured
    from agent.mail.account import AccountConfig
    from agent.mcp.config import ServerConfig

log = logging.getLogger(__name__)

MOST_INSTRUCTIONS = 1200  # bytes: four a token, as for the rest of the prefix


def agent_config(settings: Settings) -> AgentConfig:
    section, limits = settings.agent, settings.agent.budgets
    box = section.sandbox
    try:
        tools = chosen(section.tools)
    except ValueError as error:
        raise ConfigurationError(f"agent.tools: {error}") from None
    return AgentConfig(
        state_dir=settings.state_dir,
        zone=section.timezone,
        instructions=instructions_of(settings),
        tools=tools,
        limits=TurnLimits(section.max_tool_calls, section.turn_seconds),
        sandbox=SandboxLimits(
            box.memory_mib,
            box.pids,
            box.disk_mib,
            box.files,
            box.command_seconds,
            box.output_kib,
            box.undo_mib,
        ),
        repos=[
            HostRepo(name, repo.path, repo.write, repo.mine, repo.fetch)
            for name, repo in section.repos.items()
        ],
        hosts=allowed_hosts(settings),
        budgets={
            "calls": limits.calls,
            "bytes": limits.out_mib << 20,
            "hosts": limits.new_hosts,
            "files": limits.files,
            "jobs": limits.jobs,
        },
        search=section.web.search,
        search_url=section.web.search_url,
        search_key_file=section.web.search_key_file,
        read_pages=section.web.read,
        render_pages=section.web.render,
        documents=section.documents,
        mcp=[server_config(name, each) for name, each in section.mcp.items()],
        mail=[account_config(name, each) for name, each in section.mail.items()],
        calendars={name: dict(each) for name, each in section.calendar.items()},
        embedding_url=section.embedding_url,
        embedding_model=Path(settings.backend.embedding).stem,
        transcribe_url=section.transcribe_url,
        read_ahead=section.read_ahead,
        external=settings.backend.kind == "external",
        night=Night(
            QuietHours.parse(section.night.hours, section.timezone) or Night().hours,
            price=settings.backend.price_kwh,
            **section.night.model_dump(exclude={"hours"}),
        ),
        keep_schedule=partial(sync_config, path=settings.path, zone=section.timezone),
    )


def instructions_of(settings: Settings) -> str:
    """The owner's standing instructions. Raises ConfigurationError if their file cannot be used."""
    path = settings.agent.instructions
    if path is None:
        return ""
    try:
        text = path.expanduser().read_text("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ConfigurationError(f"agent.instructions: {path} cannot be read: {reason}.") from None
    if (size := len(text.encode())) > MOST_INSTRUCTIONS:
        most = f"{MOST_INSTRUCTIONS:,} are the most (300 tokens)"
        raise ConfigurationError(f"agent.instructions: {path} has {size:,} bytes; {most}.")
    return text


def allowed_hosts(settings: Settings) -> Hosts | None:
    """The hosts that tools may reach; None: no network."""
    box = settings.agent.sandbox
    return Hosts(tuple(box.allow_hosts)) if box.network else None


def server_config(name: str, section: McpSection) -> "ServerConfig":
    from agent.mcp.config import SecretBinding, ServerConfig

    return ServerConfig(
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


def account_config(name: str, section: MailSection) -> "AccountConfig":
    from agent.mail.account import AccountConfig

    fields = section.model_dump()
    return AccountConfig(name, **{**fields, "sender": section.sender or section.user})


def retention_of(settings: Settings) -> Retention:
    kept = settings.state
    return Retention(kept.keep_days, kept.records_days, kept.usage_days, kept.ledger_days)


def leak_detector(settings: Settings) -> LeakDetector:
    """A detector of every secret in the configuration."""
    leaks = LeakDetector(secret_values(settings))
    if leaks.unwatched:
        log.warning("too plain to be found in what leaves: %s", ", ".join(leaks.unwatched))
    return leaks


@asynccontextmanager
async def open_agent(
    settings: Settings,
    backend: BackendClient,
    store: Store | None = None,
    channels: Channels | None = None,
    *,
    leaks: LeakDetector | None = None,
    jobs_note: str = NOTHING_RUNS,
) -> AsyncIterator[Agent]:
    """Open the agent that the settings describe; `store` and `leaks` are opened and made here unless they are given."""
    make_private(settings.state_dir)
    async with AsyncExitStack() as stack:
        if store is None:
            store = await stack.enter_async_context(open_state(settings))
        config = replace(agent_config(settings), jobs_note=jobs_note)
        leaks = leaks or leak_detector(settings)
        opened = agent.open_agent(config, backend, store, channels, leaks)
        yield await stack.enter_async_context(opened)
