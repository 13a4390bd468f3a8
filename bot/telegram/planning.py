"""Planned work and repositories: /jobs, /schedule, /repos, /summary."""

from agent.errors import AgentError
from agent.schedule.planner import OWNERS_ONLY, Planner
from agent.store.jobs import CatchUp, Job
from bot.channel import Choice, Rows
from bot.telegram.access import Standing
from bot.telegram.buttons import Outcome, Press
from bot.telegram.handler_context import HandlerContext, Heard

JOB = "job"
CATCH_UP: dict[str, CatchUp] = {"run once": "once", "run all": "all", "say missed": "missed"}


async def jobs(room: HandlerContext, said: Heard) -> None:
    """/jobs lists them; /jobs 3 tells of one; /jobs 3 every Monday at 9 changes it."""
    planner = await _planner(room, said.chat)
    number, _, words = said.argument.partition(" ")
    if number.isdigit():
        await room.say(said.chat, await _one(room, said, planner, int(number), words))
        return
    text, rows = await _list(room, planner)
    await room.say(said.chat, text, rows)


async def _one(room: HandlerContext, said: Heard, planner: Planner, number: int, words: str) -> str:
    job = await planner.find(number)
    if not words:
        return "\n".join([planner.told(job), *await planner.history(job)])
    if catch_up := CATCH_UP.get(words.lower()):
        job = await planner.adjust(number, catch_up, None)
    elif words.lower() in ("tell", "silent"):
        job = await planner.adjust(number, None, words.lower() == "tell")
    else:
        _allow(room, said.standing, job.spec.kind)
        job = await planner.edit(number, words)
    return room.texts.planned.format(number=job.id, told=planner.told(job))


def _allow(room: HandlerContext, standing: Standing, kind: str) -> None:
    """What touches more than its chat is for owners."""
    if kind in OWNERS_ONLY and standing != "owner":
        raise AgentError(room.texts.only_owners)


async def schedule(room: HandlerContext, said: Heard) -> None:
    """/schedule in 10 minutes stretch: shown with its next times, made by a press.

    What is not understood is asked back.
    """
    if not said.argument:
        await room.say(said.chat, room.texts.schedule_how)
        return
    planner = await _planner(room, said.chat)
    proposal = await planner.propose_text(said.argument)
    _allow(room, said.standing, proposal.spec.kind)
    job = await planner.offer(proposal)
    row = [
        Choice(f"{JOB}:yes:{job.id}", room.texts.plan_it),
        Choice(f"{JOB}:no:{job.id}", room.texts.no),
    ]
    await room.say(said.chat, room.texts.plan_question.format(told=proposal.told), [row])


async def repos(room: HandlerContext, said: Heard) -> None:
    names = "\n".join(f"- `{name}` at /repos/{name}" for name in room.config.repos)
    await room.say(said.chat, names or room.texts.no_repos)


async def summary(room: HandlerContext, said: Heard) -> None:
    """/summary REPO; the only repository needs no name."""
    name = said.argument or (room.config.repos[0] if len(room.config.repos) == 1 else "")
    if name not in room.config.repos and name != ".":
        await repos(room, said)
    else:
        await (await _planner(room, said.chat)).summarise(name)


async def press(room: HandlerContext, press: Press) -> Outcome:
    """`ACTION:ID` of a button under /schedule or /jobs."""
    action, _, id = press.argument.partition(":")
    planner = await _planner(room, press.chat)
    try:
        await _check(room, press, planner, int(id))
        if action in ("yes", "no"):
            return await _decide(room, planner, int(id), yes=action == "yes")
        await _act(planner, action, int(id))
    except AgentError as error:
        return Outcome(str(error))
    text, rows = await _list(room, planner)
    return Outcome(room.texts.job_done[action], text, rows)


async def _check(room: HandlerContext, press: Press, planner: Planner, number: int) -> None:
    job = await room.store.jobs.get(number)
    if job and job.spec.chat == planner.chat:
        _allow(room, press.standing, job.spec.kind)


async def _decide(room: HandlerContext, planner: Planner, number: int, *, yes: bool) -> Outcome:
    """On what /schedule showed."""
    if not yes:
        await planner.withdraw(number)
        return Outcome("", room.texts.not_planned)
    job = await planner.confirm(number)
    return Outcome("", room.texts.planned.format(number=job.id, told=planner.told(job)))


async def _act(planner: Planner, action: str, number: int) -> None:
    match action:
        case "pause":
            await planner.pause(number, paused=True)
        case "go":
            await planner.pause(number, paused=False)
        case "run":
            await planner.run_now(number)
        case "rm":
            await planner.remove(number)


async def _list(room: HandlerContext, planner: Planner) -> tuple[str, Rows]:
    found = await planner.jobs()
    if not found:
        return room.texts.no_jobs, []
    lines = [f"{job.id}. {planner.told(job, 1)}" for job in found]
    return "\n".join(lines), [_buttons(room, job) for job in found[:12]]


def _buttons(room: HandlerContext, job: Job) -> list[Choice]:
    paused = job.spec.state == "paused"
    turn = ("go", f"▶ {job.id}") if paused else ("pause", f"⏸ {job.id}")
    actions = [turn, ("run", f"{room.texts.run_now} {job.id}"), ("rm", f"✕ {job.id}")]
    return [Choice(f"{JOB}:{key}:{job.id}", label) for key, label in actions]


async def _planner(room: HandlerContext, chat: str) -> Planner:
    if room.services.planner is None:
        raise AgentError(room.texts.not_here)
    return await room.services.planner(chat)
