"""The terminal as a channel."""

import asyncio
import io
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO, cast

import pytest
from rich.console import Console

from agent.approvals import ApprovalRequest
from agent.events import Notice, TextDelta, ToolCalled, ToolFinished, TurnFinished
from agent.plan import PlanStep
from agent.store import open_store
from bot.acts import ACTS
from bot.approval_question import question, send_whole
from bot.channel import (
    Button,
    MessageRefused,
    OutgoingMessage,
    ToolCallView,
    TurnView,
    send,
)
from bot.cli.ask import TextPrinter
from bot.cli.chat import Conversation
from bot.cli.command import Failed
from bot.cli.rehearsal import difference
from bot.holder import Holder
from bot.settings import Settings
from bot.terminal import InputLines, Terminal
from bot.texts import Texts
from fakes.cases import cases
from fakes.patience import soon
from fakes.sandbox_box import opened


@pytest.fixture
def typed() -> Iterator[tuple[TextIO, TextIO]]:
    """What a person types: (the program's end, the person's end)."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream, os.fdopen(writing, "w") as person:
        yield stream, person
        person.close()


def terminal(lines: InputLines, folder: Path) -> tuple[Terminal, io.StringIO]:
    screen = io.StringIO()
    return Terminal(Console(file=screen, width=60), lines, folder), screen


async def test_texts_questions_and_files(typed: tuple[TextIO, TextIO], tmp_path: Path) -> None:
    stream, person = typed
    lines = InputLines(stream)
    here, screen = terminal(lines, tmp_path)
    assert await send(here, "cli", OutgoingMessage("**Hello** there")) == ["1"]
    message = asyncio.create_task(lines.next())
    rows = [[Button("a", "Allow")], [Button("d", "Deny")]]
    asking = asyncio.create_task(here.ask("cli", "May I?", rows))
    await asyncio.sleep(0)
    print("nonsense", file=person, flush=True)
    await soon(lambda: "1 to 2?" in screen.getvalue())
    print("2\nhi", file=person, flush=True)
    assert await asking == "d"
    assert await message == "hi"
    await here.send_files("cli", [(io.BytesIO(b"data"), "../../a.txt")], "a file")
    assert (tmp_path / "a.txt").read_bytes() == b"data"
    shown = [line.rstrip() for line in screen.getvalue().splitlines() if line.strip()]
    assert shown[:5] == ["Hello there", "May I?", "  1 Allow", "  2 Deny", "1 to 2?"]
    assert "".join(shown[5:]).startswith("a file ·")
    person.close()
    with pytest.raises(EOFError):
        await lines.next()


DRIVING = [
    "\x1b]52;c;cm0gLXJmIH4K\x07", "\x1b]0;title\x1b\\", "\x1b[2J\x1b[H", "\x9b31m", "\x1bP+q544e\x1b\\", "\x1b", "\x9d0;title\x9c",
    "\x07", "\x08\x08", "\u202eexe", "\x1b]8;;http://x\x1b\\", "\x1b[?1049h", "\x1bc", "\x0e", "\x7f",
]  # fmt: skip


@cases("odd", DRIVING)
async def test_what_is_shown_does_not_drive_the_terminal(
    odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, screen = terminal(cast(Any, None), tmp_path / "sent")
    live, word = here.live_view("cli"), f"a{odd}b"
    call = ToolCallView("c", word, word, "ok", f"{word}\n", 1.25)
    view = TurnView((call,), word, "", word, plan=(PlanStep(word),))
    await live.show(view)
    await here.send_files("cli", [(io.BytesIO(b"data"), f"{word}.txt")], word)
    live.close(view)
    await send(here, "cli", OutgoingMessage(f"{word} `{word}`\n\n```\n{word}\n```"))
    await here.edit("cli", "1", word)
    printer = TextPrinter()
    for event in (TextDelta(word), ToolCalled("c", word, {word: word}), Notice(word)):
        printer.print(event)
    printer.print(ToolFinished("c", word, True, word, 1))
    printer.print(TurnFinished(word, "done", 1))
    Failed(word).show()
    both = difference(cast(Any, SimpleNamespace(then=("", word), now=(word, "x"))))
    told = "".join([screen.getvalue(), *capsys.readouterr(), both])
    left = {c for c in told if not c.isprintable()} - {"\n"}
    assert not left and all(name.isprintable() for name in os.listdir(tmp_path / "sent"))


@pytest.mark.parametrize("name", ["sent", "sent/a.txt"])
async def test_a_file_follows_no_link(tmp_path: Path, name: str) -> None:
    """As in a repository of a stranger's, in which somebody talks to the agent."""
    here, _ = terminal(cast(Any, None), tmp_path / "sent")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").write_text("mine")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "mine" / ("a.txt" if "/" in name else ""))
    with suppress(MessageRefused):
        await here.send_files("cli", [(io.BytesIO(b"evil"), "a.txt")], "")
    assert (tmp_path / "mine" / "a.txt").read_text() == "mine"


