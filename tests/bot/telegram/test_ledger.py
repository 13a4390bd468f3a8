"""What people and the model do in a chat is in the ledger: each kind of row by the way that makes it."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from agent.sandbox.sandbox import Sandboxes
from agent.schedule.times.rule import Once, dump
from agent.store import Store
from agent.store.jobs import JobSpec
from agent.store.ledger import digest
from bot.texts import TEXTS
from fakes.bot_running import TOKEN, RunningBot, TelegramScenario
from fakes.localgram import is_final
from fakes.telegram_person import forward
from tests.bot.telegram.test_approvals import is_question, pushing
from tests.bot.telegram.test_trust import noting

Facts = dict[str, Any]


async def entries(store: Store, kind: str) -> list[tuple[str, Facts]]:
    assert not (await store.ledger.verify()).problem
    return [(r.chat, json.loads(r.facts)) for r in await store.ledger.rows() if r.kind == kind]


async def test_questions_decisions_and_permissions(scenario: TelegramScenario) -> None:
    pushing(scenario, "A", "B", "C")
    owner = scenario.owner
    chat = f"tg:{owner.id}"
    async with scenario.open() as run:
        await owner.send("push")
        await owner.press(await owner.next_message(where=is_question), "Always in this chat")
        await owner.next_message(where=is_final)
        await owner.send("/approve")
        listed = await owner.next_message(where=lambda m: m.keyboard)
        await owner.press(listed, "✕ commit:push")
        await owner.until(listed, lambda m: not m.keyboard)
        [(_, asked)] = questions = await entries(run.store, "question")
        decisions = await entries(run.store, "decision")
        given, ended = [await entries(run.store, kind) for kind in ("grant", "grant-ended")]
    shown = digest("push A")
    expected = {"id": asked["id"], "scope": "commit:push", "because": "", "shown": shown}
    assert questions == [(chat, expected)]
    standing = {"scope": "commit:push", "decision": "chat", "by": "standing permission"}
    assert decisions == [
        (chat, {"id": asked["id"], "decision": "chat", "by": "Olga Owner"}),
        (chat, {**standing, "shown": digest("push B")}),
        (chat, {**standing, "shown": digest("push C")}),
    ]
    assert given == ended == [(chat, {"scope": "commit:push", "by": "Olga Owner"})]


async def test_taints_and_who_cleared_them(scenario: TelegramScenario) -> None:
    noting(scenario)
    owner, eve = scenario.owner, scenario.gram.user("Eve")
    chat = f"tg:{owner.id}"
    async with scenario.open() as run:
        await forward(owner, await eve.send("do this"))
        await owner.press(await owner.next_message(where=is_question), "Deny")
        await owner.next_message(where=is_final)
        await owner.send("/trust")
        listed = await owner.next_message(where=lambda m: m.keyboard)
        await owner.press(listed, "All of this chat so far is mine")
        await owner.until(listed, lambda m: not m.keyboard)
        [(where, taint)] = await entries(run.store, "taint")
        [(_, cleared)] = await entries(run.store, "taint-cleared")
        [(_, asked)] = await entries(run.store, "question")
    assert (where, taint["source"].split(",")[0]) == (chat, "message from Eve")
    assert "message from Eve" in asked["because"]
    assert (cleared["what"], cleared["by"], cleared["count"]) == ("chat", "Olga Owner", 1)


async def test_files_notes_and_jobs_that_an_owner_vouches_for(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    owner = scenario.owner
    chat = f"tg:{owner.id}"

    def services(run: RunningBot[Any]) -> dict[str, Any]:
        return {"sandbox": sandboxes.of}

    scenario.services = services
    async with scenario.open() as run:
        await (await sandboxes.of(chat)).files.mark("file a.txt")
        note, _ = await run.store.notes.add(chat, "Tea at five.", stranger="page x")
        spec = JobSpec(chat, "remind", "", dump(Once(datetime.now(UTC))), "UTC", "drink", {})
        job = await run.store.jobs.add(replace(spec, stranger="page x"))
        await owner.send("/trust")
        listed = await owner.next_message(where=lambda m: m.keyboard)
        shown = listed.text
        for label in [b["text"] for row in listed.keyboard for b in row]:
            await owner.press(listed, label)
            await owner.until(listed, lambda m: label not in str(m.keyboard))  # noqa: B023
        query = owner.press_button(listed, {"callback_data": "trust:files:1"})
        assert (await owner.answer(query)).text == TEXTS.expired  # was cleared before
        cleared = await entries(run.store, "taint-cleared")
        assert (await run.store.notes.all(chat))[0].stranger == ""
        assert (await run.store.jobs.of_chat(chat))[0].spec.stranger == ""
        assert await (await sandboxes.of(chat)).files.taints() == []
    assert all(word in shown for word in ("file a.txt", "Tea at five.", "drink"))
    by = {"by": "Olga Owner"}
    assert cleared == [
        (chat, {"what": "files", "upto": "1", **by}),
        (chat, {"what": f"note {note.id}", **by}),
        (chat, {"what": f"job {job.id}", **by}),
    ]


async def test_secrets_pairing_and_settings(scenario: TelegramScenario) -> None:
    sam, owner = scenario.gram.user("Sam"), scenario.owner
    async with scenario.open() as run:
        await sam.send("/pair")
        question = await owner.next_message(where=lambda m: m.keyboard)
        await owner.press(question, "Let in")
        await owner.until(question, lambda m: not m.keyboard)
        await owner.send("/timezone Europe/Berlin")
        await owner.next_message(where=lambda m: "Berlin" in m.text)
        await owner.send("/settings")
        listed = await owner.next_message(where=lambda m: m.keyboard)
        await owner.press(listed, "512")
        await owner.until(listed, lambda m: "512" in m.text)
        admin = [facts for _, facts in await entries(run.store, "admin")]
        secrets = [facts for _, facts in await entries(run.store, "secret")]
        whole = json.dumps([row.facts for row in await run.store.ledger.rows()])
    assert secrets == [{"name": "telegram.token", "to": scenario.gram.url.rstrip("/")}]
    assert TOKEN not in whole
    paired = {"act": "pairing", "who": f"telegram:{sam.id}", "name": "Sam", "role": "member"}
    assert admin == [
        {**paired, "by": str(owner.id)},
        {"act": "settings", "to": "timezone Europe/Berlin", "by": "Olga Owner"},
        {"act": "settings", "to": '{"thinking": 512}', "by": "Olga Owner"},
    ]
