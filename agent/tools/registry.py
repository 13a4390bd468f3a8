"""Which tools are offered: the default set in its fixed order, without those that the owner drops."""

import importlib
import json
import pkgutil
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from agent import tools
from agent.tools.tool import Tool


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
