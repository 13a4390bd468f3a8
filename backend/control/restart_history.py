"""When the model server was restarted, and why; it survives restarts of the backend."""

import logging
from datetime import UTC, datetime
from pathlib import Path

from backend.files import read_json_lines, write_json_lines
from backend.protocol import Phrase, Restart

log = logging.getLogger(__name__)

KEPT = 500
FILE = "restarts.jsonl"  # in the state folder


class RestartHistory:
    """A JSON Lines file at `path`, the newest restart last."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Restart]:
        return read_json_lines(self.path, Restart, KEPT)

    def add(self, cause: Phrase) -> Restart:
        """Record a restart at the present time; on a full disk only the log has it."""
        restart = Restart(at=datetime.now(UTC).replace(microsecond=0), cause=cause)
        log.info("restart cause=%s", cause)
        write_json_lines(self.path, [*self.read(), restart][-KEPT:])
        return restart
