from agent.tools.bash import bash
from agent.tools.files import write_file
from agent.tools.tool import Output
from fakes.patience import limits
from fakes.sandbox_box import Box
from fakes.words import saying


async def test_output_and_the_exit_code_when_it_is_not_zero(box: Box) -> None:
    assert await box.use(bash, command="echo hello") == Output("hello")
    assert await box.use(bash, command="echo no >&2; exit 3") == Output(
        "no\nexit code: 3", ok=False
    )
    assert await box.use(bash, command="true") == Output("(done, no output)")
    assert await box.use(bash, command="false") == Output("exit code: 1", ok=False)


async def test_the_name_of_a_tool_says_how_it_is_called(box: Box) -> None:
    for name in ("write_file", "remember", "list_files"):
        output = await box.use(bash, command=f"{name} notes.txt x")
        assert not output.ok and output.text == saying(f"{name} is a tool", f"{name}(")


async def test_python_runs(box: Box) -> None:
    await box.use(write_file, path="script.py", content="import sys\nprint(sys.argv[1:])")
    assert await box.text(bash, command="python script.py 'a b' c") == "['a b', 'c']"
    assert await box.text(bash, command="echo 'print(6 * 7)' | python") == "42"


async def test_a_time_limit_is_told(box: Box) -> None:
    for seconds in limits():
        output = await box.use(bash, command="echo begun; sleep 600", seconds=seconds)
        if output.text.startswith("begun"):
            break
    told = f"Stopped: the time limit of {seconds} s was reached."
    assert output == Output(f"begun\n{told}\nexit code: 137", ok=False)


async def test_long_output_names_the_file_that_holds_it_all(box: Box) -> None:
    box.output_bytes = 200
    text = await box.text(bash, command="seq 1000")
    assert text.startswith("1\n2\n3\n")
    *_, last, told = text.splitlines()
    assert last == "1000"
    assert told == saying("/workspace/.voltaire/out/1.txt", "grep", "read_file")
    assert len(text) < 400


async def test_what_came_from_strangers_marks_the_turn(box: Box) -> None:
    await box.sandbox.files.mark("file letter.txt")
    await box.use(bash, command="true")
    assert box.strangers == ["file letter.txt"]
