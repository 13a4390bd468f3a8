"""The state folder."""

from pathlib import Path

DATABASE = "voltaire.db"


def private(folder: Path) -> None:
    """Make it, readable to its owner alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
