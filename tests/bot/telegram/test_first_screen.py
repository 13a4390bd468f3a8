"""What somebody sees before the first word, and the wishes that are offered."""

from typing import Any

import pytest

from backend.protocol import Endpoint, ServerStatus, Speed, Status
from bot.commands.table import COMMANDS
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.localgram import Localgram, is_final
from fakes.patience import soon

TEXTS = Texts()


class Backend:
    """A backend that serves that profile."""

    def __init__(self, **server: Any) -> None:
        self._server = ServerStatus(state="ready", **server)

    async def status(self) -> Status:
        return Status(version="1", uptime_s=1, backend=self._server, speed=Speed())

    async def endpoint(self) -> Endpoint:
        return Endpoint(url="http://ai.lan:8000", n_ctx=8192)


@pytest.mark.parametrize(
    ("demo", "server", "told"),
    [
        (
            True,
            {"profile": "pocket", "model": "pocket.gguf"},
            [
                "**demo**",
                "**nothing leaves it**",
                "a toy of 5 MB",
                "make demo MODEL=qwen2.5-coder-1.5b",
            ],
        ),
        (True, {"profile": "pocket"}, ["a toy of 5 MB"]),  # its server only starts
        (
            False,
            {"profile": "pocket", "model": "pocket.gguf"},
            ["a toy of 5 MB", "/model tells how to get a real one"],
        ),
        (False, {"profile": "qwen3-4b"}, ["through Telegram", "The model is **qwen3-4b**."]),
        (
            False,
            {"kind": "external", "model": "gpt"},
            ["through Telegram", "The model is **gpt**, at ai.lan."],
        ),
    ],
    ids=["demo", "starting", "toy", "own", "external"],
)
async def test_start_says_what_where_who_reads_and_which_model(
    scenario: TelegramScenario, demo: bool, server: dict[str, Any], told: list[str]
) -> None:
    scenario.services = lambda run: {"backend": Backend(**server)}
    scenario.config = {"demo": demo}
    async with scenario.open():
        await scenario.owner.send("/start")
        screen = await scenario.owner.next_message(where=lambda m: m.keyboard)
        await soon(lambda: scenario.gram.called("setMyShortDescription"))
    for words in told:
        assert words.replace("**", "") in screen.text
    assert demo or "make demo" not in screen.text
    assert screen.buttons == list(TEXTS.wishes)
    world = scenario.gram.world
    about = TEXTS.description_demo if demo else TEXTS.description
    assert ("make demo MODEL=NAME" in about) == demo
    assert "toy" not in about, "it does not know which model serves"
    assert world.text("description", "en") == about
    assert world.text("short_description", "en") == TEXTS.short_description


async def test_a_wish_is_shown_and_answered(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        await scenario.owner.send("/start")
        screen = await scenario.owner.next_message(where=lambda m: m.keyboard)
        await scenario.owner.press(screen, TEXTS.wishes[5])
        shown = await scenario.owner.next_message()
        answer = await scenario.owner.next_message(where=is_final)
    assert (shown.text, shown.silent, answer.text) == (f"› {TEXTS.wishes[5]}", True, "Hello.")
    assert run.model.requests[0].messages[-1].text.endswith(f"\n{TEXTS.wishes[5]}")


@pytest.mark.parametrize(("profile", "english"), [("pocket", True), ("qwen3-4b", False)])
async def test_wishes_are_in_the_language_that_the_model_reads(
    scenario: TelegramScenario, gram: Localgram, profile: str, english: bool
) -> None:
    scenario.services = lambda run: {"backend": Backend(profile=profile, model=f"{profile}.gguf")}
    person = scenario.owner = gram.user("Hans", id=222, language="de", started=True)
    async with scenario.open():
        await person.send("/start")
        screen = await person.next_message(where=lambda m: m.keyboard)
        await person.press(screen, screen.buttons[0])
        shown = await person.next_message()
    assert "Voltaire" in screen.text and "Modell" in screen.text
    assert (screen.buttons == list(TEXTS.wishes)) == english
    assert shown.text == f"› {screen.buttons[0]}"


async def test_who_is_paired_sees_the_first_screen(scenario: TelegramScenario) -> None:
    scenario.config = {"owners": frozenset()}
    async with scenario.open() as run:
        code = await run.store.people.make_code("owner", 600)
        await scenario.owner.send(f"/start {code}")
        paired = await scenario.owner.next_message()
        screen = await scenario.owner.next_message()
    assert paired.text == TEXTS.paired["owner"]
    assert screen.buttons == list(TEXTS.wishes)


def test_help_has_each_command_once_in_short_groups() -> None:
    groups = list(TEXTS.help_groups.values())
    assert sorted(name for group in groups for name in group) == sorted(
        command.name for command in COMMANDS
    )
    assert all(3 <= len(group) <= 5 for group in groups)
    assert len(TEXTS.wishes) == 6
