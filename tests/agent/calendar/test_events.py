"""What stands in iCalendar objects, as calendars of this world hold it, in a chat's time zone; and changes of it."""

import signal
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from agent.calendar.events import (
    NotPossible,
    instances,
    make_event,
    move_instance,
    parsed,
    remove_instance,
    to_zone,
)
from agent.calendar.spans import Time, span_text
from fakes.radicale import event

PARIS, TOKYO = ZoneInfo("Europe/Paris"), ZoneInfo("Asia/Tokyo")
CUSTOM = (
    "BEGIN:VTIMEZONE\r\nTZID:Customized Time Zone\r\nBEGIN:STANDARD\r\nDTSTART:16010101T000000\r\n"
    "TZOFFSETFROM:{0}\r\nTZOFFSETTO:{0}\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
)
WEEKLY = (
    "DTSTART;TZID=Europe/Berlin:20261001T090000",
    "DTEND;TZID=Europe/Berlin:20261001T093000",
    "RRULE:FREQ=WEEKLY;COUNT=6",
)


def other(uid: str, slot: str, *lines: str) -> str:
    """An event that stands for one slot of a series."""
    own = "\r\n".join([f"UID:{uid}", "DTSTAMP:20260101T000000Z", f"RECURRENCE-ID{slot}", *lines])
    return f"BEGIN:VEVENT\r\n{own}\r\nEND:VEVENT\r\n"


def seen(text: str, zone: ZoneInfo = PARIS, first: str = "2026-10-01", last: str = "2027-10-01") -> list[str]:  # fmt: skip
    found = instances(text, zone, date.fromisoformat(first), date.fromisoformat(last))
    return [span_text(one.start, one.end) for one in sorted(found, key=lambda one: str(one.start))]


