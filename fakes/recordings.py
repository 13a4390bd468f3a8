"""Recordings made by espeak-ng and ffmpeg, as a phone would send them; and what ffprobe says of one."""

import json
import subprocess
from pathlib import Path

OPUS = ("-c:a", "libopus", "-b:a", "16k", "-f", "ogg", "pipe:1")


def spoken(words: str) -> bytes:
    """A voice message, OGG/Opus."""
    said = run(["espeak-ng", "--stdout", words])
    return run(["ffmpeg", "-v", "error", "-i", "pipe:0", "-ac", "1", *OPUS], said)


def video_note(words: str, folder: Path) -> bytes:
    """A round video of a face that says them: MP4 with AAC, its index at the end."""
    file = folder / "round.mp4"
    said = run(["espeak-ng", "--stdout", words])
    face = ("-f", "lavfi", "-i", "color=s=64x64:r=5")
    run(["ffmpeg", "-v", "error", "-i", "pipe:0", *face, "-shortest", "-c:v", "mpeg4", "-c:a", "aac", str(file)], said)  # fmt: skip
    return file.read_bytes()


def tones(*seconds: float) -> bytes:
    """OGG/Opus: tones of so many seconds, a second of silence behind each."""
    parts = [
        f"sine=frequency=300:duration={each},apad=pad_dur=1[{n}]" for n, each in enumerate(seconds)
    ]
    names = "".join(f"[{n}]" for n in range(len(seconds)))
    graph = ";".join([*parts, f"{names}concat=n={len(seconds)}:v=0:a=1[out]"])
    return run(
        ["ffmpeg", "-v", "error", "-filter_complex", graph, "-map", "[out]", "-ac", "1", *OPUS]
    )


def silence(seconds: int) -> bytes:
    """FLAC, which is quickly made of hours."""
    quiet = f"anullsrc=r=16000:cl=mono:d={seconds}"
    return run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", quiet, "-f", "flac", "pipe:1"])


def probed(content: bytes, folder: Path) -> tuple[str, str, float]:
    """Format, codec and seconds, as ffprobe reads them."""
    file = folder / "probed"
    file.write_bytes(content)
    shown = ("-show_entries", "format=format_name,duration:stream=codec_name", "-of", "json")
    found = json.loads(run(["ffprobe", "-v", "error", *shown, str(file)]))
    form, stream = found["format"], found["streams"][0]
    return form["format_name"], stream["codec_name"], float(form["duration"])


def run(argv: list[str], given: bytes = b"") -> bytes:
    return subprocess.run(argv, input=given, capture_output=True, check=True, timeout=60).stdout
