"""A running turn's own message, where an app shows no drafts."""

from pathlib import Path
from typing import Any

from agent.store import open_store
from bot.channel import ToolCallView, TurnView
from bot.telegram.live import LiveMessage, LiveMessageStore


class Edits:
    """Keeps what is to be shown; each takes a request of the group's few."""

    drafts = False

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def put_progress(self, chat: str, message: str, text: Any, *_: object) -> str:
        self.texts.append(text.text)
        return message or "7"


async def test_what_stands_there_already_takes_no_request(tmp_path: Path) -> None:
    edits: Any = Edits()
    async with open_store(tmp_path / "v.db") as store:
        live = LiveMessage(edits, "tg:-5", LiveMessageStore(store.key_values))
        running = ToolCallView("c", "bash", "make")
        for seconds in (5, 5, 10):
            await live.show(TurnView((running,), status=f"running bash for {seconds} s"))
    assert [text.splitlines()[-1] for text in edits.texts] == [
        "running bash for 5 s",
        "running bash for 10 s",
    ]
