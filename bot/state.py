"""The state folder and its database."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from agent.store import Store, open_store
from bot.settings import Settings

DATABASE = "voltaire.db"


def make_private(folder: Path) -> None:
    """Make the folder, readable to its owner alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_state(settings: Settings) -> AbstractAsyncContextManager[Store]:
    """The database; the state folder is made where there is none."""
    make_private(settings.state_dir)
    return open_store(settings.state_dir / DATABASE)
