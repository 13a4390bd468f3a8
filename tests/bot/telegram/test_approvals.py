"""Approvals: asked with buttons, answered once, by owners alone."""

import asyncio
import re
from typing import Annotated

import pytest
from pydantic import Field

from agent.approvals import DENIED, ApprovalRequest
from agent.tools.tool import Call, Output, tool
from bot.approval_question import question
from bot.localgram import Message
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.localgram import is_final
from fakes.model_scripted import calls, in_order, says
from fakes.patience import soon
from fakes.words import saying


@tool
async def push(call: Call, what: Annotated[str, Field(description="what")]) -> Output:
    """Push a button."""
    await call.approve(f"push {what}", scope="commit:push")
    return Output(f"pushed {what}")


def pushing(scenario: TelegramScenario, *things: str) -> None:
    scenario.tools = [push]
    scenario.script = in_order([*(calls("push", what=thing) for thing in things), says("Done.")])


def is_question(message: Message) -> bool:
    return message.text.startswith("May I do this?")


def drafts(scenario: TelegramScenario) -> str:
    return "\n".join(call.fields["text"] for call in scenario.gram.called("sendMessageDraft"))


async def test_allowed_once_then_asked_again(scenario: TelegramScenario) -> None:
    pushing(scenario, "A", "B")
    async with scenario.open() as run:
        await scenario.owner.send("push")
        first = await scenario.owner.next_message(where=is_question)
        query = await scenario.owner.press(first, "Allow once")
        told = await scenario.owner.answer(query)
        decided = await scenario.owner.until(first, lambda m: not m.keyboard)
        second = await scenario.owner.next_message(where=is_question)
        await scenario.owner.press(second, "Deny")
        denied = await scenario.owner.until(second, lambda m: not m.keyboard)
        await scenario.owner.next_message(where=is_final)
        results = [m.text for r in run.model.requests[-1:] for m in r.messages[-1:]]
    assert first.text == saying("\n\npush A\n\n", "commit:push", "in this chat", "/approve")
    assert [e["type"] for e in first.entities] == ["bold", "pre", "code", "bot_command"]
    assert not first.silent
    assert told.text == "Allowed."
    assert decided.text == saying("push A\n\n✓", "once", "Olga Owner")
    assert denied.text == saying("push B\n\n✗", "Olga Owner")
    assert results == [DENIED]


async def test_a_message_beside_a_question_has_its_own_answer(scenario: TelegramScenario) -> None:
    scenario.tools = [push]
    scenario.script = in_order([calls("push", what="A"), says("Pushed."), says("Four.")])
    async with scenario.open() as run:
        await scenario.owner.send("push")
        question = await scenario.owner.next_message(where=is_question)
        await scenario.owner.send("what is 2 + 2?")
        while await run.store.inbox.count_waiting() != 1:
            await asyncio.sleep(0.003)
        await scenario.owner.press(question, "Allow once")
        answers = [(await scenario.owner.next_message(where=is_final)).text for _ in range(2)]
    assert answers == ["Pushed.", "Four."]


async def test_allowed_for_the_chat_until_taken_back(scenario: TelegramScenario) -> None:
    pushing(scenario, "A", "B")
    async with scenario.open():
        await scenario.owner.send("push")
        first = await scenario.owner.next_message(where=is_question)
        await scenario.owner.press(first, "Always in this chat")
        await scenario.owner.next_message(where=is_final)
        await scenario.owner.send("/approve")
        grants = await scenario.owner.next_message(where=lambda m: m.keyboard)
        await scenario.owner.press(grants, "✕ commit:push")
        none = await scenario.owner.until(grants, lambda m: not m.keyboard)
    assert len([m for m in scenario.owner.messages() if is_question(m)]) == 0
    assert grants.text.splitlines()[1:] == ["• commit:push (Olga Owner)"]
    assert none.text == Texts().no_grants


