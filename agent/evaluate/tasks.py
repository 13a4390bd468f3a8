"""A task as data."""

import tomllib
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field


class EvalTask(BaseModel):
    """What is asked in a fresh workspace, and what must hold afterwards; every given check counts.

    `says` and `never` are regular expressions over the answer. `verify` is bash
    that must end with 0 in the workspace, `echoes` bash whose output the answer
    must hold. `uses`: one of these tools must have run. `kept`, `planned`
    ("when task") and `sent` (a file's name) are searched in what was remembered,
    scheduled and sent. `calls` is how many a good run takes; `easy` ones are
    meant for the smallest models too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: str
    ask: str
    files: dict[str, str] = Field(default_factory=dict)
    setup: str = ""
    notes: tuple[str, ...] = ()
    calls: int = 1
    easy: bool = False
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    verify: str = ""
    echoes: str = ""
    uses: tuple[str, ...] = ()
    kept: str = ""
    planned: str = ""
    sent: str = ""


@cache
def suite() -> tuple[EvalTask, ...]:
    """All tasks; their kind is the name of the file that holds them."""
    folder = files("agent.evaluate").joinpath("tasks")
    found: list[EvalTask] = []
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        kind = file.name.removesuffix(".toml")
        for task in tomllib.loads(file.read_text("utf-8"))["task"]:
            found.append(EvalTask(kind=kind, **task))
    return tuple(found)
