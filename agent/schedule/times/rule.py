"""When a job is due: once, at an interval, or by the calendar of a zone. No I/O.

A calendar rule is due once for each of its days and times of day, also where the
clocks change: a time that daylight saving skips is due later by the length of the
gap; of a time that comes twice, the first counts.
"""

import calendar
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AwareDatetime, ConfigDict, Field, TypeAdapter

from agent.language import plural, translated

# What a newer version adds may mean another time.
FORBID = ConfigDict(extra="forbid", defer_build=True)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")  # fmt: skip
SHORT_WEEKDAYS = tuple(name[:3] for name in WEEKDAYS)
SHORT_MONTHS = tuple(name[:3] for name in MONTHS)
EACH = {60: "every minute", 3600: "every hour", 86400: "every day", 604800: "every week"}
ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", -1: "last"}
HORIZON_DAYS = 366 * 9  # days looked ahead: 29 February may be eight years away


@dataclass(frozen=True, slots=True)
class Once:
    """`at` is aware, in UTC."""

    at: AwareDatetime
    __pydantic_config__ = FORBID


@dataclass(frozen=True, slots=True)
class Every:
    """Each `seconds` since `anchor` (aware, in UTC), the anchor itself not counted."""

    seconds: Annotated[int, Field(gt=0)]
    anchor: AwareDatetime
    __pydantic_config__ = FORBID


@dataclass(frozen=True, slots=True)
class Calendar:
    """Days at times of day in a zone. An empty set of weekdays, days or months means all.

    `times` are minutes after midnight. `days` are days of the month, -1 the last.
    `nth` picks the n-th (-1: last) of the given weekdays in a month. `step` n
    takes every n-th day (or week, when weekdays are given) since `anchor`.
    `either` is cron's rule: a day matches by weekday or by day of the month.
    """

    times: tuple[Annotated[int, Field(ge=0, lt=1440)], ...]
    zone: str
    weekdays: frozenset[Annotated[int, Field(ge=0, le=6)]] = frozenset()
    days: frozenset[Annotated[int, Field(ge=-1, le=31)]] = frozenset()
    months: frozenset[Annotated[int, Field(ge=1, le=12)]] = frozenset()
    nth: int = 0
    step: Annotated[int, Field(ge=1)] = 1
    anchor: date | None = None
    either: bool = False
    __pydantic_config__ = FORBID


Rule = Once | Every | Calendar


def next_times(rule: Rule, after: datetime, count: int = 1) -> list[datetime]:
    """Up to `count` due times later than `after` (aware), in UTC, ascending."""
    after = after.astimezone(UTC)
    if isinstance(rule, Once):
        return [rule.at] if rule.at > after and count else []
    due = interval_times(rule, after) if isinstance(rule, Every) else calendar_times(rule, after)
    return list(islice(due, count))


def due_second(due: datetime) -> int:
    """A due time in whole seconds since the epoch, rounded up: next_times from that second on
    gives the time after it, not the same one again."""
    return math.ceil(due.timestamp())


def next_due(rule: Rule, after: datetime) -> int | None:
    """The next due time (due_second), or None."""
    return next((due_second(at) for at in next_times(rule, after)), None)


