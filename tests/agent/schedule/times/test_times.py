"""Times in words are understood or asked back, and due once each through daylight saving."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from dateutil import rrule, tz
from hypothesis import given
from hypothesis import strategies as st

from agent.schedule.due_times import next_times
from agent.schedule.times.draft import NotUnderstood
from agent.schedule.times.parser import parse
from agent.schedule.times.rule import Calendar, Cron, Every, Once, Rule, describe, dump, load
from agent.schedule.times.task_text import parse_with_task
from fakes.cases import cases

PARIS = ZoneInfo("Europe/Paris")
NOW = datetime(2026, 11, 20, 15, 0, tzinfo=PARIS)  # a Friday

ONCE = {
    "in 20 minutes": "2026-11-20 15:20",
    "in an hour": "2026-11-20 16:00",
    "in half an hour": "2026-11-20 15:30",
    "in an hour and a half": "2026-11-20 16:30",
    "in 1h30m": "2026-11-20 16:30",
    "in 2 hours and 5 minutes": "2026-11-20 17:05",
    "90 minutes from now": "2026-11-20 16:30",
    "in two days at 9": "2026-11-22 09:00",
    "tomorrow at 9": "2026-11-21 09:00",
    "Tomorrow morning": "2026-11-21 08:00",
    "the day after tomorrow at noon": "2026-11-22 12:00",
    "tonight at 11": "2026-11-20 23:00",
    "this evening": "2026-11-20 18:00",
    "at 18:30": "2026-11-20 18:30",
    "at 5 pm": "2026-11-20 17:00",
    "at midnight": "2026-11-21 00:00",
    "half past 8 tomorrow": "2026-11-21 08:30",
    "tomorrow at half past eight": "2026-11-21 08:30",
    "tomorrow at eight": "2026-11-21 08:00",
    "tomorrow at seven in the evening": "2026-11-21 19:00",
    "nine o'clock tomorrow": "2026-11-21 09:00",
    "tomorrow at eleven pm": "2026-11-21 23:00",
    "a quarter past nine tomorrow": "2026-11-21 09:15",
    "ten to seven tomorrow": "2026-11-21 06:50",
    "quarter to 7 tomorrow": "2026-11-21 06:45",
    "Friday 5pm": "2026-11-20 17:00",
    "on Monday at 10": "2026-11-23 10:00",
    "next Friday at 10": "2026-11-27 10:00",
    "on 24 December at 18:00": "2026-12-24 18:00",
    "March 3rd at 9 am": "2027-03-03 09:00",
    "24.12. 18:00": "2026-12-24 18:00",
    "2026-12-24T18:00": "2026-12-24 18:00",
    "on the 31st at 8": "2026-12-31 08:00",
    "tomorrow at 14:00 UTC": "2026-11-21 15:00",
    "tomorrow at 9am New York time": "2026-11-21 15:00",
    "at 20:00 Europe/London": "2026-11-20 21:00",
}

REPEATED = {
    "every day at 8": "every day at 08:00",
    "daily at 7:30": "every day at 07:30",
    "every morning": "every day at 08:00",
    "every evening at 8": "every day at 20:00",
    "every weekday at 8": "every weekday at 08:00",
    "weekdays at 8:30": "every weekday at 08:30",
    "mon-fri at 9": "every weekday at 09:00",
    "every weekend at 10": "every Saturday and Sunday at 10:00",
    "on mondays and thursdays at 18:00": "every Monday and Thursday at 18:00",
    "every mon, wed and fri at 7am": "every Monday, Wednesday and Friday at 07:00",
    "every week on Monday at 9": "every Monday at 09:00",
    "every other Tuesday at 8": "every 2 weeks on Tuesday at 08:00",
    "every two weeks on Friday at 16:00": "every 2 weeks on Friday at 16:00",
    "every other day at 9": "every 2 days at 09:00",
    "every 15 minutes": "every 15 minutes",
    "hourly": "every hour",
    "every 6h": "every 6 hours",
    "every day at 8, 12 and 18:30": "every day at 08:00, 12:00 and 18:30",
    "on the first of the month at 9": "on day 1 of each month at 09:00",
    "on the last day of every month at 18:00": "on the last day of each month at 18:00",
    "first Monday of every month at 10": "on the first Monday of each month at 10:00",
    "every quarter on the 1st at 9": "on day 1 of January, April, July and October at 09:00",
    "every year on March 3 at 9": "on day 3 of March at 09:00",
    "every weekday at 9am Tokyo time": "every weekday at 09:00 (Asia/Tokyo)",
    "0 8 * * 1-5": "cron 0 8 * * 1-5",
    "30 6 1,15 * *": "cron 30 6 1,15 * *",
}

ASKED = {
    "soon": "I did not understand when that is",
    "when it rains": "I did not understand when that is",
    "tomorrow": "At what time?",
    "at 8": "20 20:00, or Sat 2026-11-21 08:00?",
    "every week": "On which day of the week",
    "every month at 9": "On which day of the month",
    "every Monday": "At what time of day?",
    "tomorrow at 9 CST": "CST can mean several zones",
    "tomorrow at 9 Atlantis time": "I do not know the time zone",
    "31 February at 9": "There is no such date",
    "every year on February 30 at 9": "No such day exists",
    "2020-01-01 10:00": "is past",
    "at 25:00": "is not a time of day",
    "13 pm": "is not a time of day",
    "every 10 seconds": "At least a minute",
    "in an hour at noon": "contradict each other",
    "99 * * * *": "is not a valid minute in a cron expression",
}


@cases(("phrase", "local"), ONCE.items())
def test_once(phrase: str, local: str) -> None:
    due = datetime.fromisoformat(local).replace(tzinfo=PARIS)
    assert parse(phrase, NOW) == Once(due.astimezone(UTC))


@cases(("phrase", "told"), REPEATED.items())
def test_repeated(phrase: str, told: str) -> None:
    rule = parse(phrase, NOW)
    assert describe(rule, "Europe/Paris") == told
    assert load(dump(rule)) == rule
    assert len(next_times(rule, NOW, 3)) == 3


@pytest.mark.parametrize(("phrase", "question"), ASKED.items())
def test_asked_back(phrase: str, question: str) -> None:
    with pytest.raises(NotUnderstood, match=question):
        parse(phrase, NOW)


@given(st.text(max_size=60))
def test_any_text_is_understood_or_asked_back(text: str) -> None:
    for function in (parse, parse_with_task):
        try:
            function(text, NOW)
        except NotUnderstood as question:
            assert str(question).endswith(("?", ".", "8."))


# -- against an independent computation -------------------------------------

ZONES = [
    "Europe/Paris",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kolkata",
]
START = datetime(2027, 1, 1, tzinfo=UTC)
END = START + timedelta(days=731)  # with 29 February 2028

RULES: dict[str, tuple[Calendar, dict[str, Any]]] = {
    "daily in the gap": (Calendar((150,), ""), {"freq": rrule.DAILY, "byhour": 2, "byminute": 30}),
    "weekdays": (Calendar((480,), "", frozenset(range(5))), {"freq": rrule.WEEKLY, "byweekday": range(5), "byhour": 8}),
    "the 31st": (Calendar((540,), "", days=frozenset({31})), {"freq": rrule.MONTHLY, "bymonthday": 31, "byhour": 9}),
    "last day": (Calendar((0,), "", days=frozenset({-1})), {"freq": rrule.MONTHLY, "bymonthday": -1, "byhour": 0}),
    "leap day": (Calendar((60,), "", days=frozenset({29}), months=frozenset({2})), {"freq": rrule.YEARLY, "bymonth": 2, "bymonthday": 29, "byhour": 1}),
    "last Sunday": (Calendar((105,), "", frozenset({6}), nth=-1), {"freq": rrule.MONTHLY, "byweekday": rrule.SU(-1), "byhour": 1, "byminute": 45}),
    "second Tuesday": (Calendar((1439,), "", frozenset({1}), nth=2), {"freq": rrule.MONTHLY, "byweekday": rrule.TU(2), "byhour": 23, "byminute": 59}),
}  # fmt: skip


def independent(zone: str, how: dict[str, Any]) -> list[datetime]:
    """dateutil's idea of the same days, its own zones, its own handling of gaps."""
    local = tz.gettz(zone)
    resolve: Any = tz.resolve_imaginary
    options = {"byminute": 0, "bysecond": 0, **how}
    first = datetime(2026, 12, 30)
    days = rrule.rrule(dtstart=first, until=first + timedelta(days=740), **options)  # type: ignore[no-untyped-call]
    due = (resolve(day.replace(tzinfo=local)).astimezone(UTC) for day in days)
    return [at for at in due if START < at <= END]