async def test_a_turn_leaves_its_tool_lines(typed: tuple[TextIO, TextIO], tmp_path: Path) -> None:
    here, screen = terminal(InputLines(typed[0]), tmp_path)
    live = here.live_view("cli")
    view = TurnView(
        (ToolCallView("c", "bash", "ls", "ok", "\n".join("abcdefgh"), 1.25),), "growing", "status"
    )
    await live.show(view)
    live.close(view)
    await send(here, "cli", OutgoingMessage("the answer"))
    live.close(view)
    await live.show(TurnView(text="too late"))
    await live.finish(view)
    shown = "\n".join(line.rstrip() for line in screen.getvalue().splitlines())
    lines = "✓ bash ls · 1.2 s\n  a\n  b\n  c\n  d\n  e\n  f\n  … 2 more lines\nthe answer"
    assert shown.endswith(lines)
    assert "too late" not in shown
    typed[1].close()


async def test_a_sent_file_stands_below_the_tool_lines_of_its_turn(
    typed: tuple[TextIO, TextIO], tmp_path: Path
) -> None:
    here, screen = terminal(InputLines(typed[0]), tmp_path)
    live = here.live_view("cli")
    view = TurnView((ToolCallView("c", "send_file", "a.txt", "ok", "", 0.0),), "", "")
    await here.send_files("cli", [(io.BytesIO(b"data"), "a.txt")], "the list")
    live.close(view)
    await here.send_files("cli", [(io.BytesIO(b"data"), "b.txt")], "of a job")
    shown = screen.getvalue()
    assert shown.index("send_file a.txt") < shown.index("the list ·") < shown.index("of a job ·")
    typed[1].close()


async def test_a_long_step_is_written_whole_beside_its_question(
    typed: tuple[TextIO, TextIO], tmp_path: Path
) -> None:
    here, screen = terminal(InputLines(typed[0]), tmp_path)
    step = f"BEGIN{'x' * 9000}END\u202e"
    asked = ApprovalRequest("i", "t", "c", "cli", step, "s", 0.0)
    await send_whole(here, "cli", asked)
    await send(here, "cli", OutgoingMessage(question(asked)))
    assert (tmp_path / "approval.txt").read_text("utf-8") == step
    assert "END⟨U+202E⟩" in screen.getvalue() and "\u202e" not in screen.getvalue()


NOTES = [
    "see [/etc/hosts]", "[/bold] it", "[bold]loud[/bold]", "[link=http://x]here[/link]", "[red", "a] b [/", "[@click=x]y[/]", "[[x]]",
    "[/]", "\\[x]",
]  # fmt: skip


