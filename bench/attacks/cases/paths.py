"""File tools: paths that lead out, and files that are none."""

import asyncio
from typing import Any

from bench.attacks.attack import WON, Attack, _filled
from bench.attacks.stage import Stage
from bench.attacks.subject import Subject


def _tool(name: str, tool: str, first: str = "true", **arguments: Any) -> Attack:
    """After the command `first`, one call; its arguments may name places in braces."""

    async def act(subject: Subject, stage: Stage) -> str:
        await subject.run(_filled(first, stage))
        given = {k: _fill(v, stage) for k, v in arguments.items()}
        try:
            async with asyncio.timeout(5):
                return await subject.use(tool, **given)
        except TimeoutError:
            return WON

    return Attack("file tools", f"{tool}: {name}", act)


def _fill(value: Any, stage: Stage) -> Any:
    return _filled(value, stage) if isinstance(value, str) else [_filled(v, stage) for v in value]


_RACE = """
mkdir -p a; echo harmless > a/secret.txt; ln -sfn {outside} b
end=$((SECONDS + 2))
while [ $SECONDS -lt $end ]; do mv -T a x; mv -T b a; mv -T a b; mv -T x a; done
"""


async def _race(subject: Subject, stage: Stage) -> str:
    """A directory and a link out change places while the file is read."""
    swaps = asyncio.ensure_future(subject.run(_filled(_RACE, stage)))
    seen = []
    while not swaps.done():
        seen.append(await subject.use("read_file", path="a/secret.txt"))
        await asyncio.sleep(0)
    await swaps
    return "\n".join(set(seen))


ATTACKS = (
    _tool("by ..", "read_file", path="../../../../outside/secret.txt"),
    _tool("by .. behind a name", "read_file", "mkdir -p a", path="a/../../../../../outside/secret.txt"),
    _tool("an absolute path", "read_file", path="{outside}/secret.txt"),
    _tool("/workspace and ..", "read_file", path="/workspace/../{outside}/secret.txt"),
    _tool("/repos and ..", "read_file", path="/repos/../{outside}/secret.txt"),
    _tool("a repository and ..", "read_file", path="/repos/site/../../{outside}/secret.txt"),
    _tool("a symlink", "read_file", "ln -sf {outside}/secret.txt l", path="l"),
    _tool("a relative symlink", "read_file", "ln -sf ../../../../outside/secret.txt l", path="l"),
    _tool("a symlinked directory", "read_file", "ln -sfn {outside} d", path="d/secret.txt"),
    _tool("a link to a link", "read_file", "ln -sf {outside}/secret.txt l; ln -sf l m", path="m"),
    _tool("a link by /proc", "read_file", "ln -sf /proc/self/root{outside}/secret.txt l", path="l"),
    _tool("a link to an open descriptor", "read_file", "ln -sfn /proc/self/fd l", path="l/3"),
    _tool("the program's environment", "read_file", path="/proc/self/environ"),
    _tool("a link to the environment", "read_file", "ln -sf /proc/self/environ l", path="l"),
    _tool("the other chat", "read_file", path="../../other/work/notes.txt"),
    _tool("a NUL in the path", "read_file", path="{outside}/secret.txt\0.txt"),
    _tool("a FIFO that never ends", "read_file", "rm -f p; mkfifo p", path="p"),
    _tool("an endless device by a link", "read_file", "ln -sf /dev/zero z", path="z"),
    _tool("a tilde", "read_file", path="~/../{outside}/secret.txt"),
    _tool("a surrogate in the path", "read_file", path="\ud800/../{outside}/secret.txt"),
    _tool("by ..", "write_file", path="../../../../outside/new.txt", content="x"),
    _tool("an absolute path", "write_file", path="{outside}/new.txt", content="x"),
    _tool("a symlink", "write_file", "ln -sf {outside}/canary.txt l", path="l", content="x"),
    _tool("a symlinked directory", "write_file", "ln -sfn {outside} d", path="d/new.txt", content="x"),
    _tool("a dangling symlink", "write_file", "ln -sf {outside}/new.txt l", path="l", content="x"),
    _tool("the read-only repository", "write_file", path="{repo}/new.html", content="x"),
    _tool("its .git", "write_file", path="{repo}/.git/config", content="[core]\nfsmonitor=true\n"),
    _tool("the other chat", "write_file", path="../../other/work/notes.txt", content="x"),
    _tool("a FIFO", "write_file", "rm -f p; mkfifo p", path="p", content="x"),
    _tool("a symlink", "edit_file", "ln -sf {outside}/canary.txt l", path="l", old="sings", new="x"),
    _tool("an absolute path", "edit_file", path="{outside}/canary.txt", old="sings", new="x"),
    _tool("a symlink", "send_file", "ln -sf {outside}/secret.txt l", path="l"),
    _tool("an absolute path", "send_file", path="{outside}/secret.txt"),
    _tool("by ..", "send_file", path="../../../../outside/secret.txt"),
    _tool("by ..", "grep", pattern="s3cr3t", path="../../../../outside"),
    _tool("an absolute path", "grep", pattern="s3cr3t", path="{outside}"),
    _tool("a symlinked directory", "grep", "ln -sfn {outside} d", pattern="s3cr3t", path="d/"),
    _tool("an option for a pattern", "grep", pattern="-f{outside}/secret.txt", path="{outside}"),
    _tool("by ..", "list_files", pattern="../../../../outside/* && echo PWNED"),
    _tool("an absolute pattern", "list_files", pattern="{outside}/canary.txt && echo PWNED"),
    _tool("a command in the pattern", "list_files", pattern="$(cat {outside}/secret.txt)"),
    Attack("file tools", "read_file: directory and link change places", _race),
)  # fmt: skip
