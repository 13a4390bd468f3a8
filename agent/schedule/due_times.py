"""When a rule is due, and the timer that waits for it: the module that knows APScheduler.

A calendar rule is due once for each of its days and times of day, also where the clocks change: a time
that daylight saving skips is due later by the length of the gap; of a time that comes twice, the first
counts. APScheduler is loaded at the first use.
"""

import heapq
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Self
from zoneinfo import ZoneInfo

from agent.schedule.times.rule import Calendar, Cron, Every, Once, Rule

if TYPE_CHECKING:
    from apscheduler.schedulers.asyncio import AsyncIOScheduler
    from apscheduler.triggers.base import BaseTrigger
    from apscheduler.triggers.cron import CronTrigger

HORIZON = timedelta(days=366 * 9)  # looked ahead: 29 February may be eight years away
Fields = tuple[str, str, str, str, str]  # minute, hour, day, month, weekday
MOMENT = timedelta(microseconds=1)
LONGEST_GAP = timedelta(hours=2)  # where clocks go forward: in Troll, Antarctica
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
POSITIONS = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", -1: "last"}
CRONTAB_DAYS = {str(day): day for day in range(8)} | {name: (day + 1) % 7 for day, name in enumerate(WEEKDAYS)}  # fmt: skip
CRON_FIELDS = ("minute", "hour", "day", "month", "weekday")


def next_times(rule: Rule, after: datetime, count: int = 1) -> list[datetime]:
    """Up to `count` due times later than `after` (aware), in UTC, ascending."""
    return list(islice(due_times(rule, after.astimezone(UTC)), count))


def due_second(due: datetime) -> int:
    """A due time in whole seconds since the epoch, rounded up: next_times from that second on
    gives the time after it, not the same one again."""
    return math.ceil(due.timestamp())


def next_due(rule: Rule, after: datetime) -> int | None:
    """The next due time after `after` (aware), as a due_second; None where there is none."""
    return next((due_second(at) for at in next_times(rule, after)), None)


def due_times(rule: Rule, after: datetime) -> Iterator[datetime]:
    """The due times later than `after` (UTC), in UTC, ascending."""
    if isinstance(rule, Once):
        return iter([rule.at] if rule.at > after else [])
    if isinstance(rule, Every):
        from apscheduler.triggers.interval import IntervalTrigger

        first = rule.anchor + timedelta(seconds=rule.seconds)
        return fire_times(IntervalTrigger(seconds=rule.seconds, start_date=first), after, rule)
    return calendar_times(rule, after)


def calendar_times(rule: Calendar | Cron, after: datetime) -> Iterator[datetime]:
    """The due times of a rule that counts in days. APScheduler computes them in UTC, and they are read as times of the
    rule's zone: given that zone, 3.11 fires twice at a time that comes twice, and leaves out one after a change."""
    zone = ZoneInfo(rule.zone)
    start = after.astimezone(zone).replace(tzinfo=UTC) - LONGEST_GAP
    fields = cron_fields(rule) if isinstance(rule, Cron) else calendar_fields(rule)
    triggers = [cron_trigger(each, start + HORIZON) for each in fields]
    found = (fire_times(trigger, start, rule) for trigger in triggers)
    in_zone = ((at.replace(tzinfo=zone).astimezone(UTC) for at in times) for times in found)
    for at in heapq.merge(*in_zone):
        if at > after:
            after = at
            yield at


def fire_times(trigger: "BaseTrigger", after: datetime, rule: Rule) -> Iterator[datetime]:
    while at := trigger.get_next_fire_time(None, after + MOMENT):
        after = at
        if isinstance(rule, Calendar) and (days := days_out_of_step(rule, at.date())):
            after = at + timedelta(days=days) - MOMENT
        else:
            yield at


def days_out_of_step(rule: Calendar, day: date) -> int:
    """The days from `day` to the next one in a day or week that the rule counts ("every 2 weeks"); 0 if it is in one."""
    if rule.step == 1 or rule.anchor is None:
        return 0
    if not rule.weekdays:
        return (rule.anchor - day).days % rule.step
    weeks = (week_start(rule.anchor) - week_start(day)).days // 7 % rule.step
    return 7 * weeks - day.weekday() if weeks else 0


def week_start(day: date) -> date:
    return day - timedelta(days=day.weekday())


def calendar_fields(rule: Calendar) -> list[Fields]:
    """The fields of one trigger for each time of day; as one trigger they would be out of order where the clock is set
    forward."""
    days = ["last" if day < 0 else str(day) for day in rule.days]
    weekdays = [WEEKDAYS[day] for day in rule.weekdays]
    if rule.nth:
        days, weekdays = [f"{POSITIONS[rule.nth]} {day}" for day in weekdays], []
    day, month, weekday = (",".join(map(str, some)) or "*" for some in (days, rule.months, weekdays))  # fmt: skip
    return [(str(at % 60), str(at // 60), day, month, weekday) for at in rule.times]


def cron_fields(rule: Cron) -> list[Fields]:
    """The fields of a cron expression's triggers: as in crontab(5), of day of month and weekday either is enough.

    Raises ValueError with the name of the field that is wrong.
    """
    fields = rule.expression.lower().split()
    for place, (name, text) in enumerate(zip(CRON_FIELDS, fields, strict=True)):
        try:
            if name == "weekday":
                fields[place] = crontab_weekdays(text)
            elif name == "month" and "/" in text and re.search("[a-z]", text):
                raise ValueError(text)  # APScheduler would leave the step out
            cron_trigger(text if at == place else "*" for at, text in enumerate(fields))
        except (ValueError, LookupError):
            raise ValueError(name) from None
    minute, hour, day, month, weekday = fields
    if "*" in (day[0], rule.expression.split()[4][0]):
        return [(minute, hour, day, month, weekday)]
    return [(minute, hour, day, month, "*"), (minute, hour, "*", month, weekday)]


def cron_trigger(fields: Iterable[str], end: datetime | None = None) -> "CronTrigger":
    from apscheduler.triggers.cron import CronTrigger

    names = ("minute", "hour", "day", "month", "day_of_week")
    return CronTrigger(**dict(zip(names, fields, strict=True)), timezone=UTC, end_date=end)


def crontab_weekdays(text: str) -> str:
    """Weekdays of a crontab, where 0 and 7 are Sunday, as APScheduler names them."""
    found = []
    for part in text.split(",") if text != "*" else ():
        span, _, step = part.partition("/")
        first, dash, last = span.replace("*", "0-6").partition("-")
        start = CRONTAB_DAYS[first]
        end = CRONTAB_DAYS[last] if dash else 6 if step else start
        days = range(start, end + (7 if end < start else 0) + 1, int(step or 1))
        found += [WEEKDAYS[(day - 1) % 7] for day in days]
    return ",".join(found) or "*"


class Timer:
    """Calls `ring` at the instant that was set last; an async context manager."""

    def __init__(self, ring: Callable[[], Awaitable[None]]) -> None:
        self._ring = ring
        self._scheduler: AsyncIOScheduler

    async def __aenter__(self) -> Self:
        from apscheduler.schedulers.asyncio import AsyncIOScheduler

        self._scheduler = AsyncIOScheduler(timezone=UTC)
        self._scheduler.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._scheduler.shutdown(wait=False)

    def set(self, at: datetime) -> None:
        from apscheduler.triggers.date import DateTrigger

        self._scheduler.add_job(
            self._ring, DateTrigger(at), id="next", replace_existing=True, misfire_grace_time=None
        )
