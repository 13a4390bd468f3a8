"""A full disk: the person is told once, nothing is lost, and what waited is answered by itself."""

import asyncio
from pathlib import Path

import pytest

from agent.store import Store
from bot.localgram import Localgram, Person
from bot.texts import TEXTS
from fakes.bot_process import Process
from fakes.bot_running import OWNER, TelegramScenario
from fakes.model_scripted import ModelServer, says
from fakes.patience import soon
from fakes.words import saying

# A disk of 128 MiB that this process sees alone; full while the file `full` is there.
SMALL_DISK = """
import os, threading, time
from pathlib import Path
from fakes.small_disk import Disk
disk, folder = Disk(Path({folder!r}) / "disk"), Path({folder!r})
os.environ["VOLTAIRE_STATE__DIR"] = str(disk.folder)
(folder / "missing").write_text(disk.missing)
def fill():
    while True:
        time.sleep(0.02)
        if (folder / "full").exists():
            disk.fill()
            (folder / "filled").touch()
        elif (folder / "filled").exists():
            disk.empty()
            (folder / "filled").unlink()
threading.Thread(target=fill, daemon=True).start()
"""
NOT_KEPT = saying("full", "waits", "not lost")


def said(person: Person) -> list[str]:
    return [m.text for m in person.messages() if m.sender.is_bot]


async def full(store: Store, yes: bool) -> None:
    async with store.database.without_transaction() as tx:
        await tx.run("VACUUM")  # no page is free
        pages = await tx.value("PRAGMA page_count") if yes else 1 << 30
        await tx.run(f"PRAGMA max_page_count = {pages}")


async def test_whoever_writes_is_told_once_in_each_outage(scenario: TelegramScenario) -> None:
    max_ = scenario.gram.user("Max Stranger", id=333, started=True)
    long = "x" * 4000  # of two pages: no row that is free has room for it
    async with scenario.open() as run:
        assert (await scenario.owner.ask("hello")).text == "Hello."
        for outage in (1, 2):
            await full(run.store, True)
            await scenario.owner.send(f"{long}{outage}")
            await scenario.owner.next_message(where=lambda m: m.text == NOT_KEPT)
            await max_.send(long)
            await scenario.owner.send(f"{long}, more")
            await full(run.store, False)
            rows = "SELECT count(*) FROM inbox WHERE state = 'done'"
            while await run.store.database.value(rows) != 1 + 2 * outage:
                await asyncio.sleep(0.01)
            await soon(lambda: said(max_) == [TEXTS.stranger])
    assert said(max_) == [TEXTS.stranger]
    assert [text for text in said(scenario.owner) if text == NOT_KEPT] == [NOT_KEPT] * 2


async def test_a_real_full_disk(gram: Localgram, tmp_path: Path) -> None:
    olga = gram.user("Olga Owner", id=OWNER, started=True)
    async with ModelServer(script=lambda request: says("Hello.")) as model:
        process = Process(gram, tmp_path, model.url, OWNER)
        process.first = SMALL_DISK.format(folder=str(tmp_path))
        async with process.running():
            assert (await olga.ask("hello")).text == "Hello."
            if missing := (tmp_path / "missing").read_text():
                pytest.skip(missing)
            (tmp_path / "full").touch()
            await soon(lambda: (tmp_path / "filled").exists())
            await olga.send("is there room?" * 200)
            await olga.next_message(where=lambda m: m.text == NOT_KEPT)
            (tmp_path / "full").unlink()
            await olga.next_message(where=lambda m: m.text == "Hello.")
            await process.stop()
    assert [text for text in said(olga) if text == "Hello."] == ["Hello."] * 2
    assert "Traceback" not in process.log
