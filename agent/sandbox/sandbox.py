"""One chat's sandbox: run a command in it, read and write its files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended.

    `output` is what it printed (both streams, in order), cleaned of terminal
    escapes, head and tail of it where it was `cut`; `saved` then names the file
    in the sandbox that holds the whole. `reason` is one plain sentence when the
    sandbox ended it or something of it was lost, else empty.
    """

    exit_code: int
    output: str
    cut: bool = False
    saved: str = ""
    reason: str = ""


class Sandbox(Protocol):
    chat: str
    workspace: Path  # on the host

    async def run(
        self,
        command: str | Sequence[str],
        *,
        seconds: float | None = None,
        read_only: bool = False,
        network: bool = False,
        keep: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Ran:
        """Run bash text, or an argument list, below /workspace; ToolError when nothing can run.

        `seconds` and `keep` (bytes of output) can only lessen the owner's limits.
        """
        ...
