"""Programs that use the fake MCP server, each as if it were started anew, and `mcp` in their shells."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from agent.mcp.config import ServerConfig
from agent.mcp.servers import open_servers
from agent.sandbox.sandbox import Sandboxes
from agent.store import Store
from agent.tools.bash import bash
from fakes import mcp_server
from fakes.sandbox_box import Box

COMMAND = ("python3", "/program/server.py")
REAL = (
    Path(__file__).parent.parent / ".cache" / "mcp-servers" / "program"
)  # make test installs them


class FakeServers:
    """Boxes over the fake server; each `open` is a program that was started anew."""

    def __init__(
        self, state: Path, store: Store, sandboxes: Sandboxes, stack: AsyncExitStack
    ) -> None:
        self.state, self.store, self.sandboxes, self.stack = state, store, sandboxes, stack

    async def open(
        self, *behaviours: str, chat: str = "cli", real: bool = False, **section: Any
    ) -> Box:
        program = self.state / "mcp" / "tea" / "program"
        if real:
            program.parent.mkdir(parents=True)
            program.symlink_to(REAL)
        elif not program.exists():
            program.mkdir(parents=True)
            (program / "server.py").write_text(Path(mcp_server.__file__).read_text())
            for path in (program, *program.parents[:3], program / "server.py"):
                path.chmod(0o755)
        config = ServerConfig("tea", **({"command": (*COMMAND, *behaviours)} | section))
        servers = open_servers([config], self.sandboxes, self.state, self.store)
        box = Box(await self.sandboxes.of(chat), chat=chat)
        box.servers = await self.stack.enter_async_context(servers)
        self.store.freeze.on_freeze.append(box.servers.stop_all)
        return box


async def mcp(box: Box, command: str) -> str:
    """The output of `mcp ...` in bash."""
    return (await box.use(bash, command=f"mcp {command}")).text


def calls(servers: FakeServers) -> list[str]:
    """What the server was called with, in order."""
    path = servers.state / "mcp" / "tea" / "work" / "calls"
    return path.read_text().splitlines() if path.exists() else []
