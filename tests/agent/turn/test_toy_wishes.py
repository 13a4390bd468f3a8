"""Wishes that the program carries out while the toy serves, and what of the model's it stops."""

import json
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent import prompt
from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Completion, Request, TextPiece
from agent.turn import texts
from agent.turn.toy_answers import ToyAnswers, wish_of
from agent.turn.toy_wishes import call_of
from fakes.model_scripted import ScriptedModel, calls, says

NOW = datetime(2026, 11, 23, 3, 5, tzinfo=UTC)
TOOLS = ({"type": "function", "function": {"name": "bash"}},)


def user(words: str, *notes: str) -> User:
    lines = [prompt.note_line(note, NOW) for note in notes]
    return User(prompt.context_block(NOW, "UTC", notes=lines) + words)


def done(words: str, *before: Message) -> tuple[str, dict[str, str]]:
    """The call that a wish comes to; ("", {"answer": ...}) where none is needed."""
    wish = wish_of((System("s"), *before, user(words)))
    if wish is None:
        return "model", {}
    if wish.call is None:
        return "", {"answer": wish.answer}
    return wish.call.name, json.loads(wish.call.arguments)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("what day is tomorrow?", ("", {"answer": "Tuesday, 24 November 2026"})),
        ("what's the date the day after tomorrow", ("", {"answer": "Wednesday, 25 November 2026"})),
        ("what files are here?", ("list_files", {"pattern": "*"})),
        ("Show me My-Report_v2.txt", ("read_file", {"path": "My-Report_v2.txt"})),
        ("what does todo.txt say?", ("read_file", {"path": "todo.txt"})),
        ("my name is Zoë", ("remember", {"note": "my name is Zoë"})),
        ("I live in Lyon, keep that in mind", ("remember", {"note": "I live in Lyon"})),
        ("rename a.txt to b.txt", ("bash", {"command": "mv -nv -- a.txt b.txt"})),
        ("what day is it today?", ("model", {})),
        ("how much disk space is free?", ("model", {})),
        ("remember to call mum", ("model", {})),
        ("remind me in 2 minutes to stretch", ("model", {})),
        ("write a file x.txt with milk and eggs", ("model", {})),
        ("add a line saying hi to notes.txt", ("model", {})),
        ("add 2 and 3", ("model", {})),
        ("show me the disk", ("model", {})),
    ],
)
def test_what_is_known_becomes_its_call(words: str, call: tuple[str, dict[str, str]]) -> None:
    assert done(words) == call


def list_after(folder: Path, said: Sequence[str]) -> str:
    """What the last of these says, its commands being run."""
    told: list[Message] = [System("s")]
    result = ""
    for words in said:
        told.append(user(words))
        wish = wish_of(tuple(told))
        assert wish and wish.call
        command = json.loads(wish.call.arguments)["command"]
        ran = subprocess.run(["bash", "-c", command], cwd=folder, check=True, capture_output=True)
        result = ran.stdout.decode()
        told += [Assistant("", (wish.call,)), ToolResult("1", "bash", result)]
        told.append(Assistant(wish.tells(result)))
    assert isinstance(told[-1], Assistant)
    return told[-1].text


def test_a_list_grows_shrinks_and_is_ticked_line_by_line(tmp_path: Path) -> None:
    said = ["make a todo list with milk, eggs and a*b/c", "add it's butter to it"]
    text = "todo.txt:\n- [ ] milk\n- [ ] eggs\n- [ ] a*b/c\n- [ ] it's butter\n"
    assert list_after(tmp_path, said) == text
    more = ["mark Eggs as done on my todo list", "remove a*b/c from my todo list"]
    assert list_after(tmp_path, more) == "todo.txt:\n- [ ] milk\n- [x] eggs\n- [ ] it's butter\n"
    assert list_after(tmp_path, ["show my todo list"]).count("\n") == 4
    assert (tmp_path / "todo.txt").read_text() == "- [ ] milk\n- [x] eggs\n- [ ] it's butter\n"


def test_adding_without_a_list_is_left_to_the_model() -> None:
    assert done("add butter too") == ("model", {})


def test_what_was_told_is_quoted_and_what_was_not_is_not_guessed() -> None:
    saved = (user("…"), Assistant("", (call_of("remember", note="the garage code is 7731"),)))
    answer = texts.TOY_TOLD.format(note="the garage code is 7731")
    assert done("what is the garage code?", *saved) == ("", {"answer": answer})
    shown = user("hi", "my name is Alice")
    told = texts.TOY_TOLD.format(note="my name is Alice")
    assert done("who am I?", shown) == ("", {"answer": told})
    assert done("what's my name?") == ("", {"answer": texts.TOY_NO_NOTES})
    assert done("how much disk space is free?", *saved) == ("model", {})
    assert "- my name is Alice" in done("what do you know about me?", shown)[1]["answer"]


async def answered(said: str, *lines: object, result: ToolResult | None = None) -> Completion:
    messages: tuple[Message, ...] = (System("s"), user(said))
    if result:
        messages += (Assistant("", (ToolCall("1", result.name, "{}"),)), result)
    model = ScriptedModel.of(*lines)  # type: ignore[arg-type]
    pieces = [piece async for piece in ToyAnswers(model).stream(Request(messages, TOOLS))]
    assert isinstance(pieces[-1], Completion)
    shown = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    assert shown == pieces[-1].text  # nothing else was shown in passing
    return pieces[-1]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("make it nicer", calls("edit_file", path="stopped.la", old="stopped", new="")),
        ("hmm", calls("remember", note="the wedding is in june")),
        ("asdf", calls("bash", command="df -h /workspace")),
        ("difference of tcp and udp", calls("bash", command="python3 -c 'print(tcp - ud)'")),
        ("17 times 23", calls("bash", command="python3 -c 'print(17 * 24)'")),
        ("who was Voltaire?", says("I am Voltaire, your personal agent.")),
    ],
)
async def test_what_nobody_said_is_not_done(said: str, line: object) -> None:
    completion = await answered(said, line)
    assert (completion.text, completion.calls) == (texts.TOY_UNSURE, ())


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("how much room is left on the drive", calls("bash", command="df -h /workspace")),
        ("17 times 23", calls("bash", command="python3 -c 'print(17 * 23)'")),
        ("put tea in x.txt", calls("write_file", path="x.txt", content="tea")),
        ("in 5 minutes: tea", calls("schedule", when="in 5 minutes", task="tea")),
    ],
)
async def test_what_was_said_is_done(said: str, line: object) -> None:
    assert len((await answered(said, line)).calls) == 1


async def test_a_figure_that_no_tool_gave_is_replaced_by_the_result() -> None:
    shown = ToolResult("1", "bash", "/dev/vda 252G 29G 74G")
    wrong = await answered("is the disk full", says("75G free"), result=shown)
    right = await answered("is the disk full", says("74G free."), result=shown)
    assert (wrong.text, right.text) == (shown.text, "74G free.")


async def test_a_command_that_failed_is_owned_up_to() -> None:
    crash = ToolResult("1", "bash", "Traceback (most recent call last):\n…\nexit code: 1")
    told = await answered("count it", says("It failed: 'name"), result=crash)
    assert told.text == texts.TOY_UNSURE


async def test_what_the_program_says_itself_is_not_taken_for_the_models() -> None:
    assert (await answered("which model is this?", says("No."))).text == texts.TOY_SELF