@pytest.mark.parametrize(
    ("lines", "zone", "told"),
    [
        (("DTSTART:20261001T070000Z", "DTEND:20261001T080000Z"), PARIS, ["Thu 2026-10-01 09:00 to 10:00"]),
        (("DTSTART:20261001T150000Z", "DURATION:PT90M"), TOKYO, ["Fri 2026-10-02 00:00 to 01:30"]),
        (("DTSTART:20261001T143000Z", "DTEND:20261001T160000Z"), TOKYO, ["Thu 2026-10-01 23:30 to Fri 2026-10-02 01:00"]),
        (("DTSTART:20261001T090000", "DTEND:20261001T100000"), PARIS, ["Thu 2026-10-01 09:00 to 10:00"]),
        (("DTSTART:20261001T090000", "DTEND:20261001T100000"), TOKYO, ["Thu 2026-10-01 09:00 to 10:00"]),
        (("DTSTART:20261001T090000Z",), PARIS, ["Thu 2026-10-01 11:00"]),
        (("DTSTART;VALUE=DATE:20261001",), TOKYO, ["Thu 2026-10-01, all day"]),
        (("DTSTART;VALUE=DATE:20261001", "DTEND;VALUE=DATE:20261001"), PARIS, ["Thu 2026-10-01, all day"]),
        (("DTSTART;VALUE=DATE:20261223", "DTEND;VALUE=DATE:20261227"), PARIS, ["Wed 2026-12-23 to Sat 2026-12-26, all day"]),
        (("DTSTART;VALUE=DATE:20260901", "DTEND;VALUE=DATE:20261002"), PARIS, ["Tue 2026-09-01 to Thu 2026-10-01, all day"]),
        (("DTSTART;VALUE=DATE:20260901", "DTEND;VALUE=DATE:20261001"), PARIS, []),
        (("DTSTART;VALUE=DATE:20261001", "DURATION:P2D"), PARIS, ["Thu 2026-10-01 to Fri 2026-10-02, all day"]),
        (("DTSTART;TZID=W. Europe Standard Time:20261001T090000", "DURATION:PT1H"), TOKYO, ["Thu 2026-10-01 16:00 to 17:00"]),
        (("DTSTART;TZID=Pacific Standard Time:20261001T090000",), PARIS, ["Thu 2026-10-01 18:00"]),
        (("DTSTART;TZID=\"(UTC+01:00) Amsterdam\":20261001T090000",), PARIS, ["Thu 2026-10-01 09:00"]),
        (("DTSTART;TZID=/freeassociation.sourceforge.net/America/New_York:20261001T090000",), PARIS, ["Thu 2026-10-01 15:00"]),
        # Over the changes of clocks, of the zone it was made in and of the chat's.
        (WEEKLY, PARIS, [f"Thu 2026-{day} 09:00 to 09:30" for day in ("10-01", "10-08", "10-15", "10-22", "10-29", "11-05")]),
        ((*WEEKLY[:2], "RRULE:FREQ=WEEKLY;COUNT=5"), TOKYO, [f"Thu 2026-10-{day} 16:00 to 16:30" for day in ("01", "08", "15", "22")] + ["Thu 2026-10-29 17:00 to 17:30"]),
        (("DTSTART:20261023T073000Z", "RRULE:FREQ=DAILY;COUNT=4"), PARIS, ["Fri 2026-10-23 09:30", "Sat 2026-10-24 09:30", "Sun 2026-10-25 08:30", "Mon 2026-10-26 08:30"]),
        (("DTSTART;TZID=Europe/Paris:20270327T023000", "DURATION:PT15M", "RRULE:FREQ=DAILY;COUNT=3"), PARIS, ["Sat 2027-03-27 02:30 to 02:45", "Sun 2027-03-28 03:30 to 03:45", "Mon 2027-03-29 02:30 to 02:45"]),
        (("DTSTART;VALUE=DATE:20261024", "RRULE:FREQ=DAILY;COUNT=3"), PARIS, [f"{day}, all day" for day in ("Sat 2026-10-24", "Sun 2026-10-25", "Mon 2026-10-26")]),
        # Until a day, a time in UTC, and one without a zone, which is wrong and common.
        ((*WEEKLY[:2], "RRULE:FREQ=WEEKLY;UNTIL=20261008"), PARIS, ["Thu 2026-10-01 09:00 to 09:30"]),
        ((*WEEKLY[:2], "RRULE:FREQ=WEEKLY;UNTIL=20261008T070000Z"), PARIS, ["Thu 2026-10-01 09:00 to 09:30", "Thu 2026-10-08 09:00 to 09:30"]),
        ((*WEEKLY[:2], "RRULE:FREQ=WEEKLY;UNTIL=20261007T235959"), PARIS, ["Thu 2026-10-01 09:00 to 09:30"]),
        ((*WEEKLY[:2], "RRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=2"), PARIS, ["Thu 2026-10-01 09:00 to 09:30", "Fri 2026-10-30 09:00 to 09:30", "Fri 2026-11-27 09:00 to 09:30"]),
        (("DTSTART;VALUE=DATE:20280229", "RRULE:FREQ=YEARLY"), PARIS, []),
        # Left out, put in, and both.
        ((*WEEKLY, "EXDATE;TZID=Europe/Berlin:20261008T090000,20261015T090000", "EXDATE:20261022T070000Z"), PARIS, [f"Thu 2026-{day} 09:00 to 09:30" for day in ("10-01", "10-29", "11-05")]),
        (("DTSTART:20261001T070000Z", "RDATE:20261003T080000Z,20261005T080000Z", "EXDATE:20261005T080000Z"), PARIS, ["Thu 2026-10-01 09:00", "Sat 2026-10-03 10:00"]),
        (("DTSTART:20261001T070000Z", "DURATION:PT30M", "RDATE;VALUE=PERIOD:20261003T080000Z/PT3H"), PARIS, ["Thu 2026-10-01 09:00 to 09:30", "Sat 2026-10-03 10:00 to 13:00"]),
    ],
)  # fmt: skip
def test_what_events_mean_in_a_zone(lines: tuple[str, ...], zone: ZoneInfo, told: list[str]) -> None:  # fmt: skip
    assert seen(event(*lines), zone) == told


def test_a_moved_a_renamed_and_a_removed_instance() -> None:
    own = [
        other("a", ";TZID=Europe/Berlin:20261008T090000", "DTSTART;TZID=Europe/Berlin:20261009T140000", "SUMMARY:Later"),
        other("a", ":20261015T070000Z", "DTSTART;TZID=Europe/Berlin:20261015T090000", "SUMMARY:Renamed"),
    ]  # fmt: skip
    raw = event(*WEEKLY, "SUMMARY:Usual", uid="a", more="".join(own))
    found = instances(raw, PARIS, date(2026, 10, 5), date(2026, 10, 23))
    titles = {span_text(one.start, one.end): str(one.event["SUMMARY"]) for one in found}
    assert titles == {
        "Fri 2026-10-09 14:00": "Later",
        "Thu 2026-10-15 09:00": "Renamed",
        "Thu 2026-10-22 09:00 to 09:30": "Usual",
    }
    assert all(one.repeats for one in found)


