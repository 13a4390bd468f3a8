"""Which tools there are, in the order in which every model sees them."""

from collections.abc import Sequence

from agent.tool import Tool
from agent.tools.courier import send_file
from agent.tools.files import edit_file, read_file, write_file
from agent.tools.git import git_commit, git_diff, git_status
from agent.tools.inner import delegate
from agent.tools.later import schedule
from agent.tools.memory import recall, remember
from agent.tools.search import grep, list_files
from agent.tools.shell import bash
from agent.tools.web import web_fetch

DEFAULT: tuple[Tool, ...] = (
    *(bash, read_file, write_file, edit_file, list_files, grep),
    *(git_status, git_diff, git_commit),
    *(remember, recall, schedule, send_file),
)
EXTRA: tuple[Tool, ...] = (delegate, web_fetch)


def chosen(names: Sequence[str]) -> tuple[Tool, ...]:
    """The tools of these names, in their own order; all default ones for no names.

    KeyError holds the first name that is not a tool.
    """
    known = {tool.name: tool for tool in (*DEFAULT, *EXTRA)}
    for name in names:
        if name not in known:
            raise KeyError(name)
    return tuple(tool for tool in known.values() if tool.name in names) if names else DEFAULT
