"""Detects a turn that makes the same tool calls with the same results over and over."""

import json
from collections.abc import Mapping
from typing import Any

LONGEST_CYCLE = 4  # calls
WAITED = 2.0  # seconds: what took longer has waited for something, and may show something else now


class RepeatedCallDetector:
    """Remembers the calls of a turn and their results, in order.

    A cycle is one to four calls that are made again with the same results.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[str, str]] = []  # signature and result
        self._waited = False  # the last call has

    def completes_cycle(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether this call, not run yet, would be the last of a cycle's second round.

        The calls of that round before it have had the same results as in the first, so running it
        again can tell the model nothing that it does not know.
        """
        call = signature(name, arguments)
        return any(self._repeats(call, period) for period in range(1, LONGEST_CYCLE + 1))

    def ran(
        self, name: str, arguments: Mapping[str, Any], result: str, seconds: float = 0.0
    ) -> None:
        entry = (signature(name, arguments), result)
        self._waited = seconds >= WAITED and entry not in self._entries[-1:]
        self._entries.append(entry)

    def _repeats(self, call: str, period: int) -> bool:
        entries, before = self._entries, period - 1
        if len(entries) < period + before or entries[-period][0] != call:
            return False
        if period == 1 and self._waited:
            return False
        return all(entries[-n] == entries[-n - period] for n in range(1, period))


def signature(name: str, arguments: Mapping[str, Any]) -> str:
    """What makes a call the same: all but its time limit, which changes nothing where the command has ended."""
    meant = {key: value for key, value in arguments.items() if key != "seconds"}
    return json.dumps([name, meant], sort_keys=True, ensure_ascii=False, default=str)
