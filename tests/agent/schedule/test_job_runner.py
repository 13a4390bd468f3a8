"""Each occurrence runs once, or is recorded as missed; nothing is lost, nothing runs twice."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.channels import NoChannels
from agent.errors import AgentError, NothingToDo, ToolError
from agent.schedule.due_times import next_times
from agent.schedule.planner import JobClassifier, Planner
from agent.schedule.scheduler import JobAction, JobRunner, QuietHours, Scheduler, SubmitTask, remind
from agent.schedule.times.rule import dump, load
from agent.store import Incoming, Store
from agent.store.jobs import Job, JobSpec, Occurrence
from agent.store.outbox import OutboxRow
from agent.trust import Taint
from fakes.patience import SECONDS
from fakes.stored import fall_due
from fakes.words import saying
from tests.agent.schedule.conftest import Clock
from tests.agent.schedule.times.test_times import END, RULES, START, ZONES, independent

CHAT = "tg:1"
DAY = 86400


def payload(text: str) -> str:
    return '{"text": ' + repr(text).replace("'", '"') + "}"


@dataclass
class Payloads(NoChannels):
    """Channels that make a message's payload by `of`."""

    of: Callable[[str], str] = payload

    def payload(self, text: str) -> str:
        return self.of(text)


def runner_of(store: Store, quiet: QuietHours | None = None, **actions: JobAction) -> JobRunner:
    return JobRunner(store, {"remind": remind, **actions}, Payloads(), quiet)


async def one_pass(runner: JobRunner) -> float | None:
    async with asyncio.TaskGroup() as tasks:
        return await runner.run_pass(tasks)


async def deliver(store: Store, chat: str = CHAT) -> list[OutboxRow]:
    """Send what waits, as the bot does."""
    sent = []
    while parcel := await store.outbox.claim(chat):
        sent.append(parcel)
        await store.outbox.delivered(parcel.id, [str(1000 + parcel.id)])
    return sent


async def planned(store: Store, when: str, task: str = "remind me of tea", **options: Any) -> Job:
    planner = Planner(store, CHAT, "Europe/Paris")
    proposal = await planner.propose(when, task, made_by="person")
    changed = replace(proposal.spec, **options)
    return await store.jobs.add(changed)


async def spec_of(store: Store, job: Job) -> JobSpec:
    found = await store.jobs.get(job.id)
    assert found
    return found.spec


async def states_of(store: Store, job: Job) -> list[tuple[str, str]]:
    rows = await store.occurrences.of_job(job.id, 5000)
    return [(f"{datetime.fromtimestamp(r.due_at, UTC):%m-%d %H:%M}", r.state) for r in rows[::-1]]


async def test_a_reminder_is_done_with_its_message_id(store: Store, clock: Clock) -> None:
    job = await planned(store, "in 20 minutes")
    runner = runner_of(store)
    assert await one_pass(runner) == clock.now + 1200
    assert await deliver(store) == []
    clock.now += 1201
    await one_pass(runner)
    assert await states_of(store, job) == [("11-20 14:20", "running")]
    (parcel,) = await deliver(store)
    assert parcel.payload == payload("⏰ tea")
    await one_pass(runner)
    (row,) = await store.occurrences.of_job(job.id)
    assert (row.state, row.message_id) == ("done", str(1000 + parcel.id))
    assert (await spec_of(store, job)).state == "ended"
    await one_pass(runner)
    assert await deliver(store) == []


@pytest.mark.parametrize(
    ("policy", "states", "messages"),
    [
        ("once", ["missed"] * 4 + ["running"], ["⏰ tea"]),
        ("all", ["due"] * 4 + ["running"], ["⏰ tea"] * 5),
        ("missed", ["missed"] * 5, ["⏰ Missed 5 times while I was off: tea (last due Wed 2026-11-25 08:00)."]),
    ],
)  # fmt: skip
async def test_after_the_host_was_off(
    store: Store, clock: Clock, policy: str, states: list[str], messages: list[str]
) -> None:
    job = await planned(store, "every day at 8", catch_up=policy)
    runner = runner_of(store)
    await one_pass(runner)
    clock.to("2026-11-25 10:00")
    sent = []
    await one_pass(runner)
    first = [state for _, state in await states_of(store, job)]
    assert sorted(first) == sorted(states)
    for _ in range(6):
        sent += await deliver(store)
        await one_pass(runner)
    assert [parcel.payload for parcel in sent] == [payload(text) for text in messages]
    assert (await spec_of(store, job)).next_at == datetime(2026, 11, 26, 7, tzinfo=UTC).timestamp()