async def test_an_old_button_says_expired_and_does_nothing(scenario: TelegramScenario) -> None:
    pushing(scenario, "A")
    scenario.approval_seconds = 3.0
    async with scenario.open():
        await scenario.owner.send("push")
        asked = await scenario.owner.next_message(where=is_question)
        await scenario.owner.next_message(where=is_final)
        expired = await scenario.owner.until(asked, lambda m: not m.keyboard)
        old = asked.keyboard[0][0]
        late = await scenario.owner.answer(scenario.owner.press_button(asked, old))
    assert expired.text == saying("push A\n\n✗", "expired")
    assert late.text == "This has expired."


async def test_a_member_asks_and_the_owner_decides_in_their_own_chat(
    scenario: TelegramScenario,
) -> None:
    mia = scenario.gram.user("Mia Member")
    scenario.config = {"allow": frozenset({mia.id})}
    pushing(scenario, "A")
    async with scenario.open():
        await mia.send("push")
        asked = await scenario.owner.next_message(where=is_question)
        await soon(lambda: "waiting for a yes from Olga Owner" in drafts(scenario))
        await scenario.owner.press(asked, "Allow once")
        answer = await mia.next_message(where=is_final)
    assert asked.text == saying("asked in Mia Member", "\n\npush A")
    assert answer.text == "Done."
    assert not any(is_question(m) for m in mia.messages())


async def test_only_owners_press_in_a_group(scenario: TelegramScenario) -> None:
    mia = scenario.gram.user("Mia Member")
    group = scenario.gram.group("Team", scenario.owner, mia)
    scenario.config = {"allow": frozenset({group.id})}
    pushing(scenario, "A")
    async with scenario.open():
        await mia.send("@voltaire_bot push", chat=group)
        asked = await mia.next_message(chat=group, where=is_question)
        told = await mia.answer(await mia.press(asked, "Allow once"))
        own = await scenario.owner.next_message(where=is_question)
        await scenario.owner.press(own, "Allow once")
        assert own.text == saying("asked in Team")
        both = [
            await mia.until(asked, lambda m: not m.keyboard),
            await scenario.owner.until(own, lambda m: not m.keyboard),
        ]
        await mia.next_message(chat=group, where=is_final)
    assert told.text == Texts().only_owners
    assert all(message.text == saying("✓ Allowed once", "Olga Owner") for message in both)


async def test_a_question_survives_a_restart_and_is_asked_once(scenario: TelegramScenario) -> None:
    pushing(scenario, "A")
    async with scenario.open():
        await scenario.owner.send("push")
        asked = await scenario.owner.next_message(where=is_question)
    scenario.script = lambda request: says("Done.")
    async with scenario.open():
        await scenario.owner.press(asked, "Allow once")
        await scenario.owner.until(asked, lambda m: not m.keyboard)
        answer = await scenario.owner.next_message(where=is_final)
    assert answer.text == "Done."
    questions = [c for c in scenario.gram.called("sendMessage") if "May I" in c.fields["text"]]
    assert len(questions) == 1


async def test_a_question_that_may_not_have_arrived_is_asked_again(
    scenario: TelegramScenario,
) -> None:
    pushing(scenario, "A")
    async with scenario.open():
        scenario.gram.fault("sendMessage", "execute_then_drop", times=2)
        await scenario.owner.send("push")
        await soon(lambda: len([m for m in scenario.owner.messages() if is_question(m)]) >= 2)
        questions = [m for m in scenario.owner.messages() if is_question(m)]
        await scenario.owner.press(questions[-1], "Allow once")
        answer = await scenario.owner.next_message(where=is_final)
    assert answer.text == "Done."


async def test_a_press_after_stop_grants_nothing(scenario: TelegramScenario) -> None:
    pushing(scenario, "A")
    async with scenario.open() as run:
        await scenario.owner.send("push")
        asked = await scenario.owner.next_message(where=is_question)
        always = asked.keyboard[1][0]
        await scenario.owner.send("/stop")
        await scenario.owner.next_message(where=is_final)
        stopped = await scenario.owner.until(asked, lambda m: not m.keyboard)
        press = scenario.owner.press_button(asked, always)
        late = await scenario.owner.answer(press)
        grants = await run.store.approvals.grants(f"tg:{scenario.owner.id}")
    assert stopped.text.startswith("push A\n\n✗ Stopped at ")
    assert (late.text, grants) == ("This has expired.", [])


