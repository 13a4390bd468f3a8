"""Actions of jobs: the daily health digest, switching the model, summaries of repositories."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from agent.agent import Agent
from agent.approvals import GuardedCall
from agent.budgets import CallBudget
from agent.errors import AgentError, NothingToDo, ToolError
from agent.language import translate_phrase, translated
from agent.llm.queued_model import QueuedModel
from agent.sandbox.hosts import HostRequest
from agent.schedule.scheduler import SubmitTask, tell_change
from agent.schedule.watches import RunWatch, Watch, look
from agent.store import Store
from agent.store.jobs import Job, Occurrence
from agent.summary.git_facts import Git, RepoLocation, fetch_mirror
from agent.summary.repo_summaries import RepoSummaries
from agent.tools.tool import Call
from agent.trust import Taint
from agent.turn.untrusted_reader import ANSWER_TOKENS, Reader
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from backend.protocol import SCHEDULED, Gpu, GpuMinute, Phrase, Status

GIB = 2**30
DAY_MINUTES = 24 * 60
GIT_SECONDS = 300
BYTES_PER_TOKEN = 2  # of commit messages and diffs, on the safe side


@dataclass(frozen=True)
class HealthDigest:
    """A JobAction that reports on the machine and its use. `price` is that of a kilowatt-hour."""

    store: Store
    backend: BackendClient
    state: Path
    price: float

    async def __call__(self, _job: Job, _occurrence: Occurrence) -> str:
        try:
            status = await self.backend.status()
            minutes = await self.backend.gpu_history(DAY_MINUTES)
        except BackendUnavailable as error:
            lines = [
                translated("The backend is away: {error}").format(
                    error=translate_phrase(Phrase.of(error))
                )
            ]
        else:
            gpus = [gpu_line(gpu, minutes, self.price) for gpu in status.gpus]
            lines = [*server_lines(status), *gpus]
        turns, jobs = await self.store.occurrences.failures(self.store.clock() - DAY_MINUTES * 60)
        counts = await self.store.outbox.counts()
        waiting = counts.get("waiting", 0) + counts.get("sending", 0)
        uncertain, failed = counts.get("uncertain", 0), counts.get("failed", 0)
        free = shutil.disk_usage(self.state).free / GIB
        to_send = translated(
            "- to send: {waiting} waiting, {uncertain} uncertain, {failed} refused"
        )
        return "\n".join(
            [
                f"**{translated('The last 24 hours')}**",
                *lines,
                translated("- errors: turns {turns}, jobs {jobs}").format(turns=turns, jobs=jobs),
                to_send.format(waiting=waiting, uncertain=uncertain, failed=failed),
                translated("- disk: {free:.1f} GiB free").format(free=free),
            ]
        )


def server_lines(status: Status) -> list[str]:
    server = status.backend
    last = ""
    if server.last_restart:
        last = translated(", last: {cause}").format(
            cause=translate_phrase(server.last_restart.cause)
        )
    form, speed = translated("- {model}: {state}, restarts {count}"), status.speed.decode_tok_s
    model = server.model or translated("model")
    head = form.format(model=model, state=translated(server.state), count=server.restarts)
    spoken = translated("- speed: {speed:.0f} tokens/s")
    return [f"{head}{last}", *([spoken.format(speed=speed)] if speed else [])]


def gpu_line(gpu: Gpu, minutes: Sequence[GpuMinute], price: float) -> str:
    """Summarize a GPU: hottest minute, mean watts, energy, throttled time, ECC errors."""
    own = [minute for minute in minutes if minute.gpu == gpu.index]
    watts = [minute.power_w for minute in own if minute.power_w is not None]
    heat = [minute.temperature_c for minute in own if minute.temperature_c is not None]
    throttled = sum(minute.throttled or 0 for minute in own)
    parts: list[str] = []
    if heat:
        parts.append(translated("at most {heat:.0f} °C").format(heat=max(heat)))
    if watts:
        parts.append(energy(watts, price))
    if throttled >= 1:
        parts.append(translated("throttled {count:.0f} min").format(count=throttled))
    if gpu.ecc_uncorrected:
        parts.append(translated("ECC errors: {count}").format(count=gpu.ecc_uncorrected))
    return f"- {gpu.name}: {', '.join(parts) or translated('no measurements')}"


def energy(watts: Sequence[float], price: float) -> str:
    kwh = sum(watts) / 60 / 1000  # one value a minute
    form = translated("{mean:.0f} W on average, {kwh:.2f} kWh")
    if price:
        form = translated("{mean:.0f} W on average, {kwh:.2f} kWh, {cost:.2f} at {price:g} a kWh")
    return form.format(mean=sum(watts) / len(watts), kwh=kwh, cost=kwh * price, price=price)


@dataclass(frozen=True)
class ProfileSwitch:
    """A JobAction that switches to the profile named by the task. Raises AgentError when that does not serve."""

    backend: BackendClient
    store: Store

    async def __call__(self, job: Job, _occurrence: Occurrence) -> None:
        name, began = job.spec.task, monotonic()
        try:
            server = (await self.backend.status()).backend
            if server.profile == name and server.state in ("ready", "busy", "sleeping"):
                raise NothingToDo(translated("It serves."))
            facts = {"act": "model", "to": name, "by": f"job {job.id}"}
            await self.store.ledger.record("admin", job.spec.chat, **facts)
            async for _ in self.backend.use_profile(name):
                pass
        except (BackendRefused, BackendUnavailable) as error:
            raise AgentError(translate_phrase(Phrase.of(error))) from None
        ready = translated("It is ready after {seconds:.0f} s.")
        raise NothingToDo(ready.format(seconds=monotonic() - began))


def repo_summaries(agent: Agent) -> RepoSummaries:
    # Commits are text of strangers: a model call without tools summarizes them.
    model = QueuedModel(agent.model, agent.window.queue, "summary", SCHEDULED)
    reader = Reader(model, agent.schemas)

    async def locate(chat: str, repo: str) -> RepoLocation:
        return await locate_repo(agent, chat, repo)

    async def prompt_bytes() -> int:
        budget = await agent.window.budget()
        return max(2000, (budget.limit - budget.prefix - ANSWER_TOKENS) * BYTES_PER_TOKEN)

    return RepoSummaries(
        agent.store, lambda chat: sandboxed_git(agent, chat), reader.ask, prompt_bytes, locate
    )


async def locate_repo(agent: Agent, chat: str, repo: str) -> RepoLocation:
    """Where to read a repository, whose origin is fetched first if the owner wants that."""
    if repo in (".", ""):
        return RepoLocation("/workspace")
    path, known = f"/repos/{repo}", agent.sandboxes.config.repos.get(repo)
    if known and known.fetch:
        return await fetch_mirror(sandboxed_git(agent, chat, network=True), path, repo)
    return RepoLocation(path if known else f"/workspace/{repo}")


def run_watch(agent: Agent, submit: SubmitTask) -> RunWatch:
    async def look_now(job: Job, occurrence: Occurrence, watch: Watch, last: str) -> str:
        if watch.look == "commits":
            place = await locate_repo(agent, job.spec.chat, watch.subject)
            watch = replace(watch, subject=place.path)
        if watch.look == "value":
            await agent.refresh_status()  # for /host.txt
        return await look(await call_of(agent, job, occurrence), watch, last)

    return RunWatch(agent.store, look_now, submit, tell_change, agent.channels.payload)


async def call_of(agent: Agent, job: Job, occurrence: Occurrence) -> Call:
    """Create the tool call of a watch's look. Nobody is asked: what an owner has not allowed is denied. What a person
    has planned counts as written by them, and as touched by nobody."""
    spec, by_person = job.spec, job.spec.made_by == "person"

    async def taints() -> Sequence[Taint]:
        if by_person:
            return []
        own = [Taint(spec.stranger, job.created_at)] if spec.stranger else []
        return [*await agent.store.taints.of_chat(spec.chat), *own]

    step = GuardedCall(f"watch-{occurrence.id}", "look", spec.chat, taints)
    approve = agent.approvals.approver(step, lambda event: None)
    context = await agent.tool_context(spec.chat)
    budget = CallBudget(agent.budgets, spec.chat, approve, spec.task)
    written = spec.task if by_person else ""
    return Call(
        step.call,
        step.turn,
        spec.chat,
        context,
        approve,
        taints=taints,
        budget=budget,
        written=written,
    )


def sandboxed_git(agent: Agent, chat: str, *, network: bool = False) -> Git:
    """Runs commands in the chat's sandbox: read-only with their whole output or, with `network`, with access
    to the hosts that the owner allows."""

    async def allow(_request: HostRequest) -> None:
        """Allow the host: the owner set `fetch`, and the proxy refuses hosts that are not listed."""

    async def run(argv: Sequence[str]) -> bytes:
        sandbox = await agent.sandboxes.of(chat)
        try:
            if not network:
                return await sandbox.read_internal(argv, seconds=GIT_SECONDS)
            result = await sandbox.run(argv, seconds=GIT_SECONDS, permit=allow)
        except ToolError as error:
            why = translated("The repository could not be read. {error}")
            raise AgentError(why.format(error=error)) from None
        return result.output.encode()

    return run