async def test_a_long_run_never_overlaps_itself(store: Store, clock: Clock) -> None:
    release, running, begun = asyncio.Event(), asyncio.Event(), []

    async def slow(job: Job, occurrence: Occurrence) -> str:
        begun.append(occurrence.due_at)
        running.set()
        await release.wait()
        return "done"

    job = await planned(store, "every 15 minutes", "work", kind="task")
    runner = runner_of(store, task=slow)
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
        await runner.run_pass(tasks)
        for _ in range(4):
            clock.now += 900
            await runner.run_pass(tasks)
            await running.wait()
        assert len(begun) == 1
        release.set()
    await deliver(store)
    await one_pass(runner)
    assert len(begun) == 2
    await deliver(store)
    assert [state for _, state in await states_of(store, job)] == [
        "done",
        "missed",
        "missed",
        "done",
    ]


async def test_frozen_nothing_starts_and_what_runs_is_cut_off_until_the_thaw(
    store: Store, clock: Clock
) -> None:
    begun, ended = asyncio.Event(), []

    async def slow(job: Job, occurrence: Occurrence) -> str:
        if not begun.is_set():
            begun.set()
            await asyncio.Event().wait()
        ended.append(job.id)
        return "done"

    job = await planned(store, "in 15 minutes", "work", kind="task")
    later = await planned(store, "in 20 minutes", "work", kind="task")
    runner = runner_of(store, task=slow)
    clock.now += 960
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
        await runner.run_pass(tasks)
        await begun.wait()
        await store.freeze.freeze("ann")
    clock.now += 600
    await one_pass(runner)
    assert [await states_of(store, one) for one in (job, later)] == [
        [("11-20 14:15", "due")],
        [("11-20 14:20", "due")],
    ]
    assert ended == []
    await store.freeze.thaw("ann")
    await one_pass(runner)
    assert sorted(ended) == [job.id, later.id]


async def test_a_job_that_is_edited_while_it_falls_due_keeps_the_edit(
    store: Store, clock: Clock
) -> None:
    job = await planned(store, "every day at 8")
    runner = runner_of(store)
    clock.to("2026-11-21 07:00")
    planner = Planner(store, CHAT, "Europe/Paris")
    edited = await planner.edit(job.id, "every day at 21:00 wine")
    await runner.enter_due(
        job, datetime.fromtimestamp(clock.now, UTC)
    )  # with the job as it was read before
    assert (await spec_of(store, job)) == edited.spec
    assert await states_of(store, job) == []


async def test_what_fell_due_meanwhile_runs_ten_times_at_most(store: Store, clock: Clock) -> None:
    """Telegram was away for four hours; the message of the first run waits."""
    job = await planned(store, "every 15 minutes", catch_up="all")
    runner = runner_of(store)
    for _ in range(16):
        clock.now += 900
        await one_pass(runner)
    for _ in range(20):
        await deliver(store)
        await one_pass(runner)
    states = [state for _, state in await states_of(store, job)]
    assert states == ["done"] + ["missed"] * 5 + ["done"] * 10


async def test_what_waits_for_a_delivery_runs_as_soon_as_it_has_ended(
    store: Store, clock: Clock
) -> None:
    job = await planned(store, "every day at 8", catch_up="all")
    await one_pass(runner_of(store))
    clock.to("2026-11-23 10:00")
    added = asyncio.Event()
    store.outbox.on_wake.append(added.set)
    async with Scheduler(runner_of(store), pass_seconds=3600), asyncio.timeout(SECONDS):
        for _ in range(3):
            while not await deliver(store):
                await added.wait()
                added.clear()
    assert [state for _, state in await states_of(store, job)] == ["done"] * 3


