"""Times in words: what was meant, or a question back; never a guess.

read("every weekday at 8", now)            -> Calendar(...)
split("in 20 minutes check the oven", now) -> (Once(...), "check the oven")
"""

from agent.schedule.times.read import NotUnderstood, read, split
from agent.schedule.times.rule import (
    Calendar,
    Every,
    Once,
    Rule,
    due_second,
    dump,
    load,
    next_times,
    tell,
)

__all__ = [
    "Calendar",
    "Every",
    "NotUnderstood",
    "Once",
    "Rule",
    "due_second",
    "dump",
    "load",
    "next_times",
    "read",
    "split",
    "tell",
]
