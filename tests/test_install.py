"""`make install` where the packages are not to be had: one sentence that says why."""

import asyncio
import os
import shutil
from pathlib import Path

from agent.mcp.tls_termination import CertificateAuthority
from fakes.patience import SECONDS
from fakes.web_server import site

ROOT = Path(__file__).parents[1]
NEEDED = ("Makefile", "system-packages.sh", "requirements-build.lock")


async def installed(folder: Path, index: str) -> str:
    """What make says on stderr, but its own last word, where this is the only index."""
    for name in NEEDED:
        shutil.copy(ROOT / name, folder)
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "MAKE"))}
    make = await asyncio.create_subprocess_exec(
        *("make", "-s", ".venv/.stamp-uv"),
        cwd=folder,
        env={**plain, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index, "PIP_RETRIES": "1"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(make.communicate(), SECONDS)
    assert make.returncode
    *sentences, _ = said.decode().splitlines()
    return "\n".join(sentences)


async def test_a_certificate_that_is_not_known_is_told(tmp_path: Path) -> None:
    """It was "is the network there", which it is."""
    async with site(CertificateAuthority().context("localhost")) as proxy:
        said = await installed(tmp_path, f"https://{proxy.host}/simple")
    assert "update-ca-certificates" in said and "\n" not in said and proxy.seen == []