async def test_killed_between_any_two_steps_it_is_said_once(store: Store, clock: Clock) -> None:
    """A process that dies after `begin`, and one that dies after the outbox row."""
    job = await planned(store, "in 1 minute")
    clock.now += 61
    await fall_due(store, job.id, int(clock.now))
    (due,) = await store.occurrences.open()
    await store.occurrences.begin(due.id)
    runner = runner_of(store)
    await one_pass(runner)
    await one_pass(runner)
    assert len(await deliver(store)) == 1
    await one_pass(runner)
    assert (await store.occurrences.of_job(job.id))[0].state == "done"


async def test_an_uncertain_send_does_not_claim_to_be_done(store: Store, clock: Clock) -> None:
    job = await planned(store, "in 1 minute")
    clock.now += 61
    runner = runner_of(store)
    await one_pass(runner)
    parcel = await store.outbox.claim(CHAT)
    assert parcel
    await store.outbox.uncertain(parcel.id)
    await one_pass(runner)
    (row,) = await store.occurrences.of_job(job.id)
    assert (row.state, row.detail) == ("failed", "nobody knows whether it arrived")
    assert await store.outbox.send_again(parcel.id)  # [Show again] was pressed
    await deliver(store)
    (row,) = await store.occurrences.of_job(job.id)
    assert (row.state, row.message_id, row.detail) == ("done", str(1000 + parcel.id), "")


async def test_a_task_becomes_a_turn_once(store: Store, clock: Clock) -> None:
    job = await planned(store, "every day at 8", "look at the logs", kind="task")
    clock.to("2026-11-21 07:00")
    submitted = []

    async def submit(incoming: Incoming) -> bool:
        submitted.append(incoming)
        return await store.inbox.add(incoming)

    runner = runner_of(store, task=SubmitTask(submit))
    await one_pass(runner)
    for _ in range(5):  # killed right after: the row is there, so it is not put in again
        await one_pass(runner)
    (waiting,) = await store.inbox.waiting(CHAT)
    (row,) = await store.occurrences.of_job(job.id)
    assert (row.state, row.attempts, len(submitted)) == ("running", 1, 1)
    await store.inbox.discard(CHAT, [waiting.id])
    await one_pass(runner)
    (row,) = await store.occurrences.of_job(job.id)
    assert (row.state, row.detail) == ("missed", "it was discarded")
    assert submitted[0].text == "look at the logs"
    assert submitted[0].context_lines == (f"scheduled job {job.id}: every day at 08:00",)


async def test_nothing_new_is_silent_and_failure_is_told(store: Store, clock: Clock) -> None:
    async def idle(job: Job, occurrence: Occurrence) -> str:
        raise NothingToDo("Nothing was committed since the last summary.")

    async def broken(job: Job, occurrence: Occurrence) -> str:
        raise AgentError("The repository could not be read.")

    async def bug(job: Job, occurrence: Occurrence) -> str:
        raise KeyError("x")

    for kind in ("idle", "broken", "bug"):
        await planned(store, "in 1 minute", kind, kind=kind)
    clock.now += 61
    await one_pass(runner_of(store, idle=idle, broken=broken, bug=bug))
    sent = sorted(parcel.payload for parcel in await deliver(store))
    assert sent == [
        saying("“broken” failed", "The repository could not be read."),
        saying("“bug” failed", "log"),
    ]
    assert await store.occurrences.open() == []


async def test_quiet_hours_hold_all_but_reminders_of_people(store: Store, clock: Clock) -> None:
    async def task(job: Job, occurrence: Occurrence) -> str:
        return "report"

    await planned(store, "every day at 23:00", "report", kind="task")
    await planned(store, "every day at 23:00")
    runner = runner_of(store, QuietHours.parse("22:00-07:00", "Europe/Paris"), task=task)
    await one_pass(runner)
    clock.to("2026-11-20 22:01")
    await one_pass(runner)
    assert [p.payload for p in await deliver(store)] == [payload("⏰ tea")]
    clock.to("2026-11-21 06:01")
    await one_pass(runner)
    assert [p.payload for p in await deliver(store)] == [payload("report")]


POLICIES = {
    "daily in the gap": "missed",
    "the 31st": "all",
    "last Sunday": "all",
    "second Tuesday": "once",
    "leap day": "once",
}


