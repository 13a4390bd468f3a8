"""The attempts of the night shift: turns of their own, in copies of the chat's workspace.

An attempt reads the conversation as it was when the message was answered, and calls the chat's tools within the same
walls. Nobody is asked, so what no owner has allowed is denied; what several attempts would do several times (notes,
jobs, files sent, mail, calendars, MCP servers, repositories) is not there.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

from agent.agent import Agent
from agent.errors import AgentError
from agent.language import translate_phrase, translated
from agent.messages import Assistant, Message, System, ToolResult, User
from agent.model import Piece, Request, WrappedModel
from agent.prompt import context_block, system_text
from agent.sandbox.bubblewrap import PROGRAM
from agent.sandbox.sandbox import BASH, Sandbox, make_workspace
from agent.schedule.night import Attempt, NightShift
from agent.store.jobs import Job, Occurrence
from agent.timezones import local_time
from agent.trust import Taint
from agent.turn.delegate import TransientJournal
from agent.turn.loop import run_turn
from agent.turn.turn import Turn
from backend.client import BackendClient, BackendUnavailable
from backend.protocol import Phrase

if TYPE_CHECKING:  # loaded at night
    from agent.evaluate.runner import Energy

TEMPERATURE = 0.5  # of attempts after the first, at least, so that they differ
WITHOUT = ("remember", "schedule", "send_file")  # tools
COPY_SECONDS = 300.0
MOST_FILES = 500
SHOWN_FILES = 8
HERE, THERE = "/workspace", PROGRAM  # in the sandbox: what is written to, and what is read
COPY_ALL = f'cp -a {THERE}/. {HERE} && rm -rf "{HERE}/$1"'  # without other attempts' files
COPY_SOME = f'to={HERE}/$1; shift; rm -rf "$to"; mkdir -p "$to" && cd {THERE} && cp -a --parents -- "$@" "$to" && sha256sum -- "$@" | sha256sum'  # prints their digest


def night_shift(agent: Agent, busy: Callable[[], bool]) -> NightShift:
    """Create the action of night-shift jobs; `busy` says whether somebody is being answered, when no attempt begins."""
    night = agent.config.night

    async def obstacle() -> str:
        if busy():
            return translated("Somebody is being answered.")
        try:
            gpus = (await agent.backend.status()).gpus
        except BackendUnavailable as error:
            return translate_phrase(Phrase.of(error))
        heat = [t for gpu in gpus for t in (gpu.temperature_c, gpu.memory_temperature_c) if t]
        if heat and max(heat) > night.most_celsius:
            return translated("The card is at {degrees:.0f} °C.").format(degrees=max(heat))
        dear = await asyncio.to_thread(night.too_dear)
        return translated("The price is too high.") if dear else ""

    made = partial(make_attempt, agent)
    return NightShift(agent.store, night, obstacle, made, agent.channels.payload)


async def make_attempt(
    agent: Agent, job: Job, occurrence: Occurrence, number: int, seconds: float
) -> Attempt:
    """Answer the job's message once, within so many seconds, and copy what files it wrote into the chat's workspace."""
    from agent.evaluate.rehearsal import IdleModel
    from agent.evaluate.runner import Energy

    chat, energy = job.spec.chat, Energy()
    theirs, known = await agent.sandboxes.of(chat), await agent.store.chats.get(chat)
    before, asked, held = await load_messages(agent, job)
    held += await theirs.files.taints()
    async with copied_workspace(theirs, folder := f"night-{job.id}") as box:
        own = f"night-{occurrence.id}"
        journal = TransientJournal(own, chat, [*before, *asked], len(before), held=[*held])
        context = await agent.tool_context(chat)
        context = replace(
            context,
            sandbox=box,
            jobs=None,
            plans=None,
            file_sender=None,
            servers=None,
            mail={},
            calendars=None,
        )
        model = Measured(agent.model, agent.backend, energy, warm=number > 1)
        turn = Turn(
            model=IdleModel(model, agent.window.queue),
            journal=journal,
            tools=[tool for tool in agent.tools if tool.name not in WITHOUT],
            schemas=agent.schemas,
            context=context,
            approvals=replace(agent.approvals, ask=None),
            limits=replace(agent.config.limits, seconds=seconds),
            thinking=known.thinking if known else None,
            ready=agent.ready,
            budgets=agent.budgets,
            constrain=agent.constrain,
            history=box.history,
        )
        finished = await run_turn(turn, lambda event: None)
        ran = [m for m in journal.messages if isinstance(m, ToolResult) and m.name == "bash"]
        sources = [each.source for each in (*journal.held, *await box.files.taints())]
        files, digest = await keep_files(theirs, box, f"{folder}/{number}", sources[len(held) :])
    return Attempt(
        finished.text,
        finished.reason,
        commands=len(ran),
        failed=bool(ran) and "\nexit code: " in f"\n{ran[-1].text}",
        watt_hours=None if energy.joules is None else energy.joules / 3600,
        files=tuple(files),
        digest=digest,
        strangers=tuple(dict.fromkeys(sources)),
    )


async def load_messages(agent: Agent, job: Job) -> tuple[list[Message], list[Message], list[Taint]]:
    """Return the messages before the one to be answered, that message, and the strangers' text in both; as the
    message's turn had them, where that is known."""
    options, stranger, zone = job.spec.options, job.spec.stranger, agent.config.zone
    held = await agent.store.taints.of(options.get("conversation", 0))
    held += [Taint(stranger, job.created_at)] if stranger else []
    if record := await agent.store.turns.record(options.get("turn", "")):
        asked = takewhile(lambda message: not isinstance(message, Assistant), record.own)
        return [System(system_text()), *record.before], [*asked], held
    words = context_block(local_time(agent.store.clock(), zone), zone) + job.spec.task
    return [System(system_text())], [User(words)], held


