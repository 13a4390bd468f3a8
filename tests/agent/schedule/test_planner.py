"""Jobs made, offered, changed and ended, and who hears of it; clock: Friday 20 November 2026, 15:00 in Paris."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.errors import ToolError
from agent.schedule.planner import JobClassifier, JobLimits, Planner
from agent.store import Store
from agent.store.jobs import JobSpec
from agent.trust import Taint
from fakes.stored import fall_due
from fakes.words import saying
from tests.agent.schedule.conftest import Clock

CHAT = "tg:1"
PARIS = "Europe/Paris"


@dataclass
class Recognized:
    """How often a change was told."""

    changes: int = 0

    async def __call__(self) -> None:
        self.changes += 1


@dataclass
class Bench:
    store: Store
    heard: Recognized = field(default_factory=Recognized)

    def planner(self, chat: str = CHAT, zone: str = PARIS, **fields: Any) -> Planner:
        return Planner(self.store, chat, zone, on_change=self.heard, **fields)

    async def spec(self, id: int) -> JobSpec:
        job = await self.store.jobs.get(id)
        assert job
        return job.spec


@pytest.fixture
def bench(store: Store) -> Bench:
    return Bench(store)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


EIGHT = at("2026-11-21 07:00")  # 8 o'clock in Paris


async def test_what_was_understood_is_kept_whole(bench: Bench) -> None:
    planner = bench.planner()
    proposal = await planner.propose("every day at 8", " water the plants ")
    job = await planner.add(proposal.spec)
    assert job.spec == JobSpec(
        CHAT, "task", "every day at 8", proposal.spec.timing, PARIS, "water the plants", {},
        made_by="model", next_at=EIGHT,
    )  # fmt: skip
    assert await bench.spec(job.id) == job.spec
    assert bench.heard.changes == 1
    text = await planner.propose_text("remind me of tea every day at 8")
    assert (text.spec.made_by, text.spec.when) == ("person", "remind me of tea every day at 8")
    assert (text.spec.kind, text.spec.task, text.spec.next_at) == ("remind", "tea", EIGHT)


@pytest.mark.parametrize(
    ("when", "asked", "understood"),
    [  # what a small model makes of the person's words, and when it is due in the end
        ("Mon 2026-11-16 08:00", "every Monday at 8 remind me to put the bins out", "every Monday at 08:00"),
        ("2026-11-23 08:00", "every Monday at 8 remind me to put the bins out", "every Monday at 08:00"),
        ("next Monday at 8", "remind me of the bins every Monday at 8", "every Monday at 08:00"),
        ("tomorrow 7h00m", "Erinnere mich morgen um 7 Uhr an den Zahnarzt", "once, on Sat 2026-11-21 07:00"),
        ("20m", "remind me in 20 minutes to take the bread out", "once, on Fri 2026-11-20 15:20"),
        ("2020-01-01", "rappelle-moi demain à 9h d'appeler maman", "once, on Sat 2026-11-21 09:00"),
        ("past noon", "recuérdame todos los días a las 8 tomar la pastilla", "every day at 08:00"),
        ("Fri 2026-11-21 16:20", "Remind me in 20 minutes to turn off the oven.", "once, on Fri 2026-11-20 15:20"),
        ("2026-11-22T09:00:00", "please remind me tomorrow at 9 to water the plants", "once, on Sat 2026-11-21 09:00"),
        ("2026-11-27 18:00", "remind me at 18:00 to prepare the meeting tomorrow at 9:00", "once, on Fri 2026-11-20 18:00"),
        # the model's own date, where the person's words do not contradict it
        ("2026-11-24 09:00", "the dentist is on Tuesday at 10; remind me an hour before", "once, on Tue 2026-11-24 09:00"),
        ("tomorrow at 9", "every Monday remind me of the bins; tomorrow at 9 of the dentist", "once, on Sat 2026-11-21 09:00"),
        ("2026-11-24 09:00", "remind me an hour before the dentist on Tuesday at 10", "once, on Tue 2026-11-24 09:00"),
        ("2026-11-24 09:00", "rappelle-moi mardi une heure avant le dentiste à 10h", "once, on Tue 2026-11-24 09:00"),
        ("2026-11-24 07:30", "Erinnere mich am Dienstag eine halbe Stunde vor dem Bus um 8", "once, on Tue 2026-11-24 07:30"),
        ("tomorrow at 9", "tell me about it", "once, on Sat 2026-11-21 09:00"),
    ],
)  # fmt: skip
async def test_the_person_s_words_say_when(
    bench: Bench, when: str, asked: str, understood: str
) -> None:
    proposal = await bench.planner().propose(when, "x", "remind", asked=asked)
    assert f", {understood}" in proposal.description


async def test_where_they_say_nothing_the_model_is_asked(bench: Bench) -> None:
    with pytest.raises(ToolError, match="past"):
        await bench.planner().propose("2020-01-01 08:00", "x", asked="remind me of the bins")


@pytest.mark.parametrize(
    ("when", "task", "kind", "asks"),
    [
        ("every day at 8", "x", "", True),
        ("tomorrow at 8", "x", "", False),
        ("tomorrow at 8", "switch to coder", "", True),
    ],
    ids=["again and again", "once", "the model"],
)
async def test_what_repeats_or_touches_more_than_its_chat_needs_approval(
    bench: Bench, when: str, task: str, kind: str, asks: bool
) -> None:
    async def models() -> Sequence[str]:
        return ["coder"]

    planner = bench.planner(classifier=JobClassifier((), models))
    assert (await planner.propose(when, task, kind)).needs_approval is asks
    asked = []

    async def approve(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
        asked.append(scope)

    told, shown = await planner.schedule(when, task, kind, approve, "page http://example.org/")
    assert asked == ["schedule" if asks else "plan"]
    [job] = await planner.jobs()
    assert job.spec.stranger == "page http://example.org/"
    assert shown == (await planner.propose(when, task, kind)).description
    assert told == f"Planned as job {job.id}: {shown}."


@pytest.mark.parametrize(
    ("first", "second", "jobs"),
    [  # a time and a task; clock: 15:00
        (("in 20 minutes", "turn off the oven"), ("2026-11-20 15:20", "Turn off the oven."), 1),
        (("in 20 minutes", "turn off the oven"), ("in 21 minutes", "turn off the oven"), 1),
        (("every day at 8", "water the plants"), ("daily at 08:00", "water the plants"), 1),
        (("in 20 minutes", "turn off the oven"), ("in 20 minutes", "call the vet"), 2),
        (("in 20 minutes", "turn off the oven"), ("in 30 minutes", "turn off the oven"), 2),
        (("every day at 8", "take the pill"), ("every day at 20", "take the pill"), 2),
        (("every day at 8", "take the pill"), ("tomorrow at 8", "take the pill"), 2),
    ],
)
async def test_a_model_plans_the_same_once(
    bench: Bench, first: tuple[str, str], second: tuple[str, str], jobs: int
) -> None:
    planner = bench.planner()

    async def approve(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None: ...

    _, shown = await planner.schedule(*first, "remind", approve)
    told, again = await planner.schedule(*second, "remind", approve)
    assert len(await planner.jobs()) == jobs
    assert told.startswith("Planned already, as job 1: ") is (again == shown) is (jobs == 1)


async def test_what_is_told_of_a_job_and_of_who_runs_it_are_two_sentences(bench: Bench) -> None:
    async def approve(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None: ...

    planner = replace(bench.planner(), note="It comes while the bot runs.")
    told, shown = await planner.schedule("tomorrow at 8", "x", "remind", approve)
    assert told == f"Planned as job 1: {shown}"
    assert shown.endswith(" 08:00.\nIt comes while the bot runs.")


async def test_a_paused_or_deleted_job_is_planned_again(bench: Bench) -> None:
    planner = bench.planner()

    async def approve(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None: ...

    for _ in range(2):
        await planner.schedule("every day at 8", "water the plants", "remind", approve)
    await planner.pause(1, paused=True)
    await planner.schedule("every day at 8", "water the plants", "remind", approve)
    assert len(await planner.jobs()) == 2


@pytest.mark.parametrize(
    ("by", "jobs", "own", "refused"),
    [
        ("person", 2, 2, False),
        ("person", 3, 0, True),
        ("model", 2, 1, False),
        ("model", 2, 2, True),
        ("model", 3, 0, True),
    ],
)
async def test_a_chat_holds_so_many_jobs_and_so_many_of_the_models(
    bench: Bench, by: Any, jobs: int, own: int, refused: bool
) -> None:
    """Three, and two of the model's; deleted and offered ones do not count."""
    planner = bench.planner(limits=JobLimits(jobs=3, by_model=2))
    spec = (await planner.propose("every day at 8", "x", made_by="person")).spec
    for number in range(jobs):
        await planner.add(replace(spec, made_by="model" if number < own else "person"))
    await planner.add(replace(spec, made_by="model", state="deleted"))
    await planner.add(replace(spec, chat="tg:2", made_by="model"))
    if not refused:
        await planner.propose("every day at 8", "x", made_by=by)
        return
    with pytest.raises(ToolError, match=rf"^This chat has {jobs} jobs already\."):
        await planner.propose("every day at 8", "x", made_by=by)


