"""Files of the backend's state: whole or not at all, private, one process at a time."""

import os
import stat
from pathlib import Path

import pytest

from backend.files import ForeignFolder, exclusive_lock, private_folder, replace_text


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "kept.json"
    replace_text(path, "one")
    replace_text(path, "two", sync=True)
    assert [(file.name, file.read_text()) for file in path.parent.iterdir()] == [
        ("kept.json", "two")
    ]


def test_a_replacement_that_fails_leaves_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    replace_text(path, "one")
    path.with_suffix(".new").mkdir()  # stands for a disk without room
    with pytest.raises(OSError):
        replace_text(path, "two")
    assert path.read_text() == "one"


def test_a_lock_is_held_by_one_and_released(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with exclusive_lock(path), pytest.raises(BlockingIOError), exclusive_lock(path):
        pass
    with exclusive_lock(path):
        pass


def test_a_private_folder_is_its_owners_alone_and_no_link(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(ForeignFolder):
        private_folder(link)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with pytest.raises(ForeignFolder):
        private_folder(folder)