@pytest.mark.thorough
@pytest.mark.parametrize("zones", [1, pytest.param(5, marks=pytest.mark.slow)])
async def test_two_years_with_jumps_and_suspends(store: Store, clock: Clock, zones: int) -> None:
    """Every due time is done, or missed by the policy, once: the same set that dateutil gives."""
    clock.now = START.timestamp()
    jobs = {
        (zone, name): await simulated(store, zone, name)
        for zone in ZONES[:zones]
        for name in POLICIES
    }
    runner = runner_of(store)
    await one_pass(runner)
    furthest, steps = clock.now, 0
    while furthest < END.timestamp():
        steps += 1
        # Set back, suspended for days or for weeks, or an ordinary wake.
        back, days, weeks = steps % 29 == 0, steps % 7 == 0, steps % 43 == 0
        clock.now += -5 * 3600 if back else 40 * DAY if weeks else 9 * DAY if days else 1.9 * DAY
        furthest = max(furthest, clock.now)
        await one_pass(runner)
        await deliver(store)
    for (zone, name), job in jobs.items():
        rows = await store.occurrences.of_job(job.id, 5000)
        kept = [row.due_at for row in rows[::-1] if row.due_at <= END.timestamp()]
        expected = [int(at.timestamp()) for at in independent(zone, RULES[name][1])]
        assert kept == expected, (zone, name)
        assert {row.state for row in rows[12:]} <= {"done", "missed"}
        assert all(row.message_id for row in rows if row.state == "done")


async def simulated(store: Store, zone: str, name: str) -> Job:
    timing = {**dump(RULES[name][0]), "zone": zone}
    first = int(next_times(load(timing), START)[0].timestamp())
    spec = JobSpec(CHAT, "remind", "", timing, zone, name, {}, POLICIES[name], next_at=first)  # type: ignore[arg-type]
    return await store.jobs.add(spec)


async def test_a_clock_that_ran_ahead_does_not_silence_a_job(store: Store, clock: Clock) -> None:
    job = await planned(store, "every day at 8")
    runner = runner_of(store)
    clock.to("2036-01-01 00:00")
    await one_pass(runner)
    clock.to("2026-11-20 15:00")
    assert await one_pass(runner) == datetime(2026, 11, 21, 7, tzinfo=UTC).timestamp()
    assert job.id


async def test_plans_are_bounded_and_asked_back(store: Store) -> None:
    planner = Planner(store, CHAT, "Europe/Paris", JobClassifier(["website"]))
    with pytest.raises(ToolError, match="nothing more often than every 15 minutes"):
        await planner.propose("every 5 minutes", "x")
    with pytest.raises(ToolError, match="I did not understand when"):
        await planner.propose("soon", "x")
    with pytest.raises(ToolError, match="Which repository"):
        await planner.propose("every day at 8", "the other one", "summary")
    proposal = await planner.propose("every weekday at 8", "summarise the website repo")
    assert (proposal.spec.kind, proposal.spec.task, proposal.needs_approval) == (
        "summary",
        "website",
        True,
    )
    assert proposal.description == saying(
        "summary", "website", "weekday at 08:00", *(f"11-{day} 08:00" for day in (23, 24, 25))
    )
    digest = await planner.propose_text("every day at 8 send me the health digest")
    assert (digest.spec.kind, digest.description.partition(",")[0]) == ("digest", "Health digest")
    for _ in range(20):
        await planner.add(proposal.spec)
    with pytest.raises(ToolError, match="20 jobs already"):
        await planner.propose("tomorrow at 9", "x")


@pytest.mark.parametrize(
    ("task", "meant"),
    [
        ("switch to the model coder", ("profile", "coder")),
        ("switch the model to coder", ("profile", "coder")),
        ("Switch back to coder", ("profile", "coder")),
        ("use the coder profile", ("profile", "coder")),
        ("switch to summer tyres", ("task", "switch to summer tyres")),
        ("use sunscreen", ("task", "use sunscreen")),
        ("summarise the website repo", ("summary", "website")),
        ("remind me to switch to coder", ("remind", "switch to coder")),
        ("send me the daily digest", ("digest", "health digest")),
    ],
)
async def test_what_the_words_ask_for(task: str, meant: tuple[str, str]) -> None:
    classifier = JobClassifier(["website"], models)
    assert await classifier.classify(task) == meant