def walked(rule: Calendar) -> Iterator[datetime]:
    at = START
    while (at := next_times(rule, at)[0]) <= END:
        yield at
        if not [t for t in next_times(rule, at) if t <= END]:
            return


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("name", RULES)
def test_two_years_agree_with_dateutil(zone: str, name: str) -> None:
    rule, how = RULES[name]
    here = load({**dump(rule), "zone": zone})
    assert isinstance(here, Calendar)
    assert list(walked(here)) == independent(zone, how)


CRON = {
    "0 8 * * 0": ["Sun 11-22 08:00", "Sun 11-29 08:00"],
    "0 8 * * 7": ["Sun 11-22 08:00", "Sun 11-29 08:00"],
    "0 8 * * 0-2": ["Sun 11-22 08:00", "Mon 11-23 08:00", "Tue 11-24 08:00", "Sun 11-29 08:00"],
    "0 8 * * fri-sun": ["Sat 11-21 08:00", "Sun 11-22 08:00", "Fri 11-27 08:00"],
    "0 8 * * MON-FRI/2": ["Mon 11-23 08:00", "Wed 11-25 08:00", "Fri 11-27 08:00"],
    "0 9 13 * 5": ["Fri 11-27 09:00", "Fri 12-04 09:00", "Fri 12-11 09:00", "Sun 12-13 09:00"],
    "*/20 9-10 * * *": ["Sat 11-21 09:00", "Sat 11-21 09:20", "Sat 11-21 09:40", "Sat 11-21 10:00"],
    "5/25 0 1 jan,jul *": ["Fri 01-01 00:05", "Fri 01-01 00:30", "Fri 01-01 00:55", "Thu 07-01 00:05"],
    "0 0 29 2 *": ["Tue 02-29 00:00"],
}  # fmt: skip


