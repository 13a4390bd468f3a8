"""The programs, found by their files, and what /commands.txt says of them in a chat."""

import importlib
import logging
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from agent.shell import programs
from agent.shell.command import ShellCommand
from agent.tools.context import ToolContext

log = logging.getLogger(__name__)

SKILLS = "Skills: when one fits what is asked, read it first (cat /skills/NAME/SKILL.md) and do as it says."
HEAD = "Commands of this shell that are answered outside of it. They take pipes, files and --help."


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(programs.__path__))


def scripts() -> Mapping[str, str]:
    """The files of /commands: the same client under each program's name. Loads none of the programs."""
    client = files("agent.shell").joinpath("client.pl").read_text("utf-8")
    return dict.fromkeys(names(), client)


def commands(program: str) -> Mapping[str, ShellCommand]:
    """The commands of a program by name; none where it does not exist or cannot be loaded."""
    return loaded(program) if program in names() else {}


@cache
def loaded(program: str) -> Mapping[str, ShellCommand]:
    try:
        module = importlib.import_module(f"{programs.__name__}.{program}")
    except Exception:  # an owner's broken file must not break the shell
        log.exception("the commands of %s cannot be loaded", program)
        return {}
    return {each.name: each for each in vars(module).values() if isinstance(each, ShellCommand)}


def listing(context: ToolContext) -> str:
    """The text of /commands.txt."""
    lines, skills = program_lines(context).values(), skill_lines(context).values()
    about = [HEAD if lines else "There are no such commands.", *lines]
    return "\n".join([*about, *(["", SKILLS, *skills] if skills else []), ""])


def entries(context: ToolContext) -> dict[str, str]:
    """The lines of /commands.txt by program and skill."""
    skills = {f"skill {name}": line for name, line in skill_lines(context).items()}
    return program_lines(context) | skills


def program_lines(context: ToolContext) -> dict[str, str]:
    lines = {
        program: [line for each in commands(program).values() for line in each.lines(context)]
        for program in names()
    }
    return {program: "\n".join(each) for program, each in lines.items() if each}


def skill_lines(context: ToolContext) -> dict[str, str]:
    return {name: f"{name}  {description}" for name, description in context.skills()}
