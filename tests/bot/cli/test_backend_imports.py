"""The backend's process stays small: it loads nothing of the agent but the waits in agent/aio.py."""

import subprocess
import sys

LOADED = """
import sys
import bot.cli.backend, bot.cli.connect, backend.service
print(*sorted(m for m in sys.modules if m.startswith("agent.") or m == "aiosqlite"))
"""


def test_the_backend_command_loads_no_agent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["agent.aio"]
