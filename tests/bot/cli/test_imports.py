"""What a process loads when it starts: nothing of what its chats, its apps or its room do not use."""

import subprocess
import sys

import pytest

ABILITIES = ("agent.voice", "bot.voice", "agent.pictures", "agent.documents", "resvg_py")


@pytest.mark.parametrize(
    ("modules", "looked_for", "loaded"),
    [
        # what speaks answers, and no library of an app
        ("bot.cli.bot", (*ABILITIES, "nio", "telegram"), ["bot.voice", "bot.voice.replies"]),
        ("bot.cli.backend, bot.cli.connect, backend.service", ("agent.", "aiosqlite"), ["agent.aio"]),
    ],
    ids=["bot", "backend"],
)  # fmt: skip
def test_a_process_loads_what_it_uses(
    modules: str, looked_for: tuple[str, ...], loaded: list[str]
) -> None:
    look = f"import sys, {modules}; print(*sorted(m for m in sys.modules if m.startswith({looked_for!r})))"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.split() == loaded
