"""/jobs with a number, switches of the model for owners alone, /summary as a job."""

from typing import Any

import pytest

from agent.schedule.planner import JobClassifier, Planner
from bot.telegram.app import TelegramApp
from bot.texts import Texts
from fakes.bot_running import RunningBot, TelegramScenario
from fakes.localgram import Person
from fakes.telegram_person import react
from fakes.words import saying


async def models() -> list[str]:
    return ["coder"]


@pytest.fixture
def scenario(scenario: TelegramScenario) -> TelegramScenario:
    def services(run: RunningBot[TelegramApp]) -> dict[str, Any]:
        async def planner(chat: str) -> Planner:
            return Planner(run.store, chat, "UTC", JobClassifier(["site"], models))

        return {"planner": planner}

    scenario.services = services
    scenario.config = {"repos": ("site",)}
    return scenario


async def said(person: Person, text: str) -> str:
    await person.send(text)
    return (await person.next_message()).text


async def planned(scenario: TelegramScenario, text: str) -> None:
    await scenario.owner.send(f"/schedule {text}")
    card = await scenario.owner.next_message()
    await scenario.owner.press(card, Texts().plan_it)
    await scenario.owner.until(card, lambda m: not m.keyboard)


async def test_one_job_is_told_and_changed_by_its_number(scenario: TelegramScenario) -> None:
    async with scenario.open():
        await planned(scenario, "every day at 9 stretch")
        first = await said(scenario.owner, "/jobs 1")
        other = await said(scenario.owner, "/jobs 1 say missed")
        policy = await said(scenario.owner, "/jobs 1")
        moved = await said(scenario.owner, "/jobs 1 every Monday at 10")
        unclear = await said(scenario.owner, "/jobs 1 soonish")
        none = await said(scenario.owner, "/jobs 7")
        odd = await said(scenario.owner, "/jobs ²")  # a digit to Python, but no number
        long = await said(scenario.owner, f"/jobs {'7' * 23}")  # more than SQLite can hold
    assert first.splitlines() == [
        saying("“stretch”", "every day at 09:00; next: "),
        saying("missed", "once"),
    ]
    assert other == saying("job 1", "“stretch”", "every day at 09:00")
    assert policy.splitlines()[-1] == saying("missed", "does not run")
    assert moved == saying("job 1", "“stretch”", "every Monday at 10:00")
    assert unclear == saying("did not understand")
    assert none == saying("no job 7")
    assert odd.startswith("1. Task “stretch”")
    assert long == saying(f"no job {'7' * 23}")


async def test_a_switch_of_the_model_is_for_owners(scenario: TelegramScenario) -> None:
    member = scenario.gram.user("Max", id=222, started=True)
    scenario.config |= {"allow": frozenset({member.id})}
    async with scenario.open() as run:
        refused = await said(member, "/schedule every day at 8 switch to the model coder")
        assert refused == Texts().only_owners
        absent = await said(member, "/schedule every day at 8 switch to the model gone")
        assert absent == saying("no model gone", "coder")
        await planned(scenario, "every day at 8 switch to the model coder")
        (job,) = await run.store.jobs.active()
    assert (job.spec.kind, job.spec.task, job.spec.chat) == ("profile", "coder", "tg:111")


async def test_in_a_group_only_an_owner_stops_a_switch(scenario: TelegramScenario) -> None:
    member = scenario.gram.user("Max", id=222, started=True)
    group = scenario.gram.group("Us", scenario.owner, member)
    scenario.config |= {"allow": frozenset({group.id}), "groups": "all"}
    async with scenario.open() as run:
        chat = f"tg:{group.id}"
        planner = await run.services.planner(chat)
        proposal = await planner.propose_text("every day at 8 switch to coder")
        await planner.add(proposal.spec)
        await member.send("/jobs", chat=group)
        card = await member.next_message(chat=group, where=lambda m: m.keyboard)
        refused = await member.answer(await member.press(card, "✕ 1"))
        still = await run.store.jobs.active()
        await scenario.owner.press(card, "✕ 1")
        await scenario.owner.until(card, lambda m: not m.keyboard)
        assert len(still) == 1 and await run.store.jobs.active() == []
    assert refused.text == Texts().only_owners


async def test_a_summary_asked_for_is_a_job_that_survives(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        await scenario.owner.send("/summary")
        await scenario.owner.ask("hi")
        (job,) = await run.store.jobs.active()
    assert (job.spec.kind, job.spec.task, job.spec.timing["kind"]) == ("summary", "site", "once")
    assert job.spec.next_at and job.spec.next_at <= run.store.clock()
    assert job.spec.options == {"tell_nothing": True}


async def test_the_night_shift_is_asked_for_by_a_command_or_a_moon(
    scenario: TelegramScenario,
) -> None:
    owner = scenario.owner
    sam = scenario.gram.user("Sam Stranger")

    async def jobs() -> list[tuple[str, str]]:
        await owner.ask("/stop")  # handled after what came before
        return [(job.spec.kind, job.spec.task) for job in await run.store.jobs.active()]

    async with scenario.open() as run:
        assert await said(owner, "/tonight") == Texts().nothing_to_retry
        question = await owner.send("how many birds?")
        answer = await owner.next_message()
        await react(sam, answer, "🌚")
        await react(owner, answer, "🔥")
        assert await jobs() == []
        await react(owner, answer, "🌚")
        told = await owner.next_message()
        assert told.text.startswith("Job 1: Night shift “how many birds?”, at night; next: ")
        await react(owner, question, "🌚")
        assert (await owner.next_message()).text == told.text
        assert await said(owner, "/tonight") == told.text
        assert await jobs() == [("night", "how many birds?")]
        assert (await said(owner, "/tonight count all fish")).startswith(
            "Job 2: Night shift “count"
        )
        assert len(await jobs()) == 2
        await owner.press(told, "✕ 1")
        await owner.until(told, lambda message: "count all fish" in message.text)
        assert await jobs() == [("night", "count all fish")]
        first = await run.store.jobs.get(1)
        assert first and first.spec.options["turn"] and first.spec.next_at