async def models() -> list[str]:
    return ["pocket", "coder"]


async def test_a_model_that_is_not_there_is_asked_back() -> None:
    with pytest.raises(ToolError, match="There is no model gemma. There are: coder, pocket."):
        await JobClassifier((), models).classify("switch to the model gemma")
    with pytest.raises(ToolError, match=r"There is no model gemma\.$"):
        await JobClassifier().classify("switch to the model gemma")


async def test_a_switch_that_the_model_proposes_is_asked_for_even_once(store: Store) -> None:
    asked = []

    async def approve(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
        asked.append((what, scope))

    planner = Planner(store, CHAT, "UTC", JobClassifier((), models))
    await planner.schedule("tomorrow at 9", "switch to coder", "", approve)
    assert asked == [(saying("switch", "coder", "Sat 2026-11-21 09:00"), "schedule")]


async def test_an_edit_keeps_what_it_does_not_name(store: Store) -> None:
    planner = Planner(store, CHAT, "UTC")
    proposal = await planner.propose_text("every day at 8 send me the health digest")
    job = await planner.add(proposal.spec)
    await planner.adjust(job.id, "missed", True)
    await planner.pause(job.id, paused=True)
    edited = (await planner.edit(job.id, "every day at 9")).spec
    assert (edited.kind, edited.task, edited.state, edited.next_at) == (
        "digest",
        "health digest",
        "paused",
        None,
    )
    assert (edited.catch_up, dict(edited.options)) == ("missed", {"tell_nothing": True})
    other = (await planner.edit(job.id, "every day at 9 water the plants")).spec
    assert (other.kind, other.task) == ("task", "water the plants")


async def test_a_full_disk_ends_no_job_and_not_the_runner(store: Store, clock: Clock) -> None:
    """The text could not be written down: it is posted at a later pass, once there is room."""
    full = True

    async def report(job: Job, occurrence: Occurrence) -> str:
        async with store.database.without_transaction() as tx:
            pages = await tx.value("PRAGMA page_count")
            await tx.run(f"PRAGMA max_page_count = {pages if full else 1 << 30}")
        return "x" * 50_000

    job = await planned(store, "in 1 minute", "report", kind="report")
    clock.now += 61
    runner = runner_of(store, report=report)
    await one_pass(runner)
    assert (await store.occurrences.of_job(job.id))[0].state == "running"
    full = False
    await one_pass(runner)
    assert [row.payload for row in await deliver(store)] == [payload("x" * 50_000)]
    await one_pass(runner)
    (row,) = await store.occurrences.of_job(job.id)
    assert (row.state, row.attempts) == ("done", 2)


async def test_a_chat_that_is_forgotten_while_its_job_runs_ends_no_other(
    store: Store, clock: Clock
) -> None:
    async def report(job: Job, occurrence: Occurrence) -> str:
        await store.chats.forget(CHAT)
        return "too late"

    await planned(store, "in 1 minute", "report", kind="report")
    clock.now += 61
    await one_pass(runner_of(store, report=report))
    assert await store.chats.get(CHAT) is None
    assert await deliver(store) == []


async def test_a_run_that_fails_for_want_of_anything_ends_no_other(
    store: Store, clock: Clock
) -> None:
    async def report(job: Job, occurrence: Occurrence) -> str:
        raise AgentError("no report")

    def broken(text: str) -> str:
        raise LookupError(text)

    job = await planned(store, "in 1 minute", "report", kind="report")
    clock.now += 61
    runner = JobRunner(store, {"report": report}, Payloads(broken))
    for _ in range(2):
        await one_pass(runner)
    assert await states_of(store, job) == [("11-20 14:01", "failed")]


async def test_where_one_job_crashes_the_others_run(store: Store, clock: Clock) -> None:
    await planned(store, "every day at 8", "tea", catch_up="missed")
    await planned(store, "every day at 8", "coffee", kind="remind")

    def broken(text: str) -> str:
        if "Missed" in text:
            raise KeyError("x")
        return payload(text)

    runner = JobRunner(store, {"remind": remind}, Payloads(broken))
    await one_pass(runner)
    clock.to("2026-11-23 10:00")
    await one_pass(runner)
    assert [row.payload for row in await deliver(store)] == [payload("⏰ coffee")]


async def test_a_run_that_takes_the_program_down_is_begun_three_times(
    store: Store, clock: Clock
) -> None:
    job = await planned(store, "in 1 minute")
    clock.now += 61
    await fall_due(store, job.id, int(clock.now))
    for _ in range(3):  # begun by processes that were killed
        (due,) = await store.occurrences.open()
        await store.occurrences.begin(due.id)
        await store.occurrences.requeue_interrupted([])
    await one_pass(runner_of(store))
    (told,) = await deliver(store)
    assert told.payload == saying("3 times")


DAYS = [f"11-{day} 07:00" for day in range(21, 26)]  # 8 o'clock in Paris


@pytest.mark.parametrize(
    ("policy", "days", "seconds", "run", "told"),
    [
        ("missed", 1, 0, 1, None),
        ("missed", 1, 300, 1, None),
        ("missed", 1, 301, 0, "once"),
        ("missed", 3, 300, 1, "2 times"),
        ("missed", 3, 301, 0, "3 times"),
        ("once", 1, 0, 1, None),
        ("once", 1, 3600, 1, None),
        ("once", 4, 301, 1, None),
        ("all", 1, 301, 1, None),
        ("all", 4, 301, 4, None),
    ],
)
async def test_what_runs_and_what_is_missed_by_policy_and_lateness(
    store: Store, clock: Clock, policy: str, days: int, seconds: int, run: int, told: str | None
) -> None:
    """`days` due times were slept through, the last `seconds` ago; of a missed one the last is told."""
    job = await planned(store, "every day at 8", catch_up=policy)
    runner = runner_of(store)
    await one_pass(runner)
    clock.to(f"2026-{DAYS[days - 1]}")
    clock.now += seconds
    await runner.enter_due(job, datetime.fromtimestamp(clock.now, UTC))
    missed = days - run
    states = [*["missed"] * missed, *["due"] * run]
    assert await states_of(store, job) == list(zip(DAYS, states, strict=False))
    rows = await store.occurrences.of_job(job.id)
    assert all(row.detail == saying("off or busy") for row in rows if row.state == "missed")
    last = f"2026-11-{20 + missed} 08:00)."
    expected = [saying(f"Missed {told} while I was off: tea", last)] if told else []
    assert [parcel.payload for parcel in await deliver(store)] == expected
    following = datetime(2026, 11, 21 + days, 7, tzinfo=UTC).timestamp()
    assert (await spec_of(store, job)).next_at == following


@pytest.mark.parametrize(
    ("hours", "held"),
    [
        ("22:00-07:00", ["22:00", "23:59", "00:00", "06:59"]),
        ("13:00-15:00", ["13:00", "14:59"]),
        ("09:00-09:00", []),
        ("", []),
    ],
)
def test_quiet_hours_begin_and_end_on_the_minute(hours: str, held: list[str]) -> None:
    quiet = QuietHours.parse(hours, "Europe/Paris")
    job = job_of("task", "model", "daily")
    looked = ["00:00", "06:59", "07:00", "09:00", "12:59", "13:00", "14:59", "15:00", "21:59", "22:00", "23:59"]  # fmt: skip
    found = [
        at
        for at in looked
        if quiet and quiet.hold(job, datetime.fromisoformat(f"2026-11-20T{at}:00+01:00"))
    ]
    assert sorted(found) == sorted(held)


def job_of(kind: str, made_by: str, timing: str) -> Job:
    spec = JobSpec(CHAT, kind, "", {"kind": timing}, "UTC", "x", {}, made_by=made_by)  # type: ignore[arg-type]
    return Job(1, spec, 0.0)


@pytest.mark.parametrize("text", ["22:00", "late-early", "25:00-07:00"])
def test_quiet_hours_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|hour must be"):
        QuietHours.parse(text, "UTC")
