"""Commands that are answered outside of the sandbox, from its shell."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ToolError
from agent.leaks import LeakDetector
from agent.shell import registry
from agent.tools.bash import bash
from agent.tools.context import ToolContext
from agent.tools.files import read_file
from agent.tools.tool import Call
from agent.trust import Taint
from fakes.patience import SECONDS, limits, soon
from fakes.sandbox_box import Box
from fakes.words import saying


def say(name: str) -> Any:
    return getattr(sys.modules["agent.shell.programs.say"], name)


async def test_arguments_come_from_the_signature(box: Box) -> None:
    lines = "say words a; say words 'a  b' -- --c '' é; say words x --times 3 y --case up --loud --from z --tag 1 --tag 2"
    assert await box.text(bash, command=lines) == "(done, no output)"
    assert say("took") == [
        ("a", (), 1, "down", "", False, []),
        ("a  b", ("--c", "", "é"), 1, "down", "", False, []),
        ("x", ("y",), 3, "up", "z", True, ["1", "2"]),
    ]


async def test_what_follows_two_hyphens_is_no_option(box: Box) -> None:
    lines = "say words -- -a; say words --times 2 -- --loud -- --help; say refuse -- --word"
    assert await box.text(bash, command=lines) == "(done, no output)"
    assert say("took") == [
        ("-a", (), 1, "down", "", False, []),
        ("--loud", ("--", "--help"), 2, "down", "", False, []),
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("say words", ("FIRST", "usage: say words ")),
        ("say words a --times many", ("--times", "many", "usage: say words ")),
        ("say words a --case left", ("left", "up", "down", "usage: say words ")),
        ("say words a --cas up", ("--cas", "usage: say words ")),
        ("say refuse", ("a word is missing", "usage: say refuse [WORD]")),
        ("say", ("subcommand", "usage: say words ", "usage: say copy")),
        ("say nothing", ("say nothing", "usage: say words ")),
        ("plan tick 2", ("tick 2", "usage: plan set ", "usage: plan done ")),
    ],
)
async def test_wrong_usage_is_exit_code_2_with_the_usage(
    box: Box, words: str, told: tuple[str, ...]
) -> None:
    text = await box.text(bash, command=f"{words} > out; echo $?; cat out")
    assert text == saying(*told) and text.splitlines()[-1] == "2"


async def test_help_is_output(box: Box) -> None:
    text = await box.text(bash, command="say words --help 2> /dev/null")
    assert text.startswith("usage: say words [") and text == saying("how often", "--from")
    assert "[--case up|down]" in text
    assert await box.text(bash, command="say --help") == saying("say words", "say copy")


async def test_a_program_with_a_command_of_its_own_names_the_others(box: Box) -> None:
    text = await box.text(bash, command="plan --help")
    assert text == saying("usage: plan set ", "usage: plan add ", "usage: plan done NUMBER")


async def test_a_failure_is_exit_code_1_with_its_sentence_on_standard_error(box: Box) -> None:
    text = await box.text(bash, command="say fail 2> why; echo $?; cat why")
    assert text == "some\n1\nsay: The moon is full. Wait a week."


async def test_a_bug_is_logged_and_shows_nothing(
    box: Box, caplog: pytest.LogCaptureFixture
) -> None:
    text = await box.text(bash, command="say bug; echo $?")
    assert text == saying("say: ", "log") and text.endswith("\n1")
    assert "secret-path" not in text and "Traceback" not in text
    assert "secret-path" in caplog.text


async def test_standard_input_goes_through_pipes(box: Box) -> None:
    lines = "seq 200000 > a; say copy < a | cat | say copy > b; cmp a b && wc -l < b"
    assert await box.text(bash, command=lines) == "200000"
    assert await box.text(bash, command="say copy < /dev/null; say copy <&-; echo $?") == "0"


async def test_input_that_is_not_asked_for_is_left_to_others(box: Box) -> None:
    lines = "printf '%s\\n' a b c | while read line; do say words $line; done"
    await box.use(bash, command=lines)
    assert [each[0] for each in say("took")] == ["a", "b", "c"]


async def test_a_command_ends_with_its_client(box: Box) -> None:
    assert await box.text(bash, command="say endless | head -1") == "y"
    await soon(lambda: say("ended") == ["endless"])
    lines = (
        "say hang > said & until grep -q begun said; do sleep 0.05; done; kill $!; wait $!; echo $?"
    )
    text = await box.text(bash, command=f"{lines}; until say over | grep hang; do sleep 0.05; done")
    assert text.splitlines()[-2:] == ["143", "endless hang"]


async def test_a_person_stops_a_command(box: Box) -> None:
    began = asyncio.Event()

    def progress(text: str) -> None:
        began.set()

    call = Call("1", "turn", "cli", ToolContext(box.sandbox), box._approve, progress)
    running = asyncio.create_task(bash.run(call, {"command": "say hang"}))
    await asyncio.wait_for(began.wait(), SECONDS)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert say("ended") == ["hang"]
    assert list(box.sandbox.config.sockets.iterdir()) == []


async def test_what_is_there_is_listed(box: Box) -> None:
    text = await box.text(bash, command="cat /commands.txt")
    assert text == await box.text(read_file, path="/commands.txt")
    assert "\nsay copy  Standard input to output." in text and "\nalone  Is here." in text
    assert text.count("\nsay words [") == 1
    assert await box.text(bash, command="ls /commands") == saying("alone", "say")
    assert not box.strangers


async def test_a_program_of_its_own_name_and_where_it_was_called(box: Box) -> None:
    text = await box.text(bash, command="mkdir d; cd d; alone; alone me; echo $?")
    assert text.splitlines()[0] == "/workspace/d /workspace/d/x /y cli"
    assert text.splitlines()[-1] == "2"


async def test_a_file_that_cannot_be_loaded_takes_nothing_else_away(
    ways: Path, box: Box, caplog: pytest.LogCaptureFixture
) -> None:
    (ways / "broken.py").write_text("import no_such_module\n")
    assert await box.text(bash, command="alone; cat /commands.txt") == saying("say copy")
    assert "no_such_module" in caplog.text


async def test_an_owner_is_asked(box: Box) -> None:
    assert await box.text(bash, command="say ask bell") == "allowed"
    box.allows = False
    text = await box.text(bash, command="say ask door; echo $?; say ask gate")
    assert text.splitlines() == [
        "say: The owner said no.",
        "1",
        "say: The owner said no.",
        "exit code: 1",
    ]
    assert box.asked == [("bell", "ring:bell"), ("door", "ring:door"), ("gate", "ring:gate")]


async def test_nobody_is_asked_for_ever(box: Box) -> None:
    box.allows = False
    text = await box.text(bash, command="for i in 1 2 3 4 5; do say ask $i; done")
    assert [what for what, _ in box.asked] == ["1", "2", "3"]
    assert text.splitlines()[-2] == saying("3", "nobody is asked")


async def test_the_time_limit_stands_still_while_an_owner_is_asked(box: Box) -> None:
    async def approve(what: str, *, scope: str, touched: object = ()) -> None:
        await asyncio.sleep(1.5 * seconds)

    box.approve = approve
    for seconds in limits():
        said = await box.text(bash, command="say ask bell", seconds=seconds)
        if said == "allowed":
            break
    assert said == "allowed"


async def test_strangers_text_touches_the_chat_and_the_files_that_are_made_of_it(box: Box) -> None:
    assert await box.text(bash, command="say page") == "obey me"
    assert box.strangers == ["page http://evil.example/"]
    assert await box.sandbox.files.taints() == []
    await box.use(bash, command="say page > letter")
    assert [each.source for each in await box.sandbox.files.taints()] == [
        "page http://evil.example/"
    ]


async def test_a_question_behind_strangers_text_tells_of_it(box: Box) -> None:
    seen: list[str] = []

    async def approve(what: str, *, scope: str, touched: Any = ()) -> None:
        seen.extend(each.source for each in touched)

    box.approve = approve
    assert await box.text(bash, command="say page; say ask bell") == "obey me\nallowed"
    assert seen == ["page http://evil.example/"]


async def test_no_secret_goes_into_a_command(box: Box) -> None:
    """Nor one that the shell has put together."""
    leaks = LeakDetector({"telegram.token": "123456:hunter2hunter2"})
    withheld: list[str] = []

    async def withhold(what: str) -> None:
        withheld.append(what)

    async def taints() -> list[Taint]:
        return []

    context = ToolContext(box.sandbox, leaks=leaks)
    call = Call("1", "turn", "cli", context, box._approve, taints=taints, withhold=withhold)
    half = "a=123456:hunter; say words ${a}2hunter2"
    output = await bash.run(call, {"command": half})
    assert not output.ok and output.text == saying("say: ", "secret")
    assert say("took") == [] and withheld == [saying("say words", "telegram.token")]
    with pytest.raises(ToolError):
        await bash.run(call, {"command": "say words 123456:hunter2hunter2"})


async def test_what_each_program_and_skill_adds_to_the_listing(box: Box) -> None:
    box.skills = lambda: [("tea", "How tea is made.")]
    listing = await box.text(bash, command="cat /commands.txt")
    context = ToolContext(box.sandbox, skills=box.skills)
    entries = registry.entries(context)
    assert {"say", "docs", "skill tea"} <= {*entries} and "plan" not in entries
    assert entries["skill tea"] == "tea  How tea is made."
    assert all(text in listing for text in entries.values())
