"""Detects a turn that makes the same tool calls with the same results over and over."""

import json
from collections.abc import Mapping
from typing import Any, Literal

LoopVerdict = Literal["run", "skip", "end"]
LONGEST_CYCLE = 3  # calls
SKIP_FROM, END_AT = 3, 5  # the iteration of a cycle that is no longer run, and that ends the turn


class RepeatedCallDetector:
    """Remembers the calls of a turn and their results, in order.

    A cycle is one, two or three calls that are made again with the same results.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[str, str]] = []  # signature and result

    def verdict(self, name: str, arguments: Mapping[str, Any]) -> LoopVerdict:
        """What to do with a call that has not been run yet."""
        call = signature(name, arguments)
        iteration = max(self._iteration(call, period) for period in range(1, LONGEST_CYCLE + 1))
        return "end" if iteration >= END_AT else "skip" if iteration >= SKIP_FROM else "run"

    def ran(self, name: str, arguments: Mapping[str, Any], result: str) -> None:
        self._entries.append((signature(name, arguments), result))

    def skipped(self, name: str, arguments: Mapping[str, Any]) -> None:
        """A call that was not run counts as having had the same result again."""
        self.ran(name, arguments, dict(self._entries).get(signature(name, arguments), ""))

    def _iteration(self, call: str, period: int) -> int:
        """Iteration within the cycle of `period` calls that this call would belong to, from 1."""
        entries = self._entries
        if len(entries) < period or entries[-period][0] != call:
            return 1
        same = 1
        while same + period <= len(entries) and entries[-same] == entries[-same - period]:
            same += 1
        return (same + period - 1) // period + 1


def signature(name: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps([name, arguments], sort_keys=True, ensure_ascii=False, default=str)
