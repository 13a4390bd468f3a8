"""/freeze and /thaw, and the day's budgets in a chat: with the app, and with a process that is killed."""

import base64
from pathlib import Path

import pytest

from agent.budgets import WORDS, DailyBudgets
from agent.turn import texts as turn_texts
from bot import totp
from bot.cli import exit_code
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.localgram import is_final
from fakes.model_scripted import calls, says
from fakes.patience import soon
from fakes.stored import grant
from tests.bot.telegram.test_approvals import is_question, push

TEXTS = Texts()
RFC = base64.b32encode(b"12345678901234567890").decode()
# RFC 6238, appendix B, SHA-1: the last six of its eight digits.
VECTORS = {59: "287082", 1111111109: "081804", 1234567890: "005924", 20000000000: "353130"}


@pytest.mark.parametrize(("at", "code"), VECTORS.items(), ids=map(str, VECTORS))
def test_codes_are_those_of_the_standard(at: int, code: str) -> None:
    secret = base64.b32decode(RFC)
    assert totp.code(secret, at // 30) == code
    assert totp.matching_step(secret, f" {code[:3]} {code[3:]} ", at + 29.0) == at // 30
    assert totp.matching_step(secret, code, at + 61.0) is None
    persian, wide = (
        str.maketrans("0123456789", digits) for digits in ("۰۱۲۳۴۵۶۷۸۹", "０１２３４５６７８９")
    )
    for typed in (
        code.translate(persian),
        code.translate(wide),
        f"{code[:3]}-{code[3:]}",
        f"\u200e{code}\u200b",
    ):
        assert totp.matching_step(secret, typed, at) == at // 30
    for wrong in ("²²²²²²", "\ud800", "", f"{code}0", code[:5], f"{code[:5]}\ud800"):
        assert totp.matching_step(secret, wrong, at) is None


@pytest.fixture
def frozen(scenario: TelegramScenario) -> TelegramScenario:
    """The model pushes a button whenever a person says so; codes can be set up."""
    scenario.tools = [push]

    def script(request):  # type: ignore[no-untyped-def]
        last = request.messages[-1].text
        return calls("push", what="A") if last.endswith("push") else says("Done.")

    scenario.script = script
    return scenario


async def test_frozen_the_chat_answers_without_tools_and_a_code_thaws(
    frozen: TelegramScenario,
) -> None:
    owner = frozen.owner
    secret = base64.b32decode(totp.make_secret(frozen.folder))
    async with frozen.open() as run:
        await grant(run.store, f"tg:{owner.id}", "commit:push", "Olga")
        assert (await owner.ask("push")).text == "Done."
        await owner.send("/freeze")
        told = await owner.next_message(where=lambda m: "Frozen" in m.text)
        assert "permissions ended: 1" in told.text and "/thaw" in told.text
        answer = (await owner.ask("push")).text
        await owner.send("/status")
        status = await owner.next_message(where=lambda m: m.keyboard)
        step = int(run.store.clock() // 30)
        outcomes = []
        for code in ("000000x", totp.code(secret, step), totp.code(secret, step)):
            await owner.send(f"/thaw {code}")
            outcomes.append((await owner.next_message(where=is_answer)).text)
        await owner.send("push")
        again = await owner.next_message(where=is_question)
        await owner.press(again, "Deny")
        await owner.next_message(where=is_final)
        assert await run.store.freeze.since() is None
    needs = turn_texts.NEEDS_TOOL.format(call="push A")
    assert answer == f"{turn_texts.FROZEN}\n\n{needs}"
    assert status.text.startswith("❄ frozen since")
    outs = TEXTS.thaw_outcomes
    assert outcomes == [outs["wrong"], outs["thawed"], TEXTS.not_frozen]


def is_answer(message: object) -> bool:
    known = (*TEXTS.thaw_outcomes.values(), TEXTS.not_frozen, TEXTS.thaw_in_terminal)
    return getattr(message, "text", "") in [text.replace("`", "") for text in known]


async def test_freezing_stops_the_turn_and_its_question(frozen: TelegramScenario) -> None:
    owner = frozen.owner
    async with frozen.open() as run:
        await owner.send("push")
        asked = await owner.next_message(where=is_question)
        button = asked.keyboard[0][0]
        await owner.send("/freeze")
        ended = await owner.next_message(where=lambda m: is_final(m) and "Stopped" in m.text)
        late = owner.press_button(asked, button)
        assert (await owner.answer(late)).text == TEXTS.expired
        await owner.send("/thaw 123456")  # codes are not set up
        told = await owner.next_message(where=is_answer)
        assert await run.store.freeze.since() is not None
        rows = [row.facts for row in await run.store.ledger.rows() if row.kind == "admin"]
    assert ended.text and told.text == TEXTS.thaw_in_terminal.replace("`", "")
    assert '"act": "freeze", "by": "Olga Owner"' in rows[-1]


async def test_members_neither_freeze_nor_thaw(frozen: TelegramScenario) -> None:
    mia = frozen.gram.user("Mia Member")
    frozen.config = {"allow": frozenset({mia.id})}
    async with frozen.open() as run:
        for command in ("/freeze", "/thaw 123456"):
            await mia.send(command)
            assert (
                await mia.next_message(where=lambda m: m.sender.is_bot)
            ).text == TEXTS.only_owners
        assert await run.store.freeze.since() is None


async def test_a_days_budget_asks_and_shows_when_half_is_used(frozen: TelegramScenario) -> None:
    frozen.limits = {**dict.fromkeys(WORDS, 0), "calls": 2}
    old = frozen.services
    frozen.services = lambda run: {
        **old(run),
        "budgets": DailyBudgets(run.store.budgets, frozen.limits),
    }
    owner = frozen.owner
    async with frozen.open() as run:
        await grant(run.store, f"tg:{owner.id}", "commit:push", "Olga")
        for _ in range(2):
            assert (await owner.ask("push")).text == "Done."
        await owner.send("/status")
        status = await owner.next_message(where=lambda m: m.keyboard)
        await owner.send("push")
        asked = await owner.next_message(where=is_question)
        await owner.press(asked, "Allow once")
        await owner.until(asked, lambda m: not m.keyboard)
        await soon(lambda: run.model.requests[-1].messages[-1].text == "pushed A")
    assert "tool calls 2 / 2" in status.text
    assert "2 tool calls" in asked.text


def test_the_terminals_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VOLTAIRE_STATE__DIR", str(tmp_path / "s"))
    monkeypatch.setenv("VOLTAIRE_BACKEND__SOCKET", str(tmp_path / "b.sock"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))

    def voltaire(*words: str) -> tuple[int, str]:
        code = exit_code(list(words))
        return code, "".join(capsys.readouterr())

    assert voltaire("thaw") == (1, "Nothing is frozen.\n")
    assert voltaire("freeze")[0] == 0
    assert '"frozen_since": "2' in voltaire("status", "--json")[1]
    assert voltaire("status")[1].startswith("frozen since")
    code, out = voltaire("tool", "bash", '{"command": "echo hi"}')
    assert (code, "frozen" in out) == (1, True)
    assert voltaire("thaw")[0] == 0
    assert '"frozen_since": null' in voltaire("status", "--json")[1]
    code, out = voltaire("thaw", "--new-code")
    secret = totp.read_secret(tmp_path / "s")
    assert secret and base64.b32encode(secret).decode() in out
    assert (tmp_path / "s" / totp.KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert voltaire("audit")[1].count("act=") == 3
