"""What an account in the configuration changes: a line of /commands.txt, rows of the ledger, and no byte of a prompt."""

import json
from pathlib import Path

from agent.calendar.accounts import Calendars
from agent.prompt import system_text
from agent.sandbox.observer import Observer
from agent.shell import registry
from agent.store import Store, open_store
from backend.client import BackendClient
from bot.agent_config import open_agent
from bot.secret_values import secret_values
from bot.settings import AgentSection, CalendarSection, Settings, StateSection
from fakes.radicale import Calendar


def settings(folder: Path, **accounts: CalendarSection) -> Settings:
    return Settings(state=StateSection(dir=folder), agent=AgentSection(calendar=accounts))


async def test_the_prefix_is_the_same_to_the_byte(tmp_path: Path) -> None:
    prefixes, listings = [], []
    for name, accounts in (("off", {}), ("on", {"work": CalendarSection(url="https://x.example")})):
        folder = tmp_path / name
        folder.mkdir()
        async with (
            open_store(folder / "voltaire.db") as store,
            open_agent(settings(folder, **accounts), BackendClient(folder / "none"), store) as it,
        ):
            prefixes.append((system_text() + json.dumps(it.schemas)).encode())
            listings.append(registry.listing(await it.tool_context("c")))
    assert prefixes[0] == prefixes[1]
    assert "calendar" not in listings[0] and "calendar add" in listings[1]


async def test_the_ledger_has_the_server_and_the_use_of_the_password(
    tmp_path: Path, home: Calendar
) -> None:
    async def rows(store: Store, kind: str) -> list[str]:
        return [json.dumps(row.facts) for row in await store.ledger.rows() if row.kind == kind]

    async with open_store(tmp_path / "voltaire.db") as store:
        calendars = Calendars({"work": home.account}, "UTC")
        observer = Observer(store.ledger, "c")
        await calendars.ask("work", "read", observer, first="2026-10-01", last="2026-10-02")
        (connection,), (secret,) = await rows(store, "connection"), await rows(store, "secret")
    host = home.url.removeprefix("http://").strip("/")
    assert host in connection and host in secret and "agent.calendar.work.password_file" in secret
    assert home.password not in connection + secret


def test_the_password_is_watched_for_in_what_leaves(tmp_path: Path, home: Calendar) -> None:
    found = secret_values(settings(tmp_path, work=CalendarSection(**home.account)), {})
    assert found["agent.calendar.work.password_file"] == home.password
