"""calendar: the owner's calendars, read and changed."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zoneinfo import ZoneInfo

from agent.calendar.spans import DAY, Time, span_text
from agent.errors import ToolError
from agent.language import ENGLISH, speaking, translated
from agent.shell.command import ShellCall, UsageError, command, no_lines
from agent.tools.context import ToolContext

if TYPE_CHECKING:  # loaded where calendars are configured
    from agent.calendar.accounts import Calendars

MOST_DAYS = 1000  # of one question
SHOWN = 50  # of what is found
ABOUT = 200  # characters
READ = "Let this chat read the calendars of {name}, from now on, all of their entries. /approve takes that back."
ID = re.compile(r"([a-z0-9_-]+)/\d{8}-[0-9a-f]{8}")
FORMS = (
    "calendar today | week | find WORDS... | free  The owner's calendar: entries with their ids; when there is time.",
    'calendar add TITLE --at "2026-12-24 15:00" | move ID --at ... | remove ID  Change it.',
)

AsJson = Annotated[bool, "as JSON"]
Day = Annotated[str, "such as 2026-12-24"]
When = Annotated[str, "such as 2026-12-24 15:00; a day alone: all day"]
Until = Annotated[str, "when it ends; of whole days, the last one"]
Fields = dict[str, Any]  # of an entry, or of a request (agent.calendar.client)


def lines(context: ToolContext) -> Sequence[str]:
    return FORMS if context.calendars else ()


@command(lines=lines)
async def today(call: ShellCall, *, json_: AsJson = False) -> None:
    """What today has."""
    await show(call, await entries(call, day_of(call), 1), json_=json_)


@command(lines=no_lines)
async def week(call: ShellCall, *, from_: Day = "", json_: AsJson = False) -> None:
    """The seven days from today, or from another day on."""
    await show(call, await entries(call, day_of(call, from_), 7), json_=json_)


@command(lines=no_lines)
async def find(call: ShellCall, *words: str, from_: Day = "", to: Day = "", json_: AsJson = False) -> None:  # fmt: skip
    """Entries with all of the words, from 30 days ago to a year ahead unless --from and --to say otherwise."""
    first = day_of(call, from_) if from_ else day_of(call) - 30 * DAY
    days = (day_of(call, to) - first).days + 1 if to else 395
    found, wanted = [], " ".join(words).casefold().split()
    for one in await entries(call, first, days):
        text = f"{one['title']} {one['place']} {one['about']}".casefold()
        found += [one] if all(word in text for word in wanted) else []
    await show(call, found[:SHOWN], json_=json_, about=True)
    if len(found) > SHOWN:
        await call.warn(f"There are {len(found) - SHOWN} more: give --from and --to.\n")


@command(lines=no_lines)
async def free(
    call: ShellCall,
    *,
    from_: Day = "",
    days: Annotated[int, "how many"] = 7,
    hours: Annotated[str, "of each day"] = "09:00-18:00",
    minutes: Annotated[int, "that a span has at least"] = 30,
) -> None:
    """Spans of time without an entry. One of whole days takes no time."""
    zone, first = ZoneInfo(calendars(call).zone), day_of(call, from_)
    try:
        opens, closes = (time.fromisoformat(each) for each in hours.split("-"))
    except ValueError:
        raise UsageError("--hours takes two times, such as 09:00-18:00") from None
    found = [one for one in await entries(call, first, days) if one["busy"]]
    busy, told = [span(one) for one in found if not one["all_day"]], list[str]()
    for day in (first + n * DAY for n in range(days)):
        at, stop = (datetime.combine(day, each, zone).astimezone(UTC) for each in (opens, closes))
        at = max(at, datetime.now(UTC).replace(second=0, microsecond=0))
        for begins, ends in [*busy, (stop, stop)]:
            if min(begins, stop) - at >= timedelta(minutes=max(minutes, 1)):
                told.append(span_text(at.astimezone(zone), min(begins, stop).astimezone(zone)))
            at = max(at, ends)
    told = told or ["There is no such span."]
    told += [f"(takes no time: {one['text']})" for one in found if one["all_day"]]
    await call.write("".join(f"{one}\n" for one in told))


@command(lines=no_lines)
async def add(
    call: ShellCall,
    title: str,
    *,
    at: When,
    to: Until = "",
    minutes: Annotated[int, "that it takes"] = 60,
    place: str = "",
    about: Annotated[str, "a description"] = "",
    repeat: Literal["", "daily", "weekly", "monthly", "yearly"] = "",
    in_: Annotated[str, "ACCOUNT, or ACCOUNT/CALENDAR"] = "",
) -> None:
    """Add an entry."""
    name, _, inside = (in_ or next(iter(calendars(call).accounts))).partition("/")
    words, times = times_of(call, at, to, timedelta(minutes=minutes))
    rule = {"FREQ": repeat.upper()} if repeat else None
    given = {"SUMMARY": title, "LOCATION": place, "DESCRIPTION": about, "RRULE": rule}
    properties = {key: value for key, value in given.items() if value}
    told = [f"{words}  {title}", place, repeat, about]
    await change(call, name, translated("Add to the calendar {name}:"), told, "add", to=inside, properties=properties, **times)  # fmt: skip


@command(lines=no_lines)
async def move(call: ShellCall, id: str, *, at: When, to: Until = "") -> None:
    """Move an entry, which takes as long as before unless --to says otherwise."""
    name, one, told = await named(call, id)
    begins, ends = span(one)
    words, times = times_of(call, at, to, ends - begins)
    what = translated("Move in the calendar {name}:")
    await change(call, name, what, [*told, f"→ {words}"], "move", id=id, **times)


@command(lines=no_lines)
async def remove(
    call: ShellCall,
    id: str,
    *,
    all_: Annotated[bool, "all of its series, not this one alone"] = False,
) -> None:
    """Remove an entry."""
    name, _, told = await named(call, id, whole=all_)
    what = translated("Remove from the calendar {name}:")
    await change(call, name, what, told, "remove", id=id, whole=all_)


def calendars(call: ShellCall) -> "Calendars":
    if call.context.calendars is None:
        raise ToolError("There is no calendar; the owner can name one (docs/calendar.md).")
    return call.context.calendars


def day_of(call: ShellCall, text: str = "") -> date:
    """Parse a day such as 2026-12-24, "" for today in the calendars' time zone; UsageError for other text."""
    try:
        today = datetime.now(ZoneInfo(calendars(call).zone)).date()
        return date.fromisoformat(text) if text else today
    except ValueError:
        raise UsageError(f"{text} is not a day such as 2026-12-24") from None


