"""The record of whose text the files of a workspace may hold: a small file beside it, which no command can
reach.

It lies with the files and not in the database, because it holds for the command line too, and goes with
them into a backup.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from agent.files import replacing
from agent.sandbox.openat2 import closing_fd
from agent.trust import Taint, named

TAINTS = TypeAdapter(list[Taint], config=ConfigDict(defer_build=True))
_KEPT = 100  # clearings on record
_UNREADABLE = Taint("files of which nothing is known", 0.0, 1 << 53)


@dataclass(frozen=True)
class WorkspaceTaints:
    """The record of one workspace. Every change is on the disk when its method returns."""

    path: Path
    clock: Callable[[], float] = time.time

    def exists(self) -> bool:
        return self.path.exists()

    def open(self) -> list[Taint]:
        """The taints that were not cleared, oldest first. A record that cannot be read counts as one."""
        return [Taint(**one) for one in self._read()["open"]]

    def add(self, *sources: str) -> list[int]:
        """Record sources; the numbers of the new ones."""
        with self._changing() as record:
            known = {one["source"] for one in record["open"]}
            new = [name for name in dict.fromkeys(map(named, sources)) if name not in known]
            first = record["next"]
            record["next"] += len(new)
            record["open"] += [
                {"source": source, "at": self.clock(), "number": number}
                for number, source in enumerate(new, first)
            ]
            return list(range(first, record["next"]))

    def withdraw(self, numbers: list[int]) -> None:
        """Remove what was recorded in advance and did not happen."""
        with self._changing() as record:
            record["open"] = [one for one in record["open"] if one["number"] not in numbers]

    def clear(self, upto: int, by: str) -> int:
        """An owner vouches for the files as they are, up to that number; how many sources that clears."""
        with self._changing() as record:
            gone = [one for one in record["open"] if one["number"] <= upto]
            record["open"] = [one for one in record["open"] if one["number"] > upto]
            told = {"at": self.clock(), "by": by, "sources": [one["source"] for one in gone]}
            record["cleared"] = [*record["cleared"], told][-_KEPT:]
            return len(gone)

    def _read(self) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(self.path.read_bytes())
            found = TAINTS.validate_json(json.dumps(record["open"]), strict=True)
            record["open"] = TAINTS.dump_python(found)  # without unknown fields
            record["next"] + len(record["cleared"])  # TypeError or KeyError for other types
        except FileNotFoundError:
            return {"next": 1, "open": [], "cleared": []}
        except (ValueError, TypeError, LookupError, OSError):
            return {"next": _UNREADABLE.number + 1, "open": [asdict(_UNREADABLE)], "cleared": []}
        return record

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The record, written back in one step if it was changed; other processes wait meanwhile."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        with closing_fd(os.open(self.path.parent, flags)) as folder:
            fcntl.flock(folder, fcntl.LOCK_EX)
            before = self._read()
            record = deepcopy(before)
            yield record
            if record != before or not self.exists():
                with replacing(self.path, sync=True) as new:
                    new.write_text(json.dumps(record, ensure_ascii=False), "utf-8", "replace")
                os.fsync(folder)
