"""voltaire status: what runs, and how well; it starts nothing."""

import json
from contextlib import AsyncExitStack
from typing import Any

import click

from agent.store import open_store
from bot.cli.command import Options, json_option, pass_options, runs
from bot.cli.connect import backend_client
from bot.state import DATABASE
from bot.status import gather


@click.command("status", help="What runs, and how well.")
@json_option
@pass_options
@runs
async def command(options: Options, as_json: bool) -> None:
    settings = options.settings
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(backend_client(settings))
        database = settings.state_dir / DATABASE
        store = await stack.enter_async_context(open_store(database)) if database.exists() else None
        facts = await gather(settings.state_dir, store, backend)
    click.echo(json.dumps(facts, ensure_ascii=False) if as_json else "\n".join(status_lines(facts)))


def status_lines(facts: dict[str, Any]) -> list[str]:
    server, bot = facts["backend"], facts["bot"]
    lines = [f"backend: {server['state']}{in_brackets(server['reason'])}"]
    if server["held"]:
        lines.append(f"held: {server['held']}")
    if server["state"] != "stopped":
        lines.append(
            f"model: {server['model']}, window {server['n_ctx']} tokens, profile {server['profile']}"
        )
        lines += warm_lines(server["warm"]) + speed_lines(facts["speed"])
    lines += [gpu_line(gpu) for gpu in facts["gpus"]]
    if bot["username"] is None and bot["polling_ok"] is None:
        lines.append("bot: stopped")
    else:
        state = "polling" if bot["polling_ok"] else "not polling"
        lines.append(f"bot: @{bot['username']}, {state}{in_brackets(bot['problem'])}")
    lines.append(
        f"waiting: {bot['inbox_waiting']} to answer, {bot['outbox_waiting']} to send, "
        f"{bot['outbox_uncertain']} uncertain"
        + (f", {bot['set_aside']} set aside" if bot["set_aside"] else "")
    )
    jobs = facts["jobs"]
    upcoming = f", next {jobs['next_at']}" if jobs["next_at"] else ""
    lines.append(f"jobs: {jobs['active']} active{upcoming}")
    used = [f"{name} {mib:.0f} MiB" for name, mib in facts["memory_mib"].items() if mib is not None]
    return [*lines, f"memory: {', '.join(used)}"] if used else lines


def warm_lines(warm: dict[str, Any] | None) -> list[str]:
    if not warm:
        return []
    cached = f"{warm['cached_tokens']} of {warm['tokens']} tokens cached"
    return [f"warm: {cached} in {warm['seconds']:.1f} s by {warm['source']}"]


def speed_lines(speed: dict[str, Any]) -> list[str]:
    if speed["decode_tok_s"] is None:
        return []
    line = f"speed: writes {speed['decode_tok_s']:.0f} tokens/s"
    if speed["prefill_tok_s"] is not None:
        line += f", reads {speed['prefill_tok_s']:.0f}"
    if speed["cache_hit"] is not None:
        line += f", {100 * speed['cache_hit']:.0f} % of prompts cached"
    return [line]


def gpu_line(gpu: dict[str, Any]) -> str:
    seen = [gpu["name"]]
    seen += [f"{gpu['temperature_c']:.0f} °C"] if gpu["temperature_c"] is not None else []
    seen += [f"{gpu['power_w']:.0f} W"] if gpu["power_w"] is not None else []
    return f"gpu {gpu['index']}: {', '.join(seen)}"


def in_brackets(reason: str | None) -> str:
    return f" ({reason})" if reason else ""
