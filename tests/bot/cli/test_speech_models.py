"""`voltaire model pull whisper-base`: what the names stand for, and where the files go."""

import asyncio
import hashlib
import os
from pathlib import Path

from backend.models.pull import KNOWN, speech_sources
from fakes.command_line import start_voltaire
from fakes.hub import Hub


def test_a_name_of_speech_stands_for_its_files() -> None:
    [base] = speech_sources("whisper-base")
    assert (base.repo, base.file) == ("ggerganov/whisper.cpp", "ggml-base.bin")
    assert (base.size, base.sha256) == KNOWN["base"]
    [other] = speech_sources("whisper-medium.en")
    assert (other.file, other.sha256) == ("ggml-medium.en.bin", None)
    voice, configuration = speech_sources("piper-en_US-lessac-medium")
    assert voice.file == "en/en_US/lessac/medium/en_US-lessac-medium.onnx"
    assert configuration.file == f"{voice.file}.json"
    for name in ("pocket", "piper-", "piper-nobody", "piper-../../x-y-medium"):
        assert speech_sources(name) == []


async def pull(home: Path, hub: Hub, name: str) -> tuple[int | None, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")}
    env |= {"XDG_STATE_HOME": str(home), "XDG_CONFIG_HOME": str(home), "HF_ENDPOINT": hub.url}
    pipe = asyncio.subprocess.PIPE
    process = await start_voltaire(
        "model", "pull", name, env=env, stdout=pipe, stderr=pipe, umask=0o077
    )
    _, err = await process.communicate()
    return process.returncode, err.decode()


async def test_a_model_of_speech_is_pulled_where_sandboxes_can_read_it(tmp_path: Path) -> None:
    async with Hub(b"weights").running() as hub:
        assert await pull(tmp_path, hub, "whisper-mine") == (0, "")
        code, err = await pull(tmp_path, hub, "whisper-base")
    file = tmp_path / "voltaire/models/voice/ggml-mine.bin"
    assert file.read_bytes() == b"weights"
    assert file.stat().st_mode & 0o777 == 0o644
    assert file.parent.stat().st_mode & 0o777 == 0o755
    # What the hub has is not what the digest is of.
    assert hashlib.sha256(b"weights").hexdigest() != KNOWN["base"][1]
    assert (code, "arrived damaged" in err) == (1, True)
    assert not file.with_name("ggml-base.bin").exists()
