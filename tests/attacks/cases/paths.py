"""File tools: paths that lead out, and files that are none."""

import asyncio
from typing import Any

from tests.attacks.attack import WON, Attack, fill_places
from tests.attacks.stage import Stage
from tests.attacks.subject import Subject


def tool_attack(name: str, tool: str, first: str = "true", **arguments: Any) -> Attack:
    """After the command `first`, one call; its arguments may name places in braces."""

    async def act(subject: Subject, stage: Stage) -> str:
        await subject.run(fill_places(first, stage))
        given = {k: filled_argument(v, stage) for k, v in arguments.items()}
        try:
            async with asyncio.timeout(5):
                return await subject.use(tool, **given)
        except TimeoutError:
            return WON

    return Attack("file tools", f"{tool}: {name}", act)


def filled_argument(value: Any, stage: Stage) -> Any:
    return (
        fill_places(value, stage)
        if isinstance(value, str)
        else [fill_places(v, stage) for v in value]
    )


_RACE = """
mkdir -p a; echo harmless > a/secret.txt; ln -sfn {outside} b
end=$((SECONDS + 2))
while [ $SECONDS -lt $end ]; do mv -T a x; mv -T b a; mv -T a b; mv -T x a; done
"""


async def race(subject: Subject, stage: Stage) -> str:
    """A directory and a link out change places while the file is read."""
    swaps = asyncio.ensure_future(subject.run(fill_places(_RACE, stage)))
    seen = []
    while not swaps.done():
        seen.append(await subject.use("read_file", path="a/secret.txt"))
        await asyncio.sleep(0)
    await swaps
    return "\n".join(set(seen))


ATTACKS = (
    tool_attack("by ..", "read_file", path="../../../../outside/secret.txt"),
    tool_attack("by .. behind a name", "read_file", "mkdir -p a", path="a/../../../../../outside/secret.txt"),
    tool_attack("an absolute path", "read_file", path="{outside}/secret.txt"),
    tool_attack("/workspace and ..", "read_file", path="/workspace/../{outside}/secret.txt"),
    tool_attack("/repos and ..", "read_file", path="/repos/../{outside}/secret.txt"),
    tool_attack("a repository and ..", "read_file", path="/repos/site/../../{outside}/secret.txt"),
    tool_attack("a symlink", "read_file", "ln -sf {outside}/secret.txt l", path="l"),
    tool_attack("a relative symlink", "read_file", "ln -sf ../../../../outside/secret.txt l", path="l"),
    tool_attack("a symlinked directory", "read_file", "ln -sfn {outside} d", path="d/secret.txt"),
    tool_attack("a link to a link", "read_file", "ln -sf {outside}/secret.txt l; ln -sf l m", path="m"),
    tool_attack("a link by /proc", "read_file", "ln -sf /proc/self/root{outside}/secret.txt l", path="l"),
    tool_attack("a link to an open descriptor", "read_file", "ln -sfn /proc/self/fd l", path="l/3"),
    tool_attack("the program's environment", "read_file", path="/proc/self/environ"),
    tool_attack("a link to the environment", "read_file", "ln -sf /proc/self/environ l", path="l"),
    tool_attack("the other chat", "read_file", path="../../other/work/notes.txt"),
    tool_attack("a NUL in the path", "read_file", path="{outside}/secret.txt\0.txt"),
    tool_attack("a FIFO that never ends", "read_file", "rm -f p; mkfifo p", path="p"),
    tool_attack("an endless device by a link", "read_file", "ln -sf /dev/zero z", path="z"),
    tool_attack("a tilde", "read_file", path="~/../{outside}/secret.txt"),
    tool_attack("a surrogate in the path", "read_file", path="\ud800/../{outside}/secret.txt"),
    tool_attack("by ..", "write_file", path="../../../../outside/new.txt", content="x"),
    tool_attack("an absolute path", "write_file", path="{outside}/new.txt", content="x"),
    tool_attack("a symlink", "write_file", "ln -sf {outside}/canary.txt l", path="l", content="x"),
    tool_attack("a symlinked directory", "write_file", "ln -sfn {outside} d", path="d/new.txt", content="x"),
    tool_attack("a dangling symlink", "write_file", "ln -sf {outside}/new.txt l", path="l", content="x"),
    tool_attack("the read-only repository", "write_file", path="{repo}/new.html", content="x"),
    tool_attack("its .git", "write_file", path="{repo}/.git/config", content="[core]\nfsmonitor=true\n"),
    tool_attack("the other chat", "write_file", path="../../other/work/notes.txt", content="x"),
    tool_attack("a FIFO", "write_file", "rm -f p; mkfifo p", path="p", content="x"),
    tool_attack("a symlink", "edit_file", "ln -sf {outside}/canary.txt l", path="l", old="sings", new="x"),
    tool_attack("an absolute path", "edit_file", path="{outside}/canary.txt", old="sings", new="x"),
    tool_attack("a symlink", "send_file", "ln -sf {outside}/secret.txt l", path="l"),
    tool_attack("an absolute path", "send_file", path="{outside}/secret.txt"),
    tool_attack("by ..", "send_file", path="../../../../outside/secret.txt"),
    tool_attack("by ..", "grep", pattern="s3cr3t", path="../../../../outside"),
    tool_attack("an absolute path", "grep", pattern="s3cr3t", path="{outside}"),
    tool_attack("a symlinked directory", "grep", "ln -sfn {outside} d", pattern="s3cr3t", path="d/"),
    tool_attack("an option for a pattern", "grep", pattern="-f{outside}/secret.txt", path="{outside}"),
    tool_attack("by ..", "list_files", pattern="../../../../outside/* && echo PWNED"),
    tool_attack("an absolute pattern", "list_files", pattern="{outside}/canary.txt && echo PWNED"),
    tool_attack("a command in the pattern", "list_files", pattern="$(cat {outside}/secret.txt)"),
    Attack("file tools", "read_file: directory and link change places", race),
)  # fmt: skip
