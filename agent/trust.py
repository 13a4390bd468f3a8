"""Whose text a chat holds, and which acts of the chat therefore need an owner's approval.

Text comes from a person, an owner, the program, or a stranger: a page, a file, a forwarded message, a
repository. A chat is touched while its prompt holds a stranger's text, or a summary of one; what it
then writes (notes, jobs, files) counts as a stranger's, too. Acts that carry something out of a touched
chat, or last beyond it, ask; acts that read, compute or answer never do. As in the dual-model and
capability designs (arXiv 2506.08837, 2503.18813), the model may believe what it reads, so where that
came from decides what the model can do.

`ACTS` is the whole rule. docs/security.md shows it as a table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.language import translated
from agent.sandbox.output_buffer import visible
from agent.timezones import local_time

Origin = Literal["person", "owner", "program", "stranger"]
Asks = Literal["never", "unless granted", "once", "always"]

SOURCE_CHARACTERS = 160
SOURCES = (  # what a source may be
    *("page {name}", "search for {name}", "MCP server {name}", "document {name}", "folder {name}"),
    *("mail {name}", "calendar {name}"),
    *("names of documents", "files of which nothing is known"),
)
NAMED = 3  # sources that a question names


@dataclass(frozen=True, slots=True)
class Taint:
    """A stranger's text in a chat or a workspace: `source` says where it comes from, on one line; `at` is
    in seconds since the epoch; each has a higher `number` than the one before."""

    source: str
    at: float
    number: int = 0


@dataclass(frozen=True, slots=True)
class Act:
    """A row of ACTS: `what` a chat does, and when it asks; "unless granted": only without a standing permission; "once":
    any yes is one, which holds in touched chats as well."""

    what: str
    untouched: Asks
    touched: Asks


ACTS: Mapping[str, Act] = {
    "read": Act("read files, search, look at git, `recall`", "never", "never"),
    "compute": Act("run commands, change files in the workspace, commit there", "never", "never"),
    "answer": Act("answer, send files of the workspace to the person", "never", "never"),
    "delegate": Act("hand on a sub-task; each step of it asks by itself", "never", "never"),
    "network": Act("read from a host on the owner's list", "never", "always"),
    "request": Act("send any other visible request to such a host", "unless granted", "always"),
    "page": Act(
        "read a page whose address neither a person wrote nor a search returned, in this chat",
        "always",
        "always",
    ),
    "remember": Act("save a note", "never", "always"),
    "plan": Act("plan a job that runs once", "never", "always"),
    "schedule": Act("plan a job that repeats, or switches the model", "unless granted", "always"),
    "write": Act("change a file in `/repos` (commands cannot, once touched)", "never", "always"),
    "commit": Act("commit to a repository of the host", "unless granted", "always"),
    "budget": Act("go on beyond a daily budget", "unless granted", "always"),
    "send": Act("send a file out of `/repos`", "unless granted", "always"),
    "mcp": Act("call a tool of an MCP server that its `allow` does not name", "unless granted", "always"),
    "mcp-destructive": Act("call one that says of itself that it destroys", "always", "always"),
    "mail": Act("read a mail account, until `/approve` takes that back", "once", "once"),
    "calendar-read": Act("read a calendar account, until `/approve` takes that back", "once", "once"),
    "mail-draft": Act("keep a draft in a mail account", "never", "always"),
    "mail-send": Act("send a letter", "always", "always"),
    "mcp-server": Act("use what an MCP server offers, as it describes it", "always", "always"),
    "calendar": Act("change a calendar of the owner", "unless granted", "always"),
    "key": Act("let out, or keep, what looks like a key of a known kind", "always", "always"),
}  # fmt: skip

OTHER = Act("anything else", "unless granted", "always")


def asks(scope: str, *, touched: bool) -> Asks:
    """Whether the act of a scope such as "commit:website" asks; an act that the table lacks counts as OTHER."""
    act = ACTS.get(scope.partition(":")[0], OTHER)
    return act.touched if touched else act.untouched


def named(source: str) -> str:
    """A source on one line, shortened, and without invisible characters."""
    line = visible(" ".join(source.split()))
    return line if len(line) <= SOURCE_CHARACTERS else f"{line[: SOURCE_CHARACTERS - 1]}…"


def translate_source(source: str) -> str:
    """A source in the current language."""
    for kind in SOURCES:
        if source.startswith(prefix := kind.removesuffix("{name}")):
            return translated(kind).format(name=source.removeprefix(prefix))
    return translated(source)


def told(taints: Sequence[Taint], zone: str) -> str:
    """What has touched a chat, and when, newest last; "" for nothing. `zone` is an IANA name."""
    parts = [
        f"{translate_source(taint.source)} ({local_time(taint.at, zone):%d %b %H:%M})"
        for taint in taints[-NAMED:]
    ]
    if len(taints) > NAMED:
        parts.append(translated("and {count} more").format(count=len(taints) - NAMED))
    return "; ".join(parts)