@pytest.mark.parametrize(
    ("when", "by", "refused"),
    [
        ("every 15 minutes", "model", False),
        ("every 10 minutes", "model", True),
        ("every 10 minutes", "person", False),
        ("in 5 minutes", "model", False),
    ],
)
async def test_how_often_a_job_of_the_models_may_run(
    bench: Bench, when: str, by: Any, refused: bool
) -> None:
    if not refused:
        await bench.planner().propose(when, "x", made_by=by)
        return
    sentence = r"^The agent may plan nothing more often than every 15 minutes\.$"
    with pytest.raises(ToolError, match=sentence):
        await bench.planner().propose(when, "x", made_by=by)


async def test_an_offer_waits_until_it_is_confirmed_or_withdrawn(
    bench: Bench, clock: Clock
) -> None:
    planner = bench.planner()
    proposal = await planner.propose("every day at 8", "x")
    one, other = [await planner.offer(proposal) for _ in range(2)]
    assert [(await bench.spec(job.id)).state for job in (one, other)] == ["proposed"] * 2
    assert one.spec.next_at is None
    assert (await planner.jobs(), bench.heard.changes) == ([], 0)
    with pytest.raises(ToolError, match=rf"^There is no job {one.id} in this chat\.$"):
        await planner.find(one.id)
    clock.to("2026-11-25 12:00")
    confirmed = await planner.confirm(one.id)
    assert (confirmed.spec.state, confirmed.spec.next_at) == ("active", at("2026-11-26 07:00"))
    assert await bench.spec(one.id) == confirmed.spec
    assert bench.heard.changes == 1
    await planner.withdraw(other.id)
    assert (await bench.spec(other.id)).state == "deleted"
    for decided in (planner.confirm(one.id), planner.withdraw(other.id), planner.confirm(99)):
        with pytest.raises(ToolError, match=r"^That was decided already\.$"):
            await decided


