"""voltaire replay: a recorded turn put to the current model once more; nothing is executed."""

import difflib
import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from agent.llm.gpu_queue import QueuedModel
from agent.llm.tool_call_parser import KnownTools
from agent.sandbox.output_buffer import visible
from agent.store.turns import DislikedTurn, RecordedTurn
from agent.turn.model_caller import ModelCaller
from agent.turn.replay import Answered, lines_of, replay
from bot.cli.command import Failed, Misused, Options, chat_option, json_option, runs
from bot.cli.connect import running_agent
from bot.composition import turn_limits
from bot.state import open_state_read_only

MOST_DISLIKED = 100


@click.command(
    "replay",
    help="Put a recorded turn's requests to the current model and show where it now says something"
    " else. Tool results come from the record; nothing is executed, delivered or written."
    " TURN is the id that the log names; without one, the chat's last turn.",
)
@click.argument("turn", default="")
@click.option(
    "--disliked", is_flag=True, help="List the turns whose answers got 👎, with their ids."
)
@chat_option
@json_option
@runs
async def command(options: Options, turn: str, disliked: bool, chat: str, as_json: bool) -> None:
    if disliked:
        if turn:
            raise Misused("--disliked lists turns, so it takes none.")
        async with open_state_read_only(options.settings) as store:
            for one in await store.turns.disliked(MOST_DISLIKED):
                click.echo(json.dumps(asdict(one), ensure_ascii=False) if as_json else listed(one))
        return
    async with running_agent(options.settings) as agent:
        last = None if turn else await agent.store.turns.last(chat)
        recorded = await agent.store.turns.record(turn or (last[0].id if last else ""))
        if recorded is None:
            raise Failed(f"There is no turn {turn}." if turn else f"{chat} has no turn yet.")
        await agent.ready()
        click.echo(heading(recorded), err=as_json)
        bounds = turn_limits(agent.settings)
        model = QueuedModel(agent.model, agent.window.queue, recorded.chat)
        tools = KnownTools.of(agent.schemas)
        caller = ModelCaller(model, tools, bounds, agent.ready, lambda event: None)
        known = await agent.store.chats.get(recorded.chat)
        thinking = known.thinking if known else None
        differing = 0
        async for answered in replay(recorded, caller, agent.schemas, bounds, thinking):
            differing += not answered.same
            click.echo(json.dumps(fields(answered)) if as_json else shown(answered))
    calls = "One model call differs." if differing == 1 else f"{differing} model calls differ."
    click.echo(calls if differing else "The model says the same.", err=as_json)


def listed(one: DislikedTurn) -> str:
    """A turn whose answer was disliked, in three lines."""
    began = datetime.fromtimestamp(one.started_at).astimezone()
    asked, answered = (" ".join(visible(text).split()) for text in (one.asked, one.answered))
    return f"{began:%Y-%m-%d %H:%M} turn {one.id} of {one.chat}\n  {asked or '?'}\n  👎 {answered}"


def heading(recorded: RecordedTurn) -> str:
    began = datetime.fromtimestamp(recorded.started_at).astimezone()
    head = f"turn {recorded.id} of {recorded.chat}, {began:%Y-%m-%d %H:%M}, ended: {recorded.reason or 'not yet'}"
    if not recorded.compacted:
        return head
    return f"{head}\nThe conversation was compacted since: what stood before may have been longer then."


def shown(answered: Answered) -> str:
    then, now = lines_of(answered.then), lines_of(answered.now)
    if answered.same:
        return "\n".join(f"  {line}" for line in then)
    lines = difflib.unified_diff(then, now, "then", "now", lineterm="", n=99)
    return "\n".join(line for line in lines if not line.startswith("@@"))


def fields(answered: Answered) -> dict[str, Any]:
    done = answered.completion
    return {
        "same": answered.same,
        "then": lines_of(answered.then),
        "now": lines_of(answered.now),
        "prompt_tokens": done.prompt_tokens,
        "cached_tokens": done.cached_tokens,
        "completion_tokens": done.completion_tokens,
        "ttft_ms": done.ttft_ms,
        "finish_reason": done.finish_reason,
    }
