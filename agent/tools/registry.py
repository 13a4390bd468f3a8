"""Which tools are offered: the default set in its fixed order, without those that the owner drops."""

import importlib
import json
import pkgutil
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from agent import tools
from agent.tools.schedule import TO_SUMMARISE
from agent.tools.tool import Tool

# Debian has no `python`, which models type nevertheless.
PYTHON = '#!/bin/sh\nexec "$(PATH=${PATH#*:} command -v python || echo python3)" "$@"\n'
NO_COMMAND = '#!/bin/sh\necho "{name} is a tool, no command of the shell. {form}" >&2\nexit 2\n'


def shell_names(tools: Sequence[Tool]) -> Mapping[str, str]:
    """Programs of the shell for what models type there: `python`, and the names of tools, which say how to be called."""
    others = [tool for tool in tools if shutil.which(tool.name) is None]  # bash and grep are real
    hints = {tool.name: NO_COMMAND.format(name=tool.name, form=tool.signature) for tool in others}
    return {"python": PYTHON, **hints}


@cache
def default_names() -> tuple[str, ...]:
    """The names of the default set, in the order in which every request sends them."""
    stored = files("agent").joinpath("prefix/tools.json").read_text("utf-8")
    return tuple(tool["function"]["name"] for tool in json.loads(stored))


@cache
def known() -> dict[str, Tool]:
    """Every tool by name."""
    modules = [
        importlib.import_module(f"agent.tools.{m.name}")
        for m in pkgutil.iter_modules(tools.__path__)
    ]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, Tool)]
    return {tool.name: tool for tool in found}


def chosen(names: Sequence[str]) -> tuple[Tool, ...]:
    """The named tools, or without names the default set, in the fixed order; ValueError names an unknown one."""
    order = [*default_names(), *sorted(set(known()) - set(default_names()))]
    wanted = set(names or default_names())
    if unknown := sorted(wanted - set(order)):
        raise ValueError(f"There is no tool named {unknown[0]}; there are {', '.join(order)}.")
    return tuple(known()[name] for name in order if name in wanted and name in known())


def offered(tools: Sequence[Tool], *, with_repositories: bool) -> tuple[Mapping[str, Any], ...]:
    """The wire form that every request sends: of repositories only where one is configured.

    The tools for git run in the workspace's own repositories as well, where bash has git.
    """
    if with_repositories:
        return tuple(tool.schema for tool in tools)
    told = json.dumps([tool.schema for tool in tools if not tool.name.startswith("git_")])
    return tuple(json.loads(told.replace(TO_SUMMARISE, "").replace(', "summary"]', "]")))
