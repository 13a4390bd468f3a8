"""Recordings to samples, a piece at a time, and samples to a voice message. Only ffmpeg reads what was sent, in a sandbox
that sees the chat's workspace and neither repositories nor a network.

Samples are mono, 16 bits, little-endian: HEARD_RATE a second for recognition, SPOKEN_RATE for sending.
"""

import io
import os
import shutil
import sys
import wave
from array import array
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

from agent.errors import NoSandbox, ToolError
from agent.sandbox.bubblewrap import PROGRAM
from agent.sandbox.sandbox import Sandbox

HEARD_RATE = 16_000
SPOKEN_RATE = 24_000
WIDTH = 2  # bytes of a sample
SECONDS = 60.0  # of ffmpeg, for a piece
CUT_SECONDS = 5.0  # at a piece's end, in which it is cut where it is quiet
WINDOW = HEARD_RATE // 20  # samples whose loudness is compared
LEAST_SECONDS = 0.1  # of sound; nobody says anything in less
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"  # programs of the machine that the sandbox sees
INSTALL_FFMPEG = "apt-get install ffmpeg"

# A recording cannot make ffmpeg read something else: only files are read, and no playlist or script names another.
FORMATS = "ogg,mov,mp3,wav,w64,flac,aac,matroska,caf,aiff,amr,amrnb,amrwb,asf,au,avi,mpeg,mpegts,ac3,ape,wv,flv"
# In an Ogg of several recordings, one behind the other, ffmpeg finds the first alone if it seeks before it reads.
DECODE = f"""\
before=(-ss "$2") behind=()
[ "$(LC_ALL=C grep -aoP 'OggS\\x00\\x02' -- "$1" | wc -l)" -lt 2 ] || before=() behind=(-ss "$2")
exec ffmpeg -nostdin -v quiet -threads 1 -protocol_whitelist file -format_whitelist {FORMATS} "${{before[@]}}" -i "file:$1" \
"${{behind[@]}}" -t "$3" -vn -sn -dn -ac 1 -ar "$4" -f s16le pipe:1 2>/dev/null"""
ENCODE = """\
exec ffmpeg -nostdin -v quiet -threads 1 -f s16le -ar "$1" -ac 1 -i /tmp/samples \
-c:a libopus -b:a 32k -application voip -f ogg pipe:1 2>/dev/null"""


class NoSound(Exception):
    """Nothing can be made of a recording; `str` is one sentence."""


def has_ffmpeg() -> bool:
    return shutil.which("ffmpeg", path=SYSTEM_PATH) is not None


def find_program(*names: str, path: str = SYSTEM_PATH) -> Path | None:
    """The first of the programs that is in this installation, or else in the folders of `path`."""
    places = f"{Path(sys.executable).parent}:{path}"
    found = (shutil.which(name, path=places) for name in names)
    return next((Path(each) for each in found if each), None)


def in_sandbox(program: Path) -> tuple[str, dict[str, str]]:
    """The path of a program in the sandbox, and the folders of this machine to show there, by their places."""
    if os.fspath(program).startswith(("/usr/", "/bin/")):
        return os.fspath(program), {}
    return f"{PROGRAM}/{program.name}", {PROGRAM: os.fspath(program.parent)}


def sealed(box: Sandbox, memory_mib: int = 0) -> Sandbox:
    """The chat's sandbox without repositories and network, and with at least so much memory."""
    config = box.config
    limits = replace(config.limits, memory_mib=max(config.limits.memory_mib, memory_mib))
    config = replace(config, limits=limits, repos={}, hosts=None, guards={})
    return Sandbox(config, box.chat, box.workspace)


async def pieces(box: Sandbox, path: str, seconds: float) -> AsyncGenerator[tuple[float, bytes]]:
    """The samples of a file of the workspace in pieces of at most `seconds`, cut where it is quiet, each with the second
    at which it ends. Raises NoSound, NoSandbox."""
    box, at = sealed(box), 0.0
    while True:
        command = ["/bin/bash", "-c", DECODE, "decode", path, f"{at:.3f}", str(seconds)]
        try:
            samples = await box.read_internal([*command, str(HEARD_RATE)], seconds=SECONDS)
        except NoSandbox:
            raise
        except ToolError as error:
            raise NoSound(f"It could not be decoded. {error}") from None
        if duration(samples, HEARD_RATE) < LEAST_SECONDS:
            if not at:
                raise NoSound("There is no sound in it, or it is damaged.")
            return
        last = duration(samples, HEARD_RATE) < seconds - 1
        if not last:
            samples = samples[: cut_point(samples)]
        at += duration(samples, HEARD_RATE)
        yield at, samples
        if last:
            return


def duration(samples: bytes, rate: int) -> float:
    """The length of a recording in seconds."""
    return len(samples) / WIDTH / rate


def cut_point(samples: bytes) -> int:
    """The byte at which a piece is cut: the middle of the quietest window near its end."""
    first = max(0, len(samples) - int(CUT_SECONDS * HEARD_RATE) * WIDTH)
    tail = array("h", samples[first : len(samples) // WIDTH * WIDTH])
    starts = range(0, max(1, len(tail) - WINDOW), WINDOW)
    quietest = min(starts, key=lambda start: sum(map(abs, tail[start : start + WINDOW])))
    return first + (quietest + WINDOW // 2) * WIDTH


def wav(samples: bytes) -> bytes:
    """Samples of HEARD_RATE as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(WIDTH)
        out.setframerate(HEARD_RATE)
        out.writeframes(samples)
    return file.getvalue()


async def voice_message(box: Sandbox, samples: bytes) -> bytes:
    """Samples of SPOKEN_RATE as OGG/Opus. Raises ToolError."""
    command = ["/bin/bash", "-c", ENCODE, "encode", str(SPOKEN_RATE)]
    ogg = await sealed(box).read_internal(command, seconds=SECONDS, inputs={"samples": samples})
    if not ogg.startswith(b"OggS"):
        raise ToolError("ffmpeg made no voice message of it.")
    return ogg
