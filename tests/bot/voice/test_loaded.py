"""What a bot whose chats have no pictures and no voice loads of them: those that speak answers."""

import subprocess
import sys

ABILITIES = ("agent.voice", "bot.voice", "agent.pictures", "agent.documents", "resvg_py")


def test_a_bot_loads_nothing_of_what_its_chats_do_not_use() -> None:
    look = f"import sys, bot.cli.bot; print(*sorted(m for m in sys.modules if m.startswith({ABILITIES!r})))"
    shown = subprocess.run(
        [sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=100
    )
    assert shown.stdout.split() == ["bot.voice", "bot.voice.replies"]
