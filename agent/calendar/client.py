"""Reads and changes the calendars of an account: a request as JSON on standard input, the answer on standard output.

A request has an account's fields, its password, the zone (IANA), and in `do` the name of a method of OpenAccount with
what that takes. An id holds the version of its entry: a change is refused where that is another one by now, and by the
server where it becomes another one meanwhile (If-Match).
"""

import hashlib
import json
import resource
import signal
import ssl
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import requests
from caldav.calendarobjectresource import Event
from caldav.davclient import DAVClient
from caldav.lib import error as dav
from lxml.etree import LxmlError

from agent.calendar import events
from agent.calendar.events import Instance, NotPossible
from agent.calendar.spans import DAY, Time, span_text
from agent.sandbox.output_buffer import clean

MEMORY, MOST_ANSWER = 1 << 30, 8 << 20  # bytes
WAIT = 45  # seconds for an answer of the server
EVENT_SECONDS = 1.0  # of computing, for one event with all its instances
MOST_REMINDERS = 10  # of an entry, the next ones
GRACE, LATE = 300, 86_400  # seconds after its begin, and after its time, that one is told
MOST_LINE, MOST_ABOUT, MOST_GUESTS = 300, 2000, 20  # characters; guests
CHANGED = "The entry was changed or removed since it was shown: look again for its new id."
NO_VERSION = "The server does not say which version of an entry it has: nothing is changed there."
NO_CALDAV = "What answers at the address of {name} is no CalDAV server; the owner can mend that (docs/calendar.md)."
FAILURES = {
    NotPossible: "{error}",
    OverflowError: "These days are too early or too late.",
    dav.ETagMismatchError: CHANGED,
    dav.AuthorizationError: "The server of the calendar {name} does not take its user and password; the owner can mend that.",
    dav.NotFoundError: "There is no calendar at the address of {name}; the owner can mend that (docs/calendar.md).",
    dav.DAVError: "The server of the calendar {name} refused that ({status}).",
    LxmlError: NO_CALDAV,
    AttributeError: NO_CALDAV,  # of the library, for an answer without XML
    requests.RequestException: "The server of the calendar {name} cannot be reached ({kind}).",
}  # fmt: skip
Asked = Mapping[str, Any]


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGVTALRM, signal.default_int_handler)  # no library catches what it raises
    asked = json.load(sys.stdin)
    try:
        answer = getattr(OpenAccount.of(asked), asked["do"])(asked)
    except tuple(FAILURES) as error:
        form = next(form for kind, form in FAILURES.items() if isinstance(error, kind))
        status, kind = getattr(error, "status", None), type(error).__name__
        said = form.format(error=error, name=asked["name"], status=status or kind, kind=kind)
        answer = {"error": said}
    text = json.dumps(answer)
    if len(text) > MOST_ANSWER:
        sys.exit("too much for the bot to read")
    sys.stdout.write(text)


@dataclass(frozen=True)
class Found:
    """An instance of an event, and the object that the server holds it in."""

    account: str
    object: Any  # Event
    instance: Instance

    @property
    def id(self) -> str:
        one, held = self.instance, self.object
        version = digest(f"{held.url} {held.etag} {one.slot} {one.start}")
        return f"{self.account}/{one.start:%Y%m%d}-{version}"

    @property
    def entry(self) -> dict[str, Any]:
        """The instance as JSON in an answer; of whole days `end` is the last one."""
        one, event = self.instance, self.instance.event
        title, place = one_line(event.get("SUMMARY")), one_line(event.get("LOCATION"))
        guests, cancelled = event.get("ATTENDEE", []), event.get("STATUS") == "CANCELLED"
        guests = guests if isinstance(guests, list) else [guests]
        said = (title or "(no title)") + (f" ({place})" if place else "")
        marks = ", cancelled" * cancelled + ", repeats" * one.repeats
        marks += ", some of these times may be left out (EXRULE)" * ("EXRULE" in event)
        all_day = not isinstance(one.start, datetime)
        return {
            "id": self.id,
            "text": f"{span_text(one.start, one.end)}  {said}{marks}",
            "title": title,
            "place": place,
            "about": clean(str(event.get("DESCRIPTION", "")))[:MOST_ABOUT].strip(),
            "start": one.start.isoformat(),
            "end": (one.end - DAY if all_day else one.end).isoformat(),
            "all_day": all_day,
            "repeats": one.repeats,
            "busy": not cancelled and event.get("TRANSP") != "TRANSPARENT",
            "calendar": one_line(self.object.parent.name),
            "guests": [one_line(each).removeprefix("mailto:") for each in guests[:MOST_GUESTS]],
        }


