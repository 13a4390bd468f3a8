"""Models from a server that speaks the hub's protocol: cut mid-file, gated, damaged, too large."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakes import gguf_maker
from fakes.command_line import voltaire_beside as voltaire
from fakes.gguf_maker import MEDIUM
from fakes.hub import Hub
from fakes.words import saying

CONTENT = bytes(range(256)) * 200_000  # 51 MB: the library writes pieces of 10


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    async with Hub(CONTENT).running() as hub:
        yield hub


async def pulled(hub: Hub, folder: Path, **source: str) -> tuple[int, str]:
    """In a process of its own: the hub's library reads its address when it is imported."""
    import asyncio

    script = (
        "import sys, json; from pathlib import Path; from backend.models.pull import *; from backend.config import BackendConfig\n"
        f"source = Source(**{ {'repo': 'a/b', 'file': 'm.gguf', **source}!r})\n"
        f"try: print(pull([source], BackendConfig(Path({str(folder)!r})), print))\n"
        "except PullError as error: print(error); sys.exit(1)\n"
    )
    env = {
        **os.environ,
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(folder / "hf"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def test_a_cut_download_goes_on_where_it_stopped(hub: Hub, tmp_path: Path) -> None:
    hub.cuts = 2
    code, said = await pulled(hub, tmp_path)
    assert code == 0, said
    assert (tmp_path / "models" / "m.gguf").read_bytes() == CONTENT
    assert hub.ranges[0] == 0 and all(
        b > a for a, b in zip(hub.ranges, hub.ranges[1:], strict=False)
    )
    assert "is here already" in (await pulled(hub, tmp_path))[1]


async def test_a_damaged_file_is_never_left_under_its_name(hub: Hub, tmp_path: Path) -> None:
    hub.content = b"x" * len(CONTENT)
    code, said = await pulled(hub, tmp_path)
    assert code == 1 and "arrived damaged" in said
    assert not (tmp_path / "models" / "m.gguf").exists()


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        pytest.param(403, "a/b is gated: accept its terms", marks=pytest.mark.slow),
        pytest.param(401, "no repository a/b, or it is private", marks=pytest.mark.slow),
        (404, "a/b has no file m.gguf"),
    ],
)
async def test_what_the_hub_refuses_is_explained(
    hub: Hub, tmp_path: Path, status: int, sentence: str
) -> None:
    hub.status = status
    code, said = await pulled(hub, tmp_path)
    assert code == 1 and sentence in said


async def test_no_room_is_said_before_anything_is_loaded(hub: Hub, tmp_path: Path) -> None:
    hub.size = 1 << 50
    code, said = await pulled(hub, tmp_path)
    assert code == 1 and "GiB free" in said and hub.ranges == []


async def fits(hub: Hub, home: Path, *words: str) -> tuple[int, str, str]:
    """`voltaire model fit` for a profile whose model is at the hub."""
    folder = home / "x" / "voltaire" / "profiles"
    folder.mkdir(parents=True)
    (folder / "far.toml").write_text(
        'title = "F"\ncontext = 8192\n[model]\nrepo = "a/b"\nfile = "m.gguf"\n'
        "[memory]\nvram_mib = 900\n"
        '[reference]\ndecode_tok_s = 50\nsource = "a write-up"\n'
    )
    env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home / "hf")}
    return await voltaire(home, "model", "fit", "far", *words, env=env)


async def test_what_fits_is_known_before_the_download(hub: Hub, tmp_path: Path) -> None:
    path = gguf_maker.make(tmp_path / "m.gguf", MEDIUM)
    hub.content, hub.size = path.read_bytes(), path.stat().st_size
    code, out, err = await fits(hub, tmp_path, "--vram", "2")
    assert (code, err) == (0, saying("m.gguf is not here", "Hugging Face"))
    *rows, said = out.splitlines()
    assert [row.split()[1:3] for row in rows if row.startswith("*")] == [["8192", "f16"]]
    assert said == saying("8,192 tokens", "f16", "50 tokens/s", "a write-up")
    assert hub.ranges == [0]  # one piece, not the whole file
    assert not list(tmp_path.rglob("models/*.gguf"))


@pytest.mark.parametrize(
    ("cards", "told"),
    [
        (["--vram", "0.5"], "far does not fit: its profile expects 0.9 GiB on the card"),
        (["--vram", "1"], "its profile expects 0.9 of 1.0 GiB on the card"),
    ],
)
async def test_without_the_hub_the_profiles_own_word_is_held_against_the_card(
    hub: Hub, tmp_path: Path, cards: list[str], told: str
) -> None:
    hub.url = "http://127.0.0.1:9"
    code, _, err = await fits(hub, tmp_path, *cards)
    assert (code, told in err) == (1, True), err
