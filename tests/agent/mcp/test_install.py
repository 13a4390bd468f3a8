"""What `voltaire mcp add` installs of packages, by uv and npm themselves, from indexes on loopback."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from agent.mcp.install import InstallError, install
from fakes.package_index import PACKAGE, package_index

TOOLS = [
    "uvx",
    pytest.param("npx", marks=pytest.mark.skipif(not shutil.which("npm"), reason="not installed")),
]


def installed(program: Path) -> str:
    """Its version."""
    if (found := program / "node_modules" / PACKAGE / "package.json").exists():
        version: str = json.loads(found.read_text())["version"]
        return version
    (found,) = program.glob("*.dist-info")
    return found.name.removeprefix("tea_server-").removesuffix(".dist-info")


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_release_of_the_last_days_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    monkeypatch.setenv("UV_NO_CACHE", "1")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    program, words = tmp_path / "program", [tool, PACKAGE, "--x"]

    def take(index: str, *, new: bool = False) -> str:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index}/simple/")
        monkeypatch.setenv("npm_config_registry", f"{index}/")
        assert install(words, program, new=new) == [PACKAGE, "--x"]
        return installed(program)

    async with package_index({"1.0.0": 9, "2.0.0": 1}) as index:
        assert await asyncio.to_thread(take, index) == "1.0.0"
        assert await asyncio.to_thread(take, index, new=True) == "2.0.0"
    async with package_index({"3.0.0": 1}) as index:
        with pytest.raises(InstallError, match=r"Releases younger than 3 days .* --new takes them"):
            await asyncio.to_thread(take, index)
    assert installed(program) == "2.0.0"
