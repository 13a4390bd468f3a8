"""voltaire status: what runs, and how well; voltaire context: where a chat's tokens go; voltaire config."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from functools import cache
from importlib.metadata import version
from typing import Any
from zoneinfo import ZoneInfo

import click

from agent.schedule.times.rule import date_words
from backend.client import PUBLIC_SOCKET, BackendClient, BackendUnavailable
from backend.protocol import Restart, ServerStatus, Speed, Status
from backend.state import RESTARTS, RestartHistory
from bot.cli.command import NotTheOwner, Options, chat_option, json_option, runs
from bot.cli.connect import backend_client, running_backend
from bot.cli.holder_client import HolderClient, with_holder
from bot.cli.progress import sign_of_life
from bot.settings import ConfigurationError, Settings, config_folder, default_state_dir
from bot.state import (
    DATABASE,
    RUNTIME,
    bot_facts,
    open_state_read_only,
    read_presence,
    shared_facts,
)

BAR = 30
SHOWN_RESTARTS = 5  # the newest, which are listed
SPEEDS = {"decode_tok_s", "prefill_tok_s", "ttft_ms", "cache_hit", "draft_acceptance"}


@click.command("status", help="Show what runs, and how well.")
@json_option
@runs
async def command(options: Options, as_json: bool) -> None:
    restarts, zone = list[Restart](), ""
    try:
        facts = await own_facts(options.settings)
        zone = options.settings.agent.timezone
        restarts = RestartHistory(options.settings.state_dir / RESTARTS).read()[-SHOWN_RESTARTS:]
    except (NotTheOwner, ConfigurationError):
        # The bot of another user may share its facts with the group.
        if not os.access(RUNTIME, os.R_OK | os.X_OK):
            raise
        async with BackendClient(RUNTIME / PUBLIC_SOCKET) as backend:
            facts = await with_backend(await shared_facts(), backend)
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        click.echo("\n".join(status_lines(facts, restarts, zone)))


async def own_facts(settings: Settings) -> dict[str, Any]:
    database = settings.state_dir / DATABASE
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(backend_client(settings))
        store = None
        if database.exists():
            store = await stack.enter_async_context(open_state_read_only(settings))
        facts = await bot_facts(read_presence(settings.state_dir), store)
        return await with_backend(facts, backend, settings)


async def with_backend(
    facts: dict[str, Any], backend: BackendClient, settings: Settings | None = None
) -> dict[str, Any]:
    """The bot's facts, and the backend's where it answers."""
    report: Status | None = None
    with suppress(BackendUnavailable):
        report = await backend.status()
    return status_json(facts, report, settings)


own_version = cache(version)


def status_json(
    facts: dict[str, Any], report: Status | None, settings: Settings | None = None
) -> dict[str, Any]:
    """What `voltaire status --json` prints. What is not known is None, and so is the backend's memory where the bot's process holds it.

    With `settings`, a stopped backend has the profile and the model that it will start with.
    """
    server = (report.backend if report else ServerStatus(state="stopped")).model_dump(mode="json")
    if report is None:
        server |= {"kind": None, "restarts": None, **(next_model(settings) if settings else {})}
    together = bool(report and report.pid == facts["bot"]["pid"])  # `voltaire run`
    return {
        "version": own_version("voltaire-agent"),
        "uptime_s": report.uptime_s if report else None,
        "backend": server,
        "speed": (report.speed if report else Speed()).model_dump(include=SPEEDS),
        "gpus": [gpu.model_dump(mode="json") for gpu in report.gpus] if report else [],
        **facts,
        "idle": {
            **facts["idle"],
            **(report.idle.model_dump() if report else {"seconds": None, "wh": None}),
        },
        "memory_mib": {
            **facts["memory_mib"],
            "backend": report.memory_mib.backend if report and not together else None,
            "server": report.memory_mib.server if report else None,
        },
    }


def next_model(settings: Settings) -> dict[str, str]:
    from backend.models.profile import ProfileError, locate
    from bot.cli.backend_config import backend_config, next_name, profile_of

    with suppress(ProfileError):
        if settings.backend.kind == "managed":
            profile = profile_of(next_name(settings))
            path = locate(profile.model, backend_config(settings).models_folder)
            return {"profile": profile.name, "model": path.name}
    return {}


def status_lines(facts: dict[str, Any], restarts: Sequence[Restart], zone: str) -> list[str]:
    """The status for a person, times in `zone`, or the machine's. `restarts`: the newest of the model server and the backend, oldest first."""
    server, bot = facts["backend"], facts["bot"]

    def moment(at: str) -> str:
        return date_words(datetime.fromisoformat(at).astimezone(ZoneInfo(zone) if zone else None))

    frozen = (since := facts.get("frozen_since")) and moment(since)
    lines = [f"frozen since {frozen} (voltaire thaw)"] if frozen else []
    lines.append(f"backend: {server['state']}{in_brackets(server['reason'])}")
    if server["held"]:
        lines.append(f"held: {server['held']}")
    if server["state"] != "stopped":
        lines.append(
            f"model: {server['model']}, window {server['n_ctx']} tokens, profile {server['profile']}"
        )
        if warm := server["warm"]:
            cached = f"{warm['cached_tokens']} of {warm['tokens']} tokens cached"
            lines.append(f"warm: {cached} in {warm['seconds']:.1f} s by {warm['source']}")
        if restored := server["restored"]:
            saved = (
                f"{restored['tokens']:,} tokens not read again, {restored['seconds']:.0f} s saved"
            )
            lines.append(f"prompts from the disk: {restored['chats']}, {saved}")
        lines += [*speed_lines(facts["speed"]), *idle_lines(facts["idle"])]
    elif server["model"]:
        lines.append(f"model when it starts: {server['model']}, profile {server['profile']}")
    if second := facts.get("embedding"):
        told = f"search by meaning: {second['state']}, {second['profile']}"
        lines.append(told + in_brackets(second["reason"]))
    if last := server["last_restart"]:
        restarts = restarts or [Restart.model_validate(last)]
    if restarts:
        lines.append("last starts and failures:")
        lines += [f"  {moment(each.at.isoformat())}  {each.cause}" for each in restarts]
    for gpu in facts["gpus"]:
        seen = [gpu["name"]]
        seen += [f"{gpu['temperature_c']:.0f} °C"] if gpu["temperature_c"] is not None else []
        seen += [f"{gpu['power_w']:.0f} W"] if gpu["power_w"] is not None else []
        lines.append(f"gpu {gpu['index']}: {', '.join(seen)}")
    if bot["username"] is None and bot["polling_ok"] is None:
        runs = facts["memory_mib"]["bot"] is not None
        lines.append("bot: runs, in no messaging app" if runs else "bot: stopped")
    else:
        state = "polling" if bot["polling_ok"] else "not polling"
        name = f"@{bot['username']}, " if bot["username"] else ""
        lines.append(f"bot: {name}{state}{in_brackets(bot['problem'])}")
    if bot["inbox_waiting"] is None:  # another user's bot, which does not run
        return lines
    lines.append(
        f"waiting: {bot['inbox_waiting']} to answer, {bot['outbox_waiting']} to send, "
        f"{bot['outbox_uncertain']} uncertain"
        + (f", {bot['set_aside']} set aside" if bot["set_aside"] else "")
    )
    jobs = facts["jobs"]
    when = "overdue since" if jobs["overdue"] else "next"
    upcoming = f", {when} {moment(jobs['next_at'])}" if jobs["next_at"] else ""
    lines.append(f"jobs: {jobs['active']} active{upcoming}")
    if running := facts.get("mcp", {}).get("running"):
        lines.append(f"MCP servers: {running} running")
    memory = facts["memory_mib"]
    if memory["backend"] is None and server["state"] != "stopped":
        memory = {"bot and backend": memory["bot"], "server": memory["server"]}
    used = [f"{name} {mib:.0f} MiB" for name, mib in memory.items() if mib is not None]
    return [*lines, f"memory: {', '.join(used)}"] if used else lines