async def test_an_offer_is_decided_in_its_chat_and_while_its_time_lies_ahead(
    bench: Bench, clock: Clock
) -> None:
    planner = bench.planner()
    job = await planner.offer(await planner.propose("tomorrow at 8", "x"))
    with pytest.raises(ToolError, match="decided already"):
        await bench.planner("tg:2").confirm(job.id)
    clock.to("2026-11-21 07:00")
    with pytest.raises(ToolError, match=r"^That time has passed; nothing was planned\.$"):
        await planner.confirm(job.id)
    assert (await bench.spec(job.id)).state == "proposed"


Change = Callable[[Planner, int], Awaitable[object]]


@pytest.mark.parametrize(
    "change",
    [
        lambda planner, id: planner.pause(id, paused=True),
        lambda planner, id: planner.pause(id, paused=False),
        lambda planner, id: planner.edit(id, "every day at 9"),
        lambda planner, id: planner.adjust(id, "all", None),
        lambda planner, id: planner.remove(id),
        lambda planner, id: planner.run_now(id),
    ],
    ids=["pause", "go on", "edit", "adjust", "remove", "run"],
)
async def test_each_change_is_told_and_none_is_made_from_another_chat(
    bench: Bench, change: Change
) -> None:
    planner = bench.planner()
    job = await planner.add((await planner.propose("every day at 8", "x")).spec)
    with pytest.raises(ToolError, match=rf"^There is no job {job.id} in this chat\.$"):
        await change(bench.planner("tg:2"), job.id)
    assert (bench.heard.changes, await bench.spec(job.id)) == (1, job.spec)
    await change(planner, job.id)
    assert bench.heard.changes == 2


