"""The bot's account, and its first owner: a pairing link, then the first message."""

import asyncio
import io
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.store import Store, open_store
from agent.store.errors import StoreError
from bot.channel import OutgoingMessage
from bot.settings import Settings
from bot.setup import SetupError, json_object
from bot.state import DATABASE

PAIRING_SECONDS = 900.0
LOOK_SECONDS = 0.5
DELIVERY_SECONDS = 60


@dataclass(frozen=True, slots=True)
class NoAccount:
    """`why`: one sentence without the token; `refused`: the server answered and does not know the token."""

    why: str
    refused: bool


async def get_me(base_url: str, token: str) -> dict[str, Any] | NoAccount:
    """The bot's account, or why there is none."""
    body: Any = await json_object(f"{base_url.rstrip('/')}/bot{token}/getMe")
    if isinstance(body, str):
        why = f"The Bot API server {base_url} cannot be reached ({body})."
        return NoAccount(why, refused=False)
    if "ok" not in body:
        return NoAccount(f"There is no Bot API server at {base_url}.", refused=False)
    if not body["ok"]:
        reason = body.get("description", "no reason given")
        return NoAccount(f"Telegram refuses the token: {reason}.", refused=True)
    return dict(body["result"])


async def paired_owners(settings: Settings) -> list[int]:
    """The ids of those who became owners by a pairing link."""
    async with open_services_state(settings.state_dir) as store:
        return await owner_ids(store)


async def owner_ids(store: Store) -> list[int]:
    return [int(owner.person) for owner in await store.people.all("telegram", "owner")]


async def pair(settings: Settings, username: str, say: Callable[[str], None]) -> list[int]:
    """Show a pairing link and wait until somebody has used it; their ids. Raises SetupError when nobody does."""
    import segno

    async with open_services_state(settings.state_dir) as store:
        before = await owner_ids(store)
        code = await store.people.make_code("owner", PAIRING_SECONDS)
        link = f"https://t.me/{username}?start={code}"
        minutes = f"valid for {PAIRING_SECONDS / 60:.0f} minutes"
        say(f"Open this link on your phone and press Start ({minutes}):\n{link}")
        drawn = io.StringIO()  # of half blocks, for a dark or light terminal
        segno.make(link, error="l").terminal(drawn, compact=True)
        say(drawn.getvalue())
        with suppress(TimeoutError):
            async with asyncio.timeout(PAIRING_SECONDS):
                while not (new := [id for id in await owner_ids(store) if id not in before]):
                    await asyncio.sleep(LOOK_SECONDS)
                return new
    raise SetupError("Nobody used the pairing link in time. Run `voltaire setup` for a new one.")


async def first_message(settings: Settings, chats: Sequence[str], text: str) -> None:
    """Put the first message into the outbox and wait until the running bot has delivered it. Raises SetupError."""
    async with open_services_state(settings.state_dir) as store:
        payload = OutgoingMessage(text).to_json()
        ids = [id for chat in chats for id in await store.outbox.add(chat, [payload])]
        try:
            async with asyncio.timeout(DELIVERY_SECONDS):
                for id in ids:
                    while (row := await store.outbox.get(id)) and row.state != "delivered":
                        if row.state in ("failed", "uncertain"):
                            why = f"The first message did not arrive: {row.error or row.state}."
                            how = "Has the owner pressed Start in the chat with the bot?"
                            raise SetupError(f"{why} {how}")
                        await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            why = "The first message was not delivered; see `voltaire status`."
            raise SetupError(why) from None


@asynccontextmanager
async def open_services_state(state: Path) -> AsyncIterator[Store]:
    """The database; root gives its files to the owner of the state folder, the services' user."""
    async with open_store(state / DATABASE) as store:
        if os.geteuid() == 0:
            owner = state.stat()
            for path in state.glob(f"{DATABASE}*"):
                os.chown(path, owner.st_uid, owner.st_gid)
        yield store


async def record_setup(state: Path, **facts: str) -> None:
    """Record in the ledger what the wizard did, where there is a database that can be written."""
    if (state / DATABASE).exists():
        with suppress(StoreError):  # the wizard has done it all the same
            async with open_services_state(state) as store:
                await store.ledger.record("admin", act="setup", by="terminal", **facts)
