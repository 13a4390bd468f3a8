"""Rules for when a job is due, their stored form, and their description in words.

Their due times: agent/schedule/due_times.py.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AwareDatetime, ConfigDict, Field, TypeAdapter

from agent.language import plural, translated

# What a newer version adds may mean another time.
FORBID = ConfigDict(extra="forbid", defer_build=True)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")  # fmt: skip
SHORT_WEEKDAYS = tuple(name[:3] for name in WEEKDAYS)
EACH = {60: "every minute", 3600: "every hour", 86400: "every day", 604800: "every week"}
ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", -1: "last"}


@dataclass(frozen=True, slots=True)
class Once:
    """One instant; `at` is aware, in UTC."""

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
    """

    times: tuple[Annotated[int, Field(ge=0, lt=1440)], ...]
    zone: str
    weekdays: frozenset[Annotated[int, Field(ge=0, le=6)]] = frozenset()
    days: frozenset[Annotated[int, Field(ge=-1, le=31)]] = frozenset()
    months: frozenset[Annotated[int, Field(ge=1, le=12)]] = frozenset()
    nth: int = 0
    step: Annotated[int, Field(ge=1)] = 1
    anchor: date | None = None
    __pydantic_config__ = FORBID


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields, in a zone."""

    expression: str
    zone: str
    __pydantic_config__ = FORBID


Rule = Once | Every | Calendar | Cron


# -- stored as JSON -----------------------------------------------------------

FORMS: dict[str, TypeAdapter[Any]] = {
    "once": TypeAdapter(Once),
    "every": TypeAdapter(Every),
    "calendar": TypeAdapter(Calendar),
    "cron": TypeAdapter(Cron),
}


def dump(rule: Rule) -> dict[str, Any]:
    """The rule as plain values; `kind` is once, every, calendar or cron."""
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
    if isinstance(rule, Calendar | Cron):
        ZoneInfo(rule.zone)
    return rule


# -- described in words -------------------------------------------------------


def describe(rule: Rule, zone: str) -> str:
    """The rule in plain words of the language spoken, as a person would confirm it."""
    if isinstance(rule, Once):
        return translated("once, on {at}").format(at=date_words(rule.at.astimezone(ZoneInfo(zone))))
    if isinstance(rule, Every):
        return interval_words(rule.seconds)
    if isinstance(rule, Cron):
        words = f"cron {rule.expression}"
    else:
        form = translated("{days} {times}")
        words = form.format(days=describe_days(rule), times=describe_times(rule.times))
    return words if rule.zone == zone else f"{words} ({rule.zone})"


def date_words(at: datetime) -> str:
    """Weekday, date and time, such as "Mon 2026-11-23 09:00"."""
    return f"{translated(SHORT_WEEKDAYS[at.weekday()])} {at:%Y-%m-%d %H:%M}"


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
    if rule.nth:
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
