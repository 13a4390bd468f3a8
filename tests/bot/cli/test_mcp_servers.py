"""voltaire mcp: a server is added, looked at, listed, found by doctor, removed."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from agent.mcp.install import InstallError, install, package
from bot.cli import doctor_machine
from bot.settings import StateSection, load
from fakes import mcp_server
from tests.bot.cli.test_bad_input import voltaire


async def test_a_server_from_its_adding_to_its_removal(tmp_path: Path) -> None:
    async def run(*words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        config = (tmp_path / "c.toml").read_text() if (tmp_path / "c.toml").exists() else ""
        return await voltaire(tmp_path, "mcp", *words, config=config, stdin=stdin)

    added = await run("add", "tea", "--", "python3", "/program/server.py")
    assert added[0] == 0 and tomllib.loads((tmp_path / "c.toml").read_text()) == {
        "agent": {"mcp": {"tea": {"command": ["python3", "/program/server.py"]}}}
    }
    program = tmp_path / "s" / "voltaire" / "mcp" / "tea" / "program"
    program.mkdir(parents=True)
    shutil.copy(mcp_server.__file__, program / "server.py")
    settings = load(tmp_path / "c.toml").model_copy(
        update={"state": StateSection(dir=tmp_path / "s" / "voltaire")}
    )
    assert await doctor_machine.mcp(settings) == []  # nothing has been used yet
    allowed = await run("test", "tea", stdin=b"y\n")
    assert '"description": "Add two numbers."' in allowed[1]
    assert allowed[0] == 0 and "add a b [unit]" in allowed[1]
    (found,) = await doctor_machine.mcp(settings)
    assert found.status == "pass"
    (row,) = json.loads((await run("list", "--json"))[1])
    assert row["name"] == "tea" and "add" in row["tools"]
    changed = (program / "server.py").read_text().replace("Add two numbers.", "Add 2 numbers.")
    (program / "server.py").write_text(changed)
    (found,) = await doctor_machine.mcp(settings)
    assert (found.status, found.remedy) == ("warn", "voltaire mcp test tea")
    shutil.rmtree(program)
    (found,) = await doctor_machine.mcp(settings)
    assert found.status == "fail" and "tea did not begin" in found.detail
    assert (await run("remove", "tea"))[0] == 0
    assert (await run("list"))[1].startswith("There are no servers.")


def test_what_is_run_of_a_package() -> None:
    assert package(["-y", "@a/b@1.2", "--x", "/y"]) == ("@a/b@1.2", "@a/b", ["--x", "/y"])
    assert package(["--from", "git+x", "serve", "a"]) == ("git+x", "serve", ["a"])
    with pytest.raises(InstallError):
        package(["--index-url", "x", "y"])
    with pytest.raises(InstallError):
        package([])


def test_a_container_is_refused_and_a_program_taken_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="--url"):
        install(["docker", "run", "x"], tmp_path)
    assert install(["serve", "-a"], tmp_path / "none") == ["serve", "-a"]
    assert not (tmp_path / "none").exists()