async def test_a_press_after_the_expiry_grants_nothing_also_after_a_restart(
    scenario: TelegramScenario,
) -> None:
    pushing(scenario, "A")
    async with scenario.open():
        await scenario.owner.send("push")
        asked = await scenario.owner.next_message(where=is_question)
    scenario.script = lambda request: says("Done.")
    scenario.late = 3600.0
    async with scenario.open() as run:
        press = await scenario.owner.press(asked, "Always in this chat")
        late = await scenario.owner.answer(press)
        await scenario.owner.next_message(where=is_final)
        grants = await run.store.approvals.grants(f"tg:{scenario.owner.id}")
        [result] = [m.text for r in run.model.requests[-1:] for m in r.messages[-1:]]
    assert (late.text, grants) == ("This has expired.", [])
    assert "nobody answered" in result


async def test_what_is_not_seen_is_shown_as_its_code(scenario: TelegramScenario) -> None:
    hidden = "\u202e\u200b\U000e0041\x1b[8m\r\x00\u2028\u3164\ufe0f\u00a0|"
    pushing(scenario, hidden)
    async with scenario.open():
        await scenario.owner.send("push")
        asked = await scenario.owner.next_message(where=is_question)
    codes = "202E 200B E0041 001B [8m 000D 0000 2028 3164 FE0F 00A0 |".split()
    shown = "".join(c if c in ("[8m", "|") else f"⟨U+{c}⟩" for c in codes)
    assert asked.text.startswith(f"May I do this?\n\npush {shown}\n\n")


@pytest.mark.parametrize("filler", ["x" * 20_000, "\n" * 2990, " " * 4000, "\n\t " * 2000])
async def test_the_end_of_a_long_step_is_shown_and_all_of_it_sent(
    scenario: TelegramScenario, filler: str
) -> None:
    step = f"BEGIN{filler}rm -rf END\u200b"
    pushing(scenario, step)
    async with scenario.open():
        await scenario.owner.send("push")
        asked = await scenario.owner.next_message(where=is_question)
    media = [message.media for message in scenario.owner.messages() if message.media]
    files = {each.file.name: each.file.content for each in media}
    assert "push BEGIN" in asked.text and "rm -rf END⟨U+200B⟩\n\n" in asked.text
    assert len(asked.text) < 4096 and re.search(r"\d,?\d{3} ", asked.text)
    assert files["approval.txt"] == f"push {step}".encode()
    assert files["approval-codes.txt"].endswith("END⟨U+200B⟩".encode())


async def test_a_step_whose_file_cannot_be_sent_is_not_asked(scenario: TelegramScenario) -> None:
    pushing(scenario, "x" * 5000)
    async with scenario.open() as run:
        scenario.gram.fault("sendDocument", "bad_gateway", times=None)
        await scenario.owner.send("push")
        await scenario.owner.next_message(where=is_final)
        [result] = [m.text for r in run.model.requests[-1:] for m in r.messages[-1:]]
    assert "denied" in result
    assert not any(is_question(m) for m in scenario.owner.messages())


def test_no_command_can_end_its_own_block() -> None:
    asked = ApprovalRequest("i", "t", "c", "tg:1", "echo ```` && rm -rf x\n```\n**bold**", "s", 0.0)
    _, _, block = question(asked).partition("\n\n")
    assert block.startswith("`````\necho ```` && rm -rf x\n```\n**bold**\n`````\n\n")


def test_a_very_long_command_is_cut_and_says_so() -> None:
    asked = ApprovalRequest("i", "t", "c", "tg:1", "x" * 5000, "s", 0.0)
    assert "\n[... 2,000 characters " in question(asked)
