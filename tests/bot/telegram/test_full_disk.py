"""A full disk: the person is told once, nothing is lost, and what waited is answered by itself."""

import asyncio

from agent.store import Store
from bot.texts import TEXTS
from fakes.bot_running import TelegramScenario
from fakes.localgram import Person
from fakes.patience import soon
from fakes.words import saying

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
