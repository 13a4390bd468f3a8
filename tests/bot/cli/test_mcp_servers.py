"""voltaire mcp: a server is added, looked at, listed, found by doctor, removed."""

import json
import shutil
import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent.mcp.install import InstallError, install, package
from bot.cli import doctor_machine
from bot.settings import AgentSection, McpSection, StateSection, load
from fakes import mcp_server
from fakes.command_line import voltaire_beside as voltaire
from fakes.model_scripted import Json, Line, ModelServer, calls, says
from fakes.words import saying


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


async def test_a_secret_is_bound_when_a_server_is_added(tmp_path: Path) -> None:
    words = ("add", "tea", "--network", "* api.example.com", "--secret", "API_TOKEN", "/etc/t")
    where = ("api.example.com", "X-Key", "--", "python3", "/program/server.py")
    code, _, err = await voltaire(tmp_path, "mcp", *words, *where, config="")
    assert code == 0, err
    section = tomllib.loads((tmp_path / "c.toml").read_text())["agent"]["mcp"]["tea"]
    bound = {"file": "/etc/t", "host": "api.example.com", "header": "X-Key"}
    assert section["secrets"] == {"API_TOKEN": bound}
    listed = (tmp_path / "c.toml").read_text()
    _, out, _ = await voltaire(tmp_path, "mcp", "list", config=listed)
    assert out == saying("never sees API_TOKEN", "only to api.example.com")


SECRETS = {
    "no network": ({"command": ["x"]}, {}, "network lacks api.example.com"),
    "another port": ({"command": ["x"], "network": ["api.example.com:8443"]}, {}, "network lacks"),
    "url": ({"url": "https://a.example"}, {}, "secrets are for a command"),
    "host": ({"command": ["x"]}, {"host": "https://a"}, "not one host"),
    "wildcard": ({"command": ["x"]}, {"host": "*.example.com"}, "not one host"),
    "header": ({"command": ["x"]}, {"header": "A: b"}, "not the name of a header"),
}


@pytest.mark.parametrize(("section", "secret", "told"), SECRETS.values(), ids=SECRETS.keys())
def test_a_secret_without_a_place_is_refused(
    section: dict[str, object], secret: dict[str, str], told: str
) -> None:
    bound = {"file": "/etc/t", "host": "api.example.com"} | secret
    with pytest.raises(ValidationError, match=told):
        McpSection.model_validate(section | {"secrets": {"API_TOKEN": bound}})


def test_one_server_alone_has_tools_in_the_prompt() -> None:
    server = {"command": ["x"], "tools": ["a"]}
    with pytest.raises(ValidationError, match="only one server may have tools, not one and two"):
        AgentSection.model_validate({"mcp": {"one": server, "two": server}})


async def test_listed_tools_are_in_every_prompt_behind_the_others(tmp_path: Path) -> None:
    program = tmp_path / "s" / "voltaire" / "mcp" / "tea" / "program"
    program.mkdir(parents=True)
    shutil.copy(mcp_server.__file__, program / "server.py")
    for path in (program, *program.parents[:4]):
        path.chmod(0o755)
    async with ModelServer(says("Hello.")) as model:
        config = (
            f'[backend]\nkind = "external"\nurl = "{model.url}"\n'
            '[agent.mcp.tea]\ncommand = ["python3", "/program/server.py"]\ntools = ["say"]\n'
        )
        code, _, err = await voltaire(tmp_path, "ask", "hi", config=config)
        assert (code, err) == (0, saying("no owner", "allowed say", "`tools`"))
        code, _, err = await voltaire(tmp_path, "mcp", "test", "tea", config=config, stdin=b"y\n")
        assert code == 0, err
        code, _, err = await voltaire(tmp_path, "ask", "hi", config=config)
        assert code == 0 and "tools" not in err
        before, after = (r["tools"] for r in model.requests if "tools" in r)
    assert [tool["function"]["name"] for tool in after[len(before) :]] == ["tea_say"]
    assert after[: len(before)] == before


async def test_a_turn_finds_and_uses_one_of_92_tools_in_three_calls(tmp_path: Path) -> None:
    program = tmp_path / "s" / "voltaire" / "mcp" / "tea" / "program"
    program.mkdir(parents=True)
    shutil.copy(mcp_server.__file__, program / "server.py")
    for path in (program, *program.parents[:4]):
        path.chmod(0o755)
    steps = ("mcp tea | grep 57", "mcp tea add-57 --help", "mcp tea add-57 a=2 b=3")

    def script(request: Json) -> Line:
        read = [each["content"] for each in request["messages"] if each["role"] == "tool"]
        return calls("bash", command=steps[len(read)]) if len(read) < 3 else says(read[-1])

    async with ModelServer(script=script) as model:
        config = (
            f'[backend]\nkind = "external"\nurl = "{model.url}"\n[agent.mcp.tea]\n'
            'command = ["python3", "/program/server.py", "many"]\nallow = ["add-57"]\n'
        )
        code, _, err = await voltaire(tmp_path, "mcp", "test", "tea", "--yes", config=config)
        assert code == 0, err
        code, out, err = await voltaire(tmp_path, "ask", "add", "--json", config=config)
        assert code == 0, err
        first = json.dumps(model.requests[0])
        assert "add-57" not in first and "mcp" not in json.dumps(model.requests[0]["tools"])
    finished = json.loads(out.splitlines()[-1])
    assert (finished["type"], finished["tool_calls"]) == ("turn.finished", 3)
    assert finished["text"] == "done"
    assert (program.parent / "work" / "calls").read_text() == 'add-57 {"a": 2, "b": 3}\n'
