"""System texts and tool lists: the product's own, and others like it.

Half of the packs see exactly the product's prefix. The rest see it reordered,
shortened, reworded or with tools missing or added, so that an edit of the
prompt does not break the model.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pocket.rendering import Schema, prefix_text
from pocket.sentences import fact
from pocket.words import adjective, noun

GENERAL = (
    "You are a helpful assistant.",
    "You are Voltaire, a personal agent.",
    "You are a personal agent with tools. Be short.",
    "You are an assistant on a Linux machine. Use the tools to answer.",
    "Answer in the person's language. Use tools for facts. Copy numbers exactly.",
    "You help one person through a messaging app. The workspace is /workspace, repositories are in /repos, /host.txt tells of the machine.",
    "",
)
REWORDED = {
    "Run": ("Execute", "Start", "Run"),
    "file": ("file", "document", "file"),
    "Search": ("Look through", "Find in", "Search"),
    "person": ("user", "owner", "person"),
    "folder": ("directory", "folder"),
    "Read": ("Show", "Open", "Read"),
}
EXTRA = (
    '{"type":"function","function":{"name":"web_fetch","description":"Fetch a page.","parameters":{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}}}',
    '{"type":"function","function":{"name":"delegate","description":"Give a task to a helper.","parameters":{"type":"object","properties":{"task":{"type":"string"}},"required":["task"]}}}',
    '{"type":"function","function":{"name":"clock","description":"The time in a zone.","parameters":{"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]}}}',
)


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stands before a conversation: the tools it knows, and its text."""

    system: str
    tools: tuple[Schema, ...]
    text: str

    def names(self) -> frozenset[str]:
        return frozenset(tool["function"]["name"] for tool in self.tools)


def product(system: Path, tools: Path) -> Prefix:
    """The product's own prefix, from its two files."""
    return _prefix(system.read_text("utf-8").strip(), json.loads(tools.read_text("utf-8")))


def _prefix(system: str, tools: Sequence[Schema]) -> Prefix:
    return Prefix(system, tuple(tools), prefix_text(system, tools))


def bare(own: Prefix) -> Prefix:
    """No text at all, as if every tool were known."""
    return Prefix("", own.tools, "")


def brief(own: Prefix, random: Random) -> Prefix:
    """The tools by name alone: a short prefix for the first part of the training."""
    names = [tool["function"]["name"] for tool in own.tools]
    system = f"{random.choice(GENERAL)} Tools: {', '.join(random.sample(names, len(names)))}"
    return Prefix(system, own.tools, prefix_text(system, ()))


def varied(own: Prefix, random: Random) -> Prefix:
    """A prefix that differs from the product's own in text, order, wording or tools."""
    return _prefix(_system(own.system, random), _tools(own.tools, random))


def _system(own: str, random: Random) -> str:
    roll = random.random()
    if roll < 0.3:
        return random.choice(GENERAL)
    lines = own.split("\n")
    if roll < 0.7:
        lines = [line for line in lines if random.random() < 0.6]
    if roll > 0.5:
        lines = [
            *lines,
            f"- {fact(random)}.",
            f"- Be {adjective(random)} with every {noun(random)}.",
        ]
    if roll > 0.85:
        random.shuffle(lines)
    return "\n".join(lines).strip()


def _tools(own: Sequence[Schema], random: Random) -> list[Schema]:
    tools = list(own)
    if random.random() < 0.5:
        random.shuffle(tools)
    roll = random.random()
    if roll < 0.35:
        tools = [tool for tool in tools if random.random() < 0.85]
    elif roll < 0.5:
        tools = [tool for tool in tools if random.random() < 0.4]
    if random.random() < 0.2:
        tools.insert(random.randint(0, len(tools)), json.loads(random.choice(EXTRA)))
    return [_reworded(tool, random) for tool in tools] if random.random() < 0.6 else tools


def _reworded(tool: Schema, random: Random) -> Schema:
    copy: Schema = json.loads(json.dumps(tool))
    function = copy["function"]
    for word, others in REWORDED.items():
        function["description"] = function["description"].replace(word, random.choice(others))
    if random.random() < 0.2:
        function["description"] = function["description"].split(".")[0] + "."
    if random.random() < 0.2:
        for argument in function["parameters"]["properties"].values():
            argument.pop("description", None)
    return copy