@dataclass
class OpenAccount:
    name: str
    zone: ZoneInfo
    calendars: list[Any]  # of caldav.collection
    broken: int = 0  # entries that could not be read

    @classmethod
    def of(cls, asked: Asked) -> "OpenAccount":
        paths = ssl.get_default_verify_paths()
        client = DAVClient(
            asked["url"],
            username=asked["user"] or None,
            password=asked["password"] or None,
            timeout=WAIT,
            ssl_verify_cert=paths.cafile or paths.capath or True,
            enable_rfc6764=False,
        )
        found = client.get_calendars()
        named = [each for each in found if str(each.url).strip("/") == asked["url"].strip("/")]
        return cls(asked["name"], ZoneInfo(asked["zone"]), named or found)

    def found(self, first: date, last: date) -> Iterator[Found]:
        """The instances that touch the days from `first` to `last` (excluded); what cannot be read is counted."""
        # A day more: a server takes times without a zone for UTC.
        begin, stop = (events.instant(day, self.zone) for day in (first - DAY, last + DAY))
        for calendar in self.calendars:
            for each in calendar.search(event=True, start=begin, end=stop, post_filter=False):
                inside: Sequence[Instance] = ()
                with self.readable():
                    inside = events.instances(each.data, self.zone, first, last)
                yield from (Found(self.name, each, one) for one in inside)

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Count the entry that the block reads as broken if the block fails or takes over EVENT_SECONDS of computing."""
        signal.setitimer(signal.ITIMER_VIRTUAL, EVENT_SECONDS)
        try:
            yield
        except (Exception, KeyboardInterrupt):  # noqa: BLE001 - of any kind
            self.broken += 1
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def named(self, asked: Asked) -> Found:
        """Find the entry of the id in `asked`, which begins with NAME/DAY. Raises NotPossible if it has changed."""
        first = date.fromisoformat(asked["id"].partition("/")[2].partition("-")[0])
        for each in self.found(first, first + DAY):
            if each.id == asked["id"]:
                return each
        raise NotPossible(CHANGED)

    def read(self, asked: Asked) -> dict[str, Any]:
        """Return {"entries"}: that of `id`, or those from `first` to `last` (excluded), with how many are "broken"."""
        if "id" in asked:
            return {"entries": [self.named(asked).entry]}
        found = self.found(date.fromisoformat(asked["first"]), date.fromisoformat(asked["last"]))
        return {"entries": [each.entry for each in found], "broken": self.broken}

    def remind(self, asked: Asked) -> dict[str, Any]:
        """The reminders between two days that can still be told: `before` seconds ahead, or, where that is None, at
        the times of an entry's own alarms. Times are in seconds since the epoch."""
        found, now = list[dict[str, Any]](), asked["now"]
        first, last = (date.fromisoformat(asked[day]) for day in ("first", "last"))
        for each in self.found(first, last):
            one, times = each.instance, list[datetime]()
            starts = events.instant(one.start, self.zone)
            with self.readable():
                if asked["before"] is None:
                    times = events.alarms(one, self.zone)
                elif isinstance(one.start, datetime):
                    times = [starts - timedelta(seconds=asked["before"])]
            cancelled = one.event.get("STATUS") == "CANCELLED"
            for at in () if cancelled else (each.timestamp() for each in times):
                until = max(starts.timestamp(), at) + GRACE
                if at > now - LATE and until > now:
                    key = f"{digest(one.event.get('UID'))}-{digest(f'{one.slot} {starts} {at}')}"
                    found.append({"key": key, "at": at, "until": until, "text": each.entry["text"]})
        by_entry = defaultdict[str, list[dict[str, Any]]](list)  # one hides no others
        for reminder in sorted(found, key=lambda reminder: reminder["at"]):
            by_entry[reminder["key"].partition("-")[0]].append(reminder)
        nearest = (every[:MOST_REMINDERS] for every in by_entry.values())
        return {"reminders": [reminder for every in nearest for reminder in every]}

    def add(self, asked: Asked) -> dict[str, Any]:
        for each in self.calendars:
            if asked["to"] in ("", each.name) and "VEVENT" in each.get_supported_components():
                raw = events.make_event(*self.times(asked), asked["properties"])
                Event(each.client, parent=each).save(raw_data=raw, no_overwrite=True)
                return {}
        raise NotPossible("There is no such calendar to add to: find --json shows their names.")

    def move(self, asked: Asked) -> dict[str, Any]:
        found, times = self.named(asked), self.times(asked)
        return self.put(found, events.move_instance(found.object.data, found.instance.slot, *times))

    def remove(self, asked: Asked) -> dict[str, Any]:
        found = self.named(asked)
        left = events.remove_instance(found.object.data, found.instance.slot)
        return self.put(found, None if asked["whole"] else left)

    def put(self, found: Found, raw: bytes | None) -> dict[str, Any]:
        """Replace an object by `raw`, or remove it (None), if it is the version that was read. Raises NotPossible."""
        if not found.object.etag or found.object.etag.startswith("W/"):
            raise NotPossible(NO_VERSION)
        if raw is None:
            found.object.delete(if_match=True, precondition="etag")
        else:
            found.object.save(raw_data=raw, precondition="etag")
        return {}

    def times(self, asked: Asked) -> tuple[Time, Time]:
        """The start and the end (excluded) that a request names: days, or times in the request's zone."""
        if asked["all_day"]:
            return date.fromisoformat(asked["start"]), date.fromisoformat(asked["end"])
        start, end = (datetime.fromisoformat(asked[key]) for key in ("start", "end"))
        return start.astimezone(self.zone), end.astimezone(self.zone)


def digest(text: object) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()[:8]


def one_line(text: object) -> str:
    return " ".join(clean(str(text or "")).split())[:MOST_LINE]