@asynccontextmanager
async def copied_workspace(theirs: Sandbox, name: str) -> AsyncIterator[Sandbox]:
    """A sandbox with a copy of the chat's files, which is deleted afterwards, and repositories that are read-only."""
    from agent.evaluate.runner import delete_workspace

    repos = {key: replace(repo, write=False) for key, repo in theirs.config.repos.items()}
    workspace = theirs.workspace.parent.parent / name / "work"
    box = Sandbox(replace(theirs.config, repos=repos), theirs.chat, workspace)
    if workspace.exists():  # of an attempt that was killed
        await delete_workspace(box)
    await asyncio.to_thread(make_workspace, workspace, theirs.config.user.uid)
    try:
        await box.files.mark(*(taint.source for taint in await theirs.files.taints()))
        await copy(box, COPY_ALL, theirs, name)
        yield box
    finally:
        await delete_workspace(box)


async def keep_files(
    theirs: Sandbox, box: Sandbox, place: str, sources: Sequence[str]
) -> tuple[list[str], str]:
    """Copy the files that the attempt made or changed into the chat's workspace; some of their names there, and a
    digest of all."""
    records = await asyncio.to_thread(box.history.records)
    changes = records[0].changes if records else {}
    left = {path: change.after for path, change in changes.items()}
    paths = [path for path, entry in left.items() if entry and entry.kind == "file"]
    if not paths:
        return [], ""
    await theirs.files.mark(*sources)
    digest = await copy(theirs, COPY_SOME, box, place, *paths[:MOST_FILES])
    return [f"{place}/{path}" for path in paths[:SHOWN_FILES]], digest


async def copy(box: Sandbox, script: str, origin: Sandbox, *words: str) -> str:
    """Run a script in a sandbox that also sees another one's workspace; return its output. Raises AgentError."""
    result = await box.run_internal(
        [*BASH, script, "night", *words],
        seconds=COPY_SECONDS,
        access="files",
        repos=(),
        folders={THERE: str(origin.workspace)},
        exact=True,
    )
    if result.exit_code:
        form = translated("Its files could not be copied: {why}")
        raise AgentError(form.format(why=" ".join(result.output.split())[-200:]))
    return result.output


@dataclass(frozen=True)
class Measured(WrappedModel):
    """A model that adds what each call draws to `energy`; `warm`: its temperature is TEMPERATURE at least."""

    backend: BackendClient
    energy: "Energy"
    warm: bool

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        from agent.evaluate.runner import gpu_power, measured_energy

        usual = (await self.backend.endpoint()).sampling.get("temperature")
        if self.warm and usual is not None:
            warmer = {"temperature": max(usual, TEMPERATURE)}
            request = replace(request, sampling={**request.sampling, **warmer})
        async with measured_energy(partial(gpu_power, self.backend), self.energy):
            async for piece in self.model.stream(request):
                yield piece