def interval_times(rule: Every, after: datetime) -> Iterator[datetime]:
    step = timedelta(seconds=rule.seconds)
    passed = max(0, (after - rule.anchor) // step)
    due = rule.anchor + (passed + 1) * step
    while True:
        yield due
        due += step


def calendar_times(rule: Calendar, after: datetime) -> Iterator[datetime]:
    zone = ZoneInfo(rule.zone)
    first = after.astimezone(zone).date() - timedelta(days=1)  # a gap may push a time past midnight
    last = after
    for offset in range(HORIZON_DAYS):
        day = first + timedelta(days=offset)
        if not matches(rule, day):
            continue
        at_times = [time(minute // 60, minute % 60) for minute in rule.times]
        for due in sorted(datetime.combine(day, at, zone).astimezone(UTC) for at in at_times):
            if due > last:
                last = due
                yield due


def matches(rule: Calendar, day: date) -> bool:
    """Whether the rule is due on that day."""
    if rule.months and day.month not in rule.months:
        return False
    by_weekday = not rule.weekdays or day.weekday() in rule.weekdays
    by_day = not rule.days or day.day in rule.days or (-1 in rule.days and day_from_end(day) == 1)
    if rule.either and rule.weekdays and rule.days:
        return by_weekday or by_day
    return by_weekday and by_day and is_nth(rule, day) and in_step(rule, day)


def is_nth(rule: Calendar, day: date) -> bool:
    if rule.nth < 0:
        return (day_from_end(day) - 1) // 7 == -rule.nth - 1
    return not rule.nth or (day.day - 1) // 7 == rule.nth - 1


def day_from_end(day: date) -> int:
    """1 on the last day of the month."""
    return calendar.monthrange(day.year, day.month)[1] - day.day + 1


def in_step(rule: Calendar, day: date) -> bool:
    if rule.step == 1 or rule.anchor is None:
        return True
    if rule.weekdays:
        return ((monday(day) - monday(rule.anchor)).days // 7) % rule.step == 0
    return (day - rule.anchor).days % rule.step == 0


def monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


# -- stored as JSON -----------------------------------------------------------

FORMS: dict[str, TypeAdapter[Any]] = {
    "once": TypeAdapter(Once),
    "every": TypeAdapter(Every),
    "calendar": TypeAdapter(Calendar),
}


def dump(rule: Rule) -> dict[str, Any]:
    """The rule as plain values; `kind` is once, every or calendar."""
    stored: dict[str, Any] = {"kind": type(rule).__name__.lower()}
    for key, value in asdict(rule).items():
        if isinstance(value, frozenset | tuple):
            stored[key] = sorted(value)
        else:
            stored[key] = value.isoformat() if isinstance(value, date) else value
    return stored


def load(stored: Mapping[str, Any]) -> Rule:
    """The rule that `dump` stored; LookupError or ValueError for what no rule of this version is."""
    fields = dict(stored)
    rule: Rule = FORMS[fields.pop("kind")].validate_python(fields)
    if isinstance(rule, Calendar):
        ZoneInfo(rule.zone)
    return rule


# -- described in words -------------------------------------------------------


def describe(rule: Rule, zone: str) -> str:
    """The rule in plain words of the language spoken, as a person would confirm it."""
    if isinstance(rule, Once):
        at = rule.at.astimezone(ZoneInfo(zone))
        form = translated("once, on {weekday} {day} {month} {year} at {time}")
        return form.format(**date_fields(at))
    if isinstance(rule, Every):
        return interval_words(rule.seconds)
    form = translated("{days} {times}")
    words = form.format(days=describe_days(rule), times=describe_times(rule.times))
    return words if rule.zone == zone else f"{words} ({rule.zone})"


def date_words(at: datetime) -> str:
    """A day of this year and a time, such as "Mon 23 Nov 09:00"."""
    return translated("{weekday} {day} {month} {time}").format(**date_fields(at))


def date_fields(at: datetime) -> dict[str, str]:
    return {
        "weekday": translated(SHORT_WEEKDAYS[at.weekday()]),
        "day": f"{at:%d}",
        "month": translated(SHORT_MONTHS[at.month - 1]),
        "year": f"{at:%Y}",
        "time": f"{at:%H:%M}",
    }


def describe_times(times: tuple[int, ...]) -> str:
    if len(times) > 6:
        form = translated("{count} times between {first} and {last}")
        first, last = clock_time(times[0]), clock_time(times[-1])
        return form.format(count=len(times), first=first, last=last)
    return translated("at {times}").format(times=listed([clock_time(minute) for minute in times]))


def describe_days(rule: Calendar) -> str:
    weekdays = listed([translated(WEEKDAYS[day]) for day in sorted(rule.weekdays)])
    months = listed([translated(MONTHS[month - 1]) for month in sorted(rule.months)])
    days = listed(days_of_month(rule))
    if rule.either and rule.weekdays and rule.days:
        form = translated("each {weekdays} and {days} of the month")
        if months:
            form = translated("each {weekdays} and {days} of the month of {months}")
    elif rule.nth:
        form = translated("on the {nth} {weekdays} of each month")
        if months:
            form = translated("on the {nth} {weekdays} of {months}")
    elif rule.days:
        form = translated("on {days} of each month")
        if months:
            form = translated("on {days} of {months}")
    else:
        days = describe_weekdays(rule, weekdays)
        form = translated("{days} in {months}") if months else "{days}"
    nth = translated(ORDINALS[rule.nth]) if rule.nth else ""
    return form.format(nth=nth, weekdays=weekdays, days=days, months=months)


def describe_weekdays(rule: Calendar, weekdays: str) -> str:
    if rule.step > 1 and weekdays:
        form = plural(
            "every {count} week on {weekdays}", "every {count} weeks on {weekdays}", rule.step
        )
        return form.format(count=rule.step, weekdays=weekdays)
    if rule.step > 1:
        return plural("every {count} day", "every {count} days", rule.step).format(count=rule.step)
    if rule.weekdays == frozenset(range(5)):
        return translated("every weekday")
    return (
        translated("every {weekdays}").format(weekdays=weekdays)
        if weekdays
        else translated("every day")
    )


def days_of_month(rule: Calendar) -> list[str]:
    return [
        translated("the last day") if day == -1 else translated("day {day}").format(day=day)
        for day in sorted(rule.days, key=lambda d: d % 32)
    ]


def clock_time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def interval_words(seconds: int) -> str:
    """Such as "every 20 minutes", in the largest unit that holds it evenly."""
    size = next(size for size in (604800, 86400, 3600, 60, 1) if seconds % size == 0)
    count = seconds // size
    if count == 1 and size in EACH:
        return translated(EACH[size])
    form = {
        604800: plural("every {count} week", "every {count} weeks", count),
        86400: plural("every {count} day", "every {count} days", count),
        3600: plural("every {count} hour", "every {count} hours", count),
        60: plural("every {count} minute", "every {count} minutes", count),
        1: plural("every {count} second", "every {count} seconds", count),
    }[size]
    return form.format(count=count)


def listed(words: list[str]) -> str:
    """Words with commas and an "and"; "" for none."""
    *others, last = words or [""]
    if not others:
        return last
    return translated("{others} and {last}").format(others=translated(", ").join(others), last=last)
