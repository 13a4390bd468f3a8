"""Speech models: whisper.cpp's for speech to text, and piper's voices for text to speech.

`whisper-base` is a file in whisper.cpp's repository at the hub, `piper-en_US-lessac-medium` a voice with its
configuration. A model that is not listed here is checked against the SHA-256 that the hub reports.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from backend.config import BackendConfig
from backend.models.profile import Source

WHISPER = "whisper-"
PIPER = "piper-"
WHISPER_REPO = "ggerganov/whisper.cpp"
PIPER_REPO = "rhasspy/piper-voices"
# Size in bytes and SHA-256, at the hub on 2026-11-22.
KNOWN = {
    "tiny": (77_691_713, "be07e048e1e599ad46341c8d2a135645097a538221678b7acdd1b1919c6e1b21"),
    "base": (147_951_465, "60ed5bc3dd14eea856493d334349b405782ddcaf0028d4b5df4088345fba2efe"),
    "small": (487_601_967, "1be3a9b2063867b937e64e2ec7483364a79917e157fa98c5d94b5c1fffea987b"),
    "large-v3-turbo": (
        1_624_555_275,
        "1fc70f774d38eb169993ac391eea357ef47c88757ef72ee5943879b7e8e2bc69",
    ),
}
VOICE = re.compile(r"(([a-z]{2,3})_[A-Z]{2})-([^-/]+)-(x_low|low|medium|high)")


def speech_sources(name: str) -> Sequence[Source]:
    """The files of a speech model; empty if `name` is not one."""
    if name.startswith(WHISPER):
        kind = name.removeprefix(WHISPER)
        size, digest = KNOWN.get(kind, (None, None))
        return [Source(repo=WHISPER_REPO, file=f"ggml-{kind}.bin", size=size, sha256=digest)]
    if name.startswith(PIPER) and (voice := VOICE.fullmatch(name.removeprefix(PIPER))):
        region, language, speaker, quality = voice.groups()
        path = f"{language}/{region}/{speaker}/{quality}/{voice[0]}.onnx"
        return [Source(repo=PIPER_REPO, file=path + end) for end in ("", ".json")]
    return []


def speech_folder(config: BackendConfig) -> BackendConfig:
    """The configuration with the folder of speech models as its models folder."""
    return replace(config, models_dir=config.models_folder / "voice")


def open_to_sandboxes(folder: Path) -> None:
    """Make the files readable for sandboxed programs of another user, whatever the umask was."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
