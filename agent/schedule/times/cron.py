"""Five-field cron expressions as a calendar rule."""

from agent.schedule.times.draft import NotUnderstood
from agent.schedule.times.rule import Calendar

_NAMES = {
    name: str(number)
    for names in (["sun", "mon", "tue", "wed", "thu", "fri", "sat"], ["", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"])
    for number, name in enumerate(names)
    if name
}  # fmt: skip


def read_cron(text: str, zone: str) -> Calendar:
    """minute hour day month weekday; NotUnderstood says which field is wrong."""
    minute, hour, day, month, weekday = text.split()
    minutes, hours = _field(minute, 0, 59, "minute"), _field(hour, 0, 23, "hour")
    days, months = _field(day, 1, 31, "day"), _field(month, 1, 12, "month")
    weekdays = {(n - 1) % 7 for n in _field(weekday, 0, 7, "weekday")}
    return Calendar(
        tuple(sorted(h * 60 + m for h in hours for m in minutes)),
        zone,
        frozenset(weekdays if weekday != "*" else ()),
        frozenset(days if day != "*" else ()),
        frozenset(months if month != "*" else ()),
        either=True,
    )


def _field(text: str, low: int, high: int, name: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        try:
            first, last = _span(span, low, high, bool(step))
            chosen = range(first, last + 1, int(step or 1))
        except ValueError:
            raise NotUnderstood(f"“{text}” is no {name} of a cron expression.") from None
        if first < low or last > high or not chosen:
            raise NotUnderstood(f"“{text}” is no {name} of a cron expression.")
        found |= set(chosen)
    return found


def _span(text: str, low: int, high: int, stepped: bool) -> tuple[int, int]:
    if text == "*":
        return low, high
    first, _, last = text.partition("-")
    start = int(_NAMES.get(first, first))
    return start, int(_NAMES.get(last, last)) if last else high if stepped else start