@pytest.mark.parametrize("trigger", [":soon", "", ";VALUE=DATE-TIME:never"])
def test_a_broken_alarm_hides_no_entry(trigger: str) -> None:
    broken, sound = (("BEGIN:VALARM", "ACTION:DISPLAY", f"TRIGGER{each}", "END:VALARM") for each in (trigger, ":-PT15M"))  # fmt: skip
    raw = event("DTSTART:20261001T070000Z", "DURATION:PT1H", *broken, *sound)
    assert seen(raw) == ["Thu 2026-10-01 09:00 to 10:00"]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("DTSTART:20261001T070000Z", "DURATION:P1W"), ["Thu 2026-10-01 09:00 to Thu 2026-10-08 09:00"]),
        (("DTSTART;TZID=Europe/Berlin:20261001T090000", "DTEND;TZID=America/New_York:20261001T090000"), ["Thu 2026-10-01 09:00 to 15:00"]),
        ((*WEEKLY[:2], "RRULE:FREQ=WEEKLY;COUNT=3", "EXDATE;TZID=Europe/Berlin:20261001T090000"), ["Thu 2026-10-08 09:00 to 09:30", "Thu 2026-10-15 09:00 to 09:30"]),
        ((*WEEKLY[:2], "RRULE:FREQ=WEEKLY;COUNT=2", "EXDATE;VALUE=DATE:20261008"), ["Thu 2026-10-01 09:00 to 09:30"]),
        ((*WEEKLY[:2], "RRULE:FREQ=WEEKLY;COUNT=2", "EXDATE:20261008T090000"), ["Thu 2026-10-01 09:00 to 09:30"]),
        ((*WEEKLY[:2], "RRULE:FREQ=WEEKLY;COUNT=2", "RDATE;TZID=Europe/Berlin:20261008T090000,20261009T110000"), ["Thu 2026-10-01 09:00 to 09:30", "Thu 2026-10-08 09:00 to 09:30", "Fri 2026-10-09 11:00 to 11:30"]),
        (("DTSTART:20261001T090000", "RRULE:FREQ=DAILY;UNTIL=20261002T090000Z"), ["Thu 2026-10-01 09:00", "Fri 2026-10-02 09:00"]),
        (("DTSTART;VALUE=DATE:20261001", "RRULE:FREQ=DAILY;UNTIL=20261002T000000Z"), ["Thu 2026-10-01, all day", "Fri 2026-10-02, all day"]),
        (("DTSTART;TZID=GMT Standard Time:20261026T090000", "DURATION:PT1H"), ["Mon 2026-10-26 10:00 to 11:00"]),
        (("DTSTART:20261001T070000Z", "DURATION:PT1H", "X-BROKEN", "GEO:nowhere", "LAST-MODIFIED:never"), ["Thu 2026-10-01 09:00 to 10:00"]),
    ],
)  # fmt: skip
def test_what_is_rare_in_calendars(lines: tuple[str, ...], told: list[str]) -> None:
    assert seen(event(*lines)) == told


def test_an_instance_that_was_moved_into_the_days_and_one_out_of_them() -> None:
    moves = other("a", ":20261105T080000Z", "DTSTART:20261002T070000Z")
    raw = event(*WEEKLY, uid="a", more=moves)
    assert seen(raw, first="2026-10-02", last="2026-10-03") == ["Fri 2026-10-02 09:00"]
    assert seen(raw, first="2026-11-05", last="2026-11-06") == []


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "Asia/Tokyo", "America/Los_Angeles"])
@pytest.mark.parametrize("clock", ["T003000", "T120000", "T233000", ""])
def test_what_has_no_zone_is_on_its_day_everywhere(zone: str, clock: str) -> None:
    raw = event(f"DTSTART{'' if clock else ';VALUE=DATE'}:20261001{clock}")
    days = [
        ("2026-09-30", "2026-10-01"),
        ("2026-10-01", "2026-10-02"),
        ("2026-10-02", "2026-10-03"),
    ]
    assert [len(seen(raw, ZoneInfo(zone), *each)) for each in days] == [0, 1, 0]


def test_a_day_that_ends_where_it_begins_is_one() -> None:
    raw = event("DTSTART;VALUE=DATE:20261001", "DTEND;VALUE=DATE:20261001")
    (one,) = instances(raw, PARIS, date(2026, 10, 1), date(2026, 10, 2))
    assert (one.start, one.end) == (date(2026, 10, 1), date(2026, 10, 2))


