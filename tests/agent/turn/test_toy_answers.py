"""What the program answers itself while the toy serves, and what it leaves to the model."""

from datetime import UTC, datetime

import pytest

from agent import prompt
from agent.messages import Assistant, System, User
from agent.model import Completion, Request, TextPiece
from agent.turn import texts
from agent.turn.answer_checks import AnswerChecks
from agent.turn.step import Step
from agent.turn.toy_answers import ToyAnswers, fixed_answer
from fakes.model_scripted import ScriptedModel, says

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
PHOTO = "received/my photo.jpg (photo, 20 kB)"
VOICE = "received/voice-1.oga (voice, audio/ogg, 3 s)"
TABLE = "received/a.csv (document, text/csv, 2 kB)"
LOST = "big.iso (document, 4000.0 MB; not fetched: larger than the 20 MB that can be received here)"


def said(words: str, *files: str) -> str:
    return prompt.context_block(NOW, "UTC", files=files) + words


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (said("how do I use a real model?"), texts.TOY_REAL_MODEL),
        (said("Can I get a better model"), texts.TOY_REAL_MODEL),
        (said("How can I switch to another model?"), texts.TOY_REAL_MODEL),
        (said("download a model"), texts.TOY_REAL_MODEL),
        (said("What can you do?"), texts.TOY_ABILITIES),
        (said("help"), texts.TOY_ABILITIES),
        (said("who are you?"), texts.TOY_SELF),
        (said("What's Voltaire?"), texts.TOY_SELF),
        (said("are you a robot"), texts.TOY_SELF),
        (said("", PHOTO), texts.TOY_PICTURE.format(path="received/my photo.jpg")),
        (said("", VOICE), texts.TOY_VOICE.format(path="received/voice-1.oga")),
        (said("", TABLE), texts.TOY_FILE.format(path="received/a.csv")),
        (said("remember this: " + "word " * 400), texts.TOY_PASTE.format(count=2014)),
        (said("wie viel Platz ist noch auf der Platte?"), texts.TOY_LANGUAGE),
        (said("quelle heure est-il pour moi"), texts.TOY_LANGUAGE),
        (said("¿qué hora es?"), texts.TOY_LANGUAGE),
        (said("сколько места на диске?"), texts.TOY_LANGUAGE),
        (said("还有多少磁盘空间"), texts.TOY_LANGUAGE),
    ],
)
def test_what_the_program_knows_is_answered_by_it(message: str, answer: str) -> None:
    assert fixed_answer(message) == answer


@pytest.mark.parametrize(
    "message",
    [
        said("how much disk space is free?"),
        said("what time is it?"),
        said("write a file who.txt with who are you in it"),
        said("remember that my model train is in the cellar"),
        said("list the files", PHOTO),
        said("", LOST),
        said("remind me to call Das Boot in 2 minutes"),
        said("list files in la and el"),
        said("2*3"),
        said(""),
        "no context at all",
        texts.GO_ON,
        texts.CUT_ANSWER,
    ],
)
def test_what_the_toy_was_made_for_is_left_to_it(message: str) -> None:
    assert fixed_answer(message) == ""


def test_no_fixed_answer_is_taken_for_a_claim() -> None:
    """Of having saved or planned something: such a claim is answered by advice or a correction."""
    for name in (n for n in dir(texts) if n.startswith("TOY_")):
        text = getattr(texts, name)
        step = Step(Assistant(text))
        checks = AnswerChecks()
        assert not checks.advice(step, []) and checks.text(step, []) == text, name


@pytest.mark.parametrize(
    ("words", "tools", "asked"),
    [("who are you?", 1, 0), ("what is 17 * 23?", 1, 1), ("who are you?", 0, 1)],
    ids=["known", "unknown", "a summary of it"],
)
async def test_the_model_is_asked_for_all_else(words: str, tools: int, asked: int) -> None:
    model = ScriptedModel.of(says("The model."))
    schemas = ({"type": "function", "function": {"name": "bash"}},) * tools
    request = Request((System("s"), User(said(words))), schemas)
    pieces = [piece async for piece in ToyAnswers(model).stream(request)]
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    assert text == ("The model." if asked else texts.TOY_SELF)
    assert isinstance(pieces[-1], Completion)
    assert len(model.requests) == asked
