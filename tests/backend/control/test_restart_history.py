"""What ended the model server is kept over the backend's own restarts, and shown."""

from pathlib import Path

import pytest

from backend.protocol import Phrase
from backend.state import RestartHistory


def test_it_is_kept_bounded_and_survives_a_bad_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.state.KEPT", 5)
    history = RestartHistory(tmp_path / "restarts.jsonl")
    assert history.read() == []
    first = history.add(Phrase("The model server was killed."))
    with history.path.open("a") as file:
        file.write("half a li")
    assert RestartHistory(history.path).read() == [first]
    for number in range(5):
        history.add(Phrase(str(number)))
    assert [history.read()[0].cause, history.read()[-1].cause] == ["0", "4"]