def test_zones_of_one_name_that_two_programs_have_made_up() -> None:
    """Outlook calls each zone that it does not know "Customized Time Zone"."""
    line = "DTSTART;TZID=Customized Time Zone:20261001T120000"
    east, west = (event(line, more=CUSTOM.format(offset)) for offset in ("+0500", "-0800"))
    assert seen(east) == ["Thu 2026-10-01 09:00"] and seen(west) == ["Thu 2026-10-01 22:00"]


@pytest.mark.parametrize(
    "text",
    [
        "", "no calendar", "BEGIN:VCALENDAR\r\n", event("SUMMARY:no start"), event("DTSTART:yesterday"),
        event("DTSTART:20261001T090000Z", "RRULE:FREQ=SOMETIMES"), event("DTSTART:20261001T090000Z", "RDATE:never"),
    ],
)  # fmt: skip
def test_what_is_broken_fails_by_itself(text: str) -> None:
    with pytest.raises(Exception):  # noqa: B017 - of any kind
        assert not seen(text)
        raise ValueError


@pytest.mark.parametrize(
    "rule",
    ["FREQ=SECONDLY", "FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23;BYMINUTE=" + ",".join(map(str, range(60))) + ";BYSECOND=" + ",".join(map(str, range(60)))],
)  # fmt: skip
def test_a_rule_without_end_is_stopped_by_the_timer(rule: str) -> None:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.2)
    try:
        with pytest.raises(TimeoutError):
            seen(event("DTSTART:20260101T000000Z", f"RRULE:{rule}"))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# -- changes ------------------------------------------------------------------


def slot_of(raw: str, told: str) -> Time:
    found = instances(raw, PARIS, date(2026, 10, 1), date(2027, 10, 1))
    (one,) = [one for one in found if span_text(one.start, one.end) == told]
    return one.slot


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=PARIS)


def move(raw: str, told: str, start: str, end: str) -> str:
    """The object with the entry moved that reads so; days where there is no clock."""
    times = [at(each) if ":" in each else date.fromisoformat(each) for each in (start, end)]
    return move_instance(raw, slot_of(raw, told), *times).decode()


def remove(raw: str, told: str) -> str:
    return (remove_instance(raw, slot_of(raw, told)) or b"").decode()


USUAL = [f"Thu 2026-{day} 09:00 to 09:30" for day in ("10-01", "10-08", "10-15", "10-22", "10-29", "11-05")]  # fmt: skip


def test_one_of_a_series_moves_alone_and_again() -> None:
    raw = event(*WEEKLY, "BEGIN:VALARM", "ACTION:DISPLAY", "TRIGGER:-PT5M", "END:VALARM")
    raw = move(raw, USUAL[4], "2026-10-30 14:00", "2026-10-30 15:00")
    assert seen(raw) == [*USUAL[:4], "Fri 2026-10-30 14:00 to 15:00", USUAL[5]]
    raw = move(raw, "Fri 2026-10-30 14:00 to 15:00", "2026-10-31 10:00", "2026-10-31 10:30")
    assert seen(raw) == [*USUAL[:4], "Sat 2026-10-31 10:00 to 10:30", USUAL[5]]
    assert raw.count("BEGIN:VEVENT") == 2 and raw.count("BEGIN:VALARM") == 2
    assert "RECURRENCE-ID;TZID=Europe/Berlin:20261029T090000" in raw
    assert "DTSTART;TZID=Europe/Berlin:20261031T100000" in raw and "SEQUENCE:2" in raw
    assert raw.count("BEGIN:VTIMEZONE") == 1


def test_one_of_a_series_goes_alone_and_a_moved_one_too() -> None:
    raw = move(event(*WEEKLY), USUAL[1], "2026-10-09 09:00", "2026-10-09 10:00")
    raw = remove(remove(raw, "Fri 2026-10-09 09:00 to 10:00"), USUAL[5])
    assert seen(raw) == [USUAL[0], *USUAL[2:5]]
    assert raw.count("BEGIN:VEVENT") == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("DTSTART;VALUE=DATE:20261001", "RRULE:FREQ=DAILY;COUNT=3"),
        ("DTSTART:20261001T090000", "RRULE:FREQ=DAILY;COUNT=3"),
        ("DTSTART:20261001T070000Z", "RRULE:FREQ=DAILY;COUNT=3"),
        ("DTSTART;TZID=W. Europe Standard Time:20261001T090000", "RRULE:FREQ=DAILY;COUNT=3"),
        ("DTSTART:20261001T070000Z", "RDATE:20261002T070000Z,20261003T070000Z"),
    ],
)
def test_of_each_kind_of_series_the_second_goes_or_moves(lines: tuple[str, ...]) -> None:
    raw = event(*lines)
    first, second, third = seen(raw)
    assert seen(remove(raw, second)) == [first, third]
    changed = move(raw, second, "2026-10-07 08:00", "2026-10-07 09:00")
    assert seen(changed) == [first, third, "Wed 2026-10-07 08:00 to 09:00"]
    days = move(raw, second, "2026-10-07", "2026-10-09")
    assert seen(days) == [first, third, "Wed 2026-10-07 to Thu 2026-10-08, all day"]


