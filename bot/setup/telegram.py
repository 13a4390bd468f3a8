"""The bot's account, and its first owner: a pairing link, then the first message."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bot.setup import SetupError, json_object

Change = Callable[..., Awaitable[Any]]
"""Has the process that holds the state carry out one of bot.acts, with its fields."""

PAIRING_SECONDS = 900.0
LOOK_SECONDS = 0.5
DELIVERY_SECONDS = 60


@dataclass(frozen=True, slots=True)
class NoAccount:
    """Why a token gave no account, in one sentence without the token; `refused`: the server has rejected it."""

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
        return NoAccount(f"{base_url} refuses the token: {reason}.", refused=True)
    return dict(body["result"])


async def pair(change: Change, username: str, say: Callable[[str], None]) -> list[int]:
    """Show a pairing link, wait until somebody has used it, and return their ids. Raises SetupError if nobody does."""
    import segno

    before = await change("owners")
    code = await change("pairing-code", seconds=PAIRING_SECONDS)
    link = f"https://t.me/{username}?start={code}"
    minutes = f"valid for {PAIRING_SECONDS / 60:.0f} minutes"
    say(f"Open this link on your phone and press Start ({minutes}):\n{link}")
    say(f"Or write to @{username}: /start {code}")
    drawn = io.StringIO()  # of half blocks, for a dark or light terminal
    segno.make(link, error="l").terminal(drawn, compact=True)
    say(drawn.getvalue())
    with suppress(TimeoutError):
        async with asyncio.timeout(PAIRING_SECONDS):
            while not (new := [id for id in await change("owners") if id not in before]):
                await asyncio.sleep(LOOK_SECONDS)
            return new
    raise SetupError("Nobody used the pairing link in time. Run `voltaire setup` for a new one.")


async def first_message(change: Change, chats: Sequence[str], text: str) -> None:
    """Put the first message into the outbox and wait until the running bot has delivered it. Raises SetupError."""
    ids = [await change("post", chat=chat, text=text) for chat in chats]
    try:
        async with asyncio.timeout(DELIVERY_SECONDS):
            for id in ids:
                while (row := await change("posted", id=id)) and row["state"] != "delivered":
                    if row["state"] in ("failed", "uncertain"):
                        why = f"The first message did not arrive: {row['error'] or row['state']}."
                        how = "Has the owner pressed Start in the chat with the bot?"
                        raise SetupError(f"{why} {how}")
                    await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        why = "The first message was not delivered; see `voltaire status`."
        raise SetupError(why) from None
