"""Fixed answers while the toy model serves: what a program knows is not left to 5 MB of weights.

About itself, files, pictures, recordings, long pastes and other languages than English.
"""

import re
import unicodedata
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from agent.messages import User
from agent.model import Ahead, Completion, Model, Piece, Request, TextPiece
from agent.turn import texts

TOY = "pocket"  # its profile
PASTE = 1500  # characters
SHORT = 90  # characters of a question about the program itself
# Patterns are compiled at their first use: a start does not wait for them.
HEAD = r"(?s)<context>\n(.*?)\n</context>\n"
FILE = r"(?m)^file: (.+?) \((?!.*not fetched)(.*)\)$"
QUESTIONS = (
    (r"\b(?:real|better|bigger|proper|other|another|different) model\b", texts.TOY_REAL_MODEL),
    (r"\b(?:use|get|download|install|switch|change|load)\b.{0,20}\bmodels?\b", texts.TOY_REAL_MODEL),
    (r"what (?:can|could) (?:you|i)\b.{0,12}\b(?:do|ask|help)|what are you able|^help$|^what do you do", texts.TOY_ABILITIES),
    (r"^(?:(?:and |so )?who|what)(?: are you|'s voltaire| is voltaire)|^are you (?:an? |chat)|your name", texts.TOY_SELF),
)  # fmt: skip
ENGLISH = frozenset(
    "the is are what how a an my me to in of for and please i you do can it on at".split()
)
OTHERS = tuple(
    frozenset(words.split())
    for words in (
        "ich und nicht wie ist bitte der die das kannst du viel mir ein eine wieviel noch wird auf uhr",
        "je et le la les est combien quelle quel que peux tu mon une des pour moi dans reste heure",
        "el la los es cuanto cuánto que qué puedes mi una para en por hora queda hay del cómo",
    )
)


def fixed_answer(message: str) -> str:
    """The answer to a person's message as the model gets it; "" where the model is to try."""
    head = re.match(HEAD, message)
    words = message[head.end() :].strip() if head else message.strip()
    file = re.search(FILE, head[1]) if head else None
    if file and not words:
        what = file[2].lower()
        form = texts.TOY_FILE
        if "photo" in what or "image/" in what:
            form = texts.TOY_PICTURE
        elif "voice" in what or "audio" in what or "video" in what:
            form = texts.TOY_VOICE
        return form.format(path=file[1])
    if len(words) > PASTE:
        return texts.TOY_PASTE.format(count=len(words))
    asked = " ".join(words.lower().replace("’", "'").strip("?!. ").split())
    if len(asked) <= SHORT:
        for pattern, answer in QUESTIONS:
            if re.search(pattern, asked):
                return answer
    return texts.TOY_LANGUAGE if is_foreign(words) else ""


def is_foreign(words: str) -> bool:
    """Whether it is certainly not English: by its script, or by small words of another language."""
    letters = [c for c in words if c.isalpha()]
    latin = sum(unicodedata.name(c, "").startswith("LATIN") for c in letters)
    if letters and 2 * latin < len(letters):
        return True
    said = set(re.findall(r"\w+", words.lower()))
    return any(
        len(said & other) >= 2 and len(said & other) > len(said & ENGLISH) for other in OTHERS
    )


@dataclass(frozen=True)
class ToyAnswers:
    """The toy, before which a fixed answer comes."""

    model: Model

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        last = request.messages[-1]
        answer = fixed_answer(last.text) if isinstance(last, User) and request.tools else ""
        if answer:
            yield TextPiece(answer)
            yield Completion(answer, (), "", "stop")
            return
        async with aclosing(self.model.stream(request)) as pieces:
            async for piece in pieces:
                yield piece

    async def window(self) -> int:
        return await self.model.window()

    async def count(self, request: Request) -> int:
        return await self.model.count(request)

    async def ahead(self, request: Request, *, changed: bool = False) -> Ahead | None:
        return await self.model.ahead(request, changed=changed)
