"""When the model server was started again, and why: kept over the backend's own restarts."""

import logging
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from backend.files import replace_text
from backend.protocol import Restart

log = logging.getLogger(__name__)

KEPT = 500
FILE = "restarts.jsonl"  # in the state folder


class RestartHistory:
    """JSON Lines at `path`, the newest last."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Restart]:
        """What was kept, those lines left out that cannot be read."""
        found = []
        with suppress(OSError):
            for line in self.path.read_text("utf-8", "replace").splitlines():
                with suppress(ValueError):
                    found.append(Restart.model_validate_json(line))
        return found[-KEPT:]

    def add(self, cause: str) -> Restart:
        """Keep one, as of now; on a full disk it is in the log alone."""
        restart = Restart(at=datetime.now(UTC).replace(microsecond=0), cause=cause)
        log.info("restart cause=%s", cause)
        with suppress(OSError):
            replace_text(
                self.path,
                "".join(f"{kept.model_dump_json()}\n" for kept in [*self.read(), restart][-KEPT:]),
            )
        return restart
