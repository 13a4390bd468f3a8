"""A sentence to samples, in a sandbox: by piper where it is installed and a voice of the language was pulled,
else by espeak-ng.
"""

import logging
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import ToolError
from agent.sandbox.bubblewrap import MODELS, PROGRAM
from agent.sandbox.sandbox import Sandbox
from agent.voice.sound import (
    INSTALL_FFMPEG,
    SPOKEN_RATE,
    SYSTEM_PATH,
    find_program,
    has_ffmpeg,
    in_sandbox,
    sealed,
)

log = logging.getLogger(__name__)

SECONDS = 60.0  # for a sentence
MEMORY_MIB = 2048  # of piper
TO_SAMPLES = 'ffmpeg -nostdin -v quiet -i /tmp/said.wav -ac 1 -ar "$2" -f s16le pipe:1 2>/dev/null'
ESPEAK = f'espeak-ng -v "$1" -w /tmp/said.wav -f /tmp/sentence >/dev/null 2>&1; {TO_SAMPLES}'
PIPER = (
    f'voice="$1"; rate="$2"; shift 2; "$@" -m "$voice" -f /tmp/said.wav </tmp/sentence >/dev/null 2>&1;'
    f' set -- - "$rate"; {TO_SAMPLES}'
)


@dataclass(frozen=True)
class Speech:
    """Speaks sentences; `models` is the folder of pulled voices."""

    models: Path

    async def say(self, box: Sandbox, sentence: str, language: str) -> bytes:
        """Speak a text; return its samples, SPOKEN_RATE a second. Raises ToolError."""
        voice, piper = self.voice(language), piper_program()
        if voice and piper:
            argv, folders = piper_in_sandbox(piper)
            folders[MODELS] = os.fspath(self.models)
            place = f"{MODELS}/{voice.relative_to(self.models)}"
            command = ["/bin/bash", "-c", PIPER, "say", place, str(SPOKEN_RATE), *argv]
            if samples := await samples_of(sealed(box, MEMORY_MIB), command, sentence, folders):
                return samples
            log.warning("piper said nothing: %s, %s", piper, voice)
        command = ["/bin/bash", "-c", ESPEAK, "say", language, str(SPOKEN_RATE)]
        if samples := await samples_of(sealed(box), command, sentence, {}):
            return samples
        raise ToolError("The speech engine said nothing.")

    def voice(self, language: str) -> Path | None:
        """A pulled voice of piper for the language."""
        found = sorted(self.models.glob(f"{language}/*/*/*/{language}_*.onnx"))
        return next((path for path in found if Path(f"{path}.json").is_file()), None)

    def missing(self) -> str:
        """What to install before anything can be said; "" where nothing is missing."""
        if not has_ffmpeg():
            return INSTALL_FFMPEG
        piper = piper_program() and any(self.models.glob("*/*/*/*/*.onnx"))
        espeak = shutil.which("espeak-ng", path=SYSTEM_PATH)
        return "" if espeak or piper else "apt-get install espeak-ng"


async def samples_of(
    box: Sandbox, command: Sequence[str], sentence: str, folders: Mapping[str, str]
) -> bytes:
    inputs = {"sentence": sentence.encode("utf-8", "replace") + b"\n"}
    return await box.read_internal(command, seconds=SECONDS, inputs=inputs, folders=folders)


def piper_program() -> Path | None:
    return find_program("piper", path=f"{SYSTEM_PATH}:/opt/piper")


def piper_in_sandbox(program: Path) -> tuple[list[str], dict[str, str]]:
    """The command there, and the folders that it needs, by their places."""
    path, folders = in_sandbox(program)
    own = program.parent == Path(sys.executable).parent and sys.prefix != sys.base_prefix
    if own and folders:
        # A script of the virtual environment, whose first line names a path that is not there.
        return [f"{PROGRAM}/bin/python", "-m", program.name], {PROGRAM: sys.prefix}
    return [path], folders


# -- the language of a text ---------------------------------------------------


SCRIPTS = {
    "ru": "\u0400-\u04ff",
    "el": "\u0370-\u03ff",
    "ar": "\u0600-\u06ff",
    "he": "\u0590-\u05ff",
    "hi": "\u0900-\u097f",
    "ko": "\uac00-\ud7af",
    "ja": "\u3040-\u30ff",
    "cmn": "\u4e00-\u9fff",
}
WORDS = {
    "en": "the and is are of to in that it you for with this not have be on was as your what",
    "de": "der die das und ist nicht ich du sie es ein eine zu mit auf für den dem von wie auch",
    "fr": "le la les et est pas je tu vous un une des du pour dans que qui avec sur ce il elle",
    "es": "el la los las y es no yo tú un una de que para con por en su se lo como está",
    "it": "il lo la gli e è non io un una di che per con in si come sono questo della nel",
    "pt": "o a os as e é não eu um uma de que para com por em se como está do da no na",
    "nl": "de het een en is niet ik je van dat op te zijn met voor maar ook aan er wat",
    "pl": "i w na nie to jest się z do że jak ale tak co po dla od czy już są",
    "sv": "och att det är en på som för av med den till inte jag har du vi ett kan",
}
COMMON = {language: frozenset(words.split()) for language, words in WORDS.items()}
LEAST = 2  # common words by which a language is recognized


def language_of(text: str, default: str = "en") -> str:
    """A code that espeak-ng knows, such as "de"; the default where the text does not tell."""
    letters = sum(map(str.isalpha, text)) or 1
    for language, signs in SCRIPTS.items():
        if len(re.findall(f"[{signs}]", text)) * 3 > letters:
            return language
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {
        language: sum(word in common for word in words) for language, common in COMMON.items()
    }
    best = max(counts, key=lambda language: (counts[language], language == default))
    return best if counts[best] >= LEAST else default
