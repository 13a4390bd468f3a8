"""Reasons cross the socket as codes with fields, and become sentences where it is known who reads them."""

import json
from datetime import UTC, datetime

import pytest

from agent.language import languages, speaking, translate_phrase, translated
from backend.client import BackendRefused
from backend.protocol import Alert, Phrase, ServerStatus, in_english
from backend.server.diagnosis import diagnose
from fakes.words import saying

MISSING = Phrase(
    "The model file is missing: {path}. Get it: voltaire model pull {name}.",
    path="/m/q.gguf",
    name="qwen3-4b",
)
LESS = Phrase("a window of {count} tokens", count=16384)
PHRASES = [
    Phrase("The GPU ran out of memory."),
    Phrase("The GPU ran out of memory; continuing with {less}.", less=LESS),
    Phrase("The model server cannot be started: {why}", why=MISSING),
    Phrase("GPU {index} answers again.", index=0),
    Phrase("No model server can be reached at {where}.", where="{x}, {0} and {{y}}"),
    Phrase("throttled: {why}", why=[Phrase("thermal"), Phrase("power cap")]),
    Phrase("a line {of} a log with {braces"),
    Phrase("{speed} tokens/s reported ({source})", speed=12.5, source="somebody"),
    Phrase("The model server ended with code {code}: {said}", code=1, said="error: {oops}"),
    Phrase(""),
]


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_crosses_the_socket_whole(phrase: Phrase) -> None:
    sent = ServerStatus(state="failed", reason=phrase, less_memory=[phrase])
    came = ServerStatus.model_validate_json(sent.to_data())
    assert came.reason is not None
    for each in (came.reason, came.less_memory[0], Phrase.from_body(json.dumps(phrase.data()))):
        assert (each, each.data()) == (phrase, phrase.data())
    for code in languages():
        with speaking(code):
            assert translate_phrase(came.reason) == translate_phrase(phrase)


@pytest.mark.parametrize("phrase", PHRASES)
def test_scripts_read_an_english_sentence(phrase: Phrase) -> None:
    status = ServerStatus(state="failed", reason=phrase)
    assert json.loads(status.model_dump_json())["reason"] == str(phrase)
    assert json.loads(json.dumps(status.model_dump()))["reason"] == str(phrase)


def test_parts_and_numbers_are_in_the_language_too() -> None:
    with speaking("de"):
        whole = translate_phrase(PHRASES[2])
        assert whole == saying("Modellserver", "Modelldatei fehlt", "/m/q.gguf")
        assert whole.endswith(": voltaire model pull qwen3-4b.") and "Get it" not in whole
        assert translate_phrase(PHRASES[1]) == saying("Speicher der GPU", "16\u202f384 Tokens")
        assert "12,5 Tokens/s" in translate_phrase(PHRASES[7])
        assert "thermal" not in translate_phrase(PHRASES[5])
    assert PHRASES[1].endswith("16,384 tokens.") and in_english(0.5) == "0.5"


def test_words_of_others_stay_as_they_came() -> None:
    ended = diagnose(1, ["error: something odd"]).sentence
    with speaking("fr"):
        assert translate_phrase(ended) == saying(
            "serveur de modèle", "code 1 ", "error: something odd"
        )
        assert translate_phrase("ggml: 12.5 is odd.") == "ggml: 12.5 is odd."
        assert translate_phrase("The model server ended.") == translated("The model server ended.")


@pytest.mark.parametrize(
    "body",
    [
        '{"code": "a {b}"}',
        '{"code": "a {b}", "fields": {"c": 1}}',
        '{"code": "{b.__class__}", "fields": []}',
        '{"code": 7, "fields": {}}',
        "[" * 100_000,
        "no json",
        "7",
        "null",
        "[1]",
        "{}",
    ],
)
def test_what_is_no_phrase_is_taken_as_text(body: str) -> None:
    assert Phrase.from_body(body) == body


def test_an_error_keeps_its_phrase() -> None:
    assert Phrase.of(BackendRefused(MISSING)).data() == MISSING.data()
    assert Phrase.of(OSError(2, "gone")) == "[Errno 2] gone"
    assert Phrase.of(ValueError()) == ""


def test_alerts_of_a_file_from_before_are_read() -> None:
    line = {
        "id": 1,
        "at": datetime.now(UTC).isoformat(),
        "name": "x",
        "level": "info",
        "text": "Hot.",
    }
    assert Alert.model_validate_json(json.dumps(line)).text.code == "Hot."
