"""What the clauses of a phrase have said so far, and the rule that follows from it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from agent.language import translated
from agent.schedule.times.rule import Calendar, Cron, Every, Once, Rule, date_words
from agent.schedule.triggers import next_times


class NotUnderstood(Exception):
    """`str` is the question to ask back."""


@dataclass
class Draft:
    """Filled by the clauses in any order. `hours12` says that a time had no am, pm or minutes."""

    now: datetime  # aware, in the chat's zone
    zone: str
    times: list[int] = field(default_factory=list)
    daypart: int | None = None
    hours12: bool = False
    repeat: bool = False
    span: timedelta | None = None  # "in 20 minutes", "every 20 minutes"
    unit: str = ""  # of a bare "every week"
    step: int = 1
    weekdays: set[int] = field(default_factory=set)
    next_week: bool = False
    days: set[int] = field(default_factory=set)
    months: set[int] = field(default_factory=set)
    nth: int = 0
    day: date | None = None
    cron: Cron | None = None

    def rule(self) -> Rule:
        """The rule that was meant; NotUnderstood asks back."""
        if self.cron:
            return self.cron
        if self.repeat:
            return self.repeated()
        at = self.once()
        if at <= self.now:
            form = translated("{at} is past. When do you mean?")
            raise NotUnderstood(form.format(at=date_words(at)))
        return Once(at.astimezone(UTC))

    # -- repeated -------------------------------------------------------------

    def repeated(self) -> Rule:
        if self.span and not self.has_days():
            return self.interval(self.span)
        if self.unit in ("week", "month", "year") and not self.has_days():
            raise NotUnderstood(translated(WHICH[self.unit]))
        if self.unit == "year" and not (self.months and self.days):
            raise NotUnderstood(translated(WHICH["year"]))
        self.apply_daypart()
        if not self.times:
            raise NotUnderstood(translated("At what time of day?"))
        if self.nth and not self.weekdays:
            raise NotUnderstood(translated("Which weekday of the month do you mean?"))
        rule = self.calendar(self.times, self.step, self.first_day())
        self.next_time(rule, self.now)
        return rule

    def calendar(self, times: Iterable[int], step: int = 1, anchor: date | None = None) -> Calendar:
        """A rule for the days that were named."""
        days, months = frozenset(self.days), frozenset(self.months)
        weekdays, minutes = frozenset(self.weekdays), tuple(sorted(set(times)))
        return Calendar(minutes, self.zone, weekdays, days, months, self.nth, step, anchor)

    def next_time(self, rule: Calendar, after: datetime) -> datetime:
        """The next time in the rule's zone; NotUnderstood where there is no such day."""
        if found := next_times(rule, after):
            return found[0].astimezone(ZoneInfo(self.zone))
        raise NotUnderstood(translated("No such day exists. Which day do you mean?"))

    def interval(self, span: timedelta) -> Rule:
        if span < timedelta(minutes=1):
            raise NotUnderstood(
                translated("At least a minute must lie between two runs. How often do you mean?")
            )
        if span % timedelta(days=1) or not (self.times or self.daypart is not None):
            return Every(int(span.total_seconds()), self.now.astimezone(UTC))
        self.apply_daypart()
        self.step = span.days
        return Calendar(
            tuple(sorted(set(self.times))), self.zone, step=self.step, anchor=self.first_day()
        )

    def has_days(self) -> bool:
        return bool(self.weekdays or self.days or self.nth)

    def first_day(self) -> date | None:
        """The anchor of a step: the first matching day that is still to come."""
        if self.step == 1:
            return None
        plain = Calendar(tuple(self.times), self.zone, frozenset(self.weekdays))
        return self.next_time(plain, self.now).date()

    # -- once -----------------------------------------------------------------

    def once(self) -> datetime:
        if self.span is not None:
            if self.times or self.has_days() or self.day:
                return self.shifted(self.span)
            return self.now + self.span
        day = self.named_day()
        self.apply_daypart()
        if len(self.times) > 1:
            raise NotUnderstood(
                translated("Several times were named. Which one, or every day at these times?")
            )
        if not self.times:
            raise NotUnderstood(translated("At what time?" if day else "When do you mean?"))
        return self.next_at(day)

    def shifted(self, span: timedelta) -> datetime:
        """`in two days at 9`."""
        if span % timedelta(days=1) or len(self.times) != 1 or self.has_days() or self.day:
            raise NotUnderstood(
                translated("Two times were named that contradict each other. When do you mean?")
            )
        return self.at_time(self.now.date() + span)

    def next_at(self, day: date | None) -> datetime:
        if day:
            return self.at_time(day)
        today = self.at_time(self.now.date())
        if today > self.now:
            return today
        if self.hours12 and 1 <= self.times[0] // 60 <= 12:
            hour = self.times[0] // 60 % 12
            form = translated("{late}:00 today, or {early}:00 tomorrow?")
            raise NotUnderstood(form.format(late=hour + 12, early=f"{hour:02}"))
        return self.at_time(self.now.date() + timedelta(days=1))

    def at_time(self, day: date) -> datetime:
        minute = self.times[0]
        midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(self.zone))
        return midnight.replace(hour=minute // 60, minute=minute % 60)

    def named_day(self) -> date | None:
        if self.day:
            return self.day
        if not self.has_days():
            return None
        # Which day it is matters here, not the time: any time serves to find it.
        minute = self.times[0] if self.times else 1439 if self.daypart is None else self.daypart
        start = self.end_of_week() if self.next_week else self.now
        return self.next_time(self.calendar([minute]), start).date()

    def end_of_week(self) -> datetime:
        """The last second of this week: "next Monday" comes after it."""
        midnight = self.now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight + timedelta(days=7 - self.now.weekday(), seconds=-1)

    def apply_daypart(self) -> None:
        """A part of the day stands for a time, or says which half of the day a time is in."""
        if self.daypart is None:
            return
        if not self.times:
            self.times = [self.daypart]
        elif self.hours12 and self.daypart >= 12 * 60:
            self.times = [t + 720 if t < 720 else t for t in self.times]


WHICH = {
    "week": "On which day of the week, and at what time?",
    "month": "On which day of the month, and at what time?",
    "year": "On which date, and at what time?",
}