@pytest.mark.parametrize(("expression", "days"), CRON.items())
def test_a_cron_expression_is_read_as_crontab_does(expression: str, days: list[str]) -> None:
    due = next_times(parse(expression, NOW), NOW, len(days))
    assert [f"{at.astimezone(PARIS):%a %m-%d %H:%M}" for at in due] == days


@cases(
    "expression",
    ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 feb *", "0 0 30,31 2 *", "0 24 * * *", "60 * * * *",
     "0 0 0 * *", "0 0 * 13 *", "0 0 * * 8", "0 0 * * 1-", "*/0 * * * *", "0 0 1 jan/2 *", "5-1 * * * *",
     "0 0 12 * * ?", "0 0 12 1 * ?", "0 0 12 1 1 ?", "0 15 10 ? * *", "0 0 9 * * *", "*/5 * * * * *", "0 0/5 14 * * ?",
     "0 0 9 ? * MON-FRI", "30 0 9 * * *", "0 0 0 25 12 ?"],
)  # fmt: skip
def test_a_cron_expression_that_is_never_due_or_wrong_is_asked_about(expression: str) -> None:
    with pytest.raises(NotUnderstood):
        parse(expression, NOW)


# Days on which APScheduler, given the zone, leaves a time out, or fires twice.
CHANGES = {
    ("Europe/Paris", "0:15"): ["2027-03-28 22:15", "2027-03-29 22:15"],  # the day after the change
    ("Europe/Paris", "2:30"): ["2027-03-27 01:30", "2027-03-28 01:30", "2027-03-29 00:30"],  # skipped
    ("Europe/Paris", "2:45"): ["2027-10-31 00:45", "2027-11-01 01:45"],  # comes twice
    ("Africa/Cairo", "0:30"): ["2027-04-28 22:30", "2027-04-29 22:30", "2027-04-30 21:30"],
    ("Asia/Beirut", "0:00"): ["2027-03-26 22:00", "2027-03-27 22:00", "2027-03-28 21:00"],
    ("America/Santiago", "0:00"): ["2027-09-04 04:00", "2027-09-05 04:00", "2027-09-06 03:00"],
    ("America/Havana", "0:30"): ["2027-03-13 05:30", "2027-03-14 05:30", "2027-03-15 04:30"],
    ("Australia/Lord_Howe", "2:15"): ["2027-10-01 15:45", "2027-10-02 15:45", "2027-10-03 15:15"],
    ("America/New_York", "1:30"): ["2027-11-07 05:30", "2027-11-08 06:30"],
    ("Atlantic/Azores", "0:59"): ["2027-10-30 00:59", "2027-10-31 00:59", "2027-11-01 01:59"],
}  # fmt: skip


@pytest.mark.parametrize(("where", "due"), CHANGES.items(), ids=lambda value: " ".join(value[:2]))
def test_a_daily_job_is_due_once_a_day_over_a_change_of_clocks(
    where: tuple[str, str], due: list[str]
) -> None:
    zone, clock = where
    hour, minute = map(int, clock.split(":"))
    first = datetime.fromisoformat(due[0]).replace(tzinfo=UTC)
    rules: list[Rule] = [
        Calendar((hour * 60 + minute,), zone),
        Cron(f"{minute} {hour} * * *", zone),
    ]
    for rule in rules:
        found = next_times(rule, first - timedelta(hours=1), len(due))
        assert [f"{at:%Y-%m-%d %H:%M}" for at in found] == due


def test_an_interval_does_not_drift() -> None:
    rule = Every(900, START)
    assert next_times(rule, START + timedelta(seconds=901), 2) == [
        START + timedelta(seconds=1800),
        START + timedelta(seconds=2700),
    ]
    assert next_times(rule, START - timedelta(days=1)) == [START + timedelta(seconds=900)]


@pytest.mark.parametrize(
    "phrase",
    [
        f"in {'9' * 400} hours",
        f"in {'9' * 5000} minutes",
        "in 99999999 days",
        f"every {'9' * 30} days",
        "every 9999999999999 seconds",
        f"0 0 1 1 {'9' * 30}",
    ],
)
def test_numbers_beyond_the_calendar_are_asked_back(phrase: str) -> None:
    with pytest.raises(NotUnderstood):
        parse_with_task(f"{phrase} water the plants", NOW)
