"""What one turn may use up."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Budgets of one turn. `tokens` counts what the model generates, over all its calls.

    `away_seconds` is how long a turn waits for a backend that is gone before it
    ends with reason "backend"; `trouble_seconds` how long it gives a server that
    answers errors only before it asks once more. `max_repairs` bounds how often a malformed call
    is sent back for repair.
    """

    max_tool_calls: int = 24
    seconds: float = 1800.0
    tokens: int = 48_000
    reply_tokens: int = 8192
    away_seconds: float = 600.0
    trouble_seconds: float = 3.0
    max_repairs: int = 2

    def reply_cap(self, window: int) -> int:
        """The most tokens of one model call: never more than compaction leaves free (a fifth)."""
        return max(256, min(self.reply_tokens, window // 5))
