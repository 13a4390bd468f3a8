"""voltaire import: moving in from OpenClaw, Hermes agent or nanobot. What would be taken is shown; --apply takes it."""

from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from agent.other_agents import Reader
from agent.sandbox.output_buffer import visible
from agent.schedule.planner import describe_task
from agent.schedule.times.rule import describe, load
from agent.skills import SkillShelf
from bot.agent_config import leak_detector
from bot.cli.command import Failed, Options, confirmed, runs
from bot.cli.holder_client import change, record_act
from bot.cli.skills import shown

KINDS = ("notes", "jobs", "skills")


@click.command("import", help="Move in from OpenClaw, Hermes agent or nanobot; shows it first.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--apply", multiple=True, type=click.Choice([*KINDS, "all"]), help="Take these.")
@click.option("--chat", default="", help="For which chat; an owner's, unless given.")
@click.option("--yes", is_flag=True, help="Do not ask about each skill.")
@runs
async def command(
    options: Options, folder: Path, apply: tuple[str, ...], chat: str, yes: bool
) -> None:
    settings, folder = options.settings, folder.expanduser().absolute()
    have = await change(settings, "import", chat=chat, notes={}, jobs={})
    found = Reader(folder, have["chat"], have["zone"], datetime.now(UTC), leak_detector(settings))
    try:
        if not folder.is_dir():
            raise Failed(f"There is no folder {folder}.")
        found.read()
    except OSError as error:
        raise Failed(f"{error.filename or folder} cannot be read: {error.strerror}.") from None
    shelf = SkillShelf(settings.state_dir)
    pinned = {pin.name for pin in shelf.pins()}
    notes = {key: text for text in found.notes if (key := digest(text)) not in have["taken"]}
    jobs = {
        key: job for each, job in found.jobs.items() if (key := digest(each)) not in have["taken"]
    }
    skills = [skill for skill in found.skills if skill.name not in pinned]
    told = [
        f"{s.folder}: a skill {s.name} was added before" for s in found.skills if s.name in pinned
    ]
    lists = {
        f"Notes for {have['chat']}": [f"{found.notes[text]}: {text}" for text in notes.values()],
        f"Jobs for {have['chat']}": [
            f"{describe_task(job.kind, job.task)}, {describe(load(job.timing), have['zone'])}"
            f"{' (paused)' if job.state == 'paused' else ''}"
            for job in jobs.values()
        ],
        "Skills": [f"{skill.name}: {skill.description}" for skill in skills],
        "Not taken": [*found.left_out, *told],
    }
    if not (have["taken"] or any(lists.values())):
        raise Failed(
            f"{folder} has no memory, jobs or skills of OpenClaw, Hermes agent or nanobot."
        )
    for title, lines in lists.items():
        click.echo(visible("\n  ".join([f"{title} ({len(lines)})", *lines])))
    chosen, added = KINDS if "all" in apply else apply, 0
    if not chosen:
        click.echo("Nothing was taken. --apply all takes it, --apply notes the notes alone.")
        return
    for skill in skills if "skills" in chosen else ():
        click.echo(shown(skill))
        if yes or confirmed(f"Add {skill.name}, for the agent to follow?"):
            shelf.add(skill)
            await record_act(settings, act="skill", added=skill.name, sha256=skill.sha256)
            added += 1
    fields: dict[str, dict[str, Any]] = {
        "jobs": {key: asdict(job) for key, job in jobs.items()} if "jobs" in chosen else {},
        "notes": notes if "notes" in chosen else {},
    }
    await change(settings, "import", chat=have["chat"], **fields)
    counts = {"notes": len(fields["notes"]), "jobs": len(fields["jobs"]), "skills": added}
    click.echo("Taken: " + ", ".join(f"{name} {count}" for name, count in counts.items()) + ".")


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:24]
