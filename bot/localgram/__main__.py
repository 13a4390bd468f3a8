"""`python -m bot.localgram`: the server alone, with one person who has begun a private chat."""

import argparse
import asyncio
import secrets
import signal
import sys

from bot.localgram.flood import Limits
from bot.localgram.gram import Localgram

PORT = 8765
REPEAT_SECONDS = 3.0  # as Telegram does


def options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bot.localgram", description="A local Bot API server and its chat page."
    )
    parser.add_argument("--port", type=int, default=PORT, help="0 takes a free one")
    parser.add_argument("--token", default="", help="of the bot; left out, a random one is made")
    parser.add_argument("--owner", type=int, default=1, help="the person's numeric id")
    parser.add_argument("--name", default="You", help="the person's name")
    parser.add_argument("--topics", action="store_true", help="topics in private chats")
    parser.add_argument("--flood", action="store_true", help="refuse calls that come too fast")
    return parser.parse_args(words)


async def serve(chosen: argparse.Namespace) -> None:
    """Until interrupted.

    Raises: OSError when the port is in use.
    """
    token = chosen.token or f"1000001:{secrets.token_urlsafe(24)}"
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Localgram(
        token,
        chosen.port,
        key=secrets.token_urlsafe(16),
        limits=Limits() if chosen.flood else None,
        repeat_seconds=REPEAT_SECONDS,
        topics=chosen.topics,
    ) as gram:
        gram.user(chosen.name, id=chosen.owner, started=True)
        sys.stdout.write(f"page  {gram.page}\nbase  {gram.url}\ntoken {token}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> int:
    chosen = options()
    try:
        asyncio.run(serve(chosen))
    except OSError as error:
        sys.stderr.write(f"Port {chosen.port} cannot be used: {error.strerror}.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
