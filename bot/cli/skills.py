"""voltaire skills: what the agent is taught by folders with a SKILL.md. They are the owner's to add."""

import json
from pathlib import Path

import click

from agent.sandbox.output_buffer import visible
from agent.skills import GUIDE, Skill, SkillError, SkillShelf, read_skill
from bot.cli.command import Options, confirmed, json_option, runs
from bot.cli.holder_client import record_act
from bot.state import make_private

command = click.Group("skills", help="Manage skills: folders with a SKILL.md that teach the agent.")


@command.command("list")
@json_option
@runs
async def list_skills(options: Options, as_json: bool) -> None:
    """List what was added, and what lies in the folders of agent.skills."""
    shelf = SkillShelf(options.settings.state_dir)
    rows = [
        {
            "name": pin.name,
            "description": pin.description,
            "source": pin.source,
            "sha256": pin.sha256,
            "state": "added",
            "problem": shelf.problem(pin),
        }
        for pin in shelf.pins()
    ]
    known = {row["source"] for row in rows}
    for folder in options.settings.agent.skills:
        for guide in sorted(folder.glob(f"*/{GUIDE}")):
            if str(guide.parent.resolve()) not in known:
                rows.append(candidate(guide.parent))
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        note = row["problem"] or ("" if row["state"] == "added" else "not added")
        click.echo(visible(f"{row['name']}  {row['description']}{f' [{note}]' if note else ''}"))
    if not rows:
        click.echo("There are no skills. voltaire skills add PATH adds one.")


@command.command("add")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@runs
async def add(options: Options, path: Path, yes: bool) -> int:
    """Show all that a skill holds, then add it as it is now. PATH is its folder, or a name in agent.skills."""
    settings = options.settings
    if not path.exists() and len(path.parts) == 1:
        path = next((at / path for at in settings.agent.skills if (at / path).is_dir()), path)
    skill = read_skill(path.resolve())
    click.echo(shown(skill))
    if not yes and not confirmed(f"Add {skill.name}, for the agent to follow?"):
        return 1
    make_private(settings.state_dir)
    SkillShelf(settings.state_dir).add(skill)
    await record_act(settings, act="skill", added=skill.name, sha256=skill.sha256)
    click.echo(f"Added {skill.name}, {len(skill.files)} files, sha256 {skill.sha256[:16]}.")
    return 0


@command.command("remove")
@click.argument("name")
@runs
async def remove(options: Options, name: str) -> None:
    """Take a skill away from the agent; its source stays."""
    state = options.settings.state_dir
    SkillShelf(state).remove(name)
    await record_act(options.settings, act="skill", removed=name)
    click.echo(f"Removed {name}.")


def candidate(folder: Path) -> dict[str, str]:
    """The row of a skill that could be added."""
    row = {"name": folder.name, "description": "", "source": str(folder), "state": "found"}
    try:
        skill = read_skill(folder)
    except SkillError as error:
        return {**row, "problem": str(error)}
    return {**row, "name": skill.name, "description": skill.description, "problem": ""}


def shown(skill: Skill) -> str:
    """The skill's text files with control characters made visible, and the size of its other files."""
    lines = [f"{skill.name}: {visible(skill.description)}"]
    for path, (content, program) in sorted(skill.files.items()):
        kind = ", a program" if program else ""
        lines.append(f"\n=== {visible(path)} ({len(content)} bytes{kind})")
        try:
            lines.append(visible(content.decode()).rstrip("\n"))
        except UnicodeDecodeError:
            lines.append("[not text]")
    return "\n".join(lines)
