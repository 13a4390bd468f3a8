"""What `voltaire setup` installs: the bot's account, its first owner, systemd units."""

import asyncio

from agent.aio import no_answer

ANSWER_SECONDS = 10


class SetupError(Exception):
    """A step cannot be finished; `str` is one sentence, and what was saved so far stays."""


async def json_object(url: str) -> dict[str, object] | str:
    """Fetch a JSON object, {} for other JSON; a str says why nothing came."""
    import aiohttp  # `voltaire upgrade` asks nothing of a server

    try:
        async with (
            asyncio.timeout(ANSWER_SECONDS),  # aiohttp's own may swallow a cancellation
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http,
            http.get(url) as answer,
        ):
            found = await answer.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
        return no_answer(error)
    return found if isinstance(found, dict) else {}