async def test_a_paused_job_has_no_next_time_until_it_goes_on(bench: Bench, clock: Clock) -> None:
    planner = bench.planner()
    job = await planner.add((await planner.propose("every day at 8", "x")).spec)
    paused = await planner.pause(job.id, paused=True)
    assert paused.spec == replace(job.spec, state="paused", next_at=None)
    assert planner.describe(paused) == f"{planner.describe(job).partition(';')[0]} (paused)"
    clock.to("2026-11-25 12:00")
    on = await planner.pause(job.id, paused=False)
    assert on.spec == replace(job.spec, next_at=at("2026-11-26 07:00"))


@pytest.mark.parametrize(
    ("policy", "tell", "kept", "options"),
    [
        (None, None, "once", {}),
        ("all", None, "all", {}),
        (None, True, "once", {"tell_nothing": True}),
        ("missed", False, "missed", {"tell_nothing": False}),
    ],
)
async def test_what_is_adjusted_changes_alone(
    bench: Bench, policy: Any, tell: bool | None, kept: Any, options: dict[str, bool]
) -> None:
    planner = bench.planner()
    job = await planner.add((await planner.propose("every day at 8", "x")).spec)
    changed = await planner.adjust(job.id, policy, tell)
    assert changed.spec == replace(job.spec, catch_up=kept, options=options)
    assert await bench.spec(job.id) == changed.spec


async def test_a_summary_now_is_a_job_that_is_due_at_once(bench: Bench, clock: Clock) -> None:
    job = await bench.planner().summarize_now("website")
    assert (job.spec.kind, job.spec.task, job.spec.when) == ("summary", "website", "now")
    assert (job.spec.next_at, dict(job.spec.options)) == (int(clock.now), {"tell_nothing": True})
    assert (job.spec.timing["kind"], job.spec.made_by, job.spec.timezone) == ("once", "person", PARIS)  # fmt: skip


async def test_a_run_now_is_due_this_second_and_moves_no_time(bench: Bench, clock: Clock) -> None:
    planner = bench.planner()
    job = await planner.add((await planner.propose("every day at 8", "x")).spec)
    await planner.run_now(job.id)
    [run] = await bench.store.occurrences.of_job(job.id)
    assert (run.due_at, run.state) == (int(clock.now), "due")
    assert (await bench.spec(job.id)).next_at == EIGHT


async def test_jobs_follow_their_chat_into_another_zone(bench: Bench) -> None:
    planner, tokyo = bench.planner(), bench.planner(zone="Asia/Tokyo")
    texts = [
        "every day at 8 stretch",
        "every day at 9 Tokyo time call",
        "tomorrow at 8 run",
        "every day at 8 write",
    ]
    ids = [(await planner.add((await planner.propose_text(text)).spec)).id for text in texts]
    await planner.pause(ids[3], paused=True)
    offered = await planner.offer(await planner.propose("every day at 8", "e"))
    gone = await planner.add((await planner.propose("every day at 8", "f")).spec)
    await planner.remove(gone.id)
    before = bench.heard.changes
    moved = await tokyo.move_to_zone()
    assert [job.id for job in moved] == [ids[0], ids[3]]
    assert bench.heard.changes == before + 1
    specs = [await bench.spec(id) for id in (*ids, offered.id, gone.id)]
    assert [spec.timezone for spec in specs] == [*["Asia/Tokyo"] * 5, PARIS]
    seven = at("2026-11-20 23:00")  # 8 o'clock in Tokyo
    assert [spec.next_at for spec in specs[:5]] == [
        seven,
        at("2026-11-21 00:00"),
        EIGHT,
        None,
        None,
    ]
    assert [spec.timing.get("zone") for spec in specs[3:5]] == ["Asia/Tokyo"] * 2
    assert moved[0].spec == specs[0]
    assert await tokyo.move_to_zone() == []


async def test_the_last_times_are_told_in_the_chats_zone(bench: Bench) -> None:
    planner = bench.planner()
    job = await planner.add((await planner.propose("every day at 8", "x")).spec)
    assert await planner.history(job) == [saying("missed", "runs once")]
    for day in range(3):
        run = await fall_due(bench.store, job.id, EIGHT + day * 86400)
        assert run
        if day == 1:
            await bench.store.occurrences.end(run.id, "missed", "the host was off")
    assert await planner.history(job, 2) == [
        saying("Mon 2026-11-23 08:00", "due"),
        saying("Sun 2026-11-22 08:00", "missed", "the host was off"),
        saying("missed", "runs once"),
    ]
