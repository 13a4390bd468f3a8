"""What the program answers itself while the toy serves, and what it leaves to the model."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agent import prompt
from agent.language import speaking, translated
from agent.messages import Assistant, System, ToolResult, User
from agent.model import Completion, Request, TextPiece
from agent.toy import texts
from agent.toy.answers import ToyAnswers, file_asked_about, fixed_answer
from agent.turn.answer_checks import AnswerChecks
from agent.turn.step import Step
from agent.turn.texts import CUT_ANSWER, GO_ON
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
        (said("how do I use a real model?"), texts.REAL_MODEL),
        (said("Can I get a better model"), texts.REAL_MODEL),
        (said("How can I switch to another model?"), texts.REAL_MODEL),
        (said("download a model"), texts.REAL_MODEL),
        (said("What can you do?"), texts.ABILITIES),
        (said("help"), texts.ABILITIES),
        (said("who are you?"), texts.SELF),
        (said("What's Voltaire?"), texts.SELF),
        (said("are you a robot"), texts.SELF),
        (said("", PHOTO), texts.PICTURE.format(path="received/my photo.jpg")),
        (said("", VOICE), texts.VOICE.format(path="received/voice-1.oga")),
        (said("", TABLE), texts.FILE.format(path="received/a.csv")),
        (said("remember this: " + "word " * 400), texts.PASTE.format(count=2014)),
        (said("can I use my own gguf file?"), texts.REAL_MODEL),
        (said("which model should I use with a 24 GB card?"), texts.REAL_MODEL),
        (said("does this cost anything"), texts.SETUP),
        (said("can you speak?"), texts.SENSES),
        (said("is it safe to use you?"), texts.PRIVACY),
        (said("can my wife use it too?"), texts.PRIVACY),
        (said("does anything I write leave this computer?"), texts.PRIVACY),
        (said("cancel the reminder about the oven"), texts.COMMANDS),
        (said("how do I let you into a git repository of mine?"), texts.REPOSITORIES),
        (said("do you remember what we talked about yesterday?"), texts.COMMANDS),
        (said("how do I make you forget everything?"), texts.COMMANDS),
        (said("how are you?"), texts.FINE),
        (said("which model are you running on?"), texts.SELF),
        (said("is anything I type here sent to the cloud?"), texts.PRIVACY),
        (said("what's in the news today?"), texts.REACH),
        (said("what's my ip address"), texts.REACH),
        (said("write me a short poem about autumn rain"), texts.UNSURE),
        (said("write a python script that prints primes and run it"), texts.UNSURE),
        (said("plan me a three day trip to Vienna"), texts.UNSURE),
        (said("summarize letter.txt in two sentences"), texts.UNSURE),
        (said("if I save 150 euros a month, what do I have?"), texts.UNSURE),
        (said("what does this do: `for f in *.txt; do rm $f; done`"), texts.UNSURE),
        (said("I've done the passport thing, tick it off"), texts.UNSURE),
        (said("今日の天気はどうですか?"), texts.LANGUAGE),
        (said("اكتب لي قصيدة عن البحر"), texts.LANGUAGE),
        (said("ciao, cosa sai fare?"), texts.LANGUAGE),
    ],
)
def test_what_the_program_knows_is_answered_by_it(message: str, answer: str) -> None:
    assert fixed_answer(message) == answer


@pytest.mark.parametrize(
    ("words", "language", "answer"),
    [
        ("Wer bist du?", "de", texts.SELF),
        ("wie bekomme ich ein richtiges Modell?", "de", texts.REAL_MODEL),
        ("hallo", "de", texts.HELLO),
        ("schreib mir ein Gedicht über das Meer", "de", texts.LANGUAGE),
        ("Hallo, wie geht es dir?", "de", texts.FINE),
        ("gracias por tu ayuda", "es", texts.WELCOME),
        ("спокойной ночи", "ru", texts.GOODBYE),
        ("Welches Modell bist du?", "de", texts.SELF),
        ("¿quién puede leer lo que escribo?", "es", texts.PRIVACY),
        ("que sais-tu faire ?", "fr", texts.ABILITIES),
        ("écris un petit poème sur Paris", "fr", texts.LANGUAGE),
        ("¿qué puedes hacer?", "es", texts.ABILITIES),
        ("кто ты?", "ru", texts.SELF),
        ("расскажи сказку", "ru", texts.LANGUAGE),
        ("你是谁？", "zh", texts.SELF),
    ],
)
def test_a_question_is_answered_in_its_own_language(words: str, language: str, answer: str) -> None:
    with speaking(language):
        expected = translated(answer)
    assert fixed_answer(said(words)) == expected != answer


@pytest.mark.parametrize(
    "message",
    [
        said("how much disk space is free?"),
        said("is it safe to take ibuprofen with aspirin?"),
        said("what time is it?"),
        said("write a file who.txt with who are you in it"),
        said("remember that my model train is in the cellar"),
        said("list the files", PHOTO),
        said("", LOST),
        said("remind me to call Das Boot in 2 minutes"),
        said("remind me to plan the trip tomorrow at 9"),
        said("summarize this repository"),
        said("write a script hello.py that prints hello"),
        said("list files in la and el"),
        said("2*3"),
        said(""),
        "no context at all",
        GO_ON,
        CUT_ANSWER,
    ],
)
def test_what_the_toy_was_made_for_is_left_to_it(message: str) -> None:
    assert fixed_answer(message) == ""


def test_what_lets_it_hear_on_this_machine_is_named() -> None:
    """A Whisper server is one way, not the only one."""
    for text in (texts.VOICE, texts.SENSES):
        assert "`voltaire model pull whisper-base`" in text and "`make voice`" in text


def test_no_fixed_answer_is_taken_for_a_claim() -> None:
    """Of having saved or planned something: such a claim is answered by advice or a correction."""
    for name in (n for n in dir(texts) if n.isupper()):
        text = getattr(texts, name)
        step = Step(Assistant(text))
        checks = AnswerChecks()
        assert not checks.advice(step, []) and checks.text(step, []) == text, name


@pytest.mark.parametrize(
    ("words", "tools", "asked"),
    [("who are you?", 1, 0), ("what is a monad?", 1, 1), ("who are you?", 0, 1)],
    ids=["known", "unknown", "a summary of it"],
)
async def test_the_model_is_asked_for_all_else(words: str, tools: int, asked: int) -> None:
    model = ScriptedModel.of(says("The model."))
    schemas = ({"type": "function", "function": {"name": "bash"}},) * tools
    request = Request((System("s"), User(said(words))), schemas)
    pieces = [piece async for piece in ToyAnswers(model).stream(request)]
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    assert text == ("The model." if asked else texts.SELF)
    assert isinstance(pieces[-1], Completion)
    assert len(model.requests) == asked


TEXT = "received/a note.txt (document, text/plain, 1 kB)"
REPORT = "received/r.pdf (document, application/pdf, 20 kB; docs show and docs search read it)"


@pytest.mark.parametrize(
    ("words", "file", "called", "shown"),
    [
        ("what does this say?", TEXT, ("read_file", {"path": "received/a note.txt"}), "Buy milk."),
        ("What's in it", REPORT, ("bash", {"command": "docs show received/r.pdf"}), "x" * 4000),
        ("read it to me, please", TEXT, ("read_file", {"path": "received/a note.txt"}), "a\nb"),
    ],
)
async def test_what_a_file_says_is_read_by_the_program(
    words: str, file: str, called: tuple[str, dict[str, str]], shown: str
) -> None:
    model = ScriptedModel.of(says("No."))
    request = Request((System("s"), User(said(words, file))), ({"type": "function"},))
    [completion] = [piece async for piece in ToyAnswers(model).stream(request)]
    assert isinstance(completion, Completion)
    [call] = completion.calls
    assert (call.name, json.loads(call.arguments)) == called
    behind = (*request.messages, Assistant("", (call,)), ToolResult("1", call.name, shown))
    pieces = [piece async for piece in ToyAnswers(model).stream(replace(request, messages=behind))]
    text = pieces[-1].text if isinstance(pieces[-1], Completion) else ""
    assert text.startswith(f"{call_path(file)} says:\n\n{shown[:1500]}") and len(text) < 1600
    assert model.requests == []


def call_path(line: str) -> str:
    return line.partition(" (")[0]


@pytest.mark.parametrize(
    "message",
    [
        said("what does this say?"),
        said("what does this say?", TEXT, REPORT),
        said("what does this say?", PHOTO),
        said("how many lines does it have?", TEXT),
        said(
            "remind me in 2 minutes to read the pdf of the bank about the new fees and all of that",
            TEXT,
        ),
    ],
)
def test_other_wishes_about_files_are_left_to_the_toy(message: str) -> None:
    assert file_asked_about(message) == ""


def test_what_a_photo_shows_is_not_guessed() -> None:
    assert fixed_answer(said("what is this?", PHOTO)) == texts.PICTURE.format(
        path="received/my photo.jpg"
    )
