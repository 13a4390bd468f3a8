"""In chats that no stranger's text has touched, an owner is asked no more than before."""

from pathlib import Path

from bench.questions import ASKED, EVERYTHING, counted


async def test_the_same_wishes_ask_no_more_than_before(tmp_path: Path) -> None:
    asked = await counted(tmp_path, EVERYTHING)
    assert len(asked) == 12
    assert {wish: count for wish, count in asked.items() if count} == ASKED
