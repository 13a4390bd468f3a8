"""Recordings in pieces, whatever they are: decoded in the sandbox, bounded in memory and time."""

import random
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
@pytest.mark.parametrize("seconds", [600.0, 10.0])
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
