"""`calendar` over a real CalDAV server, whose calendar other programs write to as well."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent.calendar import accounts
from agent.calendar.accounts import Calendars
from agent.tools.bash import bash
from agent.trust import Taint
from fakes.noon import NOON, TODAY
from fakes.radicale import Calendar, Radicale, event
from fakes.sandbox_box import Box
from fakes.web_server import site
from fakes.words import saying

ROOT = Path(__file__).parents[3]
WEEKLY = ("DTSTART;TZID=Europe/Berlin:20261001T090000", "DURATION:PT30M", "RRULE:FREQ=WEEKLY;COUNT=3", "SUMMARY:Stand-up")  # fmt: skip
IN_OCTOBER = "--from 2026-10-01 --to 2026-10-31"


def on(day: date, clock: str = "") -> str:
    """The value of a property."""
    return f";TZID={NOON}:{day:%Y%m%d}T{clock}00" if clock else f";VALUE=DATE:{day:%Y%m%d}"


async def run(box: Box, words: str) -> str:
    return await box.text(bash, command=f"calendar {words}")


async def ids(box: Box, words: str = f"find {IN_OCTOBER}") -> dict[str, str]:
    """The ids of entries by their text."""
    found = re.findall(r"^(\w.*?)  \[(.*)\]$", await run(box, words), re.MULTILINE)
    return dict(found)


# -- reading ------------------------------------------------------------------


async def test_today_the_week_and_json(box_at_noon: Box, home: Calendar) -> None:
    box = box_at_noon
    tomorrow = TODAY + timedelta(days=1)
    home.put(event(f"DTSTART{on(TODAY, '0900')}", f"DTEND{on(TODAY, '0930')}", "SUMMARY:Stand-up", "LOCATION:Room 4"))  # fmt: skip
    home.put(event(f"DTSTART{on(TODAY)}", "SUMMARY:Birthday", "TRANSP:TRANSPARENT"))
    home.put(event(f"DTSTART{on(tomorrow, '1000')}", "DURATION:PT1H", "SUMMARY:Call", "STATUS:CANCELLED"))  # fmt: skip
    home.put(event(f"DTSTART:{TODAY:%Y%m%d}T235000", "SUMMARY:On every clock"))
    lines = (await run(box, "today")).splitlines()
    day = f"{TODAY:%a %Y-%m-%d}"
    assert lines[0].startswith(f"{day}, all day  Birthday  [work/{TODAY:%Y%m%d}-")
    assert lines[1].startswith(f"{day} 09:00 to 09:30  Stand-up (Room 4)  [")
    assert lines[2].startswith(f"{day} 23:50  On every clock  [") and len(lines) == 3
    assert box.strangers == ["calendar work"] and box.asked == []
    assert "Call, cancelled" in await run(box, "week")
    assert "Call" not in await run(box, f"week --from {TODAY + timedelta(days=2)}")
    first, second, _ = json.loads(await run(box, "today --json"))
    assert (first["title"], first["all_day"], first["busy"]) == ("Birthday", True, False)
    assert first["start"] == first["end"] == str(TODAY)
    assert (second["place"], second["busy"], second["repeats"]) == ("Room 4", True, False)
    assert datetime.fromisoformat(second["start"]).astimezone(ZoneInfo(NOON)).hour == 9


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles"])
async def test_whole_days_come_first_in_every_zone(box: Box, home: Calendar, zone: str) -> None:
    box.calendars = Calendars({"work": home.account}, zone)
    home.put(event(f"DTSTART;TZID={zone}:20261002T060000", "SUMMARY:Early"))
    home.put(event("DTSTART;VALUE=DATE:20261002", "SUMMARY:Birthday"))
    home.put(event(f"DTSTART;TZID={zone}:20261001T230000", "SUMMARY:Late"))
    titles = [text.rpartition("  ")[2] for text in await ids(box)]
    assert titles == ["Late", "Birthday", "Early"]


async def test_nothing_is_said(box: Box, home: Calendar) -> None:
    assert await run(box, "today") == "There is nothing." and box.strangers == []


async def test_find_by_words_and_days(box: Box, home: Calendar) -> None:
    home.put(event(*WEEKLY, "DESCRIPTION:About the\\nÉTÉ release", "LOCATION:Nice"))
    home.put(event("DTSTART;VALUE=DATE:20261020", "SUMMARY:Été"))
    found = await run(box, f"find été {IN_OCTOBER}")
    assert found.count("Stand-up (Nice), repeats") == 3 and "    About the ÉTÉ release" in found
    assert "Tue 2026-10-20, all day  Été" in found
    assert (await run(box, f"find nice release {IN_OCTOBER}")).count("Stand-up") == 3
    assert await run(box, f"find été rome {IN_OCTOBER}") == "There is nothing."
    assert (await run(box, "find --from 2026-10-08 --to 2026-10-08")).count("Stand-up") == 1


async def test_free_spans(box_at_noon: Box, home: Calendar) -> None:
    box = box_at_noon
    day = TODAY + timedelta(days=1)
    for start, end in (("1000", "1100"), ("1030", "1200"), ("1700", "2000")):
        home.put(event(f"DTSTART{on(day, start)}", f"DTEND{on(day, end)}", "SUMMARY:Meeting"))
    home.put(event(f"DTSTART{on(day, '1300')}", "DURATION:PT1H", "TRANSP:TRANSPARENT"))
    home.put(event(f"DTSTART{on(day, '1400')}", "DURATION:PT1H", "STATUS:CANCELLED"))
    home.put(event(f"DTSTART{on(day)}", "SUMMARY:Holiday"))
    told = (await run(box, f"free --from {day} --days 1")).splitlines()
    name = f"{day:%a %Y-%m-%d}"
    assert told == [f"{name} 09:00 to 10:00", f"{name} 12:00 to 17:00", f"(takes no time: {name}, all day  Holiday)"]  # fmt: skip
    told = (await run(box, f"free --from {day} --days 1 --minutes 90 --hours 08:00-11:59")).splitlines()  # fmt: skip
    assert told[0] == f"{name} 08:00 to 10:00" and len(told) == 2
    assert "is no such span" in await run(box, f"free --from {day} --days 1 --hours 10:00-12:00")


async def test_an_hour_that_comes_twice_is_free_twice(box: Box, home: Calendar) -> None:
    """On the last Sunday of October."""
    home.put(event("DTSTART:20301027T003000Z", "DTEND:20301027T013000Z", "SUMMARY:Night"))
    told = await run(box, "free --from 2030-10-27 --days 1 --hours 01:00-04:00 --minutes 120")
    assert told == "There is no such span."  # an hour and a half before it, and as much after it
    told = await run(box, "free --from 2030-10-27 --days 1 --hours 01:00-04:00 --minutes 90")
    assert len(told.splitlines()) == 2


async def test_more_than_the_bot_can_read_is_not_read(
    box_at_noon: Box, home: Calendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent.calendar import client

    monkeypatch.setattr(client, "MOST_ANSWER", 1000)
    home.put(event(f"DTSTART{on(TODAY, '0900')}", "SUMMARY:Tea", "DESCRIPTION:" + "x" * 1000))
    told = await run(box_at_noon, "today")
    assert told == saying("too much time or memory", "exit code: 1")


# -- what goes wrong ----------------------------------------------------------


async def test_broken_and_hostile_entries_do_not_hide_the_others(
    box_at_noon: Box, home: Calendar
) -> None:
    box = box_at_noon
    home.put(event(f"DTSTART{on(TODAY, '0900')}", "SUMMARY:Good"))
    home.put(event(f"DTSTART{on(TODAY, '0000')}", "RRULE:FREQ=SECONDLY", "SUMMARY:Hostile"))
    home.put(event(f"DTSTART{on(TODAY, '1000')}", "RDATE:never", "SUMMARY:Broken"))
    home.put("no calendar")
    told = await run(box, "today")
    assert "Good" in told and "Hostile" not in told and "Broken" not in told
    assert re.search(r"In work are [12] that cannot be read\.", told)


async def test_days_before_all_others_are_told(box: Box, home: Calendar) -> None:
    assert await run(box, "week --from 0001-01-01") == saying(
        "too early or too late", "exit code: 1"
    )


async def test_a_series_with_a_rule_of_what_is_left_out_says_so(box: Box, home: Calendar) -> None:
    home.put(event(*WEEKLY, "EXRULE:FREQ=WEEKLY;INTERVAL=2"))
    found = [*await ids(box)]
    assert len(found) == 3 and found[0].endswith("Stand-up, repeats, some of these times may be left out (EXRULE)")  # fmt: skip


async def test_a_server_that_is_away_and_one_that_wants_another_password(
    box: Box, home: Calendar, radicale: Radicale, tmp_path: Path
) -> None:
    home.put(event(f"DTSTART{on(TODAY)}", "SUMMARY:Birthday"))
    wrong = tmp_path / "wrong"
    wrong.write_text("hunter2hunter2")
    away = {"url": "http://127.0.0.1:1/", "user": "u"}
    named = {"work": home.account, "away": away, "wrong": {**home.account, "password_file": str(wrong)}}  # fmt: skip
    box.calendars = Calendars(named, NOON)
    told = await run(box, "today")
    assert "Birthday" in told
    assert "The server of the calendar away cannot be reached" in told
    assert "The server of the calendar wrong does not take its user and password" in told
    assert "hunter2" not in told and home.password not in told
    box.calendars = Calendars({"away": away}, "Europe/Paris")
    assert await run(box, "today") == saying("calendar: ", "cannot be reached", "exit code: 1")
    gone = {**home.account, "password_file": str(tmp_path / "none")}
    box.calendars = Calendars({"work": gone}, "Europe/Paris")
    assert "password_file of the calendar work cannot be read" in await run(box, "today")


async def test_what_is_no_caldav_server(box: Box) -> None:
    async with site() as web:
        box.calendars = Calendars(
            {"work": {"url": f"http://{web.host}/", "user": ""}}, "Europe/Paris"
        )
        told = await run(box, "today")
    assert told.startswith("calendar: ") and told.endswith("exit code: 1") and "owner" in told


async def test_one_calendar_of_an_account_may_be_named(
    box_at_noon: Box, home: Calendar, radicale: Radicale
) -> None:
    box = box_at_noon
    other = home.folder.parent / "other"
    other.mkdir()
    (other / ".Radicale.props").write_text('{"tag": "VCALENDAR", "D:displayname": "Other"}')
    replace(home, folder=other).put(event(f"DTSTART{on(TODAY)}", "SUMMARY:There"))
    home.put(event(f"DTSTART{on(TODAY)}", "SUMMARY:Here"))
    told = await run(box, "today")
    assert "Here" in told and "There" in told
    box.calendars = Calendars({"work": {**home.account, "url": home.place}}, NOON)
    told = await run(box, "today")
    assert "Here" in told and "There" not in told


@pytest.mark.parametrize(
    "words",
    [
        "", "tomorrow", "week --from tomorrow", "find --from 2026-10-02 --to 2026-10-01", "find --to 2126-10-01",
        "free --hours 9", "free --days 0", "add", "add Tea", 'add Tea --at "every day at 9"', "move", "move 1 --at 2026-10-01",
        'add Tea --at "2026-10-01 10:00" --to 2026-10-02', 'add Tea --at 2026-10-01 --to "2026-10-02 10:00"',
        'add Tea --at "2026-10-01 10:00" --to 09:00', "add Tea --at 2026-10-02 --to 2026-10-01", "remove work/2026",
        "add Tea --at 2026-10-01 --repeat sometimes", "week --from 9999-12-30", "free --minutes 99999999999999",
        "add Tea --at 2026-10-01 --minutes 99999999999999",
    ],
)  # fmt: skip
async def test_wrong_usage(box: Box, home: Calendar, words: str) -> None:
    assert (await run(box, words)).endswith("exit code: 2")
    assert box.asked == [] and home.objects == []


async def test_help(box: Box) -> None:
    assert "calendar week [--from FROM] [--json]" in await run(box, "--help")
    for name in ("today", "week", "find", "free", "add", "move", "remove"):
        assert f"usage: calendar {name}" in await run(box, f"{name} --help")


async def test_without_an_account_there_is_nothing(box: Box) -> None:
    assert "calendar add" in await box.text(bash, command="cat /commands.txt")
    box.calendars = None
    assert "calendar" not in await box.text(bash, command="cat /commands.txt")
    assert await run(box, "today") == saying("calendar: ", "docs/calendar.md")


async def test_without_the_packages_it_says_so(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "find_spec", lambda name: None)
    assert "not installed; the owner can install them" in await run(box, "today")


# -- changing -----------------------------------------------------------------


async def test_add_in_words_and_days(box: Box, home: Calendar) -> None:
    told = await run(box, 'add "Tea; with Ann" --at "2026-10-01 15:00" --to 16:30 --place "Café" --about "Bring x" --repeat weekly')  # fmt: skip
    assert told == "Done."
    what = "Add to the calendar work:\n\nThu 2026-10-01 15:00 to 16:30  Tea; with Ann\nCafé\nweekly\nBring x"  # fmt: skip
    assert box.asked == [(what, "calendar:work")]
    found = json.loads(await run(box, f"find tea {IN_OCTOBER} --json"))
    assert [one["text"] for one in found][:1] == ["Thu 2026-10-01 15:00 to 16:30  Tea; with Ann (Café), repeats"]  # fmt: skip
    assert len(found) == 5 and found[0]["about"] == "Bring x"
    assert await run(box, "add Trip --at 2026-10-02 --to 2026-10-04 --in work/Home") == "Done."
    assert "Fri 2026-10-02 to Sun 2026-10-04, all day  Trip" in await ids(box)
    assert "no such calendar" in await run(box, "add Trip --at 2026-10-02 --in work/Elsewhere")
    assert "There is no account play" in await run(box, "add Trip --at 2026-10-02 --in play")
    assert len(home.objects) == 2


async def test_add_tomorrow(box_at_noon: Box, home: Calendar) -> None:
    assert await run(box_at_noon, 'add Soon --at "tomorrow at 3pm" --minutes 15') == "Done."
    tomorrow = TODAY + timedelta(days=1)
    (found,) = await ids(box_at_noon, "find soon")
    assert found == f"{tomorrow:%a %Y-%m-%d} 15:00 to 15:15  Soon"


async def test_one_of_a_series_moves_and_goes_by_its_id(box: Box, home: Calendar) -> None:
    home.put(event(*WEEKLY))
    second = (await ids(box))["Thu 2026-10-08 09:00 to 09:30  Stand-up, repeats"]
    assert await run(box, f'move {second} --at "2026-10-09 14:00"') == "Done."
    what = "Move in the calendar work:\n\nThu 2026-10-08 09:00 to 09:30  Stand-up, repeats\n→ Fri 2026-10-09 14:00 to 14:30"  # fmt: skip
    assert box.asked == [(what, "calendar:work")]
    assert list(await ids(box)) == [
        "Thu 2026-10-01 09:00 to 09:30  Stand-up, repeats",
        "Fri 2026-10-09 14:00 to 14:30  Stand-up, repeats",
        "Thu 2026-10-15 09:00 to 09:30  Stand-up, repeats",
    ]
    assert "was changed or removed" in await run(box, f"remove {second}")  # an id of before
    last = (await ids(box))["Thu 2026-10-15 09:00 to 09:30  Stand-up, repeats"]
    assert await run(box, f"remove {last}") == "Done."
    assert len(await ids(box)) == 2 and len(home.objects) == 1


async def test_a_whole_series_goes_when_told(box: Box, home: Calendar) -> None:
    home.put(event(*WEEKLY))
    second = list((await ids(box)).values())[1]
    assert await run(box, f"remove {second} --all") == "Done."
    assert "All of its series." in box.asked[0][0] and home.objects == []


async def test_days_stay_as_many_and_a_single_entry_goes(box: Box, home: Calendar) -> None:
    home.put(event("DTSTART;VALUE=DATE:20261002", "DTEND;VALUE=DATE:20261005", "SUMMARY:Trip"))
    (id,) = (await ids(box)).values()
    assert await run(box, f"move {id} --at 2026-10-09") == "Done."
    ((text, id),) = (await ids(box)).items()
    assert text == "Fri 2026-10-09 to Sun 2026-10-11, all day  Trip"
    assert await run(box, f"remove {id}") == "Done." and home.objects == []


async def test_guests_are_told_of_in_the_question(box: Box, home: Calendar) -> None:
    home.put(event(*WEEKLY, "ORGANIZER:mailto:me@example.org", "ATTENDEE;CN=Ann:mailto:ann@example.org", "ATTENDEE:mailto:bob@example.org"))  # fmt: skip
    id = next(iter((await ids(box)).values()))
    await run(box, f"remove {id}")
    assert box.asked[0][0].endswith("Its guests may be told: ann@example.org, bob@example.org")


async def test_denied_changes_nothing(box: Box, home: Calendar) -> None:
    home.put(event(*WEEKLY))
    before, (id, *_) = home.objects, (await ids(box)).values()
    box.allows = False
    for words in ("add Tea --at 2026-10-01", f"move {id} --at 2026-10-02", f"remove {id}"):
        assert await run(box, words) == saying("calendar: ", "The owner said no.", "exit code: 1")
    assert home.objects == before


@pytest.mark.parametrize("change", ["move {} --at 2026-10-02", "remove {} --all"])
@pytest.mark.parametrize("meanwhile", ["changed", "removed"])
async def test_what_another_program_changes_while_the_owner_is_asked_is_not_overwritten(
    box: Box, home: Calendar, change: str, meanwhile: str
) -> None:
    path = home.put(event(*WEEKLY, uid="a"))
    id = next(iter((await ids(box)).values()))

    async def ask(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
        path.unlink()
        if meanwhile == "changed":
            home.put(event(*WEEKLY, "LOCATION:Elsewhere", uid="a"), path.stem)

    box.approve = ask
    assert "was changed or removed" in await run(box, change.format(id))
    assert len(home.objects) == (meanwhile == "changed")
    assert all("Elsewhere" in text and "EXDATE" not in text for text in home.objects)


@pytest.mark.parametrize("whole", [False, True])
def test_what_another_program_changes_between_look_and_change_the_server_refuses(
    home: Calendar, whole: bool
) -> None:
    from caldav.lib import error

    from agent.calendar.client import CHANGED, FAILURES, OpenAccount

    path = home.put(event(*WEEKLY, uid="a"))
    asked = {**home.account, "name": "work", "password": home.password, "zone": "Europe/Paris"}
    account = OpenAccount.of(asked)
    found = next(account.found(date(2026, 10, 8), date(2026, 10, 9)))
    changed = event(*WEEKLY, "LOCATION:Elsewhere", uid="a")
    home.put(changed, path.stem)
    with pytest.raises(error.DAVError) as caught:
        account.put(found, None if whole else event(*WEEKLY, uid="a").encode())
    assert next(form for kind, form in FAILURES.items() if isinstance(caught.value, kind)) == CHANGED  # fmt: skip
    assert home.objects == [changed]
