"""What is kept of a server's log, and how a server of an earlier backend is known."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend import proc
from backend.server import process as module
from backend.server.process import ServerLog, end_orphan, server_process, write_record
from fakes.patience import soon

HEAD, TAIL = 6, 10
CHUNKS = st.lists(st.text("ab\n", min_size=1, max_size=14).map(str.encode), max_size=12)


@settings(max_examples=60, deadline=None)
@given(CHUNKS)
def test_the_first_chunks_and_as_many_of_the_last_as_have_room_are_kept(
    chunks: list[bytes],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "HEAD_BYTES", HEAD)
        patch.setattr(module, "TAIL_BYTES", TAIL)
        log = ServerLog()
        for chunk in chunks:
            log.feed(chunk)
        whole = b"".join(chunks)
        kept = list(log.tail)
        assert kept == chunks[len(chunks) - len(kept) :]
        if chunks:
            assert kept, "a line that alone has no room is kept whole"
        assert len(kept) <= 1 or sum(map(len, kept)) <= TAIL
        if len(kept) < len(chunks):
            assert sum(map(len, kept)) + len(chunks[-len(kept) - 1]) > TAIL
        assert whole.startswith(log.head)
        assert len(log.head) >= min(HEAD, len(whole))
        assert len(log.head) < HEAD + 14
        assert log.total == len(whole)
        lines = b"".join(kept).decode().splitlines()
        assert log.lines(2) == lines[-2:]
        shown = lines if len(whole) <= TAIL else [*bytes(log.head).decode().splitlines(), *lines]
        assert log.everything() == shown


def test_what_is_no_text_is_shown_all_the_same() -> None:
    log = ServerLog()
    log.feed(b"ready \xff\nnext")
    assert log.lines(5) == log.first() == log.everything() == ["ready \ufffd", "next"]


def test_what_an_idle_server_writes_every_few_seconds_is_not_kept() -> None:
    log = ServerLog()
    for chunk in (b"loaded\n", *[b"1.2 I srv  update_slots: all slots are idle\n"] * 9, b"done\n"):
        log.feed(chunk)
    assert log.lines(5) == log.everything() == ["loaded", "done"]


@pytest.mark.parametrize(
    ("changes", "ended"),
    [({}, True), ({"boot": "another"}, False), ({"started": 1}, False), ({"pid": None}, False)],
    ids=["its own", "another boot", "another process", "no pid"],
)
async def test_only_the_process_that_was_noted_is_ended(
    tmp_path: Path, changes: dict[str, object], ended: bool
) -> None:
    record = tmp_path / "server.json"
    orphan = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
    try:
        write_record(record, orphan.pid)
        record.write_text(json.dumps({**json.loads(record.read_text()), **changes}))
        assert await end_orphan(record) == (orphan.pid if ended else None)
        assert not record.exists()
        assert (proc.state(orphan.pid) in (None, "Z")) is ended
    finally:
        if orphan.returncode is None:
            orphan.kill()
        await orphan.wait()


async def test_an_orphan_that_ignores_the_signal_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TERM_SECONDS", 0.1)
    script = "trap '' TERM; echo; while :; do sleep 600; done"
    orphan = await asyncio.create_subprocess_exec(
        "sh", "-c", script, start_new_session=True, stdout=asyncio.subprocess.PIPE
    )
    assert orphan.stdout
    await orphan.stdout.readline()
    write_record(tmp_path / "r", orphan.pid)
    assert await end_orphan(tmp_path / "r") == orphan.pid
    assert await orphan.wait() == -signal.SIGKILL


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"pid": "x"}'])
async def test_without_a_record_that_can_be_read_there_is_no_orphan(
    tmp_path: Path, text: str | None
) -> None:
    record = tmp_path / "server.json"
    if text is not None:
        record.write_text(text)
    assert await end_orphan(record) is None
    assert not record.exists()


async def test_a_server_lives_as_long_as_the_block_with_all_that_it_started(tmp_path: Path) -> None:
    record = tmp_path / "server.json"
    script = "sleep 600 & echo $!; echo out >&2; wait"
    async with server_process(["sh", "-c", script], {"PATH": os.environ["PATH"]}, record) as it:
        assert json.loads(record.read_text())["pid"] == it.pid
        while len(it.log.lines(9)) < 2:
            await asyncio.sleep(0.001)
        child, said = it.log.lines(9)
        assert said == "out"
        assert os.getpgid(int(child)) == it.pid
        assert not it.exited
    assert it.exited
    await soon(lambda: proc.state(int(child)) in (None, "Z"))  # killed, and on its way out
    assert not record.exists()


async def test_a_server_that_ignores_the_signal_is_killed_after_the_grace(tmp_path: Path) -> None:
    script = "trap '' TERM; echo; while :; do sleep 0.01; done"
    async with server_process(["sh", "-c", script], dict(os.environ), tmp_path / "r") as it:
        while not it.log.total:
            await asyncio.sleep(0.001)
        await it.end(grace=0.1)
        assert await it.wait() == -signal.SIGKILL


async def test_the_log_of_a_server_that_has_ended_is_whole(tmp_path: Path) -> None:
    script = "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; exit 3"
    async with server_process(["sh", "-c", script], dict(os.environ), tmp_path / "r") as it:
        assert await it.wait() == 3
        assert await it.final_log() == [f"line {n}" for n in range(200)]
