"""The terminal as a channel."""

import asyncio
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
from rich.console import Console

from bot.channel import Asked, Choice, OutgoingMessage, Step, View
from bot.terminal import Lines, Terminal
from fakes.patience import soon


@pytest.fixture
def typed() -> Iterator[tuple[TextIO, TextIO]]:
    """What a person types: (the program's end, the person's end)."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream, os.fdopen(writing, "w") as person:
        yield stream, person
        person.close()


def terminal(lines: Lines, folder: Path) -> tuple[Terminal, io.StringIO]:
    screen = io.StringIO()
    return Terminal(Console(file=screen, width=60), lines, folder), screen


async def test_texts_questions_and_files(typed: tuple[TextIO, TextIO], tmp_path: Path) -> None:
    stream, person = typed
    lines = Lines(stream)
    here, screen = terminal(lines, tmp_path)
    assert await here.send("cli", OutgoingMessage("**Hello** there")) == ["1"]
    message = asyncio.create_task(lines.next())
    rows = [[Choice("a", "Allow")], [Choice("d", "Deny")]]
    asking = asyncio.create_task(here.ask("cli", "May I?", rows))
    await asyncio.sleep(0)
    print("nonsense", file=person, flush=True)
    await soon(lambda: "1 to 2?" in screen.getvalue())
    print("2\nhi", file=person, flush=True)
    assert await asking == Asked("2", "d")
    assert await message == "hi"
    await here.file("cli", io.BytesIO(b"data"), "../../a.txt", "a file")
    assert (tmp_path / "a.txt").read_bytes() == b"data"
    shown = [line.rstrip() for line in screen.getvalue().splitlines() if line.strip()]
    assert shown[:5] == ["Hello there", "May I?", "  1 Allow", "  2 Deny", "1 to 2?"]
    assert "".join(shown[5:]).startswith("a file ·")
    person.close()
    with pytest.raises(EOFError):
        await lines.next()


async def test_a_turn_leaves_its_tool_lines(typed: tuple[TextIO, TextIO], tmp_path: Path) -> None:
    here, screen = terminal(Lines(typed[0]), tmp_path)
    live = here.live("cli")
    view = View((Step("c", "bash", "ls", "ok", "\n".join("abcdefgh"), 1.25),), "growing", "status")
    await live.show(view)
    live.close(view)
    await here.send("cli", OutgoingMessage("the answer"))
    live.close(view)
    await live.show(View(text="too late"))
    await live.settle(view)
    shown = "\n".join(line.rstrip() for line in screen.getvalue().splitlines())
    lines = "✓ bash ls · 1.2 s\n  a\n  b\n  c\n  d\n  e\n  f\n  … 2 more lines\nthe answer"
    assert shown.endswith(lines)
    assert "too late" not in shown
    typed[1].close()
