"""Five-field cron expressions as a calendar rule."""

from agent.language import translated
from agent.schedule.times.draft import NotUnderstood
from agent.schedule.times.rule import Calendar

NAMES = {
    name: str(number)
    for names in (["sun", "mon", "tue", "wed", "thu", "fri", "sat"], ["", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"])
    for number, name in enumerate(names)
    if name
}  # fmt: skip


def parse_cron(text: str, zone: str) -> Calendar:
    """minute hour day month weekday; NotUnderstood says which field is wrong."""
    minute, hour, day, month, weekday = text.split()
    minutes, hours = field_values(minute, 0, 59, "minute"), field_values(hour, 0, 23, "hour")
    days, months = field_values(day, 1, 31, "day"), field_values(month, 1, 12, "month")
    weekdays = {(n - 1) % 7 for n in field_values(weekday, 0, 7, "weekday")}
    return Calendar(
        tuple(sorted(h * 60 + m for h in hours for m in minutes)),
        zone,
        frozenset(weekdays if weekday != "*" else ()),
        frozenset(days if day != "*" else ()),
        frozenset(months if month != "*" else ()),
        either=True,
    )


def field_values(text: str, low: int, high: int, name: str) -> set[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        try:
            first, last = bounds(span, low, high, bool(step))
            chosen = range(first, last + 1, int(step or 1))
        except ValueError:
            raise NotUnderstood(wrong(text, name)) from None
        if first < low or last > high or not chosen:
            raise NotUnderstood(wrong(text, name))
        values |= set(chosen)
    return values


def wrong(text: str, name: str) -> str:
    return translated("“{text}” is not a valid {name} in a cron expression.").format(
        text=text, name=name
    )


def bounds(text: str, low: int, high: int, stepped: bool) -> tuple[int, int]:
    """The first and last value of `*`, `5`, `5-9`, or of `5` with a step, which goes on to the end."""
    if text == "*":
        return low, high
    first, _, last = text.partition("-")
    start = int(NAMES.get(first, first))
    return start, int(NAMES.get(last, last)) if last else high if stepped else start
