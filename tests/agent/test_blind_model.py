"""What the program answers in the place of a model that sees no pictures."""

from datetime import UTC, datetime

from agent import prompt
from agent.pictures import blind_answer
from agent.turn import texts

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
BLIND = "received/a.jpg (photo, 20 kB; this model cannot see pictures, and the person was told so)"
TEXT = "received/a note.txt (document, text/plain, 1 kB)"


def said(words: str, *files: str) -> str:
    return prompt.context_block(NOW, "UTC", files=files) + words


def test_a_picture_without_words_for_a_blind_model_is_answered_by_the_program() -> None:
    kept = f"Blind. {texts.KEPT.format(paths='received/a.jpg')}"
    assert blind_answer(said("", BLIND), "Blind.") == kept
    assert blind_answer(said("save it as x.jpg", BLIND), "Blind.") == ""
    assert blind_answer(said("", BLIND, TEXT), "Blind.") == ""
    assert blind_answer(said(""), "Blind.") == ""