def time_of(text: str, zone: ZoneInfo) -> Time:
    """Parse a day or a time, in ISO form or in words such as "tomorrow at 3pm". Raises UsageError."""
    from agent.schedule.planner import asked_back
    from agent.schedule.times.parser import parse
    from agent.schedule.times.rule import Once

    with suppress(ValueError):
        return date.fromisoformat(text)
    with suppress(ValueError):
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC).astimezone(zone)
    with asked_back(), speaking(ENGLISH):
        rule = parse(text, datetime.now(zone))
    if not isinstance(rule, Once):
        raise UsageError("an entry begins at one time; --repeat says how often")
    return rule.at.astimezone(zone)


def times_of(call: ShellCall, at: str, to: str, lasts: timedelta) -> tuple[str, Fields]:
    """A span in words, and as fields of a request, where the end is excluded."""
    zone = ZoneInfo(calendars(call).zone)
    start = time_of(at, zone)
    all_day = not isinstance(start, datetime)
    if re.fullmatch(r"\d\d?:\d\d", to):
        to = f"{start:%Y-%m-%d} {to:0>5}"
    if to:
        end = time_of(to, zone) + all_day * DAY
    elif isinstance(start, datetime):
        end = (start.astimezone(UTC) + lasts).astimezone(zone)
    else:
        end = start + max(lasts, DAY)
    if all_day == isinstance(end, datetime) or end < start + all_day * DAY:
        raise UsageError("--to is a later time, or, where --at is a day, the last one")
    fields = {"start": start.isoformat(), "end": end.isoformat(), "all_day": all_day}
    return span_text(start, end), fields


def span(one: Fields) -> tuple[datetime, datetime]:
    begins, ends = (datetime.fromisoformat(one[key]) for key in ("start", "end"))
    if one["all_day"]:
        return begins.replace(tzinfo=UTC), ends.replace(tzinfo=UTC) + DAY
    return begins.astimezone(UTC), ends.astimezone(UTC)


async def entries(call: ShellCall, first: date, days: int) -> list[Fields]:
    """What all accounts have in some days, by time; on each day what takes all of it comes first."""
    if not 1 <= days <= MOST_DAYS:
        raise UsageError(f"it is 1 to {MOST_DAYS} days that can be looked at")
    found, names = list[Fields](), list(calendars(call).accounts)
    for name in names:
        try:
            answer = await ask(call, name, "read", first=str(first), last=str(first + days * DAY))
        except ToolError as error:
            if len(names) == 1:
                raise
            await call.warn(f"{error}\n")
            continue
        if answer["broken"]:
            await call.warn(f"In {name} are {answer['broken']} that cannot be read.\n")
        found += answer["entries"]
    return sorted(found, key=lambda one: (one["start"][:10], not one["all_day"], span(one)))


async def ask(call: ShellCall, name: str, do: str, **what: object) -> Fields:
    """Return the answer to a request (Calendars.ask). To read, an owner must allow it; entries are marked untrusted."""
    if do == "read" and name in calendars(call).accounts:
        await call.approve(translated(READ).format(name=name), scope=f"calendar-read:{name}")
    with call.questions.waiting():
        answer = await calendars(call).ask(name, do, call.within.sandbox.observer, **what)
    if answer.get("entries"):
        await call.stranger(f"calendar {name}")
    return answer


async def show(call: ShellCall, found: list[Fields], *, json_: bool, about: bool = False) -> None:
    if json_:
        await call.write(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
        return
    for one in found:
        more = " ".join(one["about"].split())[:ABOUT] if about else ""
        await call.write(f"{one['text']}  [{one['id']}]\n" + (f"    {more}\n" if more else ""))
    if not found:
        await call.write("There is nothing.\n")


async def named(call: ShellCall, id: str, *, whole: bool = False) -> tuple[str, Fields, list[str]]:
    """Find an entry by its id; return its account, the entry, and the text that shows it to an owner."""
    if not (match := ID.fullmatch(id)):
        raise UsageError(f"{id[:80]} is no id: calendar find and week show them")
    (one,) = (await ask(call, match[1], "read", id=id))["entries"]
    series = translated("All of its series.") if whole and one["repeats"] else ""
    guests = translated("Its guests may be told: {guests}").format(guests=", ".join(one["guests"]))
    return match[1], one, [one["text"], series, guests if one["guests"] else ""]


async def change(call: ShellCall, name: str, what: str, told: list[str], do: str, **fields: object) -> None:  # fmt: skip
    """Have an owner allow a change (`what` and the lines `told`), then request `do` of the account. Raises ToolError."""
    shown = "\n".join([what.format(name=name), "", *filter(None, told)])
    await call.approve(shown, scope=f"calendar:{name}")
    await call.reserve({"bytes": len(shown.encode())})
    await ask(call, name, do, **fields)
    await call.write("Done.\n")
