"""Sentences to samples. piper is a program of the test's that takes piper's arguments and has espeak-ng speak: no voice can
be had offline."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.sandbox.sandbox import Sandbox
from agent.voice import speech as speech_module
from agent.voice.sound import SPOKEN_RATE, duration
from agent.voice.speech import Speech, language_of
from fakes import sandbox_box

PIPER = """\
#!/bin/bash
[ "$1" = -m ] && [ -r "$2" ] && [ -r "$2.json" ] && [ "$3" = -f ] || exit 1
read -r words
espeak-ng -w "$4" "piper says $words"
"""


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with sandbox_box.opened(tmp_path / "state") as sandboxes:
        yield await sandboxes.of("cli")


async def test_espeak_says_a_sentence(box: Sandbox, tmp_path: Path) -> None:
    short = await Speech(tmp_path).say(box, "Yes.", "en")
    long = await Speech(tmp_path).say(
        box, "Guten Morgen, heute scheint die Sonne; $(id) `id` -h", "de"
    )
    assert 0.2 < duration(short, SPOKEN_RATE) < 2 < duration(long, SPOKEN_RATE) < 15


async def test_piper_says_it_where_a_voice_of_the_language_was_pulled(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, models = tmp_path / "bin" / "piper", tmp_path / "models"
    voice = models / "de/de_DE/thorsten/medium/de_DE-thorsten-medium.onnx"
    for path in (program, voice):
        path.parent.mkdir(parents=True)
    program.write_text(PIPER)
    program.chmod(0o755)
    voice.write_bytes(b"onnx")
    monkeypatch.setattr(speech_module, "piper_program", lambda: program)
    speech = Speech(models)
    assert speech.voice("de") is None  # without its configuration
    Path(f"{voice}.json").write_text("{}")
    by_piper = await speech.say(box, "Ja.", "de")
    by_espeak = await speech.say(box, "Ja.", "en")
    assert duration(by_piper, SPOKEN_RATE) > 1.3 * duration(by_espeak, SPOKEN_RATE)
    program.write_text("#!/bin/bash\nexit 1\n")
    again = await speech.say(box, "Ja.", "de")  # a broken piper is no reason to be silent
    assert 0 < duration(again, SPOKEN_RATE) < duration(by_piper, SPOKEN_RATE)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The disk is half full, and there is nothing to do.", "en"),
        ("Die Platte ist halb voll, und es gibt nichts zu tun.", "de"),
        ("Le disque est à moitié plein et il ne reste rien à faire.", "fr"),
        ("El disco está medio lleno y no hay nada que hacer.", "es"),
        ("Диск заполнен наполовину.", "ru"),
        ("ディスクは半分です。", "ja"),
        ("Ok", "sv"),
    ],
    ids=["en", "de", "fr", "es", "ru", "ja", "unknown"],
)
def test_the_language_of_a_sentence(text: str, language: str) -> None:
    assert language_of(text, "sv" if text == "Ok" else "en") == language
