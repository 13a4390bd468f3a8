import pytest

from agent.sandbox.files import OUTPUTS_KEPT
from agent.sandbox.sandbox import CommandResult, Sandbox


async def test_the_newest_are_kept(sandbox: Sandbox) -> None:
    paths = [await sandbox.files.save_output(b"%d" % n) for n in range(1, OUTPUTS_KEPT + 4)]
    assert paths[-1] == f"/workspace/.voltaire/out/{OUTPUTS_KEPT + 3}.txt"
    kept = sorted(int(name[:-4]) for name in await sandbox.files.names(".voltaire/out"))
    assert kept == list(range(4, OUTPUTS_KEPT + 4))


async def test_what_cannot_be_kept_does_not_fail_the_call(sandbox: Sandbox) -> None:
    await sandbox.run("ln -s /tmp .voltaire")
    ran = await sandbox.run("seq 1000", output_bytes=100)
    assert (ran.exit_code, ran.saved_path) == (0, "") and len(ran.output) < 1000
    await sandbox.run("rm .voltaire; echo x > .voltaire")
    assert (await sandbox.run("seq 1000", output_bytes=100)).saved_path == ""


@pytest.mark.parametrize("name", ["²", "9" * 251, "-1", "٣", "1 ", "$'\\xff'"])
async def test_no_name_that_a_command_gives_fails_the_call(sandbox: Sandbox, name: str) -> None:
    quoted = name if name.startswith("$") else f"'{name}'"
    await sandbox.run(f"mkdir -p .voltaire/out && touch .voltaire/out/{quoted}.txt")
    ran = await sandbox.run("seq 1000", output_bytes=100)
    assert (ran.exit_code, ran.saved_path) == (0, "/workspace/.voltaire/out/1.txt")


async def test_they_are_no_part_of_the_work(sandbox: Sandbox) -> None:
    await sandbox.run("git init -q .")
    await sandbox.run("seq 1000", output_bytes=100)
    assert await sandbox.run("git status --short") == CommandResult(0, "")