def test_in_a_zone_that_the_object_defines_it_stays() -> None:
    line = "DTSTART;TZID=Customized Time Zone:20261001T120000"
    raw = event(line, "RRULE:FREQ=DAILY;COUNT=2", more=CUSTOM.format("+0500"))
    raw = move(raw, "Fri 2026-10-02 09:00", "2026-10-02 11:00", "2026-10-02 12:00")
    assert seen(raw) == ["Thu 2026-10-01 09:00", "Fri 2026-10-02 11:00 to 12:00"]
    assert "DTSTART;TZID=Customized Time Zone:20261002T140000" in raw


def test_a_single_event_moves_and_goes() -> None:
    raw = event("DTSTART:20261001T070000Z", "DURATION:PT1H", "X-KEPT:yes")
    told = "Thu 2026-10-01 09:00 to 10:00"
    changed = move(raw, told, "2026-10-02 09:00", "2026-10-02 09:30")
    assert seen(changed) == ["Fri 2026-10-02 09:00 to 09:30"]
    assert "X-KEPT:yes" in changed and "RECURRENCE-ID" not in changed
    assert remove(raw, told) == ""


def test_an_invitation_to_one_of_a_series_goes_and_moves() -> None:
    """Whoever is invited to one of its times holds that alone."""
    raw = event("RECURRENCE-ID:20261008T070000Z", "DTSTART:20261008T070000Z")
    assert remove(raw, "Thu 2026-10-08 09:00") == ""
    changed = move(raw, "Thu 2026-10-08 09:00", "2026-10-08 10:00", "2026-10-08 11:00")
    assert seen(changed) == ["Thu 2026-10-08 10:00 to 11:00"]


def test_a_series_that_was_changed_from_one_of_its_times_on_is_not_changed() -> None:
    later = other("a", ";RANGE=THISANDFUTURE;TZID=Europe/Berlin:20261015T090000", "DTSTART;TZID=Europe/Berlin:20261015T110000")  # fmt: skip
    raw = event(*WEEKLY, uid="a", more=later)
    third, fourth = "Thu 2026-10-15 11:00", "Thu 2026-10-22 11:00"
    assert seen(raw)[1:4] == [USUAL[1], third, fourth]
    with pytest.raises(NotPossible):
        remove(raw, fourth)
    with pytest.raises(NotPossible):
        move(raw, fourth, "2026-10-22 10:00", "2026-10-22 11:00")


def test_what_is_added_has_its_zone_and_reads_back() -> None:
    properties = {"SUMMARY": "Tea, and; more\nlines", "RRULE": {"FREQ": "WEEKLY"}}
    raw = make_event(at("2026-10-01 09:00"), at("2026-10-01 10:00"), properties).decode()
    days = ("01", "08", "15")
    assert seen(raw, last="2026-10-16") == [f"Thu 2026-10-{day} 09:00 to 10:00" for day in days]
    (own,) = parsed(raw).events
    assert own["SUMMARY"] == "Tea, and; more\nlines" and own["UID"] and own["DTSTAMP"]
    assert "BEGIN:VTIMEZONE" in raw and "DTSTART;TZID=Europe/Paris:20261001T090000" in raw
    raw = make_event(date(2026, 10, 1), date(2026, 10, 3), {}).decode()
    assert seen(raw) == ["Thu 2026-10-01 to Fri 2026-10-02, all day"]
    assert "DTSTART;VALUE=DATE:20261001" in raw


def test_times_take_the_form_of_the_object() -> None:
    berlin = datetime(2026, 10, 1, 9, tzinfo=ZoneInfo("Europe/Berlin"))
    assert (
        to_zone(berlin, datetime(2026, 1, 1, tzinfo=UTC)).isoformat() == "2026-10-01T07:00:00+00:00"
    )
    assert to_zone(berlin, datetime(2026, 1, 1)) == datetime(2026, 10, 1, 9)
    assert to_zone(berlin, date(2026, 1, 1)) is berlin
