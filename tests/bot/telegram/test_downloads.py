"""/model where a better model could run: what lies here, and a download by a button."""

from collections.abc import AsyncGenerator, Sequence

import pytest

from agent.errors import AgentError
from backend.protocol import ProfileSummary, Status
from bot.commands.context import ModelOffer, Rehearsal
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.patience import soon
from fakes.words import saying
from tests.bot.telegram.test_first_screen import Backend as ServedBy

TEXTS = Texts()
OWN = ModelOffer("own", "own: a window of 8,192 tokens.", 2**30, "voltaire run --model /m/own.gguf")
FAR = ModelOffer("far", "far: 50 tokens/s.", 3 * 2**30)


class Backend(ServedBy):
    here: Sequence[str] = ()

    async def profiles(self) -> list[ProfileSummary]:
        return [ProfileSummary(name=name, title="T", here=True) for name in self.here]


class Source:
    """Downloads in two steps, or fails with that sentence."""

    def __init__(self, fault: str = "") -> None:
        self.running: set[str] = set()
        self._fault = fault

    async def offers(self, report: Status) -> Sequence[ModelOffer]:
        return [OWN, FAR]

    async def download(self, name: str) -> AsyncGenerator[tuple[int, int | None]]:
        yield 2**30, 3 * 2**30
        self.running.discard(name)
        if self._fault:
            raise AgentError(self._fault)

    async def rehearse(self, name: str) -> Rehearsal:
        if self._fault:
            raise AgentError(self._fault)
        return Rehearsal(20, 31, 28, 1, 2, 0, 48.2, None)


@pytest.mark.parametrize(
    ("fault", "told", "button"),
    [
        ("", "far is here.", "Use far"),
        ("The hub broke off.", "far was not downloaded: The hub broke off. What", "Download far"),
    ],
    ids=["whole", "cut"],
)
async def test_an_owner_downloads_a_model_by_a_button(
    scenario: TelegramScenario, fault: str, told: str, button: str
) -> None:
    served = Backend(profile="pocket", model="pocket.gguf")
    scenario.services = lambda run: {"backend": served, "models": Source(fault)}
    async with scenario.open() as run:
        await scenario.owner.send("/model")
        card = await scenario.owner.next_message(where=lambda m: m.keyboard)
        await scenario.owner.press(card, "Download far (3.0 GiB)")
        end = await scenario.owner.next_message(where=lambda m: m.keyboard)
        facts = (await run.store.ledger.rows())[-1].facts
        edits = [c.fields["text"] for c in scenario.gram.called("editMessageText")]
    assert "voltaire run --model FILE.gguf" in card.text
    assert card.text == saying("voltaire run --model /m/own.gguf\nown: ", " 8,192 tokens")
    assert card.text.endswith("far: 50 tokens/s.")
    assert saying("downloading far", "1.0 of 3.0 GiB") in edits
    assert end.text.startswith(told) and end.buttons == [button]
    assert '"act": "download"' in facts


async def test_a_member_reads_the_step_and_gets_no_button(scenario: TelegramScenario) -> None:
    mia = scenario.gram.user("Mia Member")
    scenario.config = {"allow": frozenset({mia.id})}
    served = Backend(profile="pocket", model="pocket.gguf")
    scenario.services = lambda run: {"backend": served, "models": Source()}
    async with scenario.open():
        card = await mia.ask("/model")
    assert card.text.endswith(TEXTS.toy_hint.replace("`", "")) and not card.keyboard


@pytest.mark.parametrize("fault", ["", "It does not fit."])
async def test_an_owner_rehearses_a_model_and_takes_it_or_leaves_it(
    scenario: TelegramScenario, fault: str
) -> None:
    served = Backend(profile="pocket", model="pocket.gguf")
    served.here = ["far"]
    scenario.services = lambda run: {"backend": served, "models": Source(fault)}
    async with scenario.open() as run:
        await scenario.owner.send("/model")
        card = await scenario.owner.next_message(where=lambda m: m.keyboard)
        await scenario.owner.press(card, TEXTS.rehearse)
        end = await scenario.owner.next_message()
        facts = (await run.store.ledger.rows())[-1].facts
        assert '"act": "rehearse"' in facts
        if fault:
            assert end.text == saying("far could not be tried", fault)
            return
        assert end.text == saying("last 20 turns", "28 of 31 calls", "1 broken", "48 tokens/s")
        assert end.buttons == ["Use far", TEXTS.leave]
        await scenario.owner.press(end, TEXTS.leave)
        await soon(lambda: TEXTS.left in str(scenario.gram.called("editMessageText")[-1].fields))
