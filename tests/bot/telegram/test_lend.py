"""/gpu lend and /gpu back, typed and by buttons, on the real backend."""

from pathlib import Path

from bot.localgram import Message
from bot.texts import TEXTS
from fakes.bot_running import TelegramScenario
from fakes.patience import soon
from fakes.words import saying
from tests.bot.telegram.test_models import home, state

__all__ = ["state"]


async def shown(scenario: TelegramScenario, start: str) -> Message:
    """The message that begins so, once it was changed to that."""

    def look() -> Message | None:
        return next((m for m in scenario.owner.messages() if m.text.startswith(start)), None)

    found: Message = await soon(look)
    return found


async def test_the_card_is_lent_by_words_and_buttons(
    scenario: TelegramScenario, state: Path
) -> None:
    async with home(scenario, state) as (it, bot):
        await scenario.owner.send("/gpu lend")
        offered = await shown(scenario, TEXTS.lend_how[:15])
        await scenario.owner.press(offered, "2 h")
        first = await shown(scenario, "The model is unloaded until")
        assert (await it.client.status()).backend.state == "sleeping"
        await scenario.owner.press(first, TEXTS.take_back)
        back = await shown(scenario, "The model is being loaded again")
        await it.ready()
        await scenario.owner.send("/gpu lend 90m")
        await it.until(lambda status: status.backend.state == "sleeping")
        again = await scenario.owner.ask("/gpu back")
        facts = [row.facts for row in await bot.store.ledger.rows() if '"lend"' in row.facts]
    assert again.text == back.text
    assert [fact.split('"seconds": ')[1] for fact in facts] == ["7200}", "0}", "5400}", "0}"]


async def test_only_an_owner_lends(scenario: TelegramScenario, state: Path) -> None:
    member = scenario.gram.user("Max Member", started=True)
    scenario.config["allow"] = [member.id]
    async with home(scenario, state) as (it, _):
        refused = await member.ask("/gpu lend 2h")
        assert (await it.client.status()).backend.state == "ready"
    assert refused.text == TEXTS.only_owners


async def test_urgent_words_are_answered_by_a_small_model_while_the_card_is_lent(
    scenario: TelegramScenario, state: Path
) -> None:
    async with home(scenario, state, urgent_model="second") as (it, _):
        ask = scenario.owner.ask
        await scenario.owner.send("/gpu lend 100h")
        assert "a day at most" in (await shown(scenario, TEXTS.lend_how[:15])).text
        assert (await ask("/urgent Is it on?")).text == "The card is not lent."
        assert (await ask("/urgent")).text == TEXTS.urgent_how
        told = await it.client.lend(3600)
        held = (await it.client.status()).backend.held
        answer = await ask("/urgent Is it on?")
        assert (await it.client.status()).backend.state == "sleeping"
    assert told == saying("unloaded until")
    assert held == saying("The card is lent until", "`/urgent WORDS`")
    assert "second, a small model on the processor" in answer.text
    assert answer.text.startswith("<tool_call>") or '"bash"' in answer.text
