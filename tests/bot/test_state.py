from pathlib import Path

import pytest

from agent.store import Incoming
from agent.store.errors import StoreDamaged
from bot import totp
from bot.matrix.session import SESSION, read_session
from bot.settings import Settings
from bot.state import DATABASE, PRESENCE, make_private, open_checked_state, read_presence


async def test_a_start_refuses_a_database_that_is_damaged_inside(tmp_path: Path) -> None:
    settings = Settings.model_validate({"state": {"dir": str(tmp_path)}})
    async with open_checked_state(settings) as store:
        for number in range(300):
            await store.inbox.add(Incoming("cli", "s", str(number), "words " * 20))
    path = tmp_path / DATABASE
    content = path.read_bytes()
    at = content.index(b"words words") // 4096 * 4096
    path.write_bytes(content[:at] + b"\xa5" * 4096 + content[at + 4096 :])
    with pytest.raises(StoreDamaged, match="is damaged and was left as it is; restore a backup"):
        async with open_checked_state(settings):
            pass


def test_folders_that_their_owner_cannot_enter_are_opened(tmp_path: Path) -> None:
    work = tmp_path / "chats" / "doctor" / "work"
    make_private(work)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o600)
    (tmp_path / "chats" / "link").symlink_to(elsewhere)
    for folder in (work, work.parent, work.parent.parent):
        folder.chmod(0o600)
    make_private(tmp_path)
    assert {oct(each.stat().st_mode)[-3:] for each in (work, *work.parents[:2])} == {"700"}
    assert oct(elsewhere.stat().st_mode)[-3:] == "600"


@pytest.mark.parametrize(
    "held", [b"", b"\xff\xfe", b"null", b"[]", b"{}", b'"x"', b"\x1f\x8b", b"[" * 100_000]
)
def test_what_the_bot_keeps_and_cannot_be_read_is_not_there(tmp_path: Path, held: bytes) -> None:
    """Of a presence, a Matrix session and the secret of the codes that thaw: an empty one everybody knows."""
    for name in (PRESENCE, SESSION, totp.KEY_FILE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(held)
    found = (read_presence(tmp_path), read_session(tmp_path), totp.read_secret(tmp_path))
    assert found == (None, None, None)
