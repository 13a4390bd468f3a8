"""What the backend has to say reaches the owners, though the disk was full when it said so."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

from agent.store import Store, open_store
from backend.protocol import Alert, Phrase
from bot.channel import OutgoingMessage
from bot.service import pass_on_alerts
from fakes.patience import SECONDS
from fakes.words import saying

HOT = Alert(id=5, at=datetime(2026, 11, 20, tzinfo=UTC), name="heat", level="warning", text="Hot.")


class Backend:
    """Tells one piece of news to whoever has not heard it; `asked` counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.again = asyncio.Event()

    async def events(self, after: int) -> AsyncIterator[Alert]:
        self.asked += 1
        if self.asked == 2:
            self.again.set()
        if after < HOT.id:
            yield HOT


async def writable(store: Store, yes: bool) -> None:
    async with store.database.without_transaction() as tx:
        await tx.run(f"PRAGMA query_only = {'OFF' if yes else 'ON'}")


class Hot(Backend):
    async def events(self, after: int) -> AsyncIterator[Alert]:
        yield HOT.model_copy(update={"text": "The GPU is slowing itself down because of heat."})
        await asyncio.Event().wait()


async def owners() -> list[str]:
    return ["tg:7"]


async def test_news_that_could_not_be_written_down_is_passed_on_later(tmp_path: Path) -> None:
    backend = Backend()
    async with open_store(tmp_path / "s.db") as store:
        await writable(store, False)
        added = asyncio.Event()
        store.outbox.on_wake.append(added.set)
        passing = asyncio.create_task(pass_on_alerts(backend, store, owners, pause=0.01))  # type: ignore[arg-type]
        await asyncio.wait_for(backend.again.wait(), SECONDS)
        await writable(store, True)
        await asyncio.wait_for(added.wait(), SECONDS)
        parcel = await store.outbox.next("tg:7")
        passing.cancel()
        await asyncio.wait([passing])
    assert parcel and OutgoingMessage.from_json(parcel.payload).text == "⚠️ Hot."


async def test_each_owner_hears_it_in_their_own_language(tmp_path: Path) -> None:
    async def both() -> list[str]:
        return ["tg:7", "tg:8"]

    async with open_store(tmp_path / "s.db") as store:
        await store.chats.set("tg:8", language="de")
        added = asyncio.Event()
        store.outbox.on_wake.append(added.set)
        passing = asyncio.create_task(pass_on_alerts(Hot(), store, both, pause=0.01))  # type: ignore[arg-type]
        async with asyncio.timeout(SECONDS):
            while not (german := await store.outbox.next("tg:8")):
                await added.wait()
                added.clear()
        english = await store.outbox.next("tg:7")
        passing.cancel()
        await asyncio.wait([passing])
    assert english and english.payload == saying("because of heat")
    assert german and german.payload == saying("wegen Hitze")


class Leaking(Backend):
    async def events(self, after: int) -> AsyncIterator[Alert]:
        yield HOT.model_copy(update={"name": "leak", "text": Phrase("One could read another.")})
        await asyncio.Event().wait()


async def test_a_leak_between_chats_stands_in_the_ledger(tmp_path: Path) -> None:
    async with open_store(tmp_path / "s.db") as store:
        passing = asyncio.create_task(pass_on_alerts(Leaking(), store, owners, pause=0.01))  # type: ignore[arg-type]
        async with asyncio.timeout(SECONDS):
            while not (rows := await store.ledger.rows()):
                await asyncio.sleep(0.01)
        passing.cancel()
        await asyncio.wait([passing])
    assert [(row.kind, row.facts) for row in rows] == [
        ("leak", '{"found": "One could read another."}')
    ]
