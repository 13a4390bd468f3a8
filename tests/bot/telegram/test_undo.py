"""/changes, /undo and the button under the answer of a turn that changed files."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.messages import ToolResult
from agent.model import Request
from agent.sandbox.sandbox import Sandboxes
from agent.tools.bash import bash
from agent.tools.files import write_file
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.model_scripted import Reply, calls, says
from fakes.sandbox_box import opened

TEXTS = Texts()


@pytest.fixture
async def sandboxes(tmp_path: Path) -> AsyncIterator[Sandboxes]:
    async with opened(tmp_path / "state") as made:
        yield made


@pytest.fixture
def working(scenario: TelegramScenario, sandboxes: Sandboxes) -> TelegramScenario:
    """The model runs what it is asked to run, word for word."""

    def script(request: Request) -> Reply:
        last = request.messages[-1]
        if isinstance(last, ToolResult):
            return says("Done.")
        return calls("bash", command=last.text.rpartition("</context>\n")[2])

    scenario.sandbox, scenario.tools, scenario.script = sandboxes.of, [bash, write_file], script
    return scenario


async def test_what_a_turn_changed_is_shown_and_taken_back_by_the_button(
    working: TelegramScenario, sandboxes: Sandboxes
) -> None:
    olga = working.owner
    async with working.open():
        work = (await sandboxes.of(f"tg:{olga.id}")).workspace
        (work / "a.txt").write_text("one\ntwo\nthree\n")
        (work / "b.bin").write_bytes(b"\0\1")
        read = await olga.ask("cat a.txt")
        answer = await olga.ask("sed -i s/two/2/ a.txt; rm b.bin; mkdir d; echo x > 'd/n`w.txt'")
        shown = await olga.ask("/changes")
        assert (read.buttons, answer.buttons) == ([], [TEXTS.undo])
        assert "-two\n+2\n" in shown.text and "d/n⟨U+0060⟩w.txt" in shown.text
        assert shown.buttons == [f"{TEXTS.undo} 1"]
        for unclear in ("/undo -1", "/undo a.txt", "/undo the last two"):
            assert (await olga.ask(unclear)).text == shown.text
        await olga.press(answer, TEXTS.undo)
        told = await olga.next_message()
        assert told.text == "Turn 1 is taken back: 4 files."
        assert (work / "a.txt").read_text() == "one\ntwo\nthree\n"
        assert (work / "b.bin").read_bytes() == b"\0\1"
        assert sorted(path.name for path in work.iterdir()) == ["a.txt", "b.bin"]
        for command in ("/undo", "/undo 1"):
            again = await olga.ask(command)
            assert (again.text, again.buttons) == ("Turn 1 was taken back already.", [])
        assert TEXTS.taken_back in (await olga.ask("/changes")).text


async def test_a_conflict_is_asked(working: TelegramScenario, sandboxes: Sandboxes) -> None:
    olga = working.owner
    async with working.open():
        work = (await sandboxes.of(f"tg:{olga.id}")).workspace
        await olga.ask("echo one > a.txt")
        await olga.ask("echo two > b.txt")
        (work / "a.txt").write_text("mine")
        question = await olga.ask("/undo 1")
        assert "a.txt" in question.text
        assert question.buttons == [TEXTS.undo_anyway, TEXTS.kept_touched]
        await olga.press(question, TEXTS.kept_touched)
        assert (work / "a.txt").read_text() == "mine"
        question = await olga.ask("/undo 1")
        await olga.answer(await olga.press(question, TEXTS.undo_anyway))
        assert [path.name for path in work.iterdir()] == ["b.txt"]
        assert (await olga.ask("/undo")).text == "Turn 2 is taken back: 1 file."
        assert [*work.iterdir()] == []


async def test_without_changes_there_is_nothing_to_take_back(working: TelegramScenario) -> None:
    async with working.open():
        for command in ("/undo", "/changes", "/undo 7"):
            assert (await working.owner.ask(command)).text == TEXTS.no_changes
