"""A secret in what no turn has looked through: lists, exports, alerts, questions. None of it leaves."""

import pytest

from agent.approvals import ApprovalRequest
from agent.leaks import LeakDetector
from bot.channel import OutgoingMessage
from fakes.bot_running import OWNER, TelegramScenario
from fakes.localgram import Person
from fakes.words import saying

SECRET = "7311804495:AAHk3-9xTqLr_0vBwZyE2mNcD8sUuPfGa1o"
CHAT = f"tg:{OWNER}"
REFUSED = saying("could not be delivered", "it contained the secret backend.api_key")


@pytest.fixture
def scenario(scenario: TelegramScenario) -> TelegramScenario:
    scenario.leaks = LeakDetector({"backend.api_key": SECRET})
    return scenario


def shown(person: Person) -> str:
    """All that ever came to a person."""
    came = [m for m in person.messages() if m.sender.is_bot]
    return "\n".join(f"{m.text} {m.media} {m.keyboard}" for m in came)


@pytest.mark.parametrize("command", ["/memory", "/export", "/trust"])
async def test_no_command_shows_it(scenario: TelegramScenario, command: str) -> None:
    async with scenario.open() as run:
        await run.store.notes.add(CHAT, f"It is {SECRET[::-1]}.", stranger="a page")
        assert (await scenario.owner.ask(command)).text == REFUSED
        assert scenario.leaks.find(shown(scenario.owner)) is None


async def test_no_alert_no_notice_and_no_reminder_shows_it(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        text = f"⚠️ http://u:{SECRET}@10.0.0.1 does not answer."
        await run.store.outbox.add(
            CHAT, [OutgoingMessage(text).to_json()]
        )  # as jobs and alerts are
        run.store.outbox.wake()
        told = await scenario.owner.next_message()
        assert told.text == REFUSED
        assert await run.store.database.value("SELECT state FROM outbox WHERE id = 1") == "failed"


async def test_a_question_that_holds_it_is_denied_and_not_shown(
    scenario: TelegramScenario,
) -> None:
    async with scenario.open() as run:
        request = ApprovalRequest("q1", "t1", "c1", CHAT, f"echo {SECRET}", "commit:app", 2e9)
        assert await run.bot.approvals.ask(request) == "denied"
        assert shown(scenario.owner) == ""
