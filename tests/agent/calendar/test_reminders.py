"""Reminders of entries on a real CalDAV server: each told once, at its time, as it then is."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.calendar.accounts import Calendars
from agent.calendar.reminders import Reminders
from agent.store import Store, open_store
from fakes.bot_process import Process
from fakes.localgram import Localgram
from fakes.model_scripted import ModelServer
from fakes.radicale import Calendar, Radicale, event
from fakes.words import saying

NOW = datetime(2026, 10, 5, 8, 0, tzinfo=UTC)  # 10:00 in Paris
CHAT = "tg:111"
pytestmark = pytest.mark.usefixtures("forked")


class Clock:
    at = NOW.timestamp()

    def __call__(self) -> float:
        return self.at

    def pass_to(self, text: str) -> None:
        self.at = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "voltaire.db", clock) as store:
        yield store


def started(store: Store, home: Calendar, remind: str = "15m", *chats: str) -> Reminders:
    """As a bot that has just been started."""

    async def listeners() -> tuple[str, ...]:
        return chats or (CHAT,)

    calendars = Calendars({"work": home.account}, "Europe/Paris")
    return Reminders(store, calendars, "work", remind, listeners, json.dumps)


async def told(store: Store) -> list[str]:
    return [
        str(json.loads(row[0]))
        for row in await store.database.all("SELECT payload FROM outbox ORDER BY id")
    ]


def at(clock: str, title: str = "Dentist", *more: str, uid: str = "") -> str:
    return event(
        f"DTSTART:20261005T{clock}00Z", "DURATION:PT30M", f"SUMMARY:{title}", *more, uid=uid
    )


def alarm(trigger: str, *more: str) -> tuple[str, ...]:
    return (
        "BEGIN:VALARM",
        f"TRIGGER{trigger}",
        "ACTION:DISPLAY",
        "DESCRIPTION:x",
        *more,
        "END:VALARM",
    )


async def test_an_entry_is_told_once_before_it_begins(
    store: Store, home: Calendar, clock: Clock
) -> None:
    home.put(at("0900"))
    home.put(at("0900", "Call [me](http://eve.example) ```\\nfree text"))
    home.put(event("DTSTART;VALUE=DATE:20261005", "SUMMARY:Birthday"))
    home.put(at("0905", "Cancelled", "STATUS:CANCELLED"))
    bot = started(store, home, "15m", CHAT, "tg:222")
    assert await bot.run_pass() == 300 and await told(store) == []
    clock.pass_to("2026-10-05 08:44:59")
    assert await bot.run_pass() == 1 and await told(store) == []
    clock.pass_to("2026-10-05 08:45")
    for _ in range(2):
        await bot.run_pass()
        await started(store, home, "15m", CHAT, "tg:222").run_pass()
    first, second = await told(store)
    assert first == second == saying("🔔", "Mon 2026-10-05 11:00 to 11:30  Dentist")
    body = first.partition("````")[2]
    assert (
        "[me](http://eve.example)" in body and "Birthday" not in first and "Cancelled" not in first
    )


async def test_what_was_moved_or_removed_is_told_as_it_now_is(
    store: Store, home: Calendar, clock: Clock
) -> None:
    moved, gone = home.put(at("0900", uid="1")), home.put(at("0900", "Gone"))
    bot = started(store, home)
    await bot.run_pass()
    clock.pass_to("2026-10-05 08:42")  # between two looks
    moved.write_text(at("1000", uid="1"))
    gone.unlink()
    clock.pass_to("2026-10-05 08:45")
    await bot.run_pass()
    assert await told(store) == []
    clock.pass_to("2026-10-05 09:45")
    await bot.run_pass()
    moved.write_text(at("1100", uid="1"))  # once more, after it was told
    clock.pass_to("2026-10-05 10:45")
    await bot.run_pass()
    assert [text.partition(" to ")[0][-5:] for text in await told(store)] == ["12:00", "13:00"]


async def test_recurrences_over_a_change_of_the_clocks(
    store: Store, home: Calendar, clock: Clock
) -> None:
    """On 25 October 2026 an hour comes twice."""
    rule = (
        "DTSTART;TZID=Europe/Paris:20261023T090000",
        "DURATION:PT30M",
        "RRULE:FREQ=DAILY",
        "SUMMARY:Stand-up",
    )
    home.put(event(*rule, "EXDATE;TZID=Europe/Paris:20261024T090000"))
    bot = started(store, home, "1h")
    for text in (
        "10-23 06:00",
        "10-24 06:00",
        "10-25 06:00",
        "10-25 07:00",
        "10-26 07:00",
        "10-26 07:01",
    ):
        clock.pass_to(f"2026-{text}")
        await bot.run_pass()
    days = [text.partition("2026-")[2][:11] for text in await told(store)]
    assert days == ["10-23 09:00", "10-25 09:00", "10-26 09:00"]


async def test_what_fell_due_while_the_bot_was_away(
    store: Store, home: Calendar, clock: Clock
) -> None:
    for begins, title in (("0900", "Begun"), ("0957", "Just begun"), ("1010", "Soon")):
        home.put(at(begins, title))
    clock.pass_to("2026-10-05 10:00")
    await started(store, home).run_pass()
    (text,) = await told(store)
    assert saying("Just begun", "Soon") == text and "  Begun" not in text


async def test_a_clock_that_is_set_back_tells_nothing_twice(
    store: Store, home: Calendar, clock: Clock
) -> None:
    home.put(at("0900"))
    bot = started(store, home)
    for text in ("10-05 08:50", "10-06 08:00", "10-05 08:46", "10-05 08:50"):
        clock.pass_to(f"2026-{text}")
        await bot.run_pass()
    assert len(await told(store)) == 1


async def test_an_entrys_own_alarms(store: Store, home: Calendar, clock: Clock) -> None:
    home.put(at("1000", "Two", *alarm(":-PT60M"), *alarm(";RELATED=END:-PT40M")))
    home.put(at("1000", "Acknowledged", *alarm(":-PT60M"), "X-MOZ-LASTACK:20261005T090000Z"))
    home.put(at("1000", "None", *alarm(";VALUE=DATE-TIME:19760401T005545Z")))
    home.put(at("1000", "Endless", *alarm(":-PT59M", "REPEAT:2000000000", "DURATION:PT1S")))
    home.put(
        event("DTSTART;VALUE=DATE:20261006", "SUMMARY:Birthday", *alarm(":-PT13H"))
    )  # 11:00 in Paris
    home.put(event("DTSTART:20261026T100000Z", "SUMMARY:In three weeks", *alarm(":-P3W")))
    weekly = event("DTSTART:20261005T100000Z", "RRULE:FREQ=WEEKLY", "SUMMARY:Weekly", *alarm(";VALUE=DATE-TIME:20261005T090000Z"))  # fmt: skip
    home.put(weekly)
    bot = started(store, home, "own")
    await bot.run_pass()
    assert await told(store) == []
    clock.pass_to("2026-10-05 09:00")
    await bot.run_pass()
    clock.pass_to("2026-10-05 09:50")
    await bot.run_pass()
    clock.pass_to("2026-10-05 10:00")
    await bot.run_pass()
    texts = await told(store)
    titles = [
        sorted(line.split("  ")[1] for line in text.splitlines() if "  " in line) for text in texts
    ]
    endless = ["Endless"] * 10  # of two thousand million
    assert titles == [["Birthday", "Two"], sorted(["Two", *endless]), ["In three weeks"]]


async def test_no_entry_floods_a_chat_or_hides_another(
    store: Store, home: Calendar, clock: Clock
) -> None:
    home.put(event("DTSTART:20261005T080000Z", "RRULE:FREQ=MINUTELY", "SUMMARY:Eve"))
    home.put(at("1200"))
    bot = started(store, home)
    for text in ("08:00", "08:11", "08:22", "08:33", "11:45"):
        clock.pass_to(f"2026-10-05 {text}")
        await bot.run_pass()
    *texts, last = await told(store)
    assert 20 <= sum(text.count("Eve") for text in texts) <= 34 and "Eve" not in last
    assert last == saying("Dentist")


async def test_a_server_that_is_away(tmp_path: Path, store: Store, clock: Clock) -> None:
    server = Radicale(tmp_path / "radicale")
    await server.start()
    home = server.calendar()
    home.put(at("0900"))
    bot = started(store, home)
    await bot.run_pass()
    server.stop()
    clock.pass_to("2026-10-05 08:45")
    await bot.run_pass()
    await bot.run_pass()
    assert len(await told(store)) == 1  # what was known
    later = started(store, home)
    assert await later.run_pass() == 300 and len(await told(store)) == 1


async def test_none_while_everything_is_frozen(store: Store, home: Calendar, clock: Clock) -> None:
    home.put(at("0810"))
    await store.freeze.freeze("Olga")
    bot = started(store, home)
    await bot.run_pass()
    assert await told(store) == []
    await store.freeze.thaw("Olga")
    await bot.run_pass()
    assert len(await told(store)) == 1


KILLED = """
import asyncio, json, sys
from pathlib import Path
from agent.calendar.accounts import Calendars
from agent.calendar.reminders import Reminders
from agent.store import open_store
async def main(path, account, now):
    async def listeners():
        return ["tg:111"]
    async with open_store(Path(path), lambda: float(now)) as store:
        calendars = Calendars({"work": json.loads(account)}, "Europe/Paris")
        reminders = Reminders(store, calendars, "work", "15m", listeners, json.dumps)
        print("begins", flush=True)
        await reminders.run_pass()
        print("told", flush=True)
        await asyncio.Event().wait()
asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_kill_at_any_step_has_it_told_once(
    tmp_path: Path, home: Calendar, clock: Clock
) -> None:
    home.put(at("0900"))
    clock.pass_to("2026-10-05 08:50")
    path = tmp_path / "voltaire.db"
    command = [sys.executable, "-c", KILLED, str(path), json.dumps(home.account), str(clock.at)]
    for line, seconds in (
        ("begins", 0.0),
        ("begins", 0.5),
        ("told", 0.0),
    ):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            while (said := process.stdout.readline().strip()) != line:
                assert said, "it has ended"
            await asyncio.sleep(seconds)
            process.send_signal(signal.SIGKILL)
    async with open_store(path, clock) as store:
        assert len(await told(store)) == 1


async def test_the_bot_tells_its_owner_of_an_entry(home: Calendar, tmp_path: Path) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=10)
    home.put(event(f"DTSTART:{soon:%Y%m%dT%H%M%SZ}", "DURATION:PT30M", "SUMMARY:Dentist"))
    async with Localgram("1000001:abc") as gram, ModelServer() as model:
        owner = gram.user("Ada", id=7, started=True)
        process = Process(gram, tmp_path / "state", model.url, 7)
        account = home.account | {"remind": "15m"}
        process.configure(AGENT__CALENDAR=json.dumps({"work": account}))
        async with process.running():
            heard = await owner.next_message(where=lambda message: "🔔" in message.text)
    assert "Dentist" in heard.text