async def test_notes_are_shown_as_they_were_written(
    typed: tuple[TextIO, TextIO], tmp_path: Path
) -> None:
    lines = InputLines(typed[0])
    here, screen = terminal(lines, tmp_path)

    class Client:
        async def call(self, act: str, /, **fields: Any) -> Any:
            return [*NOTES, *(f"a{odd}b" for odd in DRIVING)]

    talk = Conversation("cli", here, lines, cast(Any, None), cast(Any, None))
    print("/memory", file=typed[1], flush=True)
    typed[1].close()
    await talk.talk(cast(Any, Client()), cast(Any, None))
    shown = screen.getvalue()
    assert all(f"- {note}\n" in shown for note in NOTES)
    assert {c for c in shown if not c.isprintable()} == {"\n"}


@cases("label", NOTES)
async def test_a_button_is_labelled_as_it_says(label: str, tmp_path: Path) -> None:
    class One:
        async def next(self) -> str:
            return "1"

    here, screen = terminal(cast(Any, One()), tmp_path)
    assert await here.ask("cli", "Which?", [[Button("a", label)]]) == "a"
    assert screen.getvalue().endswith(f"  1 {label}\n")


async def test_trust_in_the_terminal(typed: tuple[TextIO, TextIO], tmp_path: Path) -> None:
    lines = InputLines(typed[0])
    here, screen = terminal(lines, tmp_path)
    async with open_store(tmp_path / "v.db") as store, opened(tmp_path / "state") as sandboxes:
        note, _ = await store.notes.add("cli", "Tea at five.", stranger="page x")
        await store.notes.add("cli", "At six.", stranger="page y")
        agent = cast(Any, SimpleNamespace(sandboxes=sandboxes))
        holder = Holder(Settings(), cast(Any, None), store, agent)

        class Client:
            async def call(self, act: str, /, **fields: Any) -> Any:
                return json.loads(json.dumps(await ACTS[act](holder, fields)))

        talk = Conversation("cli", here, lines, cast(Any, None), cast(Any, None))
        print("/trust\n3\n/trust\n1\n/trust\n1\n/trust", file=typed[1], flush=True)
        typed[1].close()
        await talk.talk(cast(Any, Client()), cast(Any, None))
        rows = [json.loads(r.facts) for r in await store.ledger.rows()]
    shown = screen.getvalue()
    assert (
        shown.index("Tea at five.") < shown.index(Texts().vouched) < shown.index(Texts().untouched)
    )
    assert [row["what"] for row in rows] == [f"note {note.id}", f"note {note.id + 1}"]
    assert {row["by"] for row in rows} == {"terminal"}


async def test_undo_in_the_terminal(typed: tuple[TextIO, TextIO], tmp_path: Path) -> None:
    lines = InputLines(typed[0])
    here, screen = terminal(lines, tmp_path)
    async with open_store(tmp_path / "v.db") as store, opened(tmp_path / "state") as sandboxes:
        sandbox = await sandboxes.of("cli")
        sandbox.history.begin("t1")
        (sandbox.workspace / "a.txt").write_text("theirs\n")
        sandbox.history.end("t1")
        (sandbox.workspace / "a.txt").write_text("mine\n")
        agent = cast(Any, SimpleNamespace(sandboxes=sandboxes))
        holder = Holder(Settings(), cast(Any, None), store, agent)

        class Client:
            async def call(self, act: str, /, **fields: Any) -> Any:
                return json.loads(json.dumps(await ACTS[act](holder, fields)))

        talk = Conversation("cli", here, lines, cast(Any, None), cast(Any, None))
        print("/changes\n/undo\n2\n/undo 9\n/undo 1\n1", file=typed[1], flush=True)
        typed[1].close()
        await talk.talk(cast(Any, Client()), cast(Any, None))
        left = list(sandbox.workspace.iterdir())
    shown = screen.getvalue()
    told = ["+theirs", Texts().not_undone, "is no longer known", "is taken back"]
    assert [text for text in told if text not in shown] == []
    assert left == []
