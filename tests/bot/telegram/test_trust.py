"""Text of strangers in a Telegram chat: what touches it, what the owner is shown, how they clear it."""

import pytest

from agent.sandbox.sandbox import Sandboxes
from agent.tools.tool import Call, Output, tool
from bot.commands.trust import VOUCHING
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.localgram import is_final
from fakes.model_scripted import calls, says
from fakes.telegram_person import forward
from tests.bot.telegram.test_approvals import is_question


@tool
async def remember(call: Call, note: str) -> Output:
    """Save a note."""
    await call.approve(f"Remember: {note}", scope="remember")
    return Output("saved")


HIDDEN = "a\u202eb"


def noting(scenario: TelegramScenario) -> None:
    """Each turn saves a note, then says so."""
    scenario.tools = [remember]
    scenario.script = lambda request: (
        says("Done.")
        if request.messages[-1].__class__.__name__ == "ToolResult"
        else calls("remember", note=HIDDEN)
    )


async def test_a_forwarded_message_touches_the_chat_until_the_owner_vouches(
    scenario: TelegramScenario,
) -> None:
    noting(scenario)
    owner = scenario.owner
    eve = scenario.gram.user("Eve")
    async with scenario.open() as run:
        await owner.send("hello")
        await owner.next_message(where=is_final)
        assert not any(is_question(m) for m in owner.messages())
        await forward(owner, await eve.send("do this"))
        first = await owner.next_message(where=is_question)
        await owner.press(first, "Deny")
        await owner.next_message(where=is_final)
        await owner.send("and now?")
        second = await owner.next_message(where=is_question)
        await owner.press(second, "Deny")
        await owner.next_message(where=is_final)
        await owner.send("/status")
        status = await owner.next_message(where=lambda m: m.keyboard)
        await owner.send("/trust")
        listed = await owner.next_message(where=lambda m: m.keyboard)
        await owner.press(listed, "All of this chat so far is mine")
        cleared = await owner.until(listed, lambda m: not m.keyboard)
        await owner.send("once more")
        await owner.next_message(where=is_final)
        rows = await run.store.database.all("SELECT origin FROM transcript WHERE role = 'user'")
        by = await run.store.database.all("SELECT cleared_by FROM taints")
    assert "Remember: a⟨U+202E⟩b" in first.text
    assert "message from Eve" in first.text
    assert "message from Eve" in second.text
    assert [b["text"] for row in first.keyboard for b in row] == ["Allow once", "Deny"]
    assert "message from Eve" in status.text
    assert "message from Eve" in listed.text
    assert cleared.text == Texts().untouched
    assert len([m for m in owner.messages() if is_question(m)]) <= 2
    assert [origin for (origin,) in rows] == ["owner"] * 4
    assert by == [("Olga Owner",)]


async def test_an_answer_to_what_the_bot_said_of_a_strangers_text_touches(
    scenario: TelegramScenario,
) -> None:
    owner, eve = scenario.owner, scenario.gram.user("**Eve**")
    async with scenario.open() as run:
        await owner.send("hello")
        plain = await owner.next_message(where=is_final)
        await owner.send("/new")
        await owner.next_message()
        await forward(owner, await eve.send("do this"))
        said = await owner.next_message(where=is_final)
        await owner.send("/new")
        await owner.next_message()
        for answered in (plain, said):
            await owner.send("what is that?", reply_to=answered)
            await owner.next_message(where=is_final)
            taints = [taint.source for taint in await run.store.taints.of_chat("tg:111")]
            expected = ["answer that may repeat message from **Eve**, 20"]
            assert [taint[:-8] for taint in taints] == (expected if answered is said else [])
        await owner.send("/trust")
        listed = await owner.next_message(where=lambda m: m.keyboard)
        assert "message from **Eve**" in listed.text  # as she calls herself, not in bold


async def test_a_document_touches_the_chat_and_its_files_but_a_voice_does_not(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    scenario.sandbox = sandboxes.of
    box = await sandboxes.of("tg:111")
    async with scenario.open() as run:
        await scenario.owner.send_file("voice", b"ogg", name="voice.oga")
        await scenario.owner.next_message(where=is_final)
        assert await run.store.taints.of_chat("tg:111") == []
        assert await box.files.taints() == []
        await scenario.owner.send_file("document", b"text", name="offer.txt", caption="read")
        await scenario.owner.next_message(where=is_final)
        taints = await run.store.taints.of_chat("tg:111")
        files = await box.files.taints()
    assert [taint.source for taint in taints] == ["file offer.txt"]
    assert [taint.source for taint in files] == ["file received/offer.txt"]


@pytest.mark.parametrize(
    ("words", "vouches"),
    [
        ("this page is mine", True),
        ("The document is from me.", True),
        ("you can trust this", True),
        ("is this page good?", False),
        ("what is mine?", False),
    ],
)
def test_words_that_bring_the_buttons(words: str, vouches: bool) -> None:
    assert bool(VOUCHING.search(words)) is vouches
