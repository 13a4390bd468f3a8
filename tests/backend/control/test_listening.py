"""The UNIX sockets that the backend and the owner of the state serve on."""

import os
import stat
import threading
from pathlib import Path

import pytest
from aiohttp import web

from backend.control.listening import listen_on


@pytest.mark.parametrize(("group", "mode"), [(False, 0o600), (True, 0o660)])
async def test_the_socket_is_private(tmp_path: Path, group: bool, mode: int) -> None:
    path = tmp_path / "a.sock"
    for _ in range(2):  # the second one takes the place of one that a killed process left
        async with listen_on(web.Application(), path, group=group):
            assert stat.S_IMODE(path.stat().st_mode) == mode
    assert not path.exists()


async def test_a_folder_that_another_thread_makes_meanwhile_can_be_entered(tmp_path: Path) -> None:
    """The umask belongs to the process: changed for the socket, it made folders of mode 0600."""
    done = threading.Event()
    made: list[Path] = []

    def make_folders() -> None:
        while not done.is_set():
            os.mkdir(folder := tmp_path / str(len(made)))
            made.append(folder)

    thread = threading.Thread(target=make_folders)
    thread.start()
    try:
        for number in range(200):
            async with listen_on(web.Application(), tmp_path / f"{number}.sock"):
                pass
    finally:
        done.set()
        thread.join()
    assert [folder for folder in made if not folder.stat().st_mode & stat.S_IXUSR] == []
