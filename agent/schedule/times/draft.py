"""What the clauses have said so far, and the rule that follows from it.

Where words have two readings, these rules decide, and the time is told with its date:
- a night belongs to the day on which it begins: "Friday night at 1" is Saturday 01:00;
- "at 1 at night on Friday" names an hour of Friday itself;
- an hour alone is the next one of that number; if it is past today, it is asked about, as is one to five of other days.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from agent.language import translated
from agent.schedule.due_times import next_times
from agent.schedule.times.rule import Calendar, Cron, Every, Once, Rule, date_words, describe

MIDNIGHT = 24 * 60  # the one that ends a day
PARTS = {"morning": 8 * 60, "noon": 12 * 60, "afternoon": 15 * 60, "evening": 18 * 60, "night": 21 * 60}  # fmt: skip
NIGHT_ENDS = {"evening": 4, "night": 6}  # hours below lie behind midnight
CONTRADICTION = "Two times were named that contradict each other. When do you mean?"

SEVERAL = "Several times were named. Which one, or every day at these times?"


class NotUnderstood(Exception):
    """A time in words was not understood. `str` is the question to ask the person."""


class TwoReadings(NotUnderstood):
    """A phrase may mean either of two times."""


class Incomplete(NotUnderstood):
    """A phrase is valid so far, but incomplete."""


@dataclass(frozen=True)
class Clock:
    """A time of day in minutes after midnight; MIDNIGHT and more lie in the night that ends the day.
    `of_twelve`: it may as well mean the other half of the day."""

    minute: int
    of_twelve: bool = False

    def within(self, part: str) -> "Clock":
        """Read this time as one in `part` of a day; NotUnderstood where that part has no such time."""
        hour = self.minute // 60
        if hour < NIGHT_ENDS.get(part, 0):
            return Clock(self.minute + MIDNIGHT)
        if not self.of_twelve:
            return Clock(self.minute)
        if hour == 12 and part == "morning":
            raise NotUnderstood(translated("At what time of day?"))
        late = part in NIGHT_ENDS if hour == 12 else part != "morning"
        if part == "noon" and hour > 3:
            late = False
        return Clock(self.minute + (720 if late else 0))


@dataclass
class Draft:
    """A rule in the making; clauses fill its fields in any order."""

    now: datetime  # aware, in the chat's zone
    zone: str
    said: list[str] = field(default_factory=list)  # the slots that are filled, in order
    at: datetime | None = None  # a date with its time; without a zone it is in this one
    clocks: list[Clock] = field(default_factory=list)
    second: int = 0
    midnight: bool = False  # by that word, which may mean either end of a day
    asks_half: bool = False  # a time of twelve hours that is past today is asked about
    part: str = ""  # of the day: a key of PARTS
    of_clock: bool = False  # "at 2 at night": the part belongs to the time, not to the day
    repeat: bool = False
    span: timedelta | None = None  # "in 20 minutes", "every 20 minutes": of real time
    same_time: bool = False  # "in 2 days": at this time of day, where no other is named
    unit: str = ""  # of a bare "every week"
    step: int = 1
    weekdays: set[int] = field(default_factory=set)
    which: str = ""  # next, coming, next week: of the weekdays
    days: set[int] = field(default_factory=set)
    months: set[int] = field(default_factory=set)
    nth: int = 0
    day: date | None = None
    either: str = ""  # every_other_day, 8_days: what the day may mean as well
    cron: Cron | None = None

    def contradicts(self, slot: str, whole: bool) -> bool:
        """Whether a clause repeats or contradicts an earlier one. Two clauses may name the day ("Friday,
        27 November"): where a task may follow (not `whole`), side by side."""
        if "span" in (slot, *self.said):
            of_the_day = {"span", "time", "day", "part"}
            return slot in of_the_day and bool(of_the_day & {*self.said})
        if slot == "day" and "day" in self.said:
            return not whole and self.said[-1] != "day"
        return bool(slot) and slot in self.said

    def rule(self) -> Rule:
        """The rule that was meant; NotUnderstood asks back."""
        if self.cron:
            return self.cron
        if self.repeat and (self.day or self.which):  # from then on, or then alone
            raise NotUnderstood(translated(CONTRADICTION))
        if self.repeat:
            often = self.repeated()
            self.ask_half(often, Draft.repeated)
            return often
        at = self.once()
        if at.date() != self.now.date():
            self.ask_half(at, Draft.once)
        if self.either == "8_days":
            self.ask_which(at, at + timedelta(days=1))
        if self.either:
            often = Calendar((at.hour * 60 + at.minute,), self.zone, step=2, anchor=at.date())
            self.ask_which(at, often)
        if at <= self.now:
            form = translated("{at} is past. When do you mean?")
            raise NotUnderstood(form.format(at=date_words(at)))
        return Once(at.astimezone(UTC))

    def minutes(self) -> list[int]:
        """Return the times of day, in minutes after midnight.

        A part of the day ("morning") stands for one, or says in which half of the day the others are.
        """
        if not self.part:
            return [clock.minute for clock in self.clocks]
        if not self.clocks:
            return [PARTS[self.part]]
        return [clock.within(self.part).minute for clock in self.clocks]

    # -- repeated -------------------------------------------------------------

    def repeated(self) -> Rule:
        minutes = self.minutes()
        if self.span is not None and not self.has_days():
            return self.interval(self.span, minutes)
        if self.span is not None and self.span >= timedelta(days=1):  # "every 14 days on Monday"
            if self.days or self.nth or self.span % timedelta(weeks=1):
                raise NotUnderstood(translated(CONTRADICTION))
            self.step = self.span.days // 7
        year = self.months and self.days
        named = {"week": self.has_days(), "month": self.days or self.nth, "year": year}
        if not named.get(self.unit, True):
            raise Incomplete(translated(WHICH[self.unit]))
        if not minutes:
            raise Incomplete(translated("At what time of day?"))
        if self.nth and not self.weekdays:
            raise Incomplete(translated("Which weekday of the month do you mean?"))
        if self.midnight and not self.part and self.has_days():
            day = self.next_time(self.calendar([0]), self.now).date()
            self.ask_which(self.on_day(day, 0), self.on_day(day, MIDNIGHT))
        late = {minute >= MIDNIGHT for minute in minutes if self.part or not self.of_clock}  # fmt: skip
        if True in late and self.has_days():
            if len(late) > 1 or self.days or self.nth:
                raise NotUnderstood(translated(CONTRADICTION))
            self.weekdays = {(day + 1) % 7 for day in self.weekdays}
        minutes = [minute % MIDNIGHT for minute in minutes]
        return self.calendar(minutes, self.step, self.first_day(minutes))

    def calendar(self, minutes: Iterable[int], step: int = 1, anchor: date | None = None) -> Calendar:  # fmt: skip
        """Build the calendar rule of the days named."""
        days, months = frozenset(self.days), frozenset(self.months)
        times = tuple(sorted(set(minutes)))
        return Calendar(times, self.zone, frozenset(self.weekdays), days, months, self.nth, step, anchor)  # fmt: skip

    def next_time(self, rule: Calendar, after: datetime) -> datetime:
        """The next time in the rule's zone; NotUnderstood where there is no such day."""
        if found := next_times(rule, after):
            return found[0].astimezone(ZoneInfo(self.zone))
        raise NotUnderstood(translated("No such day exists. Which day do you mean?"))

    def interval(self, span: timedelta, minutes: list[int]) -> Rule:
        if span < timedelta(minutes=1):
            raise NotUnderstood(
                translated("At least a minute must lie between two runs. How often do you mean?")
            )
        if span % timedelta(days=1) and minutes:
            raise NotUnderstood(translated(CONTRADICTION))
        if not minutes:
            return Every(int(span.total_seconds()), self.now.astimezone(UTC))
        self.step = span.days
        minutes = sorted({minute % MIDNIGHT for minute in minutes})
        return Calendar(tuple(minutes), self.zone, step=self.step, anchor=self.first_day(minutes))

    def has_days(self) -> bool:
        return bool(self.weekdays or self.days or self.nth)

    def first_day(self, minutes: list[int]) -> date | None:
        """The first matching day still to come, from which a step ("every 2nd day") is counted."""
        if self.step == 1:
            return None
        plain = Calendar(tuple(minutes), self.zone, frozenset(self.weekdays))
        return self.next_time(plain, self.now).date()

    # -- once -----------------------------------------------------------------

    def once(self) -> datetime:
        if self.at:
            return self.at if self.at.tzinfo else self.at.replace(tzinfo=ZoneInfo(self.zone))
        if self.same_time and not self.clocks and not self.part:
            start = self.now.replace(tzinfo=None) - datetime.combine(self.now.date(), datetime.min.time())  # fmt: skip
            day = self.named_day(self.now.hour * 60 + self.now.minute)
            if day is None:
                raise Incomplete(translated("When do you mean?"))
            at = self.on_day(day, 0, start)
            return (at.astimezone(UTC) + (self.span or timedelta())).astimezone(at.tzinfo)
        if self.span is not None:
            return (self.now.astimezone(UTC) + self.span).astimezone(self.now.tzinfo)
        minutes = self.minutes()
        if len(minutes) > 1:
            raise NotUnderstood(translated(SEVERAL))
        if not minutes:
            named = self.day or self.has_days()
            raise Incomplete(translated("At what time?" if named else "When do you mean?"))
        if self.which and not self.has_days():
            raise Incomplete(translated(WHICH["week"]))
        day = self.named_day(minutes[0])
        if day is None or day == self.now.date():
            return self.today(minutes[0], or_later=day is None)
        if self.midnight and not self.part:
            self.ask_which(self.on_day(day, 0), self.on_day(day, MIDNIGHT))
        early = self.of_clock and minutes[0] >= MIDNIGHT + 60
        return self.on_day(day, minutes[0] - MIDNIGHT if early else minutes[0])

    def today(self, minute: int, or_later: bool) -> datetime:
        """That minute of today or, if it is past, 12 hours later if words allow that; with `or_later`, else tomorrow's."""
        day, minute_of_day = self.now.date(), minute % MIDNIGHT
        today, other, tomorrow = (self.on_day(day, minute_of_day + more) for more in (0, 720, MIDNIGHT))  # fmt: skip
        if today > self.now:
            return today
        if self.asks_half and not self.part and self.clocks[0].of_twelve and other > self.now:
            if or_later:
                self.ask_which(other, tomorrow)
            return other
        return tomorrow if or_later or minute >= MIDNIGHT else today

    def ask_half(self, first: datetime | Rule, read: Callable[["Draft"], datetime | Rule]) -> None:
        """Ask about hours of one to five, which may rather be those of the afternoon."""
        early = [clock.of_twelve and clock.minute < 6 * 60 for clock in self.clocks]
        if self.asks_half and not self.part and any(early):
            late = [Clock(c.minute + 720 * e) for c, e in zip(self.clocks, early, strict=True)]
            self.ask_which(first, read(replace(self, clocks=late)))

    def ask_which(self, *readings: datetime | Rule) -> None:
        first, second = (
            date_words(one) if isinstance(one, datetime) else describe(one, self.zone)
            for one in readings
        )
        raise TwoReadings(translated("{first}, or {second}?").format(first=first, second=second))

    def on_day(self, day: date, minute: int, more: timedelta | None = None) -> datetime:
        """Compute the time that is `minute` minutes after a day's begin; over 24 hours it is in the night after it."""
        day += timedelta(days=minute // MIDNIGHT)
        wall = datetime.combine(day, datetime.min.time()) + (more or timedelta())
        wall += timedelta(minutes=minute % MIDNIGHT, seconds=0 if more else self.second)
        there = wall.replace(tzinfo=ZoneInfo(self.zone))
        return there.astimezone(UTC).astimezone(there.tzinfo)  # a time that is skipped comes later

    def named_day(self, minute: int) -> date | None:
        if self.day:
            weekday = self.weekdays and self.day.weekday() not in self.weekdays
            if weekday or self.nth or (self.days and self.day.day not in self.days):
                raise NotUnderstood(translated(CONTRADICTION))
            return self.day
        if not self.has_days():
            return None
        if len(self.weekdays) > 1 or len(self.days) > 1:
            raise NotUnderstood(
                translated("Several days were named. Which one, or again and again on these days?")
            )
        # Of a night after this day, the day itself is looked for.
        early = self.of_clock and minute >= MIDNIGHT + 60
        calendar = self.calendar([minute - MIDNIGHT if early else min(minute, MIDNIGHT - 1)])
        if not self.which:
            return self.next_time(calendar, self.now).date()
        midnight = self.now.replace(hour=0, minute=0, second=0, microsecond=0)
        tomorrow = self.next_time(calendar, midnight + timedelta(days=1, seconds=-1))
        sunday = midnight + timedelta(days=7 - self.now.weekday(), seconds=-1)
        next_week = self.next_time(calendar, sunday)
        if self.which == "next" and next_week != tomorrow:
            self.ask_which(*(self.on_day(at.date(), minute) for at in (tomorrow, next_week)))
        return (tomorrow if self.which == "coming" else next_week).date()


WHICH = {
    "week": "On which day of the week, and at what time?",
    "month": "On which day of the month, and at what time?",
    "year": "On which date, and at what time?",
}