def speed_lines(speed: dict[str, Any]) -> list[str]:
    if speed["decode_tok_s"] is None:
        return []
    line = f"speed: writes {speed['decode_tok_s']:.0f} tokens/s"
    if speed["prefill_tok_s"] is not None:
        line += f", reads {speed['prefill_tok_s']:.0f}"
    if speed["cache_hit"] is not None:
        line += f", {100 * speed['cache_hit']:.0f} % of prompts cached"
    return [line]


def idle_lines(idle: dict[str, Any]) -> list[str]:
    """What prefill and compaction between turns cost in the last 24 hours."""
    if not idle["seconds"]:
        return []
    wh = "" if idle["wh"] is None else f", {idle['wh']:.2f} Wh"
    tokens = f"{idle['tokens'] or 0:,} tokens read"
    return [f"between turns, in 24 hours: {tokens}, {idle['seconds']:.1f} s{wh}"]


def in_brackets(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


@click.command(
    "context", help="Count tokens: system text, each tool, notes, summary, transcript, free."
)
@chat_option
@json_option
@runs
async def context(options: Options, chat: str, as_json: bool) -> None:

    async def ask(client: HolderClient) -> list[dict[str, int]]:
        return list(await client.call("context", chat=chat))

    with sign_of_life("counting"):
        async with running_backend(options.settings) as backend:
            parts, commands = await with_holder(options.settings, backend, ask)
    limit = sum(parts.values())
    if as_json:
        shown = {"chat": chat, "limit": limit, "parts": parts, "commands": commands}
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    width = max(map(len, [*parts, *commands]))
    for name, tokens in parts.items():
        bar = "█" * round(BAR * tokens / limit)
        click.echo(f"{name:<{width}} {tokens:>7,} {bar}".rstrip())
    click.echo(f"{'window':<{width}} {limit:>7,}")
    if commands:
        click.echo("\nIn no prompt, but in /commands.txt, which the model reads when it wants to:")
    for name, tokens in commands.items():
        click.echo(f"{name:<{width}} {tokens:>7,}")


@click.command("config", help="Print the configuration: its path, what is set, and the defaults.")
@runs
async def config(options: Options) -> None:
    from bot.cli.backend_config import next_name

    settings = options.settings
    click.echo(settings.path or f"No file {config_folder() / 'config.toml'}: all defaults.")
    defaults = dict(flat(Settings.model_construct().model_dump(mode="json")))
    defaults |= {"state.dir": str(default_state_dir())}
    for key, value in flat(settings.model_dump(mode="json", exclude_unset=True)):
        if key == "telegram.token" and settings.telegram.token_file:  # read from there
            continue
        default = defaults.get(key, "")
        note = "the default" if value == default else f"default: {json.dumps(default)}"
        click.echo(f"{key} = {json.dumps(value, ensure_ascii=False)}  ({note})")
    chosen = settings.backend
    if chosen.kind == "managed" and (name := next_name(settings)) != chosen.profile:
        click.echo(f"The next start serves {name}: model use or backend.schedule goes first.")
    click.echo(f"The state is in {settings.state_dir}. All keys: docs/configuration.md")


def flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value with its key, such as agent.sandbox.pids."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
