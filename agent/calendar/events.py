"""iCalendar (RFC 5545): the instances of an event in a time zone, and an event as it is after a change.

What recurs when, and what zones mean, is computed by icalendar and recurring-ical-events.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import recurring_ical_events
from icalendar import Alarm, Alarms, Calendar, Event, vDDDTypes
from icalendar.timezone import tzp

from agent.calendar.spans import DAY, Time

RULES = ("RRULE", "RDATE")
Alarm.ignore_exceptions = True  # one that is broken hides no event


class NotPossible(Exception):
    """`str(error)` says why an entry cannot be changed so."""


@dataclass(frozen=True)
class Instance:
    """One time of an event: days, or times in the zone asked for, `end` excluded; `slot` is its RECURRENCE-ID."""

    event: Event
    start: Time
    end: Time
    slot: Time
    repeats: bool


def parsed(raw: str) -> Calendar:
    tzp.use_default()  # forgets zones that other objects have defined by the same names
    return Calendar.from_ical(raw)


def local(value: Time, zone: ZoneInfo) -> Time:
    """The time on the clocks of a zone. A time without a zone keeps its clock time, and a day stays a day."""
    if not isinstance(value, datetime):
        return value
    return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC).astimezone(zone)


def instant(value: Time, zone: ZoneInfo) -> datetime:
    at = value if isinstance(value, datetime) else datetime.combine(value, time(), zone)
    return at.astimezone(UTC)  # times of one zone are compared by the clock


def instances(raw: str, zone: ZoneInfo, first: date, last: date) -> list[Instance]:
    """The instances of an object's events that touch the days from `first` to `last` (excluded)."""
    calendar, found = parsed(raw), list[Instance]()
    repeats = any(key in each for each in calendar.events for key in (*RULES, "RECURRENCE-ID"))
    begin, stop = instant(first, zone), instant(last, zone)
    # A day more, since times without a zone are taken for those of the question.
    for event in recurring_ical_events.of(calendar).between(begin - DAY, stop + DAY):
        start, end = local(event.start, zone), local(event.end, zone)
        if not isinstance(start, datetime):
            end = max(end, start + DAY)
        starts, ends = instant(start, zone), instant(end, zone)
        if starts < stop and (ends > begin or starts >= begin):
            found.append(Instance(event, start, end, slot_of(event), repeats))
    return found


def alarms(one: Instance, zone: ZoneInfo) -> list[datetime]:
    """List when an instance's own alarms are due, without those that a program has acknowledged."""
    own = Alarms(one.event)
    own.set_start(instant(one.start, zone))
    own.set_end(instant(one.end, zone))
    own.set_local_timezone(zone)
    own.acknowledge_until(one.event.X_MOZ_LASTACK)  # not by DTSTAMP, which servers renew
    return [
        instant(each.trigger, zone)
        for each in own.active
        if each.action != "NONE"
        if isinstance(each.alarm.TRIGGER, timedelta) or not one.repeats
    ]


def make_event(start: Time, end: Time, properties: dict[str, Any]) -> bytes:
    """Make the iCalendar text of a new event with these properties (names of RFC 5545 to values)."""
    event = Event.new(uid=str(uuid.uuid4()), start=start, end=end)
    for name, value in properties.items():
        event.add(name, value)
    return written(Calendar.new(prodid="-//Voltaire//EN", subcomponents=[event]))


def move_instance(raw: str, slot: Time, start: Time, end: Time) -> bytes:
    """Move the instance `slot` of the event in `raw`; return the new iCalendar text. Raises NotPossible."""
    calendar = parsed(raw)
    master, event = parts(calendar, slot)
    if master and any(rule in master for rule in RULES):
        slot = to_zone(slot, master.start)
        if not event:
            event = master.copy(recursive=True)
            for key in (*RULES, "EXDATE"):
                event.pop(key, None)
            event["RECURRENCE-ID"] = vDDDTypes(slot)
            calendar.add_component(event)
    event = event or master
    assert event
    replace(
        event, DTSTART=to_zone(start, event.start), DTEND=to_zone(end, event.start), DURATION=None
    )
    return written(calendar)


def remove_instance(raw: str, slot: Time) -> bytes | None:
    """Remove the instance `slot` from `raw`; return the new iCalendar text, None where no event is left."""
    calendar = parsed(raw)
    master, event = parts(calendar, slot)
    if event:
        calendar.subcomponents.remove(event)
    if master and any(rule in master for rule in RULES):
        replace(master, EXDATE=[*master.exdates, to_zone(slot, master.start)])
    elif master or not calendar.events:
        return None
    return written(calendar)


def parts(calendar: Calendar, slot: Time) -> tuple[Event | None, Event | None]:
    """The event with the rules (or the only one), and the one that replaces it at `slot`, if any. Raises NotPossible."""
    master, event = None, None
    for each in calendar.events:
        if "RECURRENCE-ID" not in each:
            master = master or each
        elif "RANGE" in each["RECURRENCE-ID"].params:
            raise NotPossible("Only a calendar program can make this change of a series.")
        elif plain(to_zone(slot_of(each), slot)) == plain(slot):
            event = each
    return master, event


def replace(event: Event, **properties: object) -> None:
    """Set properties of an event, removing those given as None, and mark it as changed now."""
    changed = {"SEQUENCE": int(event.get("SEQUENCE", 0)) + 1, "DTSTAMP": datetime.now(UTC)}
    for key, value in {**properties, **changed}.items():
        event.pop(key, None)
        if value is not None:
            event.add(key, value)


def written(calendar: Calendar) -> bytes:
    calendar.add_missing_timezones()
    raw: bytes = calendar.to_ical()
    return raw


def slot_of(event: Event) -> Any:
    return event["RECURRENCE-ID"].dt  # type: ignore[union-attr]


def plain(value: Time) -> datetime:
    """The date and time on the clock of its own zone, without the zone; midnight for a day."""
    at = value if isinstance(value, datetime) else datetime.combine(value, time())
    return at.replace(tzinfo=None)


def to_zone(value: Time, model: Time) -> Time:
    """Convert a time to the zone of `model`, as the calendar object defines that zone; a day stays a day."""
    if not isinstance(value, datetime) or not isinstance(model, datetime):
        return value
    if value.tzinfo is None or model.tzinfo is None:
        return value.replace(tzinfo=model.tzinfo)
    return value.astimezone(model.tzinfo)
