"""Recordings in pieces, whatever they are: decoded in the sandbox, bounded in memory and time."""

import random
import struct
from array import array
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.sandbox.sandbox import Sandbox
from agent.voice.sound import (
    HEARD_RATE,
    SPOKEN_RATE,
    NoSound,
    cut_point,
    duration,
    pieces,
    voice_message,
)
from fakes import recordings, sandbox_box


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with sandbox_box.opened(tmp_path / "state") as sandboxes:
        yield await sandboxes.of("cli")


async def cut(box: Sandbox, content: bytes, seconds: float = 10) -> list[tuple[float, bytes]]:
    await box.files.write("received/a.oga", content)
    return [piece async for piece in pieces(box, "received/a.oga", seconds)]


async def test_a_long_recording_is_cut_where_it_is_quiet(box: Sandbox) -> None:
    found = await cut(box, recordings.tones(8, 8, 3))
    ends = [round(at, 1) for at, _ in found]
    assert len(found) == 3
    assert 8 < ends[0] < 9.2 and 17 < ends[1] < 18.2 and 21.5 < ends[2] < 22.5
    assert sum(duration(samples, HEARD_RATE) for _, samples in found) == pytest.approx(
        ends[2], abs=0.1
    )


@pytest.mark.parametrize(
    "parts", [[3], [3, 4], [4, 3], [2, 2], [1, 1, 1], [2, 1, 3], [3, 9], [9, 3], [1] * 8, [5, 5, 5]]
)
@pytest.mark.parametrize("seconds", [pytest.param(600.0, marks=pytest.mark.slow), 10.0])
async def test_all_recordings_of_one_file_are_heard(
    box: Sandbox, parts: list[float], seconds: float
) -> None:
    found = await cut(box, b"".join(map(recordings.tones, parts)), seconds)
    heard = sum(duration(samples, HEARD_RATE) for _, samples in found)
    assert heard == pytest.approx(
        sum(parts) + len(parts), abs=0.1
    )  # a second of silence behind each


async def test_what_is_no_sound_is_one_sentence(box: Sandbox) -> None:
    whole = recordings.tones(2)
    rng = random.Random(3)
    for content in (
        b"OggS",
        b"",
        rng.randbytes(100_000),
        whole[:60],
        b"#EXTM3U\nfile:///etc/passwd\n",
    ):
        with pytest.raises(NoSound, match=r"^There is no sound in it, or it is damaged\.$"):
            await cut(box, content or b"\0")


LISTS = {
    "a script": "ffconcat version 1.0\nfile other.oga\n",
    "a script without its mark": "file 'other.oga'\n",
    "a playlist": "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nother.oga\n#EXT-X-ENDLIST\n",
    "a manifest": '<?xml version="1.0"?><MPD type="static"><Period><AdaptationSet><Representation id="1"><BaseURL>other.oga</BaseURL></Representation></AdaptationSet></Period></MPD>',
    "a session": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nt=0 0\nm=audio 5004 RTP/AVP 0\n",
}


@pytest.mark.parametrize("content", LISTS.values(), ids=LISTS)
async def test_a_recording_that_names_another_file_reads_nothing(
    box: Sandbox, content: str
) -> None:
    await box.files.write("received/other.oga", recordings.tones(2))
    with pytest.raises(NoSound):
        await cut(box, content.encode())


def wav_file(
    rate: int = HEARD_RATE, channels: int = 1, bits: int = 16, size: int = 64_000
) -> bytes:
    """Two seconds of sound behind a header that may say otherwise."""
    form = struct.pack("<HHIIHH", 1, channels, rate, rate, 2, bits)
    sound = random.Random(1).randbytes(64_000)
    return b"RIFF\xff\xff\xff\xffWAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size) + sound  # fmt: skip


def changed(at: bytes, skip: int, by: bytes, last: bool = False) -> bytes:
    """An Ogg of three seconds with other bytes behind a mark in it."""
    whole = bytearray(recordings.tones(2))
    place = (whole.rindex(at) if last else whole.index(at)) + skip
    whole[place : place + len(by)] = by
    return bytes(whole)


HOSTILE = {
    "a hundred hours at its end": (changed(b"OggS", 6, struct.pack("<q", 360_000 * 48_000), True), 3.0),
    "less than nothing at its end": (changed(b"OggS", 6, struct.pack("<q", -5), True), 3.0),
    "255 channels": (changed(b"OpusHead", 9, b"\xff"), 0.0),
    "no channels": (changed(b"OpusHead", 9, b"\0"), 0.0),
    "more before than in it": (changed(b"OpusHead", 10, b"\xff\xff"), 0.0),
    "a header alone": (recordings.tones(2)[:40], 0.0),
    "four gigabytes": (wav_file(size=0xFFFFFFFF), 2.0),
    "no size": (wav_file(size=0), 2.0),
    "0 Hz": (wav_file(rate=0), 0.0),
    "4 GHz": (wav_file(rate=0xFFFFFFFF), 0.0),
    "65,535 channels": (wav_file(channels=0xFFFF), 0.0),
    "65,535 bits": (wav_file(bits=0xFFFF), 0.0),
    "marks without end": (b"OggS\0\2" * 1000, 0.0),
}  # fmt: skip


@pytest.mark.parametrize(("content", "seconds"), HOSTILE.values(), ids=HOSTILE)
async def test_what_a_file_says_of_itself_is_not_believed(
    box: Sandbox, content: bytes, seconds: float
) -> None:
    try:
        found = await cut(box, content, 30)
    except NoSound:
        found = []
    assert sum(duration(samples, HEARD_RATE) for _, samples in found) == pytest.approx(
        seconds, abs=0.1
    )


async def test_what_is_damaged_in_the_middle_is_heard_as_far_as_it_goes(box: Sandbox) -> None:
    whole = recordings.tones(6)
    found = await cut(box, whole[: len(whole) // 2])
    assert 2 < found[-1][0] < 6


@pytest.mark.slow
async def test_two_hours_are_read_in_pieces_within_the_sandbox_s_memory(box: Sandbox) -> None:
    await box.files.write("received/a.flac", recordings.silence(7200))
    found = [
        (at, duration(samples, HEARD_RATE))
        async for at, samples in pieces(box, "received/a.flac", 60)
    ]
    assert found[-1][0] == pytest.approx(7200, abs=1)
    assert max(length for _, length in found) <= 60


def test_the_quietest_place_near_the_end_is_the_cut() -> None:
    loud, quiet = array("h", [9000] * HEARD_RATE), array("h", [3] * (HEARD_RATE // 5))
    samples = (loud * 7 + quiet + loud * 2).tobytes()
    assert 7 <= duration(samples[: cut_point(samples)], HEARD_RATE) <= 7.2
    assert cut_point(b"\0\0" * 100) <= 1602


async def test_samples_become_a_voice_message(box: Sandbox, tmp_path: Path) -> None:
    ogg = await voice_message(box, b"\0\0" * SPOKEN_RATE * 3)
    kind, codec, seconds = recordings.probed(ogg, tmp_path)
    assert (kind, codec) == ("ogg", "opus")
    assert seconds == pytest.approx(3, abs=0.1)
