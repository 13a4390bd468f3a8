"""What is attacked: the tools in their sandbox, or what a naive agent would do instead."""

import asyncio
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from agent.errors import ToolError
from agent.sandbox.sandbox import Sandbox
from agent.tools.bash import bash
from agent.tools.context import ToolContext
from agent.tools.files import edit_file, read_file, write_file
from agent.tools.git import git_commit, git_diff, git_status
from agent.tools.search import grep, list_files
from agent.tools.send_file import send_file
from agent.tools.tool import Call
from agent.trust import Taint, asks

SECONDS = 4  # the time limit of a command
TOOLS = {
    tool.name: tool
    for tool in (
        *(bash, read_file, write_file, edit_file, list_files, grep),
        *(git_status, git_diff, git_commit, send_file),
    )
}


class Subject(Protocol):
    async def run(self, command: str) -> str:
        """What a bash command prints."""
        ...

    async def use(self, tool: str, **arguments: Any) -> str:
        """What another tool answers, or its error."""
        ...


class Sandboxed:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._sent, self.upload_limit = "", 50 << 20

    async def run(self, command: str) -> str:
        return await self.use("bash", command=command)

    async def use(self, tool: str, **arguments: Any) -> str:
        self._sent = ""
        context = ToolContext(self._sandbox, file_sender=self)
        call = Call("1", "turn", "attacker", context, _denied)
        try:
            output = await TOOLS[tool].run(call, arguments)
        except ToolError as error:
            return str(error)
        return output.text + output.shown + self._sent

    async def send_files(self, files: Sequence[tuple[BinaryIO, str]], caption: str) -> None:
        for file, _ in files:
            self._sent = file.read().decode("utf-8", "replace")


async def _denied(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
    if asks(scope, touched=False) == "never":
        return
    raise ToolError(f"denied: {scope}")


class Plain:
    """bash as a child with everything inherited; paths are joined and opened."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    async def run(self, command: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *("/bin/bash", "-c", command),
            cwd=self._workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            close_fds=False,
            process_group=0,
        )
        try:
            async with asyncio.timeout(2 * SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            return ""
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
        return output.decode("utf-8", "replace")

    async def use(self, tool: str, **arguments: Any) -> str:
        try:
            return str(await _NAIVE[tool](self, **arguments))
        except (OSError, ValueError, UnicodeError) as error:
            return str(error)

    async def read_file(self, path: str) -> str:
        return await self.run(f"head -c 1000000 {shlex.quote(path)}")

    async def write_file(self, path: str, content: str) -> str:
        return await self.run(f"printf %s {shlex.quote(content)} > {shlex.quote(path)}")

    async def list_files(self, pattern: str, path: str = "") -> str:
        return await self.run(f"cd '{path or '.'}' && ls -d {pattern}")

    async def grep(self, pattern: str, path: str = ".") -> str:
        return await self.run(f"grep -rn '{pattern}' '{path}'")

    async def git_status(self, repo: str) -> str:
        return await self.run(f"git -C '{repo}' -c safe.directory='*' status")

    async def git_diff(self, repo: str, revision: str = "", path: str = "") -> str:
        what = "show" if revision and not revision.startswith("-") else "diff"
        return await self.run(f"git -C '{repo}' -c safe.directory='*' {what} {revision} {path}")

    async def git_commit(self, repo: str, message: str, files: tuple[str, ...] = ()) -> str:
        own = "-c safe.directory='*' -c user.name=x -c user.email=x@x"
        names = " ".join(files) or "-A"
        return await self.run(f"cd '{repo}' && git add {names}; git {own} commit -m '{message}'")


_NAIVE: dict[str, Any] = {
    **{name: getattr(Plain, name) for name in TOOLS if hasattr(Plain, name)},
    "send_file": Plain.read_file,
    "edit_file": lambda self, path, old, new: Plain.write_file(self, path, new),
}
