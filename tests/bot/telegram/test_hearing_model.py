"""A voice message from Telegram to the answer of a real llama.cpp server that hears: its projector of sound has random
weights, so that what is tested is what reaches it and what becomes of its words."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from fakes import gguf_chain, gguf_projector, recordings
from fakes.bot_running import OWNER
from fakes.localgram import Localgram, is_final
from tests.bot.telegram.test_pictures import process

SAID = "Is it raining?"


@pytest.mark.parametrize("kind", ["managed", pytest.param("external", marks=pytest.mark.slow)])
async def test_a_model_that_hears_writes_down_what_is_said(
    kind: str, gram: Localgram, tmp_path: Path
) -> None:
    olga = gram.user("Olga Owner", id=OWNER, started=True)
    model = gguf_chain.make_chain(tmp_path / "m.gguf", SAID)
    projector = gguf_projector.make_speech_to_text(tmp_path / "mmproj.gguf", gguf_chain.WIDTH)
    async with process(kind, gram, tmp_path, (model, projector)) as program, program.running():
        await olga.send_file("voice", recordings.spoken("Is it raining?"), seconds=1)
        quoted = await olga.next_message(where=lambda m: m.entities and m.text == SAID)
        answer = await olga.next_message(where=lambda m: is_final(m) and not m.entities)
        await program.stop()
    assert [entity["type"] for entity in quoted.entities] == ["blockquote"]
    assert answer.text == SAID  # which this model says to everything
    with closing(sqlite3.connect(program.database)) as connection:
        sql = "SELECT head, text FROM transcript WHERE role = 'user'"
        [(head, text)] = connection.execute(sql).fetchall()
    assert "; transcribed)" in head and text.endswith(SAID)
