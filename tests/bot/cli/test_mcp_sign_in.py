"""voltaire mcp test signs an owner in to a server of another host, in the terminal; what is kept is a secret."""

import asyncio
import os
import stat
import tarfile
from pathlib import Path

from fakes.command_line import start_voltaire
from fakes.command_line import voltaire_beside as voltaire
from fakes.mcp_oauth import SignInServer, sign_in_server
from fakes.patience import SECONDS
from fakes.words import saying


async def signed_in(home: Path, server: SignInServer, *, paste: bool) -> str:
    """What `voltaire mcp test tea` prints once an owner has opened its link and allowed the tools."""
    env = {**os.environ, "XDG_STATE_HOME": str(home / "s"), "XDG_CONFIG_HOME": str(home / "x")}
    process = await start_voltaire(
        *("--config", home / "c.toml", "mcp", "test", "tea"),
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    async with asyncio.timeout(SECONDS):
        said = ""
        while not said.startswith("http"):
            said = (await process.stdout.readuntil(b"\n")).decode()
        back = await server.browse(said.strip(), follow=not paste)
        if paste:
            process.stdin.write(f"that?? no code\n{back}\n".encode())
        process.stdin.write(b"y\n")
        out = (await process.stdout.read()).decode()
        assert await process.wait() == 0
    return out


async def test_an_owner_signs_in_and_takes_it_back(tmp_path: Path) -> None:
    async with sign_in_server() as server:
        config = f'[agent.mcp.tea]\nurl = "{server.url}"\n'
        (tmp_path / "c.toml").write_text(config)
        out = await signed_in(tmp_path, server, paste=True)
        assert out == saying("signed in to tea", "brew leaf")
        state = tmp_path / "s" / "voltaire"
        kept = state / "mcp-tokens" / "tea.json"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        for words, there in (((), False), (("--secrets",), True)):
            target = tmp_path / f"b{there}.tar.gz"
            code, _, err = await voltaire(tmp_path, "backup", str(target), *words, config=config)
            assert code == 0, err
            with tarfile.open(target) as archive:
                assert any("mcp-tokens" in name for name in archive.getnames()) is there
        kept.unlink()
        out = await signed_in(tmp_path, server, paste=False)
        assert "signed in to tea" in out
        code, out, _ = await voltaire(tmp_path, "sandbox", "--", "mcp", "tea", config=config)
        assert (code, out.split()[0]) == (0, "brew")
        code, _, err = await voltaire(tmp_path, "mcp", "remove", "tea", config=config)
        assert code == 0 and not kept.exists(), err
