"""Calls that go round in a circle, of one, two or three calls."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["run", "note", "end"]
LONGEST_CYCLE = 3
NOTE_FROM, END_AT = 3, 5  # which round of the same is no longer run, and which ends the turn


@dataclass(frozen=True, slots=True)
class _Entry:
    call: str
    result: str


class ToolLoopDetector:
    """What was called and what came of it, in order."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def verdict(self, name: str, arguments: Mapping[str, Any]) -> Verdict:
        """What to do with a call that has not been run yet."""
        round = max(self._round(signature(name, arguments), n) for n in range(1, LONGEST_CYCLE + 1))
        return "end" if round >= END_AT else "note" if round >= NOTE_FROM else "run"

    def ran(self, name: str, arguments: Mapping[str, Any], result: str) -> None:
        self._entries.append(_Entry(signature(name, arguments), result))

    def noted(self, name: str, arguments: Mapping[str, Any]) -> None:
        """A call that was answered with a note counts as having had the same result again."""
        call = signature(name, arguments)
        last = next((e.result for e in reversed(self._entries) if e.call == call), "")
        self._entries.append(_Entry(call, last))

    def _round(self, call: str, period: int) -> int:
        """The how-manieth round of a cycle of `period` calls this call would belong to."""
        entries = self._entries
        if len(entries) < period or entries[-period].call != call:
            return 1
        same = 1
        while same + period <= len(entries) and entries[-same] == entries[-same - period]:
            same += 1
        return (same + period - 1) // period + 1


def signature(name: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([name, arguments], sort_keys=True, ensure_ascii=False, default=str)
