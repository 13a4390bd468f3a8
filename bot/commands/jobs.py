"""Jobs, repositories, skills and MCP servers: /jobs, /schedule, /repos, /skills, /summary, /mcp."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agent.errors import AgentError, ToolError
from agent.language import speaking
from agent.schedule.planner import OWNERS_ONLY, Planner
from agent.store.jobs import CatchUp, Job
from agent.store.turns import OpenTurn
from bot.access import AccessLevel
from bot.channel import Button, Keyboard
from bot.commands.context import ButtonPress, CommandCall, HandlerContext, PressResult, whole_number
from bot.texts import TEXTS

JOB = "job"
BUTTON_ROWS = 12
CATCH_UP: dict[str, CatchUp] = {"run once": "once", "run all": "all", "say missed": "missed"}


async def jobs(context: HandlerContext, call: CommandCall) -> None:
    """/jobs lists them; /jobs 3 describes one; /jobs 3 every Monday at 9 changes it."""
    planner = await planner_of(context, call.chat)
    number, _, words = call.argument.partition(" ")
    if not number.isdecimal():
        await context.send(call.chat, *await job_list(planner))
        return
    job = await planner.find(whole_number(number))
    if not words:
        lines = [planner.describe(job), *await planner.history(job)]
        await context.send(call.chat, "\n".join(lines))
        return
    if catch_up := CATCH_UP.get(words.lower()):
        job = await planner.adjust(job.id, catch_up, None)
    elif words.lower() in ("tell", "silent"):
        job = await planner.adjust(job.id, None, words.lower() == "tell")
    else:
        check_level(call.level, job.spec.kind)
        job = await planner.edit(job.id, words)
    await context.send(call.chat, planned(planner, job))


async def schedule(context: HandlerContext, call: CommandCall) -> None:
    """/schedule in 10 minutes stretch: shown with its next times; a press on the button makes the job.

    What is not understood is asked back.
    """
    if not call.argument:
        await context.send(call.chat, TEXTS.schedule_how)
        return
    planner = await planner_of(context, call.chat)
    proposal = await planner.propose_text(call.argument)
    check_level(call.level, proposal.spec.kind)
    job = await planner.offer(proposal)
    yes = Button(f"{JOB}:yes:{job.id}", TEXTS.plan_it)
    no = Button(f"{JOB}:no:{job.id}", TEXTS.no)
    question = TEXTS.plan_question.format(told=proposal.description)
    await context.send(call.chat, question, [[yes, no]])


async def tonight(context: HandlerContext, call: CommandCall) -> None:
    """/tonight has the last message done again at night; /tonight WORDS has these done."""
    last = None if call.argument else await context.store.turns.last(call.chat)
    if last or call.argument:
        await do_tonight(context, call.chat, call.argument, last and last[0])
    else:
        await context.send(call.chat, TEXTS.nothing_to_retry)


async def react_tonight(context: HandlerContext, chat: str, message: str, author: str) -> None:
    """Plan the request of a message, or of the message that it answers, for the night if `author` made it."""
    if turn := await context.store.turns.of_message(chat, message, author):
        with speaking(await context.chosen_language(turn.chat)):
            try:
                await do_tonight(context, turn.chat, "", turn)
            except AgentError as error:
                await context.send(turn.chat, str(error))


async def do_tonight(context: HandlerContext, chat: str, words: str, turn: OpenTurn | None) -> None:
    rows = await context.store.inbox.of_turn(turn.id) if turn else []
    words = words or "\n".join(row.incoming.text for row in rows).strip() or "…"
    stranger = "; ".join(row.incoming.stranger for row in rows if row.incoming.stranger)
    planner = await planner_of(context, chat)
    job = await planner.work_tonight(words, turn, stranger)
    await context.send(chat, planned(planner, job), [[Button(f"{JOB}:rm:{job.id}", f"✕ {job.id}")]])


async def press_job(context: HandlerContext, press: ButtonPress) -> PressResult:
    """Act on `ACTION:ID`, of a button under /schedule (yes, no) or /jobs (pause, go, run, rm)."""
    action, _, id = press.argument.partition(":")
    planner, number = await planner_of(context, press.chat), int(id)
    if job := await context.store.jobs.get_of(press.chat, number):
        check_level(press.level, job.spec.kind)
    match action:
        case "yes":
            return PressResult("", planned(planner, await planner.confirm(number)))
        case "no":
            await planner.withdraw(number)
            return PressResult("", TEXTS.not_planned)
        case "pause" | "go":
            await planner.pause(number, paused=action == "pause")
        case "run":
            await planner.run_now(number)
        case "rm":
            await planner.remove(number)
    text, keyboard = await job_list(planner)
    return PressResult(TEXTS.job_done[action], text, keyboard)


async def repos(context: HandlerContext, call: CommandCall) -> None:
    names = "\n".join(TEXTS.repo_at.format(name=name) for name in context.repos)
    await context.send(call.chat, names or TEXTS.no_repos)


async def skills(context: HandlerContext, call: CommandCall) -> None:
    lines = [f"- `{name}`: {about}" for name, about in context.services.skills()]
    await context.send(call.chat, "\n".join(lines) or TEXTS.no_skills)


async def summary(context: HandlerContext, call: CommandCall) -> None:
    """/summary REPO; the only repository needs no name."""
    name = call.argument or (context.repos[0] if len(context.repos) == 1 else "")
    if name not in context.repos and name != ".":
        await repos(context, call)
    else:
        await (await planner_of(context, call.chat)).summarize_now(name)


def check_level(level: AccessLevel, kind: str) -> None:
    """Raise AgentError if a member may not plan that kind of job: it affects more than their chat."""
    if kind in OWNERS_ONLY and level != "owner":
        raise AgentError(TEXTS.only_owners)


async def job_list(planner: Planner) -> tuple[str, Keyboard]:
    found = await planner.jobs()
    if not found:
        return TEXTS.no_jobs, []
    text = "\n".join(f"{job.id}. {planner.describe(job, 1)}" for job in found)
    keyboard = []
    for job in found[:BUTTON_ROWS]:
        paused = job.spec.state == "paused"
        toggle = ("go", f"▶ {job.id}") if paused else ("pause", f"⏸ {job.id}")
        run, delete = ("run", f"{TEXTS.run_now} {job.id}"), ("rm", f"✕ {job.id}")
        row = [Button(f"{JOB}:{key}:{job.id}", label) for key, label in (toggle, run, delete)]
        keyboard.append(row)
    return text, keyboard


def planned(planner: Planner, job: Job) -> str:
    return TEXTS.planned.format(number=job.id, told=planner.describe(job))


async def planner_of(context: HandlerContext, chat: str) -> Planner:
    return await context.services.planner(chat)


if TYPE_CHECKING:  # loaded where servers are configured
    from agent.mcp.oauth import SignIn
    from agent.mcp.servers import ToolServers


async def mcp(context: HandlerContext, call: CommandCall) -> None:
    """/mcp lists them; /mcp NAME signs in to one; /mcp NAME ADDRESS hands over the address that the browser was
    redirected to."""
    servers = context.services.servers
    name, _, answer = call.argument.strip().partition(" ")
    if servers is None or not name:
        lines = await servers.report() if servers else []
        await context.send(call.chat, "\n".join(lines) or TEXTS.no_servers)
        return

    async def tell(text: str) -> None:
        await context.send(call.chat, text)

    try:
        servers.named(name)
        if answer:
            servers.take_answer(name, answer)
        else:
            work = have_signed_in(servers, name, tell)
            servers.tasks.start(work, f"signing in to {name}")
    except ToolError as error:
        await tell(str(error))


async def have_signed_in(
    servers: "ToolServers", name: str, tell: Callable[[str], Awaitable[None]]
) -> None:
    """Send the sign-in link, wait until somebody has signed in, and say how it ended."""

    async def show(sign_in: "SignIn") -> None:
        facts = {"name": name, "host": sign_in.host, "link": sign_in.link}
        moved = TEXTS.sign_in_moved.format(before=sign_in.before, **facts) if sign_in.before else ""
        await tell(f"{moved}\n\n{TEXTS.sign_in.format(**facts)}".strip())

    try:
        if await servers.sign_in(name, show):
            await tell(TEXTS.signed_in.format(name=name))
    except ToolError as error:
        await tell(str(error))
